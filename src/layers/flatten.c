/* flatten: a sample as one row. */
#include "layers/layer_resolve.h"

static remat_status resolve(remat_context *context, layer_node *layer)
{
    layer->view = layer->passes_gradient = true;
    return layer_set_output(context, layer, (layer_shape){1, 1, layer_values(layer->inputs[0])});
}

const layer_type layer_type_flatten = {
    .name = "flatten",
    .summary = "a sample as one row: 1:1:values",
    .hint = REMAT_OTHER,
    .min_inputs = 1,
    .max_inputs = 1,
    .resolve = resolve,
};
