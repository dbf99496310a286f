/* Initial weights: the choices of the property weight_initializer. */
#ifndef REMAT_LAYERS_INITIALIZER_H
#define REMAT_LAYERS_INITIALIZER_H

#include "layers/layer.h"

extern const char *const initializer_names[]; /* ends with NULL */

typedef struct initializer {
    uint32_t choice; /* position in initializer_names */
    double scale;    /* the deviation of `normal` */
} initializer;

/* The two properties, for a field `name` of type initializer in an options struct. */
#define INITIALIZER_PROPERTIES(options, name)                                                                       \
    {"weight_initializer",                                                                                          \
     PROPERTY_CHOICE,                                                                                               \
     offsetof(options, name.choice),                                                                                \
     "default",                                                                                                     \
     0,                                                                                                             \
     0,                                                                                                             \
     initializer_names,                                                                                             \
     "how the weight starts; default: uniform within 1/sqrt(inputs of a unit), the bias too; others: a bias of 0"}, \
    {                                                                                                               \
        "init_scale", PROPERTY_NUMBER, offsetof(options, name.scale), "0.02", 0, 0, NULL,                           \
            "the deviation of weight_initializer=normal"                                                            \
    }

/* Appends the weight, and the bias if `outputs` is not 0. `fan_in` and `fan_out` are the inputs and outputs of a
 * unit. */
remat_status initializer_add(remat_context *context, layer_node *layer, const initializer *how, const uint64_t dims[4],
                             uint64_t fan_in, uint64_t fan_out, uint64_t outputs);

#endif
