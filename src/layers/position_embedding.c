/* position_embedding: adds a learned row to every step of a sequence. */
#include "layers/position_embedding.h"

#include "layers/layer_resolve.h"

#include <inttypes.h>
#include <string.h>

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
    layer->gradient_flops = layer->forward_flops;
    return REMAT_OK;
}

static void forward(const layer_node *layer, const layer_call *call)
{
    call->kernels->add_to_rows(call->run, layer->batch, layer_values(layer->output), call->inputs[0],
                               call->parameters[0], call->output);
}

/* Every position is a column of samples. Positions past the sequence take no part. */
static void gradient(const layer_node *layer, const layer_call *call)
{
    const position_embedding_options *options = layer->options;
    uint64_t sample = layer_values(layer->output), all = options->positions * layer->output.w;
    call->kernels->column_sums(call->run, layer->batch, sample, call->d_output, call->gradients[0],
                               call->accumulate_gradients[0]);
    if (!call->accumulate_gradients[0])
        memset(call->gradients[0] + sample, 0, (all - sample) * sizeof(real));
}

/* Positions past the sequence are not touched, but for the zeros of a gradient that is not added to a sum. */
static void correct_work(const layer_node *layer, layer_pass pass, const layer_call *call, layer_work *work)
{
    const position_embedding_options *options = layer->options;
    uint64_t unused = (options->positions - layer->output.h) * layer->output.w * sizeof(real);
    if (pass == LAYER_FORWARD)
        work->bytes -= unused;
    else if (pass == LAYER_GRADIENT && call->accumulate_gradients[0])
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
    .gradient = gradient,
    .correct_work = correct_work,
};
