/* The activations, for every type that has one. */
#ifndef REMAT_LAYERS_ACTIVATION_H
#define REMAT_LAYERS_ACTIVATION_H

#include "layers/layer.h"

/* Softmax is not pointwise, so it is not an activation_kind. Its number follows the last one of these. */
enum { ACTIVATION_SOFTMAX = ACTIVATION_SWISH + 1 };

typedef struct activation_options {
    uint32_t activation;
} activation_options;

extern const layer_type layer_type_activation;
extern const char *const activation_names[]; /* in the order of activation_kind, then softmax; ends with NULL */

#endif
