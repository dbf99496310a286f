/* binary_cross_entropy and huber: means over all values of a loss between the prediction (input 0) and the target (input 1).
 * In training, input_gradient computes the loss together with the gradient. Forward computes the loss in evaluation. */
#include "layers/layer_resolve.h"

typedef struct pointwise_options {
    double parameter; /* of the operation */
} pointwise_options;

extern const layer_type layer_type_huber;

static remat_status resolve(remat_context *context, layer_node *layer)
{
    if (!layer_shapes_equal(layer->inputs[0], layer->inputs[1]))
        return remat_fail(context, REMAT_INVALID, NULL, "%s: the prediction is %s, but the target is %s",
                          layer->type->name, layer_shape_write(layer->inputs[0]).text,
                          layer_shape_write(layer->inputs[1]).text);
    REMAT_TRY(layer_check_size(context, layer, layer->inputs[0], layer->batch));
    layer->output = (layer_shape){1, 1, 1};
    layer->loss = true;
    layer->needs[LAYER_INPUT_GRADIENT] = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_INPUT(1);
    layer->flops[LAYER_INPUT_GRADIENT] =
        layer_flops(layer_input_values(layer, 0), layer->type == &layer_type_huber ? 8 : 60, 1);
    return REMAT_OK;
}

static remat_status record(const layer_node *layer, const layer_call *call, tensor_ref gradient)
{
    const pointwise_options *options = layer->options;
    uint64_t count = layer_input_values(layer, 0);
    REMAT_TRY(record_pointwise_loss(
        call->calls, &(op_pointwise_loss){.x = call->inputs[0],
                                          .target = call->inputs[1],
                                          .gradient = gradient,
                                          .step = call->step,
                                          .count = count,
                                          .kind = layer->type == &layer_type_huber ? LOSS_HUBER : LOSS_LOGISTIC,
                                          .parameter = options->parameter,
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

static const property logistic_properties[] = {
    {"positive_weight", PROPERTY_NUMBER, offsetof(pointwise_options, parameter), "1", 0, 0, NULL,
     "how much more a target of 1 counts than one of 0"},
    {0},
};

const layer_type layer_type_binary_cross_entropy = {
    .name = "binary_cross_entropy",
    .summary = "loss: the mean of -log(probability of the target), from logits; targets are 0, 1 or between",
    .hint = REMAT_OTHER,
    .options_bytes = sizeof(pointwise_options),
    .properties = logistic_properties,
    .min_inputs = 2,
    .max_inputs = 2,
    .labels = LAYER_LABELS_LIKE_IT,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};

static const property huber_properties[] = {
    {"delta", PROPERTY_NUMBER, offsetof(pointwise_options, parameter), "1", 1e-30, 0, NULL,
     "the difference beyond which the loss is linear"},
    {0},
};

const layer_type layer_type_huber = {
    .name = "huber",
    .summary = "loss: the mean of half the squared differences; linear for large ones",
    .hint = REMAT_OTHER,
    .options_bytes = sizeof(pointwise_options),
    .properties = huber_properties,
    .min_inputs = 2,
    .max_inputs = 2,
    .labels = LAYER_LABELS_LIKE_IT,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};
