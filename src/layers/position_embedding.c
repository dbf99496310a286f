/* position_embedding: adds a learned row to every step of a sequence. */
#include "layers/position_embedding.h"

#include "layers/layer_resolve.h"

#include <inttypes.h>

static const property properties[] = {
    {"positions", PROPERTY_COUNT, offsetof(position_embedding_options, positions), NULL, 1, 0, NULL,
     "how many there are: at least the steps of a sequence"},
    {"init_scale", PROPERTY_NUMBER, offsetof(position_embedding_options, init_scale), "0.02", 0, 0, NULL,
     "the deviation of the table at the start"},
    {0},
};

static remat_status resolve(remat_context *context, layer_node *layer)
{
    const position_embedding_options *options = layer->options;
    layer_shape in = layer->inputs[0];
    if (in.c != 1)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "position_embedding: the input must be a sequence 1:steps:width, but is %s",
                          layer_shape_write(in).text);
    if (in.h > options->positions)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "position_embedding: the input has %" PRIu64 " steps, but there are only positions=%" PRIu64,
                          in.h, options->positions);
    REMAT_TRY(layer_set_output(context, layer, in));
    REMAT_TRY(layer_add_parameter(context, layer, "weight", (uint64_t[4]){options->positions, in.w}, LAYER_NORMAL,
                                  options->init_scale));
    layer->passes_gradient = true;
    layer->forward_in_place = true;
    layer_set_pointwise_flops(layer, 1, 0);
    layer->flops[LAYER_WEIGHT_GRADIENT] = layer->flops[LAYER_FORWARD];
    return REMAT_OK;
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    return record_add_to_rows(call->calls, &(op_add_to_rows){.x = call->inputs[0],
                                                             .addend = call->parameters[0],
                                                             .y = call->output,
                                                             .rows = layer->batch,
                                                             .columns = layer_values(layer->output)});
}

/* Every position is a column of samples. Positions past the sequence take no part. */
static remat_status weight_gradient(const layer_node *layer, const layer_call *call)
{
    const position_embedding_options *options = layer->options;
    uint64_t sample = layer_values(layer->output), all = options->positions * layer->output.w;
    REMAT_TRY(record_column_sums(call->calls, &(op_column_sums){.x = call->d_output,
                                                                .sums = call->gradients[0],
                                                                .rows = layer->batch,
                                                                .columns = sample,
                                                                .accumulate = call->accumulate_gradients[0]}));
    if (call->accumulate_gradients[0] || sample == all)
        return REMAT_OK;
    return record_fill(call->calls, &(op_fill){.y = tensor_from(call->gradients[0], sample), .count = all - sample});
}

/* Positions past the sequence are not touched, but for the zeros of a gradient that is not added to a sum. */
static void correct_work(const layer_node *layer, layer_pass pass, const layer_call *call, layer_work *work)
{
    const position_embedding_options *options = layer->options;
    uint64_t unused = dtype_bytes(layer->dtype, (options->positions - layer->output.h) * layer->output.w);
    if (pass == LAYER_FORWARD)
        work->bytes -= unused;
    else if (pass == LAYER_WEIGHT_GRADIENT && call->accumulate_gradients[0])
        work->bytes -= 2 * unused;
}

const layer_type layer_type_position_embedding = {
    .name = "position_embedding",
    .summary = "a learned row added to every step of a sequence",
    .hint = REMAT_EMBEDDING,
    .options_bytes = sizeof(position_embedding_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .resolve = resolve,
    .forward = forward,
    .weight_gradient = weight_gradient,
    .correct_work = correct_work,
};
