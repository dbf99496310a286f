/* The part of multi_head_attention between its projections. */
#ifndef REMAT_LAYERS_ATTENTION_CORE_H
#define REMAT_LAYERS_ATTENTION_CORE_H

#include "layers/layer.h"

typedef struct attention_core_options {
    uint64_t num_heads;
    bool causal;
    uint64_t num_key_heads; /* with three inputs: heads of keys and values; 0: as many */
    bool positions;         /* the last input holds the position of every step */
    uint64_t cache;         /* rows of keys and values that are kept from run to run; 0: none */
    uint64_t window;        /* steps that a step sees where it is causal, itself included; 0: all */
} attention_core_options;

extern const layer_type layer_type_attention_core;

#endif
