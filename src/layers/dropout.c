/* dropout: in training, sets random values to 0 and scales the others up. The choice depends only on the layer's random
 * stream, so nothing is saved: a recomputed forward and the backward draw the same numbers. */
#include "layers/layer_resolve.h"

typedef struct dropout_options {
    double rate;
} dropout_options;

static const property properties[] = {
    {"rate", PROPERTY_NUMBER, offsetof(dropout_options, rate), "0.5", 0, 1, NULL, "the share of values that become 0"},
    {0},
};

/* As the kernels have it, in the layer's type. */
static double keep_of(const layer_node *layer)
{
    const dropout_options *options = layer->options;
    return 1 - options->rate;
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    REMAT_TRY(layer_set_output(context, layer, layer->inputs[0]));
    if ((float)keep_of(layer) == 1) {
        layer->view = layer->passes_gradient = true;
        return REMAT_OK;
    }
    layer->forward_in_place = layer->input_gradient_in_place = true;
    layer_set_pointwise_flops(layer, 15, 15);
    return REMAT_OK;
}

static remat_status drop(const layer_node *layer, const layer_call *call, tensor_ref x, tensor_ref y, bool accumulate)
{
    return record_dropout(call->calls, &(op_dropout){.x = x,
                                                     .y = y,
                                                     .step = call->step,
                                                     .count = layer_input_values(layer, 0),
                                                     .layer = call->number,
                                                     .keep = keep_of(layer),
                                                     .accumulate = accumulate});
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    if (call->training)
        return drop(layer, call, call->inputs[0], call->output, false);
    if (call->output.at == call->inputs[0].at)
        return REMAT_OK;
    return record_copy(call->calls,
                       &(op_copy){.x = call->inputs[0], .y = call->output, .count = layer_input_values(layer, 0)});
}

static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    if (!call->d_inputs[0].at)
        return REMAT_OK;
    return drop(layer, call, call->d_output, call->d_inputs[0], call->accumulate_inputs[0]);
}

const layer_type layer_type_dropout = {
    .name = "dropout",
    .summary = "sets some values to 0 at random, in training",
    .hint = REMAT_OTHER,
    .options_bytes = sizeof(dropout_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};
