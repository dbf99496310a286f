/* group_normalization and instance_normalization: normalize the channels of a group (of an instance: every channel) of each
 * sample to mean 0 and deviation 1. Then each channel has its gain and shift. */
#include "layers/layer_resolve.h"

#include <inttypes.h>

typedef struct group_options {
    uint64_t groups; /* 0: every channel is a group */
    double epsilon;
    bool affine;
} group_options;

enum { GAIN, SHIFT };
enum { MEANS, SCALES };

/* Of a vector, 1:1:w, every feature is a channel. */
static uint64_t channels_of(const layer_node *layer)
{
    layer_shape in = layer->inputs[0];
    return in.c > 1 || in.h > 1 ? in.c : in.w;
}

static uint64_t area_of(const layer_node *layer)
{
    return layer_values(layer->inputs[0]) / channels_of(layer);
}

static uint64_t groups_of(const layer_node *layer)
{
    const group_options *options = layer->options;
    return options->groups ? options->groups : channels_of(layer);
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    const group_options *options = layer->options;
    uint64_t channels = channels_of(layer), groups = groups_of(layer);
    if (channels % groups != 0)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "%s: groups=%" PRIu64 " must divide the %" PRIu64 " channels of the input %s",
                          layer->type->name, groups, channels, layer_shape_write(layer->inputs[0]).text);
    REMAT_TRY(layer_set_output(context, layer, layer->inputs[0]));
    if (options->affine) {
        REMAT_TRY(layer_add_parameter(context, layer, "gain", (uint64_t[4]){channels}, LAYER_ONES, 0));
        REMAT_TRY(layer_add_parameter(context, layer, "shift", (uint64_t[4]){channels}, LAYER_ZEROS, 0));
    }
    REMAT_TRY(layer_add_saved(context, layer, "means", layer->batch * groups, layer_statistics_dtype(layer)));
    REMAT_TRY(layer_add_saved(context, layer, "scales", layer->batch * groups, layer_statistics_dtype(layer)));
    const op_group_normalize_backward backward = {
        .x = layer_tensor_like(layer->dtype), .batch = layer->batch, .channels = channels};
    layer->workspace[LAYER_INPUT_GRADIENT] = backend_workspace(layer->device, OP_group_normalize_backward, &backward);
    layer->needs[LAYER_INPUT_GRADIENT] = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_SAVED;
    layer->input_gradient_in_place = true;
    layer_set_pointwise_flops(layer, 8, 14);
    return REMAT_OK;
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    const group_options *options = layer->options;
    return record_group_normalize(call->calls, &(op_group_normalize){.x = call->inputs[0],
                                                                     .gain = call->parameters[GAIN],
                                                                     .shift = call->parameters[SHIFT],
                                                                     .y = call->output,
                                                                     .means = call->saved[MEANS],
                                                                     .scales = call->saved[SCALES],
                                                                     .batch = layer->batch,
                                                                     .channels = channels_of(layer),
                                                                     .area = area_of(layer),
                                                                     .groups = groups_of(layer),
                                                                     .epsilon = options->epsilon});
}

/* One pass for all gradients. */
static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    return record_group_normalize_backward(
        call->calls, &(op_group_normalize_backward){.x = call->inputs[0],
                                                    .gain = call->parameters[GAIN],
                                                    .means = call->saved[MEANS],
                                                    .scales = call->saved[SCALES],
                                                    .dy = call->d_output,
                                                    .dx = call->d_inputs[0],
                                                    .dgain = call->gradients[GAIN],
                                                    .dshift = call->gradients[SHIFT],
                                                    .workspace = call->workspace,
                                                    .batch = layer->batch,
                                                    .channels = channels_of(layer),
                                                    .area = area_of(layer),
                                                    .groups = groups_of(layer),
                                                    .accumulate = call->accumulate_inputs[0],
                                                    .accumulate_parameters = call->accumulate_gradients[GAIN]});
}

static const property group_properties[] = {
    {"groups", PROPERTY_COUNT, offsetof(group_options, groups), NULL, 1, 0, NULL,
     "how many groups the channels are in"},
    {"epsilon", PROPERTY_NUMBER, offsetof(group_options, epsilon), "1e-5", 0, 0, NULL,
     "added to the variance before its root"},
    {"affine", PROPERTY_FLAG, offsetof(group_options, affine), "true", 0, 0, NULL,
     "whether each channel has a gain and a shift"},
    {0},
};

const layer_type layer_type_group_normalization = {
    .name = "group_normalization",
    .summary = "every group of channels of a sample to mean 0 and deviation 1, then gain and shift",
    .hint = REMAT_NORM,
    .options_bytes = sizeof(group_options),
    .properties = group_properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .may_skip_output = true,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};

static const property instance_properties[] = {
    {"epsilon", PROPERTY_NUMBER, offsetof(group_options, epsilon), "1e-5", 0, 0, NULL,
     "added to the variance before its root"},
    {"affine", PROPERTY_FLAG, offsetof(group_options, affine), "false", 0, 0, NULL,
     "whether each channel has a gain and a shift"},
    {0},
};

const layer_type layer_type_instance_normalization = {
    .name = "instance_normalization",
    .summary = "every channel of a sample to mean 0 and deviation 1",
    .hint = REMAT_NORM,
    .options_bytes = sizeof(group_options),
    .properties = instance_properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .may_skip_output = true,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};
