/* batch_normalization: normalizes every channel to mean 0 and deviation 1 over the batch. Images have c channels; a
 * plain vector (1:1:w) has w of them, each of one value. */
#include "layers/layer_resolve.h"

typedef struct batch_normalization_options {
    double momentum, epsilon;
} batch_normalization_options;

static const property properties[] = {
    {"momentum", PROPERTY_NUMBER, offsetof(batch_normalization_options, momentum), "0.1", 0, 1, NULL,
     "how far the running statistics move towards those of a batch"},
    {"epsilon", PROPERTY_NUMBER, offsetof(batch_normalization_options, epsilon), "1e-5", 0, 0, NULL,
     "added to the variance before its root"},
    {0},
};

enum { GAIN, SHIFT, RUNNING_MEAN, RUNNING_VARIANCE };
enum { MEANS, SCALES };

static uint64_t channels_of(const layer_node *layer)
{
    layer_shape in = layer->inputs[0];
    return in.c > 1 || in.h > 1 ? in.c : in.w;
}

static uint64_t area_of(const layer_node *layer)
{
    return layer_values(layer->inputs[0]) / channels_of(layer);
}

/* What a frozen layer needs: it normalizes by its running statistics, as in evaluation, and saves nothing. */
static remat_status resolve_frozen(remat_context *context, layer_node *layer)
{
    uint64_t channels = channels_of(layer);
    REMAT_TRY(layer_set_workspace(context, layer, channels, &layer->workspace[LAYER_FORWARD]));
    REMAT_TRY(layer_set_workspace(context, layer, 2 * channels, &layer->workspace[LAYER_INPUT_GRADIENT]));
    layer->input_gradient_in_place = true;
    layer_set_pointwise_flops(layer, 3, 2);
    return layer_set_workspace(context, layer, layer_input_values(layer, 0), &layer->accumulate_workspace);
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    uint64_t channels = channels_of(layer);
    REMAT_TRY(layer_set_output(context, layer, layer->inputs[0]));
    REMAT_TRY(layer_add_parameter(context, layer, "gain", (uint64_t[4]){channels}, LAYER_ONES, 0));
    REMAT_TRY(layer_add_parameter(context, layer, "shift", (uint64_t[4]){channels}, LAYER_ZEROS, 0));
    REMAT_TRY(layer_add_parameter(context, layer, "running_mean", (uint64_t[4]){channels}, LAYER_ZEROS, 0));
    REMAT_TRY(layer_add_parameter(context, layer, "running_variance", (uint64_t[4]){channels}, LAYER_ONES, 0));
    layer->parameters[RUNNING_MEAN].statistic = layer->parameters[RUNNING_VARIANCE].statistic = true;
    if (layer->frozen)
        return resolve_frozen(context, layer);
    REMAT_TRY(layer_add_saved(context, layer, "means", channels, layer_statistics_dtype(layer)));
    REMAT_TRY(layer_add_saved(context, layer, "scales", channels, layer_statistics_dtype(layer)));
    REMAT_TRY(layer_set_workspace(context, layer, channels, &layer->workspace[LAYER_FORWARD]));
    layer->needs[LAYER_INPUT_GRADIENT] = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_SAVED;
    layer->input_gradient_in_place = true;
    layer_set_pointwise_flops(layer, 8, 14);
    return REMAT_OK;
}

/* The statistics of the batch in training; the running ones, and scales made from them, in evaluation and for a frozen
 * layer. */
