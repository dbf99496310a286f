/* reshape: the same values in another shape. */
#include "layers/layer_resolve.h"

#include <inttypes.h>

typedef struct reshape_options {
    layer_shape target;
} reshape_options;

static const property properties[] = {
    {"target_shape", PROPERTY_DIMS, offsetof(reshape_options, target), NULL, 0, 0, NULL, "the new shape: c:h:w"},
    {0},
};

static remat_status resolve(remat_context *context, layer_node *layer)
{
    const reshape_options *options = layer->options;
    REMAT_TRY(layer_set_output(context, layer, options->target));
    if (layer_values(layer->output) != layer_values(layer->inputs[0]))
        return remat_fail(context, REMAT_INVALID, NULL,
                          "reshape: target_shape %s has %" PRIu64 " values, but the input %s has %" PRIu64,
                          layer_shape_write(layer->output).text, layer_values(layer->output),
                          layer_shape_write(layer->inputs[0]).text, layer_values(layer->inputs[0]));
    layer->view = layer->passes_gradient = true;
    return REMAT_OK;
}

const layer_type layer_type_reshape = {
    .name = "reshape",
    .summary = "the same values in another shape",
    .hint = REMAT_OTHER,
    .options_bytes = sizeof(reshape_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .resolve = resolve,
};
