/* attention_core: softmax(q k^T / sqrt(size)) v for every head. A row of the input is q, k and v side by side. */
#include "layers/attention_core.h"

#include "base/checked.h"
#include "layers/layer_resolve.h"

#include <inttypes.h>

static const property properties[] = {
    {"num_heads", PROPERTY_COUNT, offsetof(attention_core_options, num_heads), NULL, 1, 0, NULL,
     "how many heads share the width"},
    {"causal", PROPERTY_FLAG, offsetof(attention_core_options, causal), "false", 0, 0, NULL,
     "whether a step sees only itself and those before it"},
    {0},
};

static kernel_attention attention_of(const layer_node *layer, const layer_call *call)
{
    const attention_core_options *options = layer->options;
    size_t width = layer->output.w;
    const real *q = call->inputs[0];
    return (kernel_attention){
        .batch = layer->batch,
        .heads = options->num_heads,
        .steps = layer->output.h,
        .size = width / options->num_heads,
        .causal = options->causal,
        .q = q,
        .k = q + width,
        .v = q + 2 * width,
        .row = 3 * width,
        .out = call->output,
        .out_row = width,
        .sums = call->saved[0],
        .dout = call->d_output,
        .workspace = call->workspace,
    };
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
    REMAT_TRY(layer_add_saved(context, layer, "sums", layer->batch * heads * in.h, sizeof(real)));
    REMAT_TRY(layer_set_workspace(context, layer, attention_workspace(layer->batch, heads, in.h, width / heads),
                                  &layer->derivative_workspace));
    /* The kernel replaces gradients. To add them, they are made a sample at a time behind the kernel's own workspace. */
    REMAT_TRY(layer_set_workspace(context, layer, in.h * in.w, &layer->accumulate_workspace));
    layer->derivative_needs = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_OUTPUT | LAYER_NEEDS_SAVED;
    /* Two products of steps x steps x width forward, five backward; half of each where causal. */
    uint64_t pairs = layer_flops(layer->batch * in.h, in.h, width);
    layer->forward_flops = layer_flops(pairs, options->causal ? 2 : 4, 1);
    layer->derivative_flops = layer_flops(pairs, options->causal ? 5 : 10, 1);
    return REMAT_OK;
}

static void forward(const layer_node *layer, const layer_call *call)
{
    kernel_attention attention = attention_of(layer, call);
    call->kernels->attention(call->run, &attention);
}

static void set_gradients(kernel_attention *attention, real *dq, size_t width)
{
    attention->dq = dq;
    attention->dk = dq + width;
    attention->dv = dq + 2 * width;
}

static void derivative(const layer_node *layer, const layer_call *call)
{
    kernel_attention attention = attention_of(layer, call);
    size_t width = layer->output.w, in_sample = layer_values(layer->inputs[0]), sample = layer_values(layer->output);
    if (!call->d_inputs[0])
        return;
    if (!call->accumulate_inputs[0]) {
        set_gradients(&attention, call->d_inputs[0], width);
        call->kernels->attention_backward(call->run, &attention);
        return;
    }
    real *made =
        (real *)call->workspace + attention_workspace(layer->batch, attention.heads, attention.steps, attention.size);
    set_gradients(&attention, made, width);
    attention.batch = 1;
    for (uint64_t i = 0; i < layer->batch; i++) {
        call->kernels->attention_backward(call->run, &attention);
        call->kernels->accumulate(call->run, in_sample, made, call->d_inputs[0] + i * in_sample);
        attention.q += in_sample;
        attention.k += in_sample;
        attention.v += in_sample;
        attention.out += sample;
        attention.dout += sample;
        attention.sums += attention.heads * attention.steps;
    }
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
    .derivative = derivative,
};
