/* cross_entropy: softmax and the mean of -log(probability of the label) over all rows. Input 0 holds logits, input 1 a label
 * for every row; a negative label adds nothing. With mean=labels, the sum is divided by the number of labels that are not negative,
 * in all micro-batches of the step together: the step block has it. So each label counts the same, however samples are spread over
 * rows and micro-batches. The gradient may take the bytes of the logits. In training,
 * input_gradient computes the loss together with the gradient. Forward computes the loss in evaluation. */
#include "layers/projection_cross_entropy.h"

#include <inttypes.h>

const char *const cross_entropy_means[] = {"rows", "labels", NULL};

remat_status cross_entropy_resolve(remat_context *context, layer_node *layer, const cross_entropy_options *options,
                                   uint64_t classes)
{
    layer_shape in = layer->inputs[0], labels = layer->inputs[1];
    if (layer_values(labels) != in.c * in.h)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "%s: input %s has %" PRIu64
                          " rows a sample and needs a label for each, but the labels are %s",
                          layer->type->name, layer_shape_write(in).text, in.c * in.h, layer_shape_write(labels).text);
    if (options->weights.count && options->weights.count != classes)
        return remat_fail(context, REMAT_INVALID, NULL, "%s: there are %zu class_weights, but %" PRIu64 " classes",
                          layer->type->name, options->weights.count, classes);
    REMAT_TRY(layer_check_size(context, layer, in, layer->batch));
    layer->output = (layer_shape){1, 1, 1};
    layer->loss = true;
    layer->needs[LAYER_INPUT_GRADIENT] = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_INPUT(1);
    return REMAT_OK;
}

static uint64_t rows_at_a_time(const layer_node *layer)
{
    uint64_t rows = layer_input_rows(layer, 0);
    return rows < CROSS_ENTROPY_ROWS ? rows : CROSS_ENTROPY_ROWS;
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    REMAT_TRY(cross_entropy_resolve(context, layer, layer->options, layer->inputs[0].w));
    layer->input_gradient_in_place = true;
    layer->flops[LAYER_INPUT_GRADIENT] = layer_flops(layer_input_values(layer, 0), 18, 1);
    return layer_set_workspace(context, layer, rows_at_a_time(layer) * layer->inputs[0].w,
                               &layer->accumulate_workspace);
}

remat_status cross_entropy_record(const layer_node *layer, const cross_entropy_options *options, const layer_call *call,
                                  tensor_ref logits, tensor_ref labels, uint64_t rows, uint64_t classes,
                                  tensor_ref gradient)
{
    const bool by_labels = options->mean == MEAN_OF_LABELS;
    if (call->counts_correct)
        REMAT_TRY(record_count_correct(
            call->calls,
            &(op_count_correct){
                .logits = logits, .labels = labels, .step = call->step, .rows = rows, .columns = classes}));
    return record_cross_entropy(
        call->calls,
        &(op_cross_entropy){.logits = logits,
                            .labels = labels,
                            .gradient = gradient,
                            .step = call->step,
                            .rows = rows,
                            .columns = classes,
                            .factor = by_labels ? 1 : call->loss_share / (double)layer_input_rows(layer, 0),
                            .by_labels = by_labels,
                            .smoothing = options->smoothing,
                            .weights = options->weights.count ? options->weights.values : NULL});
}

/* The loss of a step is divided by the micro-batches later. */
remat_status cross_entropy_finish(const layer_node *layer, const cross_entropy_options *options, const layer_call *call)
{
    const bool by_labels = options->mean == MEAN_OF_LABELS;
    const double divisor = by_labels ? call->loss_share : (double)layer_input_rows(layer, 0);
    return record_finish_loss(call->calls,
                              &(op_finish_loss){.step = call->step, .divisor = divisor, .by_labels = by_labels});
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    if (call->training)
        return REMAT_OK;
    REMAT_TRY(cross_entropy_record(layer, layer->options, call, call->inputs[0], call->inputs[1],
                                   layer_input_rows(layer, 0), layer->inputs[0].w, TENSOR_NONE));
    return cross_entropy_finish(layer, layer->options, call);
}

/* The kernel replaces gradients: to add one, some rows are made apart at a time. */
static remat_status add_gradient(const layer_node *layer, const layer_call *call)
{
    uint64_t rows = layer_input_rows(layer, 0), classes = layer->inputs[0].w, step = rows_at_a_time(layer);
    const tensor_ref made = {call->workspace.at, layer->dtype};
    for (uint64_t first = 0; first < rows; first += step) {
        uint64_t count = rows - first < step ? rows - first : step;
        REMAT_TRY(cross_entropy_record(layer, layer->options, call, tensor_from(call->inputs[0], first * classes),
                                       tensor_from(call->inputs[1], first), count, classes, made));
        REMAT_TRY(record_accumulate(call->calls, &(op_accumulate){.x = made,
                                                                  .y = tensor_from(call->d_inputs[0], first * classes),
                                                                  .count = count * classes}));
    }
    return REMAT_OK;
}

static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    if (call->d_inputs[0].at && call->accumulate_inputs[0])
        REMAT_TRY(add_gradient(layer, call));
    else
        REMAT_TRY(cross_entropy_record(layer, layer->options, call, call->inputs[0], call->inputs[1],
                                       layer_input_rows(layer, 0), layer->inputs[0].w, call->d_inputs[0]));
    return cross_entropy_finish(layer, layer->options, call);
}

/* The macro wants a field. */
typedef struct cross_entropy_only {
    cross_entropy_options loss;
} cross_entropy_only;

static const property properties[] = {
    CROSS_ENTROPY_PROPERTIES(cross_entropy_only, loss),
    {0},
};

const layer_type layer_type_cross_entropy = {
    .name = "cross_entropy",
    .summary = "loss: softmax and the mean of -log(probability of the label)",
    .hint = REMAT_OTHER,
    .options_bytes = sizeof(cross_entropy_options),
    .properties = properties,
    .min_inputs = 2,
    .max_inputs = 2,
    .labels = LAYER_LABELS_CLASSES,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};

bool cross_entropy_counts_labels(const layer_node *layer)
{
    const cross_entropy_options *options = NULL;
    if (layer->type == &layer_type_cross_entropy)
        options = layer->options;
    else if (layer->type == &layer_type_projection_cross_entropy)
        options = &((const projection_options *)layer->options)->loss;
    return options && options->mean == MEAN_OF_LABELS;
}

uint32_t labels_count(const int32_t *labels, uint64_t count)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < count; i++)
        found += labels[i] >= 0;
    return found < UINT32_MAX ? (uint32_t)found : UINT32_MAX;
}
