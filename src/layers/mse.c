/* mse: the mean of the squared differences between the prediction (input 0) and the target (input 1). In training,
 * input_gradient computes the loss together with the gradient. Forward computes the loss in evaluation. */
#include "layers/layer_resolve.h"

static remat_status resolve(remat_context *context, layer_node *layer)
{
    if (!layer_shapes_equal(layer->inputs[0], layer->inputs[1]))
        return remat_fail(context, REMAT_INVALID, NULL, "mse: the prediction is %s, but the target is %s",
                          layer_shape_write(layer->inputs[0]).text, layer_shape_write(layer->inputs[1]).text);
    REMAT_TRY(layer_check_size(context, layer, layer->inputs[0], layer->batch));
    layer->output = (layer_shape){1, 1, 1};
    layer->loss = true;
    layer->needs[LAYER_INPUT_GRADIENT] = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_INPUT(1);
    layer->flops[LAYER_INPUT_GRADIENT] = layer_flops(layer_input_values(layer, 0), 5, 1);
    return REMAT_OK;
}

static remat_status record(const layer_node *layer, const layer_call *call, tensor_ref gradient)
{
    uint64_t count = layer_input_values(layer, 0);
    REMAT_TRY(record_squared_error(call->calls, &(op_squared_error){.x = call->inputs[0],
                                                                    .target = call->inputs[1],
                                                                    .gradient = gradient,
                                                                    .step = call->step,
                                                                    .count = count,
                                                                    .factor = call->loss_share / (double)count,
                                                                    .accumulate = call->accumulate_inputs[0]}));
    return record_finish_loss(call->calls, &(op_finish_loss){.step = call->step, .divisor = (double)count});
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    return call->training ? REMAT_OK : record(layer, call, TENSOR_NONE);
}

static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    return record(layer, call, call->d_inputs[0]);
}

const layer_type layer_type_mse = {
    .name = "mse",
    .summary = "loss: the mean of squared differences",
    .hint = REMAT_OTHER,
    .min_inputs = 2,
    .max_inputs = 2,
    .labels = LAYER_LABELS_LIKE_IT,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};
