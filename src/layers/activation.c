/* activation: one function of every value, or the softmax of every row. */
#include "layers/activation.h"

#include "layers/layer_resolve.h"

const char *const activation_names[] = {
    [ACTIVATION_NONE] = "none",      [ACTIVATION_RELU] = "relu",         [ACTIVATION_LEAKY_RELU] = "leaky_relu",
    [ACTIVATION_GELU_TANH] = "gelu", [ACTIVATION_GELU_ERF] = "gelu_erf", [ACTIVATION_SIGMOID] = "sigmoid",
    [ACTIVATION_TANH] = "tanh",      [ACTIVATION_SWISH] = "swish",       [ACTIVATION_SOFTMAX] = "softmax",
    [ACTIVATION_SOFTMAX + 1] = NULL};

/* Operations for each value, forward and backward, roughly. */
static const struct cost {
    uint64_t forward, backward;
} costs[] = {[ACTIVATION_NONE] = {0, 0},        [ACTIVATION_RELU] = {1, 1},       [ACTIVATION_LEAKY_RELU] = {2, 2},
             [ACTIVATION_GELU_TANH] = {20, 30}, [ACTIVATION_GELU_ERF] = {25, 40}, [ACTIVATION_SIGMOID] = {12, 3},
             [ACTIVATION_TANH] = {15, 3},       [ACTIVATION_SWISH] = {13, 18},    [ACTIVATION_SOFTMAX] = {15, 5}};

static const property properties[] = {
    {"activation", PROPERTY_CHOICE, offsetof(activation_options, activation), NULL, 0, 0, activation_names,
     "the function; gelu is the tanh form, softmax is along the last dimension"},
    {0},
};

static uint32_t activation_of(const layer_node *layer)
{
    const activation_options *options = layer->options;
    return options->activation;
}

/* relu and leaky_relu save a bit for each value instead of their output, where only they would need that. */
static remat_status save_bits(remat_context *context, layer_node *layer)
{
    layer->needs[LAYER_INPUT_GRADIENT] = LAYER_NEEDS_SAVED;
    return layer_add_saved(context, layer, "positive", (layer_input_values(layer, 0) + 7) / 8, REMAT_UINT8);
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    uint32_t activation = activation_of(layer);
    REMAT_TRY(layer_set_output(context, layer, layer->inputs[0]));
    layer_set_pointwise_flops(layer, costs[activation].forward, costs[activation].backward);
    if (activation == ACTIVATION_NONE) {
        layer->view = layer->passes_gradient = true;
        return REMAT_OK;
    }
    bool reads_output = activation == ACTIVATION_SOFTMAX || activation_reads_output((activation_kind)activation);
    layer->needs[LAYER_INPUT_GRADIENT] = reads_output ? LAYER_NEEDS_OUTPUT : LAYER_NEEDS_INPUT(0);
    layer->forward_in_place = layer->input_gradient_in_place = true;
    return layer->output_unread && activation_is_rectifier((activation_kind)activation) ? save_bits(context, layer)
                                                                                        : REMAT_OK;
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    uint32_t activation = activation_of(layer);
    if (!call->output.at && !call->saved[0].at)
        return REMAT_OK;
    if (activation == ACTIVATION_SOFTMAX)
        return record_softmax(call->calls, &(op_softmax){.x = call->inputs[0],
                                                         .y = call->output,
                                                         .rows = layer_input_rows(layer, 0),
                                                         .columns = layer->inputs[0].w});
    if (call->saved[0].at)
        return record_rectify(call->calls, &(op_rectify){.x = call->inputs[0],
                                                         .y = call->output,
                                                         .positive = call->saved[0],
                                                         .count = layer_input_values(layer, 0),
                                                         .kind = (activation_kind)activation});
    return record_activate(call->calls, &(op_activate){.x = call->inputs[0],
                                                       .y = call->output,
                                                       .count = layer_input_values(layer, 0),
                                                       .kind = (activation_kind)activation});
}

static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    uint32_t activation = activation_of(layer);
    if (!call->d_inputs[0].at)
        return REMAT_OK;
    if (activation == ACTIVATION_SOFTMAX)
        return record_softmax_backward(call->calls, &(op_softmax_backward){.y = call->output,
                                                                           .dy = call->d_output,
                                                                           .dx = call->d_inputs[0],
                                                                           .rows = layer_input_rows(layer, 0),
                                                                           .columns = layer->inputs[0].w,
                                                                           .accumulate = call->accumulate_inputs[0]});
    if (call->saved[0].at)
        return record_rectify_backward(call->calls, &(op_rectify_backward){.positive = call->saved[0],
                                                                           .dy = call->d_output,
                                                                           .dx = call->d_inputs[0],
                                                                           .count = layer_input_values(layer, 0),
                                                                           .kind = (activation_kind)activation,
                                                                           .accumulate = call->accumulate_inputs[0]});
    return record_activate_backward(call->calls, &(op_activate_backward){.x = call->inputs[0],
                                                                         .y = call->output,
                                                                         .dy = call->d_output,
                                                                         .dx = call->d_inputs[0],
                                                                         .count = layer_input_values(layer, 0),
                                                                         .kind = (activation_kind)activation,
                                                                         .accumulate = call->accumulate_inputs[0]});
}

const layer_type layer_type_activation = {
    .name = "activation",
    .summary = "relu, gelu and the usual others",
    .hint = REMAT_OTHER,
    .options_bytes = sizeof(activation_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .may_skip_output = true,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};

remat_status activation_expand(layer_parts *parts, const layer_type *type, const void *plain, uint32_t activation)
{
    const activation_options pointwise = {activation};
    REMAT_TRY(parts->add(parts, type, NULL, (int[]){-1}, 1, plain));
    return parts->add(parts, &layer_type_activation, "activation", (int[]){0}, 1, &pointwise);
}
