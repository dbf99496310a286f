/* fully_connected: y = x W^T + b along the last dimension, W of [unit, width] as in PyTorch. */
#include "layers/fully_connected.h"

#include "base/checked.h"
#include "layers/activation.h"
#include "layers/layer_resolve.h"

#include <inttypes.h>

const property fully_connected_properties[] = {
    {"unit", PROPERTY_COUNT, offsetof(fully_connected_options, unit), "0", 0, 0, NULL, "how many values come out"},
    {"multiple", PROPERTY_COUNT, offsetof(fully_connected_options, multiple), "0", 0, 0, NULL,
     "instead of unit: so many times the width of the input"},
    {"bias", PROPERTY_FLAG, offsetof(fully_connected_options, bias), "true", 0, 0, NULL, "whether a bias is added"},
    {"shared_from", PROPERTY_TEXT, offsetof(fully_connected_options, shared_from), "", 0, 0, NULL,
     "the layer whose weight this one uses as well"},
    {"activation", PROPERTY_CHOICE, offsetof(fully_connected_options, activation), "none", 0, 0, activation_names,
     "an activation behind it"},
    INITIALIZER_PROPERTIES(fully_connected_options, start),
    {0},
};

/* With an activation: itself without, and the activation. */
static remat_status expand(remat_context *context, const layer_node *layer, layer_parts *parts)
{
    (void)context;
    fully_connected_options linear = *(const fully_connected_options *)layer->options;
    const activation_options pointwise = {linear.activation};
    if (linear.activation == ACTIVATION_NONE)
        return REMAT_OK;
    linear.activation = ACTIVATION_NONE;
    REMAT_TRY(parts->add(parts, &layer_type_fully_connected, NULL, (int[]){-1}, 1, &linear));
    return parts->add(parts, &layer_type_activation, "activation", (int[]){0}, 1, &pointwise);
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
    return initializer_add(context, layer, &options->start, (uint64_t[4]){*units, in}, in, *units,
                           options->bias ? *units : 0);
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    uint64_t units, rows = layer_input_rows(layer, 0), in = layer->inputs[0].w;
    REMAT_TRY(fully_connected_resolve_units(context, layer, &units));
    REMAT_TRY(layer_set_output(context, layer, (layer_shape){layer->inputs[0].c, layer->inputs[0].h, units}));
    layer->gradient_needs = LAYER_NEEDS_INPUT(0);
    layer->forward_flops = layer->gradient_flops = layer->derivative_flops = layer_flops(2 * rows, units, in);
    return REMAT_OK;
}

/* Runs the product, and with it the activation behind it where there is one. */
static void multiply(const layer_call *call, kernel_product *product)
{
    if (call->fused) {
        product->activation = call->fused->kind;
        product->activated = call->fused->result;
        product->derivative_at = call->fused->derivative_at;
    }
    call->kernels->product(call->run, product);
}

void fully_connected_forward(const layer_call *call, size_t rows, size_t in, size_t units, const real *x, real *y)
{
    kernel_product product = {
        .transpose_b = true,
        .m = rows,
        .n = units,
        .k = in,
        .a = x,
        .lda = in,
        .b = call->parameters[0],
        .ldb = in,
        .c = y,
        .ldc = units,
        .bias = call->parameters[1],
    };
    multiply(call, &product);
}

/* `more`: these are not the first rows; add to what the first ones gave. */
void fully_connected_gradient(const layer_call *call, size_t rows, size_t in, size_t units, const real *x,
                              const real *dy, bool more)
{
    const kernel_product product = {
        .transpose_a = true,
        .accumulate = more || call->accumulate_gradients[0],
        .m = units,
        .n = in,
        .k = rows,
        .a = dy,
        .lda = units,
        .b = x,
        .ldb = in,
        .c = call->gradients[0],
        .ldc = in,
    };
    if (call->gradients[0])
        call->kernels->product(call->run, &product);
    if (call->gradients[1])
        call->kernels->column_sums(call->run, rows, units, dy, call->gradients[1],
                                   more || call->accumulate_gradients[1]);
}

void fully_connected_derivative(const layer_call *call, size_t rows, size_t in, size_t units, const real *dy, real *dx)
{
    kernel_product product = {
        .accumulate = call->accumulate_inputs[0],
        .m = rows,
        .n = in,
        .k = units,
        .a = dy,
        .lda = units,
        .b = call->parameters[0],
        .ldb = in,
        .c = dx,
        .ldc = in,
    };
    multiply(call, &product);
}

static void forward(const layer_node *layer, const layer_call *call)
{
    fully_connected_forward(call, layer_input_rows(layer, 0), layer->inputs[0].w, layer->output.w, call->inputs[0],
                            call->output);
}

static void gradient(const layer_node *layer, const layer_call *call)
{
    fully_connected_gradient(call, layer_input_rows(layer, 0), layer->inputs[0].w, layer->output.w, call->inputs[0],
                             call->d_output, false);
}

static void derivative(const layer_node *layer, const layer_call *call)
{
    if (call->d_inputs[0])
        fully_connected_derivative(call, layer_input_rows(layer, 0), layer->inputs[0].w, layer->output.w,
                                   call->d_output, call->d_inputs[0]);
}

const layer_type layer_type_fully_connected = {
    .name = "fully_connected",
    .summary = "a matrix and a bias on the last dimension",
    .hint = REMAT_FFN,
    .options_bytes = sizeof(fully_connected_options),
    .properties = fully_connected_properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .fuses_activation = true,
    .multiplies = true,
    .expand = expand,
    .resolve = resolve,
    .forward = forward,
    .gradient = gradient,
    .derivative = derivative,
};
