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

/* The property of a type that may have an activation after it. */
#define ACTIVATION_PROPERTY(options, name)                                                      \
    {                                                                                           \
        "activation", PROPERTY_CHOICE, offsetof(options, name), "none", 0, 0, activation_names, \
            "an activation after it"                                                            \
    }

/* For `expand` of such a type: the layer with the options `plain`, which have no activation, and the activation. */
remat_status activation_expand(layer_parts *parts, const layer_type *type, const void *plain, uint32_t activation);

#endif
