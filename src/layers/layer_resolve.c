#include "layers/layer_resolve.h"

#include "base/checked.h"

#include <inttypes.h>
#include <stdio.h>

layer_shape_text layer_shape_write(layer_shape shape)
{
    layer_shape_text result;
    snprintf(result.text, sizeof result.text, "%" PRIu64 ":%" PRIu64 ":%" PRIu64, shape.c, shape.h, shape.w);
    return result;
}

bool layer_shapes_equal(layer_shape a, layer_shape b)
{
    return a.c == b.c && a.h == b.h && a.w == b.w;
}

remat_status layer_require_equal_shapes(remat_context *context, const layer_node *layer)
{
    for (uint32_t i = 1; i < layer->input_count; i++)
        if (!layer_shapes_equal(layer->inputs[0], layer->inputs[i]))
            return remat_fail(context, REMAT_INVALID, NULL,
                              "%s: all inputs must have the same shape, but input 1 is %s and input %u is %s",
                              layer->type->name, layer_shape_write(layer->inputs[0]).text, i + 1,
                              layer_shape_write(layer->inputs[i]).text);
    return REMAT_OK;
}

uint64_t layer_input_values(const layer_node *layer, uint32_t i)
{
    return layer->batch * layer_values(layer->inputs[i]);
}

uint64_t layer_input_rows(const layer_node *layer, uint32_t i)
{
    return layer->batch * layer->inputs[i].c * layer->inputs[i].h;
}

uint64_t layer_flops(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t product;
    return remat_multiply(a, b, &product) && remat_multiply(product, c, &product) ? product : REMAT_LIMIT - 1;
}

void layer_set_pointwise_flops(layer_node *layer, uint64_t forward, uint64_t backward)
{
    uint64_t values = layer->batch * layer_values(layer->output);
    layer->flops[LAYER_FORWARD] = layer_flops(values, forward, 1);
    layer->flops[LAYER_INPUT_GRADIENT] = layer_flops(values, backward, 1);
}

remat_status layer_check_size(remat_context *context, const layer_node *layer, layer_shape shape, uint64_t batch)
{
    uint64_t values = 1, bytes;
    if (remat_multiply(values, shape.c, &values) && remat_multiply(values, shape.h, &values) &&
        remat_multiply(values, shape.w, &values) && remat_multiply(values, batch, &values) &&
        dtype_bytes_checked(layer->dtype, values, &bytes))
        return REMAT_OK;
    return remat_fail(context, REMAT_INVALID, NULL,
                      "a tensor of %" PRIu64 " x %s values is too large; it must stay below 2^63 bytes", batch,
                      layer_shape_write(shape).text);
}

remat_status layer_set_output(remat_context *context, layer_node *layer, layer_shape shape)
{
    REMAT_TRY(layer_check_size(context, layer, shape, layer->batch));
    layer->output = shape;
    return REMAT_OK;
}

remat_status layer_add_parameter(remat_context *context, layer_node *layer, const char *name, const uint64_t dims[4],
                                 layer_fill fill, double fill_scale)
{
    layer_parameter *parameter = &layer->parameters[layer->parameter_count];
    *parameter =
        (layer_parameter){.name = name, .dtype = layer_statistics_dtype(layer), .fill = fill, .fill_scale = fill_scale};
    uint64_t values = 1, bytes;
    bool fits = true;
    for (; parameter->rank < 4 && dims[parameter->rank] > 0; parameter->rank++) {
        parameter->dims[parameter->rank] = dims[parameter->rank];
        fits = fits && remat_multiply(values, dims[parameter->rank], &values);
    }
    if (!fits || !dtype_bytes_checked(parameter->dtype, values, &bytes))
        return remat_fail(context, REMAT_INVALID, NULL, "%s: parameter %s is too large; it must stay below 2^63 bytes",
                          layer->type->name, name);
    parameter->decay = parameter->rank > 1;
    layer->parameter_count++;
    return REMAT_OK;
}

remat_status layer_add_saved(remat_context *context, layer_node *layer, const char *name, uint64_t count,
                             remat_dtype dtype)
{
    uint64_t bytes;
    layer->saved[layer->saved_count++] = (layer_saved){name, dtype, count};
    if (!dtype_bytes_checked(dtype, count, &bytes))
        return remat_fail(context, REMAT_INVALID, NULL,
                          "%s: what it saves (%s) is too large; it must stay below 2^63 bytes", layer->type->name,
                          name);
    return REMAT_OK;
}

remat_dtype layer_statistics_dtype(const layer_node *layer)
{
    return dtype_traits_of(layer->dtype)->accumulator;
}

remat_status layer_set_workspace(remat_context *context, const layer_node *layer, uint64_t count, uint64_t *bytes)
{
    if (!dtype_bytes_checked(layer->dtype, count, bytes))
        return remat_fail(context, REMAT_INVALID, NULL, "%s: its workspace is too large; it must stay below 2^63 bytes",
                          layer->type->name);
    return REMAT_OK;
}

tensor_ref layer_tensor_like(remat_dtype dtype)
{
    return (tensor_ref){NULL, dtype};
}
