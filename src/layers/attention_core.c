/* attention_core: softmax(q k^T / sqrt(size)) v for every head. A row of the input is q, k and v side by side. With two inputs
 * the queries are input 0, and a row of input 1 is k and v side by side. With three inputs they are q, k and v, and several
 * heads of queries may share a head of keys and values. With `positions`, one more input holds the position of every step, as
 * whole numbers: where it is 0, another sample begins, which does not see those before it.
 *
 * With `cache`, which is for generating text, keys and values are kept in memory of the layer, in the row of their position, and a
 * step sees all rows up to its own. */
#include "layers/attention_core.h"

#include "layers/layer_resolve.h"

#include <inttypes.h>

static const property properties[] = {
    {"num_heads", PROPERTY_COUNT, offsetof(attention_core_options, num_heads), NULL, 1, 0, NULL,
     "how many heads share the width"},
    {"causal", PROPERTY_FLAG, offsetof(attention_core_options, causal), "false", 0, 0, NULL,
     "whether a step sees only itself and those before it"},
    {"num_key_heads", PROPERTY_COUNT, offsetof(attention_core_options, num_key_heads), "0", 0, 0, NULL,
     "with three inputs: heads of keys and values, each of which serves num_heads / num_key_heads heads; 0: num_heads"},
    {"window", PROPERTY_COUNT, offsetof(attention_core_options, window), "0", 0, 0, NULL,
     "with causal: how many steps a step sees, itself included; 0: all before it"},
    {"positions", PROPERTY_FLAG, offsetof(attention_core_options, positions), "false", 0, 0, NULL,
     "with causal: the last input holds the position of every step; a step sees nothing before the last position 0"},
    {"cache", PROPERTY_COUNT, offsetof(attention_core_options, cache), "0", 0, 1e9, NULL,
     "with positions: rows of keys and values that are kept from run to run, for generating text; 0: none"},
    {0},
};

/* Without the one of positions. */
static uint32_t sequence_inputs(const layer_node *layer)
{
    const attention_core_options *options = layer->options;
    return layer->input_count - (options->positions && layer->input_count ? 1 : 0);
}

static bool reads_tokens(const layer_node *layer, uint32_t input)
{
    const attention_core_options *options = layer->options;
    return options->positions && input > 0 && input + 1 == layer->input_count;
}

static tensor_ref positions_of(const layer_node *layer, const layer_call *call)
{
    const attention_core_options *options = layer->options;
    return options->positions ? call->inputs[layer->input_count - 1] : TENSOR_NONE;
}

static uint64_t group_of(const attention_core_options *options)
{
    return options->num_key_heads ? options->num_heads / options->num_key_heads : 1;
}

static op_attention_backward separate_attention_of(const layer_node *layer, const layer_call *call)
{
    const attention_core_options *options = layer->options;
    return (op_attention_backward){
        .q = call->inputs[0],
        .k = call->inputs[1],
        .v = call->inputs[2],
        .out = call->output,
        .sums = call->saved[0],
        .dout = call->d_output,
        .dq = call->d_inputs[0],
        .dk = call->d_inputs[1],
        .dv = call->d_inputs[2],
        .workspace = call->workspace,
        .positions = positions_of(layer, call),
        .batch = layer->batch,
        .heads = options->num_heads,
        .steps = layer->output.h,
        .size = layer->output.w / options->num_heads,
        .row = layer->output.w,
        .out_row = layer->output.w,
        .keys = layer->output.h,
        .key_row = layer->inputs[1].w,
        .group = group_of(options),
        .window = options->window,
        .causal = options->causal,
    };
}

/* The sizes, and the tensors where there are some. */
static op_attention_backward attention_of(const layer_node *layer, const layer_call *call)
{
    const attention_core_options *options = layer->options;
    size_t width = layer->output.w, steps = layer->output.h;
    if (sequence_inputs(layer) == 3)
        return separate_attention_of(layer, call);
    if (sequence_inputs(layer) == 2)
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
            .workspace = call->workspace,
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
        .positions = positions_of(layer, call),
        .batch = layer->batch,
        .heads = options->num_heads,
        .steps = steps,
        .size = width / options->num_heads,
        .row = 3 * width,
        .out_row = width,
        .keys = steps,
        .key_row = 3 * width,
        .window = options->window,
        .causal = options->causal,
        .accumulate = call->accumulate_inputs[0],
    };
}

/* What the device needs for the backward. */
static uint64_t device_workspace(const layer_node *layer, bool accumulate)
{
    const layer_call none = {.inputs = {layer_tensor_like(layer->dtype)}};
    op_attention_backward backward = attention_of(layer, &none);
    backward.accumulate = accumulate;
    const uint64_t bytes = backend_workspace(layer->device, OP_attention_backward, &backward);
    return sequence_inputs(layer) == 3 ? (bytes + 63) & ~(uint64_t)63 : bytes; /* gradients follow it */
}

