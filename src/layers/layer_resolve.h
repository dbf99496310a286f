/* Helper functions for resolve(): checked sizes, parameters, saved tensors, and messages. */
#ifndef REMAT_LAYERS_LAYER_RESOLVE_H
#define REMAT_LAYERS_LAYER_RESOLVE_H

#include "base/error.h"
#include "layers/layer.h"

/* A shape as a property says it, "3:32:32", for messages. */
typedef struct layer_shape_text {
    char text[64];
} layer_shape_text;
layer_shape_text layer_shape_write(layer_shape shape);
bool layer_shapes_equal(layer_shape a, layer_shape b);
/* Fails unless all inputs have the shape of the first. */
remat_status layer_require_equal_shapes(remat_context *context, const layer_node *layer);

/* The values of input i in the whole batch, and its rows: all dimensions but the last. */
uint64_t layer_input_values(const layer_node *layer, uint32_t i);
uint64_t layer_input_rows(const layer_node *layer, uint32_t i);

/* a * b * c operations, at most 2^63 - 1, so that a huge cost does not wrap around. */
uint64_t layer_flops(uint64_t a, uint64_t b, uint64_t c);
/* Sets the costs of pointwise work: so many operations for each value of the output. */
void layer_set_pointwise_flops(layer_node *layer, uint64_t forward, uint64_t backward);

/* Whether a batch of this shape stays below 2^63 bytes; fails with a message otherwise. */
remat_status layer_check_size(remat_context *context, const layer_node *layer, layer_shape shape, uint64_t batch);
/* Checks the size of the shape and makes it the output. */
remat_status layer_set_output(remat_context *context, layer_node *layer, layer_shape shape);

/* Appends a parameter of the layer's element type. Weight decay applies to it if it has two dimensions or more. Unused
 * dims are 0. */
remat_status layer_add_parameter(remat_context *context, layer_node *layer, const char *name, const uint64_t dims[4],
                                 layer_fill fill, double fill_scale);
/* Appends a tensor of `count` values that forward saves for the backward. */
remat_status layer_add_saved(remat_context *context, layer_node *layer, const char *name, uint64_t count,
                             remat_dtype dtype);
/* The type in which the layer keeps sums and statistics. */
remat_dtype layer_statistics_dtype(const layer_node *layer);

/* *bytes = those of `count` values of the layer's type, or a failure. */
remat_status layer_set_workspace(remat_context *context, const layer_node *layer, uint64_t count, uint64_t *bytes);

/* A tensor without an address, to ask for the workspace of an operation. */
tensor_ref layer_tensor_like(remat_dtype dtype);

#endif
