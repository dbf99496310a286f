/* projection_cross_entropy: a fully_connected and the cross_entropy after it as one layer. The model uses it if nobody
 * else reads the logits. It computes logits for some rows at a time, replaces them by their gradient in place, uses
 * that for all gradients, and drops it. So the logits of a whole batch, often the largest tensor of a model, are never
 * held.
 *
 *     training:    forward does nothing; the input gradient makes the loss and all gradients
 *     evaluation:  forward makes the loss */
#include "layers/projection_cross_entropy.h"

/* In a network of bf16 the other tensors are half as large, and logits would be the largest: fewer of them at a time. Products in bf16
 * are so fast that reading weights in fp32 and their gradient once more takes longer: then it is more of them. A frozen
 * head has no gradient of the weights, whose sums would depend on the cut. Of a large vocabulary, it takes fewer rows. */
enum { LEAST_ROWS = 64, HALF_ROWS = 128, MORE_HALF_ROWS = 192, FROZEN_BYTES = 32 << 20 };

/* Logits are in bf16 where products are, as with PyTorch's autocast. */
static remat_dtype logits_dtype(const layer_node *layer)
{
    return layer->halves && (layer->device->half_products || layer->device->rounds_once) ? REMAT_BF16 : layer->dtype;
}

/* Where products take their operands in bf16, weights in fp32 are converted once for all rows, behind the logits. */
static bool converts_weight(const layer_node *layer)
{
    return logits_dtype(layer) == REMAT_BF16 && layer->parameters[0].dtype == REMAT_FP32 &&
           layer->device->half_products;
}

static uint64_t rows_at_a_time(const layer_node *layer)
{
    const uint64_t rows = layer_input_rows(layer, 0), units = layer->parameters[0].dims[0];
    const bool slow_weights = layer->device->rounds_once && !layer->half_weights;
    uint64_t most = !layer->halves                      ? CROSS_ENTROPY_ROWS
                    : logits_dtype(layer) != REMAT_BF16 ? LEAST_ROWS
                    : slow_weights                      ? MORE_HALF_ROWS
                                                        : HALF_ROWS;
    if (layer->device->loss_rows)
        return rows < layer->device->loss_rows ? rows : layer->device->loss_rows;
    if (layer->frozen && !layer->halves && units > FROZEN_BYTES / sizeof(float) / CROSS_ENTROPY_ROWS) {
        most = FROZEN_BYTES / sizeof(float) / units;
        most = most < LEAST_ROWS ? LEAST_ROWS : most;
    }
    return rows < most ? rows : most;
}

static uint64_t logits_bytes(const layer_node *layer, uint64_t values)
{
    return (dtype_bytes(logits_dtype(layer), values) + 63) & ~(uint64_t)63;
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    const projection_options *options = layer->options;
    uint64_t units, rows = layer_input_rows(layer, 0);
    REMAT_TRY(fully_connected_resolve_units(context, layer, &units));
    REMAT_TRY(cross_entropy_resolve(context, layer, &options->loss, units));
    layer->input_gradient_in_place = true;
    layer_shape logits = {1, rows_at_a_time(layer), units};
    REMAT_TRY(layer_check_size(context, layer, logits, 1));
    layer->workspace[LAYER_FORWARD] = layer->workspace[LAYER_INPUT_GRADIENT] =
        logits_bytes(layer, layer_values(logits)) +
        (converts_weight(layer) ? dtype_bytes(REMAT_BF16, units * layer->inputs[0].w) : 0);
    uint64_t product = layer_flops(2 * rows, units, layer->inputs[0].w), softmax = layer_flops(rows, units, 18);
    uint64_t *flops = &layer->flops[LAYER_INPUT_GRADIENT];
    *flops = layer_flops(product, layer->frozen ? 2 : 3, 1);
    if (*flops < UINT64_MAX / 2 - softmax)
        *flops += softmax;
    return REMAT_OK;
}

