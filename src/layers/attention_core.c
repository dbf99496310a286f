/* attention_core: softmax(q k^T / sqrt(size)) v for every head. A row of the input is q, k and v side by side. */
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
    size_t width = layer->output.w;
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
        .steps = layer->output.h,
        .size = width / options->num_heads,
        .row = 3 * width,
        .out_row = width,
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

static remat_status resolve(remat_context *context, layer_node *layer)
{
    const attention_core_options *options = layer->options;
    layer_shape in = layer->inputs[0];
    uint64_t width = in.w / 3, heads = options->num_heads;
    if (in.c != 1)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "multi_head_attention: the input must be a sequence 1:steps:width, but is %s",
                          layer_shape_write(in).text);
    if (in.w % 3 != 0)
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
    set_workspaces(layer);
    layer->needs[LAYER_INPUT_GRADIENT] = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_OUTPUT | LAYER_NEEDS_SAVED;
    /* Two GEMMs of steps x steps x width forward, five backward; half of each where causal. */
    uint64_t pairs = layer_flops(layer->batch * in.h, in.h, width);
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
                                                         .causal = sizes.causal});
}

static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    const op_attention_backward backward = attention_of(layer, call);
    return call->d_inputs[0].at ? record_attention_backward(call->calls, &backward) : REMAT_OK;
}

const layer_type layer_type_attention_core = {
    .name = "attention_core",
    .summary = "the part of multi_head_attention between its projections",
    .hint = REMAT_ATTENTION,
    .options_bytes = sizeof(attention_core_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .multiplies = true,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};
