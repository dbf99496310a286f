/* fully_connected: y = x W^T + b along the last dimension, W of [unit, width] as in PyTorch. */
#include "layers/fully_connected.h"

#include "base/checked.h"
#include "layers/layer_resolve.h"

#include <inttypes.h>

/* The macro wants a field. */
typedef struct fully_connected_only {
    fully_connected_options linear;
} fully_connected_only;

static const property properties[] = {
    FULLY_CONNECTED_PROPERTIES(fully_connected_only, linear),
    {0},
};

/* With an activation: itself without, and the activation. */
static remat_status expand(remat_context *context, const layer_node *layer, layer_parts *parts)
{
    (void)context;
    fully_connected_options linear = *(const fully_connected_options *)layer->options;
    const uint32_t activation = linear.activation;
    linear.activation = ACTIVATION_NONE;
    return activation == ACTIVATION_NONE ? REMAT_OK
                                         : activation_expand(parts, &layer_type_fully_connected, &linear, activation);
}

remat_status fully_connected_resolve_units(remat_context *context, layer_node *layer, uint64_t *units)
{
    const fully_connected_options *options = layer->options;
    uint64_t in = layer->inputs[0].w;
    if ((options->unit == 0) == (options->multiple == 0))
        return remat_fail(context, REMAT_INVALID, NULL, "%s: say how many values come out, with unit=N of at least 1%s",
                          layer->type->name, options->unit ? ", or with multiple=N, but not both" : "");
    layer->shared_from = options->shared_from;
    *units = options->unit;
    if (*units == 0 && !remat_multiply(in, options->multiple, units))
        return remat_fail(context, REMAT_INVALID, NULL, "%s: multiple=%" PRIu64 " is too large", layer->type->name,
                          options->multiple);
    REMAT_TRY(initializer_add(context, layer, &options->start, (uint64_t[4]){*units, in}, in, *units,
                              options->bias ? *units : 0));
    layer->parameters[0].transposed = options->transposed;
    layer->parameters[0].compressible = true;
    return REMAT_OK;
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    uint64_t units, rows = layer_input_rows(layer, 0), in = layer->inputs[0].w;
    REMAT_TRY(fully_connected_resolve_units(context, layer, &units));
    REMAT_TRY(layer_set_output(context, layer, (layer_shape){layer->inputs[0].c, layer->inputs[0].h, units}));
    layer->needs[LAYER_WEIGHT_GRADIENT] = LAYER_NEEDS_INPUT(0);
    for (int pass = 0; pass < LAYER_PASSES; pass++)
        layer->flops[pass] = layer_flops(2 * rows, units, in);
    return REMAT_OK;
}

remat_status fully_connected_forward(const layer_call *call, size_t rows, size_t in, size_t units, tensor_ref x,
                                     tensor_ref y)
{
    return record_gemm(call->calls, &(op_gemm){.a = x,
                                               .b = call->parameters[0],
                                               .c = y,
                                               .bias = call->parameters[1],
                                               .m = rows,
                                               .n = units,
                                               .k = in,
                                               .lda = in,
                                               .ldb = in,
                                               .ldc = units,
                                               .transpose_b = true});
}

remat_status fully_connected_weight_gradient(const layer_call *call, size_t rows, size_t in, size_t units, tensor_ref x,
                                             tensor_ref dy, bool more)
{
    if (call->gradients[0].at)
        REMAT_TRY(record_gemm(call->calls, &(op_gemm){.a = dy,
                                                      .b = x,
                                                      .c = call->gradients[0],
                                                      .m = units,
                                                      .n = in,
                                                      .k = rows,
                                                      .lda = units,
                                                      .ldb = in,
                                                      .ldc = in,
                                                      .transpose_a = true,
                                                      .accumulate = more || call->accumulate_gradients[0]}));
    if (!call->gradients[1].at)
        return REMAT_OK;
    return record_column_sums(call->calls, &(op_column_sums){.x = dy,
                                                             .sums = call->gradients[1],
                                                             .rows = rows,
                                                             .columns = units,
                                                             .accumulate = more || call->accumulate_gradients[1]});
}

static op_gemm input_gradient_gemm(const layer_call *call, size_t rows, size_t in, size_t units, tensor_ref dy,
                                   tensor_ref dx)
{
    return (op_gemm){.a = dy,
                     .b = call->parameters[0],
                     .c = dx,
                     .m = rows,
                     .n = in,
                     .k = units,
                     .lda = units,
                     .ldb = in,
                     .ldc = in,
                     .accumulate = call->accumulate_inputs[0]};
}

remat_status fully_connected_input_gradient(const layer_call *call, size_t rows, size_t in, size_t units, tensor_ref dy,
                                            tensor_ref dx)
{
    const op_gemm gemm = input_gradient_gemm(call, rows, in, units, dy, dx);
    return record_gemm(call->calls, &gemm);
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    return fully_connected_forward(call, layer_input_rows(layer, 0), layer->inputs[0].w, layer->output.w,
                                   call->inputs[0], call->output);
}

static remat_status weight_gradient(const layer_node *layer, const layer_call *call)
{
    return fully_connected_weight_gradient(call, layer_input_rows(layer, 0), layer->inputs[0].w, layer->output.w,
                                           call->inputs[0], call->d_output, false);
}

static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    if (!call->d_inputs[0].at)
        return REMAT_OK;
    op_gemm gemm = input_gradient_gemm(call, layer_input_rows(layer, 0), layer->inputs[0].w, layer->output.w,
                                       call->d_output, call->d_inputs[0]);
    if (layer->joined != ACTIVATION_NONE) {
        gemm.activation = layer->joined;
        gemm.activated = gemm.c;
        gemm.derivative_at = call->inputs[0];
    }
    return record_gemm(call->calls, &gemm);
}

const layer_type layer_type_fully_connected = {
    .name = "fully_connected",
    .summary = "a matrix and a bias on the last dimension",
    .hint = REMAT_FFN,
    .options_bytes = sizeof(fully_connected_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .multiplies = true,
    .expand = expand,
    .resolve = resolve,
    .forward = forward,
    .weight_gradient = weight_gradient,
    .input_gradient = input_gradient,
};