static remat_status find_statistics(const layer_node *layer, const layer_call *call, tensor_ref *means,
                                    tensor_ref *scales)
{
    const batch_normalization_options *options = layer->options;
    if (!call->training || layer->frozen) {
        *means = call->parameters[RUNNING_MEAN];
        *scales = (tensor_ref){call->workspace.at, layer_statistics_dtype(layer)};
        return record_batch_scales(call->calls, &(op_batch_scales){.variance = call->parameters[RUNNING_VARIANCE],
                                                                   .scales = *scales,
                                                                   .channels = channels_of(layer),
                                                                   .epsilon = options->epsilon});
    }
    *means = call->saved[MEANS];
    *scales = call->saved[SCALES];
    op_batch_statistics statistics = {.x = call->inputs[0],
                                      .means = *means,
                                      .scales = *scales,
                                      .batch = layer->batch,
                                      .channels = channels_of(layer),
                                      .area = area_of(layer),
                                      .epsilon = options->epsilon,
                                      .momentum = options->momentum};
    if (!call->is_recompute) {
        statistics.running_mean = call->parameters[RUNNING_MEAN];
        statistics.running_variance = call->parameters[RUNNING_VARIANCE];
    }
    return record_batch_statistics(call->calls, &statistics);
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    tensor_ref means, scales;
    REMAT_TRY(find_statistics(layer, call, &means, &scales));
    if (!call->output.at)
        return REMAT_OK;
    return record_batch_normalize(call->calls, &(op_batch_normalize){.x = call->inputs[0],
                                                                     .means = means,
                                                                     .scales = scales,
                                                                     .gain = call->parameters[GAIN],
                                                                     .shift = call->parameters[SHIFT],
                                                                     .y = call->output,
                                                                     .batch = layer->batch,
                                                                     .channels = channels_of(layer),
                                                                     .area = area_of(layer)});
}

/* dx (+)= dy * scale * gain: the normalisation of dy around 0. Zeros are behind the scales in the workspace. */
static remat_status frozen_gradient(const layer_node *layer, const layer_call *call)
{
    if (!call->d_inputs[0].at)
        return REMAT_OK;
    uint64_t channels = channels_of(layer), values = layer_input_values(layer, 0);
    tensor_ref means, scales;
    REMAT_TRY(find_statistics(layer, call, &means, &scales));
    const tensor_ref zeros = tensor_from(scales, channels), apart = tensor_from(scales, 2 * channels);
    REMAT_TRY(record_fill(call->calls, &(op_fill){.y = zeros, .count = channels, .value = 0}));
    bool adds = call->accumulate_inputs[0];
    REMAT_TRY(record_batch_normalize(call->calls, &(op_batch_normalize){.x = call->d_output,
                                                                        .means = zeros,
                                                                        .scales = scales,
                                                                        .gain = call->parameters[GAIN],
                                                                        .shift = zeros,
                                                                        .y = adds ? apart : call->d_inputs[0],
                                                                        .batch = layer->batch,
                                                                        .channels = channels,
                                                                        .area = area_of(layer)}));
    if (!adds)
        return REMAT_OK;
    return record_accumulate(call->calls, &(op_accumulate){.x = apart, .y = call->d_inputs[0], .count = values});
}

/* One pass for all gradients. */
static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    if (layer->frozen)
        return frozen_gradient(layer, call);
    return record_batch_normalize_backward(
        call->calls, &(op_batch_normalize_backward){.x = call->inputs[0],
                                                    .means = call->saved[MEANS],
                                                    .scales = call->saved[SCALES],
                                                    .gain = call->parameters[GAIN],
                                                    .dy = call->d_output,
                                                    .dx = call->d_inputs[0],
                                                    .dgain = call->gradients[GAIN],
                                                    .dshift = call->gradients[SHIFT],
                                                    .batch = layer->batch,
                                                    .channels = channels_of(layer),
                                                    .area = area_of(layer),
                                                    .accumulate = call->accumulate_inputs[0],
                                                    .accumulate_parameters = call->accumulate_gradients[GAIN]});
}

const layer_type layer_type_batch_normalization = {
    .name = "batch_normalization",
    .summary = "every channel (of a vector, 1:1:w: every feature) to mean 0 and deviation 1 over the batch, then gain "
               "and shift",
    .hint = REMAT_NORM,
    .options_bytes = sizeof(batch_normalization_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .may_skip_output = true,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};
