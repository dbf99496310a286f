/* multiply: the product of two inputs, value by value. */
#include "layers/layer_resolve.h"

static remat_status resolve(remat_context *context, layer_node *layer)
{
    REMAT_TRY(layer_require_equal_shapes(context, layer));
    REMAT_TRY(layer_set_output(context, layer, layer->inputs[0]));
    layer->derivative_needs = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_INPUT(1);
    layer->derivative_in_place = true;
    layer_set_pointwise_flops(layer, 1, 2);
    return REMAT_OK;
}

static void forward(const layer_node *layer, const layer_call *call)
{
    call->kernels->multiply(call->run, layer_input_values(layer, 0), call->inputs[0], call->inputs[1], call->output,
                            false);
}

static void derive_input(const layer_node *layer, const layer_call *call, uint32_t i)
{
    if (call->d_inputs[i])
        call->kernels->multiply(call->run, layer_input_values(layer, 0), call->d_output, call->inputs[1 - i],
                                call->d_inputs[i], call->accumulate_inputs[i]);
}

static void derivative(const layer_node *layer, const layer_call *call)
{
    /* A square: both inputs are the same tensor, whose gradient may take the place of the output's. */
    if (call->d_inputs[0] && call->d_inputs[0] == call->d_inputs[1] && !call->accumulate_inputs[0]) {
        derive_input(layer, call, 0);
        call->kernels->scale(call->run, layer_input_values(layer, 0), 2, call->d_inputs[0]);
        return;
    }
    derive_input(layer, call, 1);
    derive_input(layer, call, 0); /* last: it may take the place of the output's */
}

const layer_type layer_type_multiply = {
    .name = "multiply",
    .summary = "the product of two inputs, value by value",
    .hint = REMAT_OTHER,
    .min_inputs = 2,
    .max_inputs = 2,
    .resolve = resolve,
    .forward = forward,
    .derivative = derivative,
};
