/* A fully_connected whose matrix is frozen, with a trained update of low rank. */
#ifndef REMAT_LAYERS_LORA_H
#define REMAT_LAYERS_LORA_H

#include "layers/fully_connected.h"

typedef struct lora_options {
    fully_connected_options linear; /* without an activation */
    uint64_t rank;
    double alpha, dropout;
} lora_options;

extern const layer_type layer_type_lora;

#endif
