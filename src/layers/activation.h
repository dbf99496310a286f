/* The activations, for every type that has one. */
#ifndef REMAT_LAYERS_ACTIVATION_H
#define REMAT_LAYERS_ACTIVATION_H

#include "layers/layer.h"

/* Those of the kernels, and softmax, which is not pointwise. */
enum { ACTIVATION_NONE = KERNEL_NONE, ACTIVATION_SOFTMAX = KERNEL_SWISH + 1 };

typedef struct activation_options {
    uint32_t activation;
} activation_options;

extern const layer_type layer_type_activation;
extern const char *const activation_names[]; /* in the order of kernel_activation, then softmax; ends with NULL */

/* The function that an activation layer has; KERNEL_NONE for softmax, none and layers of other types. */
kernel_activation activation_pointwise(const layer_node *layer);

#endif
