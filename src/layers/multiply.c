/* multiply: the product of two inputs, value by value. */
#include "layers/layer_resolve.h"

static remat_status resolve(remat_context *context, layer_node *layer)
{
    REMAT_TRY(layer_require_equal_shapes(context, layer));
    REMAT_TRY(layer_set_output(context, layer, layer->inputs[0]));
    layer->needs[LAYER_INPUT_GRADIENT] = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_INPUT(1);
    layer->input_gradient_in_place = true;
    layer_set_pointwise_flops(layer, 1, 2);
    return REMAT_OK;
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    return record_multiply(call->calls, &(op_multiply){.a = call->inputs[0],
                                                       .b = call->inputs[1],
                                                       .y = call->output,
                                                       .count = layer_input_values(layer, 0)});
}

static remat_status gradient_of_input(const layer_node *layer, const layer_call *call, uint32_t i)
{
    if (!call->d_inputs[i].at)
        return REMAT_OK;
    return record_multiply(call->calls, &(op_multiply){.a = call->d_output,
                                                       .b = call->inputs[1 - i],
                                                       .y = call->d_inputs[i],
                                                       .count = layer_input_values(layer, 0),
                                                       .accumulate = call->accumulate_inputs[i]});
}

static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    /* A square: both inputs are the same tensor, whose gradient may take the place of the output's. */
    if (call->d_inputs[0].at && call->d_inputs[0].at == call->d_inputs[1].at && !call->accumulate_inputs[0]) {
        REMAT_TRY(gradient_of_input(layer, call, 0));
        return record_scale(call->calls,
                            &(op_scale){.y = call->d_inputs[0], .count = layer_input_values(layer, 0), .factor = 2});
    }
    REMAT_TRY(gradient_of_input(layer, call, 1));
    return gradient_of_input(layer, call, 0); /* last: it may take the place of the output's */
}

const layer_type layer_type_multiply = {
    .name = "multiply",
    .summary = "the product of two inputs, value by value",
    .hint = REMAT_OTHER,
    .min_inputs = 2,
    .max_inputs = 2,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};
