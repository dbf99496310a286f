/* batch_normalization: every channel brought to mean 0 and deviation 1 over the batch. Images have c channels; a plain
 * vector (1:1:w) has w of them, each of one value. */
#include "layers/layer_resolve.h"

#include <tgmath.h>

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

static remat_status resolve(remat_context *context, layer_node *layer)
{
    uint64_t channels = channels_of(layer);
    REMAT_TRY(layer_set_output(context, layer, layer->inputs[0]));
    REMAT_TRY(layer_add_parameter(context, layer, "gain", (uint64_t[4]){channels}, LAYER_ONES, 0));
    REMAT_TRY(layer_add_parameter(context, layer, "shift", (uint64_t[4]){channels}, LAYER_ZEROS, 0));
    REMAT_TRY(layer_add_parameter(context, layer, "running_mean", (uint64_t[4]){channels}, LAYER_ZEROS, 0));
    REMAT_TRY(layer_add_parameter(context, layer, "running_variance", (uint64_t[4]){channels}, LAYER_ONES, 0));
    layer->parameters[RUNNING_MEAN].statistic = layer->parameters[RUNNING_VARIANCE].statistic = true;
    REMAT_TRY(layer_add_saved(context, layer, "means", channels, sizeof(real)));
    REMAT_TRY(layer_add_saved(context, layer, "scales", channels, sizeof(real)));
    REMAT_TRY(layer_set_workspace(context, layer, channels, &layer->forward_workspace));
    layer->derivative_needs = LAYER_NEEDS_INPUT(0) | LAYER_NEEDS_SAVED;
    layer->derivative_in_place = true;
    layer_set_pointwise_flops(layer, 8, 14);
    return REMAT_OK;
}

static void forward(const layer_node *layer, const layer_call *call)
{
    const batch_normalization_options *options = layer->options;
    uint64_t channels = channels_of(layer), area = area_of(layer);
    const real *means = call->parameters[RUNNING_MEAN], *scales = call->workspace;
    if (call->training) {
        bool count = !call->again;
        call->kernels->batch_statistics(call->run, layer->batch, channels, area, (real)options->epsilon,
                                        call->inputs[0], call->saved[MEANS], call->saved[SCALES],
                                        (real)options->momentum, count ? call->parameters[RUNNING_MEAN] : NULL,
                                        count ? call->parameters[RUNNING_VARIANCE] : NULL);
        means = call->saved[MEANS];
        scales = call->saved[SCALES];
    } else {
        real *made = call->workspace;
        for (uint64_t i = 0; i < channels; i++)
            made[i] = 1 / sqrt(call->parameters[RUNNING_VARIANCE][i] + (real)options->epsilon);
    }
    if (!call->output)
        return;
    call->kernels->batch_normalize(call->run, layer->batch, channels, area, call->inputs[0], means, scales,
                                   call->parameters[GAIN], call->parameters[SHIFT], call->output);
}

static void derivative(const layer_node *layer, const layer_call *call)
{
    call->kernels->batch_normalize_backward(
        call->run, layer->batch, channels_of(layer), area_of(layer), call->inputs[0], call->saved[MEANS],
        call->saved[SCALES], call->parameters[GAIN], call->d_output, call->d_inputs[0], call->accumulate_inputs[0],
        call->gradients[GAIN], call->gradients[SHIFT], call->accumulate_gradients[GAIN]);
}

const layer_type layer_type_batch_normalization = {
    .name = "batch_normalization",
    .summary = "every channel to mean 0 and deviation 1 over the batch, then gain and shift",
    .hint = REMAT_NORM,
    .options_bytes = sizeof(batch_normalization_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .may_leave_output = true,
    .resolve = resolve,
    .forward = forward,
    .derivative = derivative,
};