/* Adding to a gradient may take more workspace than making it: with three inputs, the gradients are made behind the workspace of the
 * device first. */
static void set_workspaces(layer_node *layer)
{
    const uint64_t plain = device_workspace(layer, false), adding = device_workspace(layer, true);
    layer->workspace[LAYER_INPUT_GRADIENT] = plain;
    if (sequence_inputs(layer) == 1)
        layer->accumulate_workspace = adding > plain ? adding - plain : 0;
    if (sequence_inputs(layer) == 3)
        layer->accumulate_workspace =
            dtype_bytes(layer_statistics_dtype(layer), layer_input_values(layer, 0) + 2 * layer_input_values(layer, 1));
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

/* Queries, keys and values in three inputs. */
static remat_status check_separate(remat_context *context, const layer_node *layer)
{
    const attention_core_options *options = layer->options;
    const layer_shape q = layer->inputs[0], k = layer->inputs[1], v = layer->inputs[2];
    const uint64_t key_heads = options->num_key_heads ? options->num_key_heads : options->num_heads;
    if (options->num_heads % key_heads != 0)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "attention_core: num_heads %" PRIu64 " is not divisible by num_key_heads %" PRIu64,
                          options->num_heads, key_heads);
    const uint64_t width = q.w / options->num_heads * key_heads;
    const layer_shape wanted = {1, q.h, width};
    if (layer_shapes_equal(k, wanted) && layer_shapes_equal(v, wanted))
        return REMAT_OK;
    return remat_fail(context, REMAT_INVALID, NULL,
                      "attention_core: the queries are %s, and so keys and values must be %s, but are %s and %s",
                      layer_shape_write(q).text, layer_shape_write(wanted).text, layer_shape_write(k).text,
                      layer_shape_write(v).text);
}

static remat_status check_positions(remat_context *context, const layer_node *layer)
{
    const attention_core_options *options = layer->options;
    const layer_shape wanted = {1, 1, layer->inputs[0].h};
    if (options->cache && !options->positions)
        return remat_fail(context, REMAT_INVALID, NULL, "attention_core: cache needs positions=true");
    if (!options->positions)
        return REMAT_OK;
    if (!options->causal || sequence_inputs(layer) % 2 == 0)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "attention_core: positions is for causal attention, and the last of two or four inputs");
    const layer_shape got = layer->inputs[layer->input_count - 1];
    if (options->cache && layer->batch != 1)
        return remat_fail(context, REMAT_INVALID, NULL, "attention_core: a cache is for one sample, not %" PRIu64,
                          layer->batch);
    if (layer_shapes_equal(got, wanted))
        return REMAT_OK;
    return remat_fail(context, REMAT_INVALID, NULL, "attention_core: the positions must be %s, but are %s",
                      layer_shape_write(wanted).text, layer_shape_write(got).text);
}

static remat_status check_options(remat_context *context, const layer_node *layer)
{
    const attention_core_options *options = layer->options;
    REMAT_TRY(check_positions(context, layer));
    if (sequence_inputs(layer) > 3)
        return remat_fail(context, REMAT_INVALID, NULL, "attention_core: a fourth input needs positions=true");
    if (options->window && !options->causal)
        return remat_fail(context, REMAT_INVALID, NULL, "attention_core: window is for causal attention");
    if (options->num_key_heads && sequence_inputs(layer) != 3)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "attention_core: num_key_heads is for three inputs: queries, keys and values");
    if (sequence_inputs(layer) == 3)
        return check_separate(context, layer);
    return sequence_inputs(layer) == 2 ? check_memory(context, layer) : REMAT_OK;
}

static remat_status add_cache(remat_context *context, layer_node *layer)
{
    static const char *const names[] = {"cached_keys", "cached_values"};
    const attention_core_options *options = layer->options;
    const uint64_t width = layer->output.w / group_of(options);
    for (uint32_t i = 0; i < 2; i++) {
        REMAT_TRY(layer_add_parameter(context, layer, names[i], (uint64_t[4]){options->cache, width}, LAYER_ZEROS, 0));
        layer->parameters[i].statistic = layer->parameters[i].transient = true;
    }
    return REMAT_OK;
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    const attention_core_options *options = layer->options;
    layer_shape in = layer->inputs[0];
    bool is_cross = sequence_inputs(layer) == 2, is_packed = sequence_inputs(layer) == 1;
    uint64_t width = is_packed ? in.w / 3 : in.w, heads = options->num_heads;
    uint64_t keys = is_cross ? layer->inputs[1].h : in.h;
    REMAT_TRY(check_options(context, layer));
    if (in.c != 1)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "multi_head_attention: the input must be a sequence 1:steps:width, but is %s",
                          layer_shape_write(in).text);
    if (is_packed && in.w % 3 != 0)
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
    if (options->cache)
        REMAT_TRY(add_cache(context, layer));
    set_workspaces(layer);
    layer->needs[LAYER_INPUT_GRADIENT] = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_OUTPUT | LAYER_NEEDS_SAVED;
    for (uint32_t i = 1; i < layer->input_count; i++)
        layer->needs[LAYER_INPUT_GRADIENT] |= LAYER_NEEDS_INPUT(i);
    /* Two GEMMs of steps x steps x width forward, five backward; half of each where causal. */
    uint64_t pairs = layer_flops(layer->batch * in.h, keys, width);
    layer->flops[LAYER_FORWARD] = layer_flops(pairs, options->causal ? 2 : 4, 1);
    layer->flops[LAYER_INPUT_GRADIENT] = layer_flops(pairs, options->causal ? 5 : 10, 1);
    return REMAT_OK;
}

