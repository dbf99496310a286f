/* projection_cross_entropy: a fully_connected and the cross_entropy behind it as one layer, for which the model uses it
 * where nobody else reads the logits. They are made some rows at a time, turned into their gradient in place, used for all
 * three gradients and dropped: the logits of a batch, often the largest tensor of a model, are never held.
 *
 *     training:    forward does nothing; derivative makes the loss and all gradients
 *     evaluation:  forward makes the loss */
#include "layers/cross_entropy.h"
#include "layers/fully_connected.h"

static uint64_t rows_at_a_time(const layer_node *layer)
{
    uint64_t rows = layer_input_rows(layer, 0);
    return rows < CROSS_ENTROPY_ROWS ? rows : CROSS_ENTROPY_ROWS;
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    uint64_t units, rows = layer_input_rows(layer, 0);
    REMAT_TRY(fully_connected_resolve_units(context, layer, &units));
    REMAT_TRY(cross_entropy_resolve(context, layer));
    layer_shape logits = {1, rows_at_a_time(layer), units};
    REMAT_TRY(layer_check_size(context, logits, 1));
    layer->forward_workspace = layer->derivative_workspace = layer_values(logits) * sizeof(real);
    uint64_t product = layer_flops(2 * rows, units, layer->inputs[0].w), softmax = layer_flops(rows, units, 18);
    layer->derivative_flops = layer_flops(product, 3, 1);
    if (layer->derivative_flops < UINT64_MAX / 2 - softmax)
        layer->derivative_flops += softmax;
    return REMAT_OK;
}

/* The loss of all rows; with gradients where `backward`. */
static void run_rows(const layer_node *layer, const layer_call *call, bool backward)
{
    uint64_t rows = layer_input_rows(layer, 0), in = layer->inputs[0].w, units = layer->parameters[0].dims[0];
    uint64_t step = rows_at_a_time(layer);
    real *logits = call->workspace, factor = (real)(call->loss_share / (double)rows);
    const real *x = call->inputs[0];
    const int32_t *labels = call->inputs[1];
    double loss = 0;
    for (uint64_t first = 0; first < rows; first += step) {
        uint64_t count = rows - first < step ? rows - first : step;
        const real *rows_x = x + first * in;
        fully_connected_forward(call, count, in, units, rows_x, logits);
        cross_entropy_count(call, count, units, logits, labels + first);
        loss += call->kernels->cross_entropy(call->run, count, units, logits, labels + first, factor,
                                             backward ? logits : NULL);
        if (!backward)
            continue;
        if (call->d_inputs[0])
            fully_connected_derivative(call, count, in, units, logits, call->d_inputs[0] + first * in);
        fully_connected_gradient(call, count, in, units, rows_x, logits, first > 0);
    }
    *call->loss += loss / (double)rows;
}

static void forward(const layer_node *layer, const layer_call *call)
{
    if (!call->training)
        run_rows(layer, call, false);
}

static void derivative(const layer_node *layer, const layer_call *call)
{
    run_rows(layer, call, true);
}

/* Of the derivative, which does everything. The weight and its gradient are passed once for each piece of rows. The
 * logits are written by the product, read and replaced by their gradient, and read by the products behind it. */
static void correct_work(const layer_node *layer, layer_pass pass, const layer_call *call, layer_work *work)
{
    if (pass == LAYER_FORWARD)
        return;
    uint64_t rows = layer_input_rows(layer, 0), in = layer->inputs[0].w, units = layer->parameters[0].dims[0];
    uint64_t step = rows_at_a_time(layer), pieces = (rows + step - 1) / step;
    uint64_t x = rows * in * sizeof(real), logits = rows * units * sizeof(real), weight = units * in * sizeof(real);
    uint64_t bias = layer->parameter_count > 1 ? units * sizeof(real) : 0;
    uint64_t gradient_passes = 2 * pieces - (call->accumulate_gradients[0] ? 0 : 1); /* the first may be a write only */
    bool derived = call->d_inputs[0] != NULL;
    work->product_flops = layer_flops(layer_flops(2 * rows, units, in), derived ? 3 : 2, 1);
    work->flops = work->product_flops + layer_flops(rows, units, 18);
    work->bytes = 2 * x + rows * sizeof(int32_t) + (pieces + gradient_passes) * (weight + bias) + 4 * logits;
    if (derived)
        work->bytes += logits + pieces * weight + (call->accumulate_inputs[0] ? 2 : 1) * x;
}

const layer_type layer_type_projection_cross_entropy = {
    .name = "projection_cross_entropy",
    .summary = "loss: a fully_connected and a cross_entropy that never hold the logits of a batch",
    .hint = REMAT_OTHER,
    .options_bytes = sizeof(fully_connected_options),
    .properties = fully_connected_properties,
    .min_inputs = 2,
    .max_inputs = 2,
    .labels = LAYER_LABELS_CLASSES,
    .resolve = resolve,
    .forward = forward,
    .derivative = derivative,
    .correct_work = correct_work,
};
