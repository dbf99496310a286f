/* Code that fully_connected shares with projection_cross_entropy, which replaces it before a loss. Both have the same
 * options. */
#ifndef REMAT_LAYERS_FULLY_CONNECTED_H
#define REMAT_LAYERS_FULLY_CONNECTED_H

#include "layers/initializer.h"

typedef struct fully_connected_options {
    uint64_t unit, multiple;
    bool bias;
    const char *shared_from;
    uint32_t activation;
    initializer start;
} fully_connected_options;

extern const layer_type layer_type_fully_connected, layer_type_projection_cross_entropy;
extern const property fully_connected_properties[];

/* Finds the number of units from the options and the input, and appends weight [units, width] and bias. */
remat_status fully_connected_resolve_units(remat_context *context, layer_node *layer, uint64_t *units);

/* The three GEMMs, over `rows` rows. `more`: these are not the first rows, so the gradient is added to that of the
 * earlier rows. */
remat_status fully_connected_forward(const layer_call *call, size_t rows, size_t in, size_t units, tensor_ref x,
                                     tensor_ref y);
remat_status fully_connected_weight_gradient(const layer_call *call, size_t rows, size_t in, size_t units, tensor_ref x,
                                             tensor_ref dy, bool more);
remat_status fully_connected_input_gradient(const layer_call *call, size_t rows, size_t in, size_t units, tensor_ref dy,
                                            tensor_ref dx);

#endif