/* The rows of this run go to the cache, and then the cache is read. */
static remat_status cached_forward(const layer_node *layer, const layer_call *call)
{
    const attention_core_options *options = layer->options;
    const op_attention_backward sizes = attention_of(layer, call);
    const size_t width = layer->parameters[0].dims[1];
    const op_put_rows keys = {.x = sizes.k,
                              .places = sizes.positions,
                              .y = call->parameters[0],
                              .rows = sizes.steps,
                              .columns = width,
                              .x_row = sizes.key_row,
                              .most = options->cache};
    op_put_rows values = keys;
    values.x = sizes.v;
    values.y = call->parameters[1];
    REMAT_TRY(record_put_rows(call->calls, &keys));
    REMAT_TRY(record_put_rows(call->calls, &values));
    return record_attention_cached(call->calls, &(op_attention_cached){.q = sizes.q,
                                                                       .k = call->parameters[0],
                                                                       .v = call->parameters[1],
                                                                       .out = sizes.out,
                                                                       .positions = sizes.positions,
                                                                       .rows = sizes.steps,
                                                                       .heads = sizes.heads,
                                                                       .size = sizes.size,
                                                                       .row = sizes.row,
                                                                       .out_row = sizes.out_row,
                                                                       .keys = options->cache,
                                                                       .key_row = width,
                                                                       .group = sizes.group,
                                                                       .window = sizes.window});
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    const op_attention_backward sizes = attention_of(layer, call);
    if (layer->parameter_count)
        return cached_forward(layer, call);
    return record_attention(call->calls, &(op_attention){.q = sizes.q,
                                                         .k = sizes.k,
                                                         .v = sizes.v,
                                                         .out = sizes.out,
                                                         .sums = sizes.sums,
                                                         .positions = sizes.positions,
                                                         .batch = sizes.batch,
                                                         .heads = sizes.heads,
                                                         .steps = sizes.steps,
                                                         .size = sizes.size,
                                                         .row = sizes.row,
                                                         .out_row = sizes.out_row,
                                                         .keys = sizes.keys,
                                                         .key_row = sizes.key_row,
                                                         .group = sizes.group,
                                                         .window = sizes.window,
                                                         .causal = sizes.causal});
}

/* Where a gradient is added to another, all are made in the workspace first: the three inputs may be one tensor. */
static remat_status separate_gradient(const layer_node *layer, const layer_call *call)
{
    op_attention_backward backward = separate_attention_of(layer, call);
    bool adds = false;
    for (uint32_t i = 0; i < 3; i++)
        adds |= call->accumulate_inputs[i];
    if (!adds)
        return record_attention_backward(call->calls, &backward);
    backward.dq =
        (tensor_ref){(char *)call->workspace.at + device_workspace(layer, false), layer_statistics_dtype(layer)};
    backward.dk = tensor_from(backward.dq, layer_input_values(layer, 0));
    backward.dv = tensor_from(backward.dk, layer_input_values(layer, 1));
    REMAT_TRY(record_attention_backward(call->calls, &backward));
    const tensor_ref made[] = {backward.dq, backward.dk, backward.dv};
    for (uint32_t i = 0; i < 3; i++) {
        const size_t count = layer_input_values(layer, i);
        if (!call->d_inputs[i].at)
            continue;
        if (call->accumulate_inputs[i])
            REMAT_TRY(record_accumulate(call->calls, &(op_accumulate){made[i], call->d_inputs[i], count}));
        else
            REMAT_TRY(record_copy(call->calls, &(op_copy){made[i], call->d_inputs[i], count}));
    }
    return REMAT_OK;
}

static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    const op_attention_backward backward = attention_of(layer, call);
    if (sequence_inputs(layer) == 3)
        return separate_gradient(layer, call);
    const bool wanted = call->d_inputs[0].at || call->d_inputs[1].at;
    return wanted ? record_attention_backward(call->calls, &backward) : REMAT_OK;
}

const layer_type layer_type_attention_core = {
    .name = "attention_core",
    .summary = "the part of multi_head_attention between its projections",
    .hint = REMAT_ATTENTION,
    .options_bytes = sizeof(attention_core_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 4,
    .multiplies = true,
    .reads_tokens = reads_tokens,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};
