/* lora: y = x W^T + b + (alpha / rank) drop(x) A^T B^T, as Hu and others (2021) have it. W and b are frozen; A, of [rank, width],
 * and B, of [unit, rank], are trained. B starts at 0, so that the layer begins as the fully_connected that it stands for.
 *
 * One layer does it all, so that nothing of the size of y is held besides y. It saves h = (alpha / rank) drop(x) A^T, which is
 * narrow. The backward needs x and h:
 *
 *     dB = dy^T h     dh = (alpha / rank) dy B     dA = dh^T drop(x)     dx = dy W + drop(dh A)                            */
#include "layers/lora.h"

#include "layers/layer_resolve.h"

#include <math.h>

static const property properties[] = {
    FULLY_CONNECTED_PROPERTIES(lora_options, linear),
    {"rank", PROPERTY_COUNT, offsetof(lora_options, rank), "8", 1, 1000000, NULL, "the rows of A"},
    {"alpha", PROPERTY_NUMBER, offsetof(lora_options, alpha), "16", 0, 0, NULL, "the update is times alpha / rank"},
    {"dropout", PROPERTY_NUMBER, offsetof(lora_options, dropout), "0", 0, 0.999999, NULL,
     "the share of the inputs of A that become 0 in training"},
    {0},
};

typedef struct sizes {
    size_t rows, in, units, rank;
    bool drops;
} sizes;

static sizes sizes_of(const layer_node *layer, bool training)
{
    const lora_options *options = layer->options;
    return (sizes){layer_input_rows(layer, 0), layer->inputs[0].w, layer->output.w, options->rank,
                   training && (float)(1 - options->dropout) != 1};
}

static double scale_of(const layer_node *layer)
{
    const lora_options *options = layer->options;
    return options->alpha / (double)options->rank;
}

/* A and B are behind the weight and the bias. */
static uint32_t position_of_a(const layer_node *layer)
{
    return layer->parameter_count - 2;
}

/* The call of the frozen part: its parameters alone. */
static layer_call frozen_call(const layer_node *layer, const layer_call *call)
{
    layer_call only = *call;
    for (uint32_t p = position_of_a(layer); p < LAYER_MAX_PARAMETERS; p++)
        only.parameters[p] = TENSOR_NONE;
    return only;
}

static remat_status add_factors(remat_context *context, layer_node *layer, const sizes *s)
{
    REMAT_TRY(layer_add_parameter(context, layer, "lora_A", (uint64_t[4]){s->rank, s->in}, LAYER_UNIFORM,
                                  1 / sqrt((double)s->in)));
    REMAT_TRY(layer_add_parameter(context, layer, "lora_B", (uint64_t[4]){s->units, s->rank}, LAYER_ZEROS, 0));
    for (uint32_t p = 0; p < layer->parameter_count; p++) {
        layer->parameters[p].adapter = p >= position_of_a(layer);
        layer->parameters[p].frozen = !layer->parameters[p].adapter;
    }
    return REMAT_OK;
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    const lora_options *options = layer->options;
    uint64_t units, narrow, wide;
    if (options->linear.activation != ACTIVATION_NONE)
        return remat_fail(context, REMAT_INVALID, NULL, "lora: it has no activation; put a layer behind it");
    REMAT_TRY(fully_connected_resolve_units(context, layer, &units));
    REMAT_TRY(layer_set_output(context, layer, (layer_shape){layer->inputs[0].c, layer->inputs[0].h, units}));
    const sizes s = sizes_of(layer, true);
    REMAT_TRY(add_factors(context, layer, &s));
    REMAT_TRY(layer_add_saved(context, layer, "h", layer_flops(s.rows, s.rank, 1), layer_statistics_dtype(layer)));
    REMAT_TRY(layer_set_workspace(context, layer, layer_flops(s.rows, s.rank, 1), &narrow));
    REMAT_TRY(layer_set_workspace(context, layer, layer_flops(s.rows, s.in, 1), &wide));
    narrow = dtype_bytes(layer_statistics_dtype(layer), s.rows * s.rank);
    wide = s.drops ? dtype_bytes(layer_statistics_dtype(layer), s.rows * s.in) : 0;
    layer->workspace[LAYER_FORWARD] = wide;
    layer->workspace[LAYER_INPUT_GRADIENT] = ((narrow + 63) & ~(uint64_t)63) + wide;
    if (!layer->frozen)
        layer->needs[LAYER_INPUT_GRADIENT] = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_SAVED;
    const uint64_t whole = layer_flops(2 * s.rows, units, s.in), low = layer_flops(2 * s.rows, units + s.in, s.rank);
    layer->flops[LAYER_FORWARD] = layer_flops(whole + low < whole ? 0 : whole + low, 1, 1);
    layer->flops[LAYER_INPUT_GRADIENT] = layer_flops(whole + 2 * low < whole ? 0 : whole + 2 * low, 1, 1);
    return REMAT_OK;
}

