/* Random models, made through the public calls: chains and graphs with sums, products, shared inputs, tied weights, on
 * rows, sequences, images and tokens. Tiny, so that many of them run in a second. */
#ifndef TESTS_RANDOM_MODEL_H
#define TESTS_RANDOM_MODEL_H

#include <remat/model.h>

typedef struct random_model_options {
    uint64_t seed;         /* the same one gives the same layers, whatever the rest says about blocks and settings */
    unsigned layers;       /* between input and head, about */
    unsigned block;        /* so many layers in a row are a block, and the next so many; 0: no blocks */
    bool smooth;           /* only functions with a derivative everywhere: central differences work */
    unsigned frozen;       /* a chance in 100 that a layer is frozen */
    bool separate;         /* samples do not see each other and nothing is drawn: no batch normalization, no dropout */
    const char *optimizer; /* NULL: any, with any settings */
    int clip;              /* 0: no, 1: yes, -1: any */
    unsigned accumulate;   /* 0: any */
    unsigned batch;        /* 0: any */
} random_model_options;

/* The model is compiled and has random data. `layer_count` gets the layers that a block may hold; it may be NULL. */
remat_status random_model_make(remat_context *context, const random_model_options *options, remat_model **model,
                               size_t *layer_count);

#endif
