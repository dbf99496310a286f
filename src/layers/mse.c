/* mse: the mean of the squared differences between the prediction (input 0) and the target (input 1). In training the
 * derivative makes the loss on its way; forward is for evaluation. */
#include "layers/layer_resolve.h"

static remat_status resolve(remat_context *context, layer_node *layer)
{
    if (!layer_shapes_equal(layer->inputs[0], layer->inputs[1]))
        return remat_fail(context, REMAT_INVALID, NULL, "mse: the prediction is %s, but the target is %s",
                          layer_shape_write(layer->inputs[0]).text, layer_shape_write(layer->inputs[1]).text);
    REMAT_TRY(layer_check_size(context, layer->inputs[0], layer->batch));
    layer->output = (layer_shape){1, 1, 1};
    layer->loss = true;
    layer->derivative_needs = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_INPUT(1);
    layer->derivative_flops = layer_flops(layer_input_values(layer, 0), 5, 1);
    return REMAT_OK;
}

static void run(const layer_node *layer, const layer_call *call, real *gradient)
{
    uint64_t count = layer_input_values(layer, 0);
    *call->loss +=
        call->kernels->squared_error(call->run, count, call->inputs[0], call->inputs[1],
                                     (real)(call->loss_share / (double)count), gradient, call->accumulate_inputs[0]) /
        (double)count;
}

static void forward(const layer_node *layer, const layer_call *call)
{
    if (!call->training)
        run(layer, call, NULL);
}

static void derivative(const layer_node *layer, const layer_call *call)
{
    run(layer, call, call->d_inputs[0]);
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
    .derivative = derivative,
};
