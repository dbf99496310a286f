/* layer_normalization and rms_normalization: normalize every row of the last dimension to deviation 1, around its mean
 * or around 0. Then they multiply by the gain, and layer_normalization adds the shift. */
#include "layers/layer_resolve.h"

#include <inttypes.h>

typedef struct normalization_options {
    double epsilon;
    uint64_t size; /* of rms_normalization: values that are normalized together; 0: the whole row */
} normalization_options;

enum { GAIN, SHIFT };

/* Only layer normalisation takes the mean off, and so saves it and has a shift. */
static bool is_centred(const layer_node *layer)
{
    return layer->parameter_count > 1;
}

static tensor_ref means_of(const layer_node *layer, const layer_call *call)
{
    return is_centred(layer) ? call->saved[0] : TENSOR_NONE;
}

static tensor_ref scales_of(const layer_node *layer, const layer_call *call)
{
    return call->saved[is_centred(layer) ? 1 : 0];
}

/* The values that are normalized together. */
static uint64_t width_of(const layer_node *layer)
{
    const normalization_options *options = layer->options;
    return options->size ? options->size : layer->inputs[0].w;
}

static uint64_t rows_of(const layer_node *layer)
{
    return layer_input_values(layer, 0) / width_of(layer);
}

static remat_status resolve(remat_context *context, layer_node *layer, bool centred)
{
    const uint64_t width = width_of(layer);
    if (layer->inputs[0].w % width != 0)
        return remat_fail(context, REMAT_INVALID, NULL, "%s: width %" PRIu64 " is not divisible by size %" PRIu64,
                          layer->type->name, layer->inputs[0].w, width);
    const uint64_t rows = rows_of(layer);
    const op_normalize_backward backward = {.x = layer_tensor_like(layer->dtype), .rows = rows, .columns = width};
    REMAT_TRY(layer_set_output(context, layer, layer->inputs[0]));
    REMAT_TRY(layer_add_parameter(context, layer, "gain", (uint64_t[4]){width}, LAYER_ONES, 0));
    if (centred)
        REMAT_TRY(layer_add_parameter(context, layer, "shift", (uint64_t[4]){width}, LAYER_ZEROS, 0));
    if (centred)
        REMAT_TRY(layer_add_saved(context, layer, "means", rows, layer_statistics_dtype(layer)));
    REMAT_TRY(layer_add_saved(context, layer, "scales", rows, layer_statistics_dtype(layer)));
    layer->workspace[LAYER_INPUT_GRADIENT] = backend_workspace(layer->device, OP_normalize_backward, &backward);
    layer->needs[LAYER_INPUT_GRADIENT] = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_SAVED;
    layer->input_gradient_in_place = true;
    layer_set_pointwise_flops(layer, centred ? 8 : 6, centred ? 14 : 11);
    return REMAT_OK;
}

static remat_status resolve_layer(remat_context *context, layer_node *layer)
{
    return resolve(context, layer, true);
}

static remat_status resolve_rms(remat_context *context, layer_node *layer)
{
    return resolve(context, layer, false);
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    const normalization_options *options = layer->options;
    return record_normalize(call->calls, &(op_normalize){.x = call->inputs[0],
                                                         .gain = call->parameters[GAIN],
                                                         .shift = call->parameters[SHIFT],
                                                         .y = call->output,
                                                         .means = means_of(layer, call),
                                                         .scales = scales_of(layer, call),
                                                         .rows = rows_of(layer),
                                                         .columns = width_of(layer),
                                                         .epsilon = options->epsilon});
}

/* One pass for all gradients. */
static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    return record_normalize_backward(
        call->calls, &(op_normalize_backward){.x = call->inputs[0],
                                              .gain = call->parameters[GAIN],
                                              .means = means_of(layer, call),
                                              .scales = scales_of(layer, call),
                                              .dy = call->d_output,
                                              .dx = call->d_inputs[0],
                                              .dgain = call->gradients[GAIN],
                                              .dshift = call->gradients[SHIFT],
                                              .workspace = call->workspace,
                                              .rows = rows_of(layer),
                                              .columns = width_of(layer),
                                              .accumulate = call->accumulate_inputs[0],
                                              .accumulate_parameters = call->accumulate_gradients[GAIN]});
}

static const property layer_properties[] = {
    {"epsilon", PROPERTY_NUMBER, offsetof(normalization_options, epsilon), "1e-5", 0, 0, NULL,
     "added to the variance before its root"},
    {0},
};

const layer_type layer_type_layer_normalization = {
    .name = "layer_normalization",
    .summary = "every row to mean 0 and deviation 1, then gain and shift",
    .hint = REMAT_NORM,
    .options_bytes = sizeof(normalization_options),
    .properties = layer_properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .may_skip_output = true,
    .resolve = resolve_layer,
    .forward = forward,
    .input_gradient = input_gradient,
};

static const property rms_properties[] = {
    {"epsilon", PROPERTY_NUMBER, offsetof(normalization_options, epsilon), "1e-6", 0, 0, NULL,
     "added to the mean square before its root"},
    {"size", PROPERTY_COUNT, offsetof(normalization_options, size), "0", 0, 0, NULL,
     "normalize every so many values on their own, such as the heads of a row; 0: the whole row"},
    {0},
};

const layer_type layer_type_rms_normalization = {
    .name = "rms_normalization",
    .summary = "every row to mean square 1, then gain",
    .hint = REMAT_NORM,
    .options_bytes = sizeof(normalization_options),
    .properties = rms_properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .may_skip_output = true,
    .resolve = resolve_rms,
    .forward = forward,
    .input_gradient = input_gradient,
};
