/* embedding: a row of the table for every token; with positions=N also a learned row for every place in the sequence,
 * which is the layer NAME.positions. */
#include "layers/layer_resolve.h"
#include "layers/position_embedding.h"

#include <inttypes.h>

typedef struct embedding_options {
    uint64_t in_dim, out_dim, positions;
    double init_scale;
} embedding_options;

static const property properties[] = {
    {"in_dim", PROPERTY_COUNT, offsetof(embedding_options, in_dim), NULL, 1, 2147483647, NULL,
     "how many different tokens there are"},
    {"out_dim", PROPERTY_COUNT, offsetof(embedding_options, out_dim), NULL, 1, 0, NULL, "the width of a row"},
    {"positions", PROPERTY_COUNT, offsetof(embedding_options, positions), "0", 0, 0, NULL,
     "how many learned positions are added; 0: none"},
    {"init_scale", PROPERTY_NUMBER, offsetof(embedding_options, init_scale), "0.02", 0, 0, NULL,
     "the deviation of the table at the start"},
    {0},
};

extern const layer_type layer_type_embedding;

static remat_status expand(remat_context *context, const layer_node *layer, layer_parts *parts)
{
    (void)context;
    embedding_options tokens = *(const embedding_options *)layer->options;
    const position_embedding_options places = {tokens.positions, tokens.init_scale};
    if (tokens.positions == 0)
        return REMAT_OK;
    tokens.positions = 0;
    REMAT_TRY(parts->add(parts, &layer_type_embedding, NULL, (int[]){-1}, 1, &tokens));
    return parts->add(parts, &layer_type_position_embedding, "positions", (int[]){0}, 1, &places);
}

static bool reads_tokens(const layer_node *layer, uint32_t input)
{
    (void)layer;
    return input == 0;
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    const embedding_options *options = layer->options;
    layer_shape in = layer->inputs[0];
    if (in.c != 1 || in.h != 1)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "embedding: the input must be a row of tokens 1:1:steps, but is %s",
                          layer_shape_write(in).text);
    REMAT_TRY(layer_set_output(context, layer, (layer_shape){1, in.w, options->out_dim}));
    REMAT_TRY(layer_add_parameter(context, layer, "weight", (uint64_t[4]){options->in_dim, options->out_dim},
                                  LAYER_NORMAL, options->init_scale));
    layer->parameters[0].compressible = true;
    layer->needs[LAYER_WEIGHT_GRADIENT] = LAYER_NEEDS_INPUT(0);
    layer_set_pointwise_flops(layer, 1, 0);
    layer->flops[LAYER_WEIGHT_GRADIENT] = layer->flops[LAYER_FORWARD];
    return REMAT_OK;
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    return record_gather(call->calls, &(op_gather){.ids = call->inputs[0],
                                                   .table = call->parameters[0],
                                                   .y = call->output,
                                                   .rows = layer_input_values(layer, 0),
                                                   .width = layer->output.w});
}

static remat_status weight_gradient(const layer_node *layer, const layer_call *call)
{
    const embedding_options *options = layer->options;
    return record_gather_backward(call->calls, &(op_gather_backward){.ids = call->inputs[0],
                                                                     .dy = call->d_output,
                                                                     .dtable = call->gradients[0],
                                                                     .rows = layer_input_values(layer, 0),
                                                                     .width = layer->output.w,
                                                                     .entries = options->in_dim,
                                                                     .accumulate = call->accumulate_gradients[0]});
}

/* Only the rows of tokens are touched, each at most once; a forward copies them. A gradient that is not added to a sum
 * is zero everywhere first. */
static void correct_work(const layer_node *layer, layer_pass pass, const layer_call *call, layer_work *work)
{
    const embedding_options *options = layer->options;
    uint64_t tokens = layer_input_values(layer, 0), row = dtype_bytes(layer->dtype, options->out_dim);
    uint64_t touched = (tokens < options->in_dim ? tokens : options->in_dim) * row;
    work->bytes = dtype_bytes(REMAT_INT32, tokens) + tokens * row;
    if (pass == LAYER_FORWARD) {
        work->flops = 0;
        work->bytes += touched;
    } else {
        work->bytes += 2 * touched + (call->accumulate_gradients[0] ? 0 : options->in_dim * row);
    }
}

const layer_type layer_type_embedding = {
    .name = "embedding",
    .summary = "a row of a table for every token",
    .hint = REMAT_EMBEDDING,
    .options_bytes = sizeof(embedding_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .reads_tokens = reads_tokens,
    .expand = expand,
    .resolve = resolve,
    .forward = forward,
    .weight_gradient = weight_gradient,
    .correct_work = correct_work,
};
