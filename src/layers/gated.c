/* gated: activation(input 0) * input 1, value by value, as in SwiGLU. The activation is computed again in the backward pass:
 * only the two inputs are kept for it. */
#include "layers/layer_resolve.h"

typedef struct gated_options {
    uint32_t activation; /* of `names` */
} gated_options;

/* Activations whose gradient reads the input, which is kept. */
static const char *const names[] = {"swish", "gelu", "gelu_erf", NULL};
static const activation_kind kinds[] = {ACTIVATION_SWISH, ACTIVATION_GELU_TANH, ACTIVATION_GELU_ERF};

static const property properties[] = {
    {"activation", PROPERTY_CHOICE, offsetof(gated_options, activation), "swish", 0, 0, names,
     "of the first input, which is the gate"},
    {0},
};

static activation_kind kind_of(const layer_node *layer)
{
    const gated_options *options = layer->options;
    return kinds[options->activation];
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    REMAT_TRY(layer_require_equal_shapes(context, layer));
    REMAT_TRY(layer_set_output(context, layer, layer->inputs[0]));
    /* One gradient, or the activation, before it is added to what is there. */
    layer->accumulate_workspace = dtype_bytes(layer_statistics_dtype(layer), layer_input_values(layer, 0));
    layer->needs[LAYER_INPUT_GRADIENT] = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_INPUT(1);
    layer->input_gradient_in_place = true;
    layer_set_pointwise_flops(layer, 14, 33);
    return REMAT_OK;
}

static remat_status activate(const layer_node *layer, const layer_call *call, tensor_ref y)
{
    return record_activate(
        call->calls,
        &(op_activate){.x = call->inputs[0], .y = y, .count = layer_input_values(layer, 0), .kind = kind_of(layer)});
}

static remat_status multiply(const layer_node *layer, const layer_call *call, tensor_ref a, tensor_ref b, tensor_ref y,
                             bool accumulate)
{
    return record_multiply(
        call->calls,
        &(op_multiply){.a = a, .b = b, .y = y, .count = layer_input_values(layer, 0), .accumulate = accumulate});
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    REMAT_TRY(activate(layer, call, call->output));
    return multiply(layer, call, call->output, call->inputs[1], call->output, false);
}

/* dx (+)= dy * activation'(gate). */
static remat_status differentiate(const layer_node *layer, const layer_call *call, tensor_ref dy, tensor_ref dx,
                                  bool accumulate)
{
    return record_activate_backward(call->calls, &(op_activate_backward){.x = call->inputs[0],
                                                                         .dy = dy,
                                                                         .dx = dx,
                                                                         .count = layer_input_values(layer, 0),
                                                                         .kind = kind_of(layer),
                                                                         .accumulate = accumulate});
}

static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    const tensor_ref room = {call->workspace.at, layer_statistics_dtype(layer)};
    const tensor_ref d_gate = call->d_inputs[0], d_up = call->d_inputs[1];
    if (d_gate.at && d_gate.at == d_up.at) { /* both inputs are one tensor x: activation(x) + x activation'(x) */
        REMAT_TRY(activate(layer, call, room));
        REMAT_TRY(differentiate(layer, call, call->inputs[1], room, true));
        return multiply(layer, call, call->d_output, room, d_gate, call->accumulate_inputs[0]);
    }
    if (d_up.at) {
        const tensor_ref gate = call->accumulate_inputs[1] ? room : d_up;
        REMAT_TRY(activate(layer, call, gate));
        REMAT_TRY(multiply(layer, call, call->d_output, gate, d_up, call->accumulate_inputs[1]));
    }
    if (!d_gate.at)
        return REMAT_OK;
    /* Last: it may take the place of the output's gradient. */
    const tensor_ref product = call->accumulate_inputs[0] ? room : d_gate;
    REMAT_TRY(multiply(layer, call, call->d_output, call->inputs[1], product, false));
    return differentiate(layer, call, product, d_gate, call->accumulate_inputs[0]);
}

const layer_type layer_type_gated = {
    .name = "gated",
    .summary = "an activation of the first input times the second",
    .hint = REMAT_FFN,
    .options_bytes = sizeof(gated_options),
    .properties = properties,
    .min_inputs = 2,
    .max_inputs = 2,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};
