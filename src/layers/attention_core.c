/* attention_core: softmax(q k^T / sqrt(size)) v for every head. A row of the input is q, k and v side by side. With two inputs
 * the queries are input 0, and a row of input 1 is k and v side by side. */
#include "layers/attention_core.h"

#include "layers/layer_resolve.h"

#include <inttypes.h>

static const property properties[] = {
    {"num_heads", PROPERTY_COUNT, offsetof(attention_core_options, num_heads), NULL, 1, 0, NULL,
     "how many heads share the width"},
    {"causal", PROPERTY_FLAG, offsetof(attention_core_options, causal), "false", 0, 0, NULL,
     "whether a step sees only itself and those before it"},
    {0},
};

/* The sizes, and the tensors where there are some. */
static op_attention_backward attention_of(const layer_node *layer, const layer_call *call)
{
    const attention_core_options *options = layer->options;
    size_t width = layer->output.w, steps = layer->output.h;
    if (layer->input_count == 2)
        return (op_attention_backward){
            .q = call->inputs[0],
            .k = call->inputs[1],
            .v = tensor_from(call->inputs[1], width),
            .out = call->output,
            .sums = call->saved[0],
            .dout = call->d_output,
            .dq = call->d_inputs[0],
            .dk = call->d_inputs[1],
            .dv = tensor_from(call->d_inputs[1], width),
            .batch = layer->batch,
            .heads = options->num_heads,
            .steps = steps,
            .size = width / options->num_heads,
            .row = width,
            .out_row = width,
            .keys = layer->inputs[1].h,
            .key_row = 2 * width,
            .add_dq = call->accumulate_inputs[0],
            .add_dkv = call->accumulate_inputs[1],
        };
    return (op_attention_backward){
        .q = call->inputs[0],
        .k = tensor_from(call->inputs[0], width),
        .v = tensor_from(call->inputs[0], 2 * width),
        .out = call->output,
        .sums = call->saved[0],
        .dout = call->d_output,
        .dq = call->d_inputs[0],
        .dk = tensor_from(call->d_inputs[0], width),
        .dv = tensor_from(call->d_inputs[0], 2 * width),
        .workspace = call->workspace,
        .batch = layer->batch,
        .heads = options->num_heads,
        .steps = steps,
        .size = width / options->num_heads,
        .row = 3 * width,
        .out_row = width,
        .keys = steps,
        .key_row = 3 * width,
        .causal = options->causal,
        .accumulate = call->accumulate_inputs[0],
    };
}

/* Adding to a gradient may take more workspace than making it. */
static void set_workspaces(layer_node *layer)
{
    layer_call none = {.inputs = {layer_tensor_like(layer->dtype)}};
    op_attention_backward backward = attention_of(layer, &none);
    layer->workspace[LAYER_INPUT_GRADIENT] = backend_workspace(layer->device, OP_attention_backward, &backward);
    backward.accumulate = true;
    layer->accumulate_workspace =
        backend_workspace(layer->device, OP_attention_backward, &backward) - layer->workspace[LAYER_INPUT_GRADIENT];
}

/* The keys and values of cross-attention. */
static remat_status check_memory(remat_context *context, const layer_node *layer)
{
    const attention_core_options *options = layer->options;
    layer_shape queries = layer->inputs[0], memory = layer->inputs[1];
    if (memory.c != 1 || queries.w > UINT64_MAX / 2 || memory.w != 2 * queries.w)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "attention_core: the queries are %s, and so keys and values must be a sequence of twice that "
                          "width, but are %s",
                          layer_shape_write(queries).text, layer_shape_write(memory).text);
    if (options->causal)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "multi_head_attention: causal is for one sequence, not for a sequence and a memory");
    return REMAT_OK;
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    const attention_core_options *options = layer->options;
    layer_shape in = layer->inputs[0];
    bool is_cross = layer->input_count == 2;
    uint64_t width = is_cross ? in.w : in.w / 3, heads = options->num_heads;
    uint64_t keys = is_cross ? layer->inputs[1].h : in.h;
    if (is_cross)
        REMAT_TRY(check_memory(context, layer));
    if (in.c != 1)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "multi_head_attention: the input must be a sequence 1:steps:width, but is %s",
                          layer_shape_write(in).text);
    if (!is_cross && in.w % 3 != 0)
        return remat_fail(
            context, REMAT_INVALID, NULL,
            "attention_core: the input holds queries, keys and values side by side, but its width %" PRIu64
            " is not divisible by 3",
            in.w);
    if (width % heads != 0)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "multi_head_attention: width %" PRIu64 " is not divisible by num_heads %" PRIu64, width,
                          heads);
    REMAT_TRY(layer_set_output(context, layer, (layer_shape){1, in.h, width}));
    REMAT_TRY(layer_add_saved(context, layer, "sums", layer->batch * heads * in.h, layer_statistics_dtype(layer)));
    if (!is_cross)
        set_workspaces(layer);
    layer->needs[LAYER_INPUT_GRADIENT] = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_OUTPUT | LAYER_NEEDS_SAVED;
    if (is_cross)
        layer->needs[LAYER_INPUT_GRADIENT] |= LAYER_NEEDS_INPUT(1);
    /* Two GEMMs of steps x steps x width forward, five backward; half of each where causal. */
    uint64_t pairs = layer_flops(layer->batch * in.h, keys, width);
    layer->flops[LAYER_FORWARD] = layer_flops(pairs, options->causal ? 2 : 4, 1);
    layer->flops[LAYER_INPUT_GRADIENT] = layer_flops(pairs, options->causal ? 5 : 10, 1);
    return REMAT_OK;
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    const op_attention_backward sizes = attention_of(layer, call);
    return record_attention(call->calls, &(op_attention){.q = sizes.q,
                                                         .k = sizes.k,
                                                         .v = sizes.v,
                                                         .out = sizes.out,
                                                         .sums = sizes.sums,
                                                         .batch = sizes.batch,
                                                         .heads = sizes.heads,
                                                         .steps = sizes.steps,
                                                         .size = sizes.size,
                                                         .row = sizes.row,
                                                         .out_row = sizes.out_row,
                                                         .keys = sizes.keys,
                                                         .key_row = sizes.key_row,
                                                         .causal = sizes.causal});
}

static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    const op_attention_backward backward = attention_of(layer, call);
    bool wanted = call->d_inputs[0].at || call->d_inputs[1].at;
    return wanted ? record_attention_backward(call->calls, &backward) : REMAT_OK;
}

const layer_type layer_type_attention_core = {
    .name = "attention_core",
    .summary = "the part of multi_head_attention between its projections",
    .hint = REMAT_ATTENTION,
    .options_bytes = sizeof(attention_core_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 2,
    .multiplies = true,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};
