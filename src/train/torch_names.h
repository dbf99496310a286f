/* What PyTorch calls the parameters of a model, where its modules have other names than the layers. docs/pytorch-weights.md has
 * the table. */
#ifndef REMAT_TRAIN_TORCH_NAMES_H
#define REMAT_TRAIN_TORCH_NAMES_H

#include "data/weight_names.h"
#include "model/network.h"

/* A parameter of ours is made of one or two of theirs, whole or some rows of it. */
typedef struct torch_part {
    char name[WEIGHT_NAME_TEXT];
    uint64_t first_row, rows; /* of their first dimension; 0, 0: all */
} torch_part;

/* The layer that has the parameter, as the model describes it: "attn" for the part "attn.qkv". Cut off where it is longer
 * than WEIGHT_NAME_TEXT. */
void torch_names_layer(const remat_network *network, size_t parameter, char layer[WEIGHT_NAME_TEXT]);

/* Writes the parts as PyTorch calls them, with `prefix` as the name of the module. Returns how many there are, 1 or 2; 0:
 * there is no such form. `packed`: of cross-attention, whether its matrices are one; otherwise it is no matter. */
size_t torch_names_write(const remat_network *network, size_t parameter, const char *prefix, bool packed,
                         torch_part parts[2]);

/* Whether it belongs to cross-attention, which PyTorch stores in one of two forms. */
bool torch_names_is_cross(const remat_network *network, size_t parameter);

#endif
