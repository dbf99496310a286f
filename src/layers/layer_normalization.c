/* layer_normalization: every row of the last dimension brought to mean 0 and deviation 1, then gain and shift. */
#include "layers/layer_resolve.h"

typedef struct layer_normalization_options {
    double epsilon;
} layer_normalization_options;

static const property properties[] = {
    {"epsilon", PROPERTY_NUMBER, offsetof(layer_normalization_options, epsilon), "1e-5", 0, 0, NULL,
     "added to the variance before its root"},
    {0},
};

enum { GAIN, SHIFT };
enum { MEANS, SCALES };

static remat_status resolve(remat_context *context, layer_node *layer)
{
    uint64_t rows = layer_input_rows(layer, 0), width = layer->inputs[0].w;
    REMAT_TRY(layer_set_output(context, layer, layer->inputs[0]));
    REMAT_TRY(layer_add_parameter(context, layer, "gain", (uint64_t[4]){width}, LAYER_ONES, 0));
    REMAT_TRY(layer_add_parameter(context, layer, "shift", (uint64_t[4]){width}, LAYER_ZEROS, 0));
    REMAT_TRY(layer_add_saved(context, layer, "means", rows, sizeof(real)));
    REMAT_TRY(layer_add_saved(context, layer, "scales", rows, sizeof(real)));
    REMAT_TRY(layer_set_workspace(context, layer, normalize_workspace(rows, width), &layer->derivative_workspace));
    layer->derivative_needs = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_SAVED;
    layer->derivative_in_place = true;
    layer_set_pointwise_flops(layer, 8, 14);
    return REMAT_OK;
}

static void forward(const layer_node *layer, const layer_call *call)
{
    const layer_normalization_options *options = layer->options;
    call->kernels->normalize(call->run, layer_input_rows(layer, 0), layer->inputs[0].w, (real)options->epsilon,
                             call->inputs[0], call->parameters[GAIN], call->parameters[SHIFT], call->output,
                             call->saved[MEANS], call->saved[SCALES]);
}

/* One pass for all gradients. */
static void derivative(const layer_node *layer, const layer_call *call)
{
    call->kernels->normalize_backward(call->run, layer_input_rows(layer, 0), layer->inputs[0].w, call->inputs[0],
                                      call->parameters[GAIN], call->saved[MEANS], call->saved[SCALES], call->d_output,
                                      call->d_inputs[0], call->accumulate_inputs[0], call->gradients[GAIN],
                                      call->gradients[SHIFT], call->accumulate_gradients[GAIN], call->workspace);
}

const layer_type layer_type_layer_normalization = {
    .name = "layer_normalization",
    .summary = "every row to mean 0 and deviation 1, then gain and shift",
    .hint = REMAT_NORM,
    .options_bytes = sizeof(layer_normalization_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .may_leave_output = true,
    .resolve = resolve,
    .forward = forward,
    .derivative = derivative,
};
