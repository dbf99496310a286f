/* activation: one function of every value, or the softmax of every row. */
#include "layers/activation.h"

#include "layers/layer_resolve.h"

const char *const activation_names[] = {
    [KERNEL_NONE] = "none",         [KERNEL_RELU] = "relu",         [KERNEL_LEAKY_RELU] = "leaky_relu",
    [KERNEL_GELU_TANH] = "gelu",    [KERNEL_GELU_ERF] = "gelu_erf", [KERNEL_SIGMOID] = "sigmoid",
    [KERNEL_TANH] = "tanh",         [KERNEL_SWISH] = "swish",       [ACTIVATION_SOFTMAX] = "softmax",
    [ACTIVATION_SOFTMAX + 1] = NULL};

/* Operations for each value, forward and backward, roughly. */
static const struct cost {
    uint64_t forward, backward;
} costs[] = {[KERNEL_NONE] = {0, 0},        [KERNEL_RELU] = {1, 1},       [KERNEL_LEAKY_RELU] = {2, 2},
             [KERNEL_GELU_TANH] = {20, 30}, [KERNEL_GELU_ERF] = {25, 40}, [KERNEL_SIGMOID] = {12, 3},
             [KERNEL_TANH] = {15, 3},       [KERNEL_SWISH] = {13, 18},    [ACTIVATION_SOFTMAX] = {15, 5}};

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

static remat_status resolve(remat_context *context, layer_node *layer)
{
    uint32_t activation = activation_of(layer);
    REMAT_TRY(layer_set_output(context, layer, layer->inputs[0]));
    layer_set_pointwise_flops(layer, costs[activation].forward, costs[activation].backward);
    if (activation == ACTIVATION_NONE) {
        layer->view = layer->passes_gradient = true;
        return REMAT_OK;
    }
    bool reads_output =
        activation == ACTIVATION_SOFTMAX || kernel_activation_reads_output((kernel_activation)activation);
    layer->derivative_needs = reads_output ? LAYER_NEEDS_OUTPUT : LAYER_NEEDS_INPUT(0);
    layer->forward_in_place = layer->derivative_in_place = true;
    return REMAT_OK;
}

static void forward(const layer_node *layer, const layer_call *call)
{
    uint32_t activation = activation_of(layer);
    if (activation == ACTIVATION_SOFTMAX)
        call->kernels->softmax(call->run, layer_input_rows(layer, 0), layer->inputs[0].w, call->inputs[0],
                               call->output);
    else if (activation != ACTIVATION_NONE)
        call->kernels->activate(call->run, (kernel_activation)activation, layer_input_values(layer, 0), call->inputs[0],
                                call->output);
}

static void derivative(const layer_node *layer, const layer_call *call)
{
    uint32_t activation = activation_of(layer);
    if (!call->d_inputs[0] || activation == ACTIVATION_NONE)
        return;
    if (activation == ACTIVATION_SOFTMAX)
        call->kernels->softmax_backward(call->run, layer_input_rows(layer, 0), layer->inputs[0].w, call->output,
                                        call->d_output, call->d_inputs[0], call->accumulate_inputs[0]);
    else
        call->kernels->activate_backward(call->run, (kernel_activation)activation, layer_input_values(layer, 0),
                                         call->inputs[0], call->output, call->d_output, call->d_inputs[0],
                                         call->accumulate_inputs[0]);
}

const layer_type layer_type_activation = {
    .name = "activation",
    .summary = "relu, gelu and the usual others",
    .hint = REMAT_OTHER,
    .options_bytes = sizeof(activation_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .resolve = resolve,
    .forward = forward,
    .derivative = derivative,
};

kernel_activation activation_pointwise(const layer_node *layer)
{
    if (layer->type != &layer_type_activation || activation_of(layer) == ACTIVATION_SOFTMAX)
        return KERNEL_NONE;
    return (kernel_activation)activation_of(layer);
}
