/* rms_normalization: every row of the last dimension brought to mean square 1, then gain. No mean, no shift. */
#include "layers/layer_resolve.h"

typedef struct rms_normalization_options {
    double epsilon;
} rms_normalization_options;

static const property properties[] = {
    {"epsilon", PROPERTY_NUMBER, offsetof(rms_normalization_options, epsilon), "1e-6", 0, 0, NULL,
     "added to the mean square before its root"},
    {0},
};

static remat_status resolve(remat_context *context, layer_node *layer)
{
    uint64_t rows = layer_input_rows(layer, 0), width = layer->inputs[0].w;
    REMAT_TRY(layer_set_output(context, layer, layer->inputs[0]));
    REMAT_TRY(layer_add_parameter(context, layer, "gain", (uint64_t[4]){width}, LAYER_ONES, 0));
    REMAT_TRY(layer_add_saved(context, layer, "scales", rows, sizeof(real)));
    REMAT_TRY(layer_set_workspace(context, layer, normalize_workspace(rows, width), &layer->derivative_workspace));
    layer->derivative_needs = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_SAVED;
    layer->derivative_in_place = true;
    layer_set_pointwise_flops(layer, 6, 11);
    return REMAT_OK;
}

static void forward(const layer_node *layer, const layer_call *call)
{
    const rms_normalization_options *options = layer->options;
    call->kernels->normalize(call->run, layer_input_rows(layer, 0), layer->inputs[0].w, (real)options->epsilon,
                             call->inputs[0], call->parameters[0], NULL, call->output, NULL, call->saved[0]);
}

/* One pass for all gradients. */
static void derivative(const layer_node *layer, const layer_call *call)
{
    call->kernels->normalize_backward(call->run, layer_input_rows(layer, 0), layer->inputs[0].w, call->inputs[0],
                                      call->parameters[0], NULL, call->saved[0], call->d_output, call->d_inputs[0],
                                      call->accumulate_inputs[0], call->gradients[0], NULL,
                                      call->accumulate_gradients[0], call->workspace);
}

const layer_type layer_type_rms_normalization = {
    .name = "rms_normalization",
    .summary = "every row to mean square 1, then gain",
    .hint = REMAT_NORM,
    .options_bytes = sizeof(rms_normalization_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .may_leave_output = true,
    .resolve = resolve,
    .forward = forward,
    .derivative = derivative,
};