static remat_status drop(const layer_node *layer, const layer_call *call, tensor_ref x, tensor_ref y, bool accumulate)
{
    const lora_options *options = layer->options;
    return record_dropout(call->calls, &(op_dropout){.x = x,
                                                     .y = y,
                                                     .step = call->step,
                                                     .count = layer_input_values(layer, 0),
                                                     .layer = call->number,
                                                     .keep = 1 - options->dropout,
                                                     .accumulate = accumulate});
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    const sizes s = sizes_of(layer, call->training);
    const layer_call frozen = frozen_call(layer, call);
    const tensor_ref a = call->parameters[position_of_a(layer)], b = call->parameters[position_of_a(layer) + 1];
    const tensor_ref h = call->saved[0];
    tensor_ref x = call->inputs[0];
    REMAT_TRY(fully_connected_forward(&frozen, s.rows, s.in, s.units, x, call->output));
    if (s.drops) {
        x = (tensor_ref){call->workspace.at, layer_statistics_dtype(layer)};
        REMAT_TRY(drop(layer, call, call->inputs[0], x, false));
    }
    REMAT_TRY(record_gemm(call->calls, &(op_gemm){.a = x,
                                                  .b = a,
                                                  .c = h,
                                                  .m = s.rows,
                                                  .n = s.rank,
                                                  .k = s.in,
                                                  .lda = s.in,
                                                  .ldb = s.in,
                                                  .ldc = s.rank,
                                                  .transpose_b = true}));
    REMAT_TRY(record_scale(call->calls, &(op_scale){.y = h, .count = s.rows * s.rank, .factor = scale_of(layer)}));
    return record_gemm(call->calls, &(op_gemm){.a = h,
                                               .b = b,
                                               .c = call->output,
                                               .m = s.rows,
                                               .n = s.units,
                                               .k = s.rank,
                                               .lda = s.rank,
                                               .ldb = s.rank,
                                               .ldc = s.units,
                                               .transpose_b = true,
                                               .accumulate = true});
}

/* The gradients of A and B; `dh` is ready. */
static remat_status gradients_of_factors(const layer_node *layer, const layer_call *call, const sizes *s, tensor_ref dh,
                                         tensor_ref x)
{
    const uint32_t a = position_of_a(layer), b = a + 1;
    REMAT_TRY(record_gemm(call->calls, &(op_gemm){.a = call->d_output,
                                                  .b = call->saved[0],
                                                  .c = call->gradients[b],
                                                  .m = s->units,
                                                  .n = s->rank,
                                                  .k = s->rows,
                                                  .lda = s->units,
                                                  .ldb = s->rank,
                                                  .ldc = s->rank,
                                                  .transpose_a = true,
                                                  .accumulate = call->accumulate_gradients[b]}));
    return record_gemm(call->calls, &(op_gemm){.a = dh,
                                               .b = x,
                                               .c = call->gradients[a],
                                               .m = s->rank,
                                               .n = s->in,
                                               .k = s->rows,
                                               .lda = s->rank,
                                               .ldb = s->in,
                                               .ldc = s->in,
                                               .transpose_a = true,
                                               .accumulate = call->accumulate_gradients[a]});
}

/* dx = dy W + drop(dh A). */
static remat_status gradient_of_input(const layer_node *layer, const layer_call *call, const sizes *s, tensor_ref dh,
                                      tensor_ref wide)
{
    const layer_call frozen = frozen_call(layer, call);
    const tensor_ref dx = call->d_inputs[0];
    REMAT_TRY(fully_connected_input_gradient(&frozen, s->rows, s->in, s->units, call->d_output, dx));
    REMAT_TRY(record_gemm(call->calls, &(op_gemm){.a = dh,
                                                  .b = call->parameters[position_of_a(layer)],
                                                  .c = s->drops ? wide : dx,
                                                  .m = s->rows,
                                                  .n = s->in,
                                                  .k = s->rank,
                                                  .lda = s->rank,
                                                  .ldb = s->in,
                                                  .ldc = s->in,
                                                  .accumulate = !s->drops}));
    return s->drops ? drop(layer, call, wide, dx, true) : REMAT_OK;
}

/* One pass for all gradients: they share dh. */
static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    const sizes s = sizes_of(layer, true);
    const uint64_t narrow = dtype_bytes(layer_statistics_dtype(layer), s.rows * s.rank);
    const tensor_ref dh = {call->workspace.at, layer_statistics_dtype(layer)};
    const tensor_ref wide = {(char *)call->workspace.at + ((narrow + 63) & ~(uint64_t)63), dh.type};
    const uint32_t a = position_of_a(layer);
    REMAT_TRY(record_gemm(call->calls, &(op_gemm){.a = call->d_output,
                                                  .b = call->parameters[a + 1],
                                                  .c = dh,
                                                  .m = s.rows,
                                                  .n = s.rank,
                                                  .k = s.units,
                                                  .lda = s.units,
                                                  .ldb = s.rank,
                                                  .ldc = s.rank}));
    REMAT_TRY(record_scale(call->calls, &(op_scale){.y = dh, .count = s.rows * s.rank, .factor = scale_of(layer)}));
    if (call->gradients[a].at && s.drops)
        REMAT_TRY(drop(layer, call, call->inputs[0], wide, false));
    if (call->gradients[a].at)
        REMAT_TRY(gradients_of_factors(layer, call, &s, dh, s.drops ? wide : call->inputs[0]));
    return call->d_inputs[0].at ? gradient_of_input(layer, call, &s, dh, wide) : REMAT_OK;
}

const layer_type layer_type_lora = {
    .name = "lora",
    .summary = "a frozen fully_connected with a trained update of low rank",
    .hint = REMAT_FFN,
    .options_bytes = sizeof(lora_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .multiplies = true,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};
