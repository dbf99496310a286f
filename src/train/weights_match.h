/* Which tensors of a weights file are the parameters of a network, by their own names, by PyTorch's, or by a file of
 * names; and reading them. */
#ifndef REMAT_TRAIN_WEIGHTS_MATCH_H
#define REMAT_TRAIN_WEIGHTS_MATCH_H

#include "data/safetensors.h"
#include "train/torch_names.h"

/* Where the values of one parameter come from. */
typedef struct weight_source {
    const safetensors_tensor *parts[2]; /* both NULL: nowhere, it keeps the values that it has */
    uint64_t first[2], values[2];       /* of each part: the values that are taken */
    bool transposed;                    /* the matrix is stored the other way round */
} weight_source;

typedef struct weights_match {
    remat_context *context;
    const char *path;
    const safetensors *file;
    const remat_network *network;
    const weight_names *names; /* NULL: none */
    bool partial;  /* what is missing or has another shape keeps its values, and is told by warnings. Of position
                   * embeddings of another length, the positions that both have are taken */
    bool adapters; /* the file has adapters, and none of the other weights */
    weight_source *sources; /* for each parameter; filled by weights_match_find */
} weights_match;

/* Finds the parameters. REMAT_BAD_INPUT: one is missing or has another shape, and the match is not partial.
 * REMAT_NO_MEMORY. weights_match_release releases what it allocated, also after a failure. */
remat_status weights_match_find(weights_match *match);
void weights_match_release(weights_match *match);

/* Whether the values that will be read are as they were written. REMAT_BAD_INPUT, REMAT_IO. */
remat_status weights_match_check(const weights_match *match);

/* Whether the values of a parameter are those of one tensor, in the same order. Then some of them can be read. */
bool weights_match_is_plain(const weights_match *match, size_t parameter);
remat_status weights_match_read_part(const weights_match *match, size_t parameter, uint64_t first, float *to,
                                     size_t count);

/* Reads the values of one parameter; those that its source does not have stay. */
remat_status weights_match_read(const weights_match *match, size_t parameter, float *to);

#endif