/* The loss of all rows; with gradients where `backward`. */
static remat_status record_rows(const layer_node *layer, const layer_call *given, bool backward)
{
    layer_call with_weight = *given;
    const layer_call *call = &with_weight;
    uint64_t rows = layer_input_rows(layer, 0), in = layer->inputs[0].w, units = layer->parameters[0].dims[0];
    const projection_options *options = layer->options;
    uint64_t step = rows_at_a_time(layer);
    const tensor_ref logits = {call->workspace.at, logits_dtype(layer)};
    if (converts_weight(layer)) {
        with_weight.parameters[0] =
            (tensor_ref){(char *)call->workspace.at + logits_bytes(layer, step * units), REMAT_BF16};
        REMAT_TRY(record_convert(
            call->calls,
            &(op_convert){.x = given->parameters[0], .y = with_weight.parameters[0], .count = units * in}));
    }
    for (uint64_t first = 0; first < rows; first += step) {
        uint64_t count = rows - first < step ? rows - first : step;
        const tensor_ref x = tensor_from(call->inputs[0], first * in);
        REMAT_TRY(fully_connected_forward(call, count, in, units, x, logits));
        REMAT_TRY(cross_entropy_record(layer, &options->loss, call, logits, tensor_from(call->inputs[1], first), count,
                                       units, backward ? logits : TENSOR_NONE));
        if (!backward)
            continue;
        REMAT_TRY(fully_connected_weight_gradient(call, count, in, units, x, logits, first > 0));
        if (call->d_inputs[0].at) /* last: it may replace x */
            REMAT_TRY(fully_connected_input_gradient(call, count, in, units, logits,
                                                     tensor_from(call->d_inputs[0], first * in)));
    }
    return cross_entropy_finish(layer, &options->loss, call);
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    return call->training ? REMAT_OK : record_rows(layer, call, false);
}

static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    return record_rows(layer, call, true);
}

/* Of the input gradient, which does everything. The weight and its gradient are passed once for each piece of rows. The
 * logits are written by the GEMM, read and replaced by their gradient, and read by the GEMMs behind it. */
static void correct_work(const layer_node *layer, layer_pass pass, const layer_call *call, layer_work *work)
{
    if (pass == LAYER_FORWARD)
        return;
    uint64_t rows = layer_input_rows(layer, 0), in = layer->inputs[0].w, units = layer->parameters[0].dims[0];
    uint64_t step = rows_at_a_time(layer), pieces = (rows + step - 1) / step;
    uint64_t x = dtype_bytes(layer->dtype, rows * in), logits = dtype_bytes(layer->dtype, rows * units);
    uint64_t weight = dtype_bytes(layer->dtype, units * in);
    uint64_t bias = layer->parameter_count > 1 ? dtype_bytes(layer->dtype, units) : 0;
    uint64_t gradient_passes = 2 * pieces - (call->accumulate_gradients[0] ? 0 : 1); /* the first may be a write only */
    if (layer->frozen)
        gradient_passes = 0;
    bool derived = call->d_inputs[0].at != NULL;
    work->gemm_flops =
        layer_flops(layer_flops(2 * rows, units, in), 1u + (derived ? 1u : 0) + (layer->frozen ? 0 : 1u), 1);
    work->flops = work->gemm_flops + layer_flops(rows, units, 18);
    work->bytes = 2 * x + dtype_bytes(REMAT_INT32, rows) + (pieces + gradient_passes) * (weight + bias) + 4 * logits;
    if (derived)
        work->bytes += logits + pieces * weight + (call->accumulate_inputs[0] ? 2 : 1) * x;
}

static const property properties[] = {
    FULLY_CONNECTED_PROPERTIES(projection_options, linear),
    CROSS_ENTROPY_PROPERTIES(projection_options, loss),
    {0},
};

const layer_type layer_type_projection_cross_entropy = {
    .name = "projection_cross_entropy",
    .summary = "loss: a fully_connected and a cross_entropy that never hold the logits of a batch",
    .hint = REMAT_OTHER,
    .options_bytes = sizeof(projection_options),
    .properties = properties,
    .min_inputs = 2,
    .max_inputs = 2,
    .labels = LAYER_LABELS_CLASSES,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
    .correct_work = correct_work,
};
