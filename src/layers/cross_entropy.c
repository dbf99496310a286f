/* cross_entropy: softmax and the mean of -log(chance of the label) over all rows. Input 0 holds logits, input 1 a label
 * for every row; a negative label adds nothing. The gradient may take the bytes of the logits. In training the derivative
 * makes the loss on its way; forward is for evaluation. */
#include "layers/cross_entropy.h"

#include <inttypes.h>

remat_status cross_entropy_resolve(remat_context *context, layer_node *layer)
{
    layer_shape in = layer->inputs[0], labels = layer->inputs[1];
    if (layer_values(labels) != in.c * in.h)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "%s: input %s has %" PRIu64
                          " rows a sample and needs a label for each, but the labels are %s",
                          layer->type->name, layer_shape_write(in).text, in.c * in.h, layer_shape_write(labels).text);
    REMAT_TRY(layer_check_size(context, in, layer->batch));
    layer->output = (layer_shape){1, 1, 1};
    layer->loss = true;
    layer->integer_inputs = 2;
    layer->derivative_needs = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_INPUT(1);
    return REMAT_OK;
}

static uint64_t rows_at_a_time(const layer_node *layer)
{
    uint64_t rows = layer_input_rows(layer, 0);
    return rows < CROSS_ENTROPY_ROWS ? rows : CROSS_ENTROPY_ROWS;
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    REMAT_TRY(cross_entropy_resolve(context, layer));
    layer->derivative_in_place = true;
    layer->derivative_flops = layer_flops(layer_input_values(layer, 0), 18, 1);
    return layer_set_workspace(context, layer, rows_at_a_time(layer) * layer->inputs[0].w,
                               &layer->accumulate_workspace);
}

void cross_entropy_count(const layer_call *call, uint64_t rows, uint64_t classes, const real *logits,
                         const int32_t *labels)
{
    if (call->training || !call->correct)
        return;
    for (uint64_t r = 0; r < rows; r++) {
        const real *row = logits + r * classes;
        uint64_t best = 0;
        for (uint64_t i = 1; i < classes; i++)
            if (row[i] > row[best])
                best = i;
        *call->correct += labels[r] >= 0 && (uint64_t)labels[r] == best;
    }
}

/* The sum of the losses of some rows. */
static double run_rows(const layer_node *layer, const layer_call *call, uint64_t first, uint64_t rows, real *gradient)
{
    uint64_t all = layer_input_rows(layer, 0), classes = layer->inputs[0].w;
    const real *logits = call->inputs[0];
    const int32_t *labels = call->inputs[1];
    return call->kernels->cross_entropy(call->run, rows, classes, logits + first * classes, labels + first,
                                        (real)(call->loss_share / (double)all), gradient);
}

static void forward(const layer_node *layer, const layer_call *call)
{
    uint64_t rows = layer_input_rows(layer, 0);
    if (call->training)
        return;
    cross_entropy_count(call, rows, layer->inputs[0].w, call->inputs[0], call->inputs[1]);
    *call->loss += run_rows(layer, call, 0, rows, NULL) / (double)rows;
}

static void derivative(const layer_node *layer, const layer_call *call)
{
    uint64_t rows = layer_input_rows(layer, 0), classes = layer->inputs[0].w, step = rows_at_a_time(layer);
    double loss = 0;
    if (!call->d_inputs[0] || !call->accumulate_inputs[0]) {
        loss = run_rows(layer, call, 0, rows, call->d_inputs[0]);
    } else { /* The kernel replaces: make some rows apart, and add them. */
        for (uint64_t first = 0; first < rows; first += step) {
            uint64_t count = rows - first < step ? rows - first : step;
            loss += run_rows(layer, call, first, count, call->workspace);
            call->kernels->accumulate(call->run, count * classes, call->workspace, call->d_inputs[0] + first * classes);
        }
    }
    *call->loss += loss / (double)rows;
}

const layer_type layer_type_cross_entropy = {
    .name = "cross_entropy",
    .summary = "loss: softmax and the mean of -log(chance of the label)",
    .hint = REMAT_OTHER,
    .min_inputs = 2,
    .max_inputs = 2,
    .labels = LAYER_LABELS_CLASSES,
    .resolve = resolve,
    .forward = forward,
    .derivative = derivative,
};
