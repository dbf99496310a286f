/* input: where a batch comes in. The model fills its output from the data. */
#include "layers/layer_resolve.h"

typedef struct input_options {
    layer_shape shape;
} input_options;

static const property properties[] = {
    {"input_shape", PROPERTY_DIMS, offsetof(input_options, shape), NULL, 0, 0, NULL, "the shape of a sample: c:h:w"},
    {0},
};

static remat_status resolve(remat_context *context, layer_node *layer)
{
    const input_options *options = layer->options;
    return layer_set_output(context, layer, options->shape);
}

const layer_type layer_type_input = {
    .name = "input",
    .summary = "an input of the model, from the data",
    .hint = REMAT_OTHER,
    .options_bytes = sizeof(input_options),
    .properties = properties,
    .resolve = resolve,
};
