/* conv2d and conv1d: filters that slide over an image, or over a line, which is an image of height 1. Weights are
 * [filters, channels / groups, kernel height, kernel width], without the height for conv1d. */
#include "base/checked.h"
#include "layers/activation.h"
#include "layers/initializer.h"
#include "layers/layer_resolve.h"
#include "layers/window_shape.h"

#include <inttypes.h>

extern const layer_type layer_type_conv1d;

typedef struct convolution_options {
    uint64_t filters;
    window_options window;
    bool bias;
    uint32_t activation;
    initializer start;
} convolution_options;

static bool is_line(const layer_node *layer)
{
    return layer->type == &layer_type_conv1d;
}

/* With an activation: itself without, and the activation. */
static remat_status expand(remat_context *context, const layer_node *layer, layer_parts *parts)
{
    (void)context;
    convolution_options plain = *(const convolution_options *)layer->options;
    const uint32_t activation = plain.activation;
    plain.activation = ACTIVATION_NONE;
    return activation == ACTIVATION_NONE ? REMAT_OK : activation_expand(parts, layer->type, &plain, activation);
}

static remat_status find_window(remat_context *context, const layer_node *layer, operation_window *window)
{
    const convolution_options *options = layer->options;
    window_options shape = options->window;
    if (is_line(layer)) {
        shape.line = true;
        shape.kernel[0] = shape.stride[0] = shape.dilation[0] = 1;
    }
    return window_resolve(context, layer, &shape, options->filters, window);
}

static void set_workspaces(layer_node *layer, const operation_window *window)
{
    const tensor_ref like = layer_tensor_like(layer->dtype);
    const op_convolve forward = {.x = like, .window = *window};
    const op_convolve_backward_weight weight = {.x = like, .window = *window};
    const op_convolve_backward_input input = {.weight = like, .dy = like, .window = *window};
    layer->workspace[LAYER_FORWARD] = backend_workspace(layer->device, OP_convolve, &forward);
    layer->workspace[LAYER_WEIGHT_GRADIENT] = backend_workspace(layer->device, OP_convolve_backward_weight, &weight);
    layer->workspace[LAYER_INPUT_GRADIENT] = backend_workspace(layer->device, OP_convolve_backward_input, &input);
}

static remat_status check_shape(remat_context *context, const layer_node *layer)
{
    const convolution_options *options = layer->options;
    uint64_t channels = layer->inputs[0].c, groups = options->window.groups;
    if (is_line(layer) && layer->inputs[0].h != 1)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "conv1d: the input is %s, but it must have height 1: channels:1:steps",
                          layer_shape_write(layer->inputs[0]).text);
    if (channels % groups != 0 || options->filters % groups != 0)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "%s: groups=%" PRIu64 " must divide the %" PRIu64 " channels of the input and the %" PRIu64
                          " filters",
                          layer->type->name, groups, channels, options->filters);
    return REMAT_OK;
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    const convolution_options *options = layer->options;
    operation_window window;
    REMAT_TRY(check_shape(context, layer));
    REMAT_TRY(find_window(context, layer, &window));
    REMAT_TRY(layer_set_output(context, layer, (layer_shape){options->filters, window.out_h, window.out_w}));
    uint64_t channels = layer->inputs[0].c / window.groups, taps = window.kernel_h * window.kernel_w, fan_in;
    if (!remat_multiply(channels, taps, &fan_in))
        return remat_fail(context, REMAT_INVALID, NULL, "%s: a filter is too large", layer->type->name);
    const uint64_t image[4] = {options->filters, channels, window.kernel_h, window.kernel_w};
    const uint64_t line[4] = {options->filters, channels, window.kernel_w};
    REMAT_TRY(initializer_add(context, layer, &options->start, is_line(layer) ? line : image, fan_in,
                              layer_flops(options->filters, taps, 1), options->bias ? options->filters : 0));
    set_workspaces(layer, &window);
    layer->needs[LAYER_WEIGHT_GRADIENT] = LAYER_NEEDS_INPUT(0);
    for (int pass = 0; pass < LAYER_PASSES; pass++)
        layer->flops[pass] = layer_flops(2 * layer->batch, layer_values(layer->output), fan_in);
    return REMAT_OK;
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    op_convolve convolve = {.x = call->inputs[0],
                            .weight = call->parameters[0],
                            .bias = call->parameters[1],
                            .y = call->output,
                            .workspace = call->workspace};
    REMAT_TRY(find_window(call->calls->owner->context, layer, &convolve.window));
    return record_convolve(call->calls, &convolve);
}

static remat_status weight_gradient(const layer_node *layer, const layer_call *call)
{
    op_convolve_backward_weight backward = {.x = call->inputs[0],
                                            .dy = call->d_output,
                                            .dweight = call->gradients[0],
                                            .dbias = call->gradients[1],
                                            .workspace = call->workspace,
                                            .accumulate = call->accumulate_gradients[0]};
    REMAT_TRY(find_window(call->calls->owner->context, layer, &backward.window));
    return record_convolve_backward_weight(call->calls, &backward);
}

static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    op_convolve_backward_input backward = {.weight = call->parameters[0],
                                           .dy = call->d_output,
                                           .dx = call->d_inputs[0],
                                           .workspace = call->workspace,
                                           .accumulate = call->accumulate_inputs[0]};
    REMAT_TRY(find_window(call->calls->owner->context, layer, &backward.window));
    return call->d_inputs[0].at ? record_convolve_backward_input(call->calls, &backward) : REMAT_OK;
}

#define FILTERS_PROPERTY                                                                     \
    {                                                                                        \
        "filters", PROPERTY_COUNT, offsetof(convolution_options, filters), NULL, 1, 0, NULL, \
            "how many channels come out"                                                     \
    }
#define GROUPS_PROPERTY                                                                                             \
    {                                                                                                               \
        "groups", PROPERTY_COUNT, offsetof(convolution_options, window.groups), "1", 1, 0, NULL,                    \
            "how many groups the channels are in; filters of a group read its channels only; as many as channels: " \
            "depthwise"                                                                                             \
    }
#define BIAS_PROPERTY                                                                                             \
    {                                                                                                             \
        "bias", PROPERTY_FLAG, offsetof(convolution_options, bias), "true", 0, 0, NULL, "whether a bias is added" \
    }

static const property image_properties[] = {
    FILTERS_PROPERTY,
    {"kernel_size", PROPERTY_PAIR, offsetof(convolution_options, window.kernel), NULL, 1, WINDOW_LARGEST, NULL,
     "height and width of a filter"},
    {"stride", PROPERTY_PAIR, offsetof(convolution_options, window.stride), "1", 1, WINDOW_LARGEST, NULL,
     "how far a filter moves down and right"},
    {"padding", PROPERTY_TEXT, offsetof(convolution_options, window.padding), "valid", 0, 0, NULL, WINDOW_PADDING_HELP},
    {"dilation", PROPERTY_PAIR, offsetof(convolution_options, window.dilation), "1", 1, WINDOW_LARGEST, NULL,
     "how far the points under a filter are apart, down and right"},
    GROUPS_PROPERTY,
    BIAS_PROPERTY,
    ACTIVATION_PROPERTY(convolution_options, activation),
    INITIALIZER_PROPERTIES(convolution_options, start),
    {0},
};

const layer_type layer_type_conv2d = {
    .name = "conv2d",
    .summary = "filters that slide over an image",
    .hint = REMAT_FFN,
    .options_bytes = sizeof(convolution_options),
    .properties = image_properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .multiplies = true,
    .expand = expand,
    .resolve = resolve,
    .forward = forward,
    .weight_gradient = weight_gradient,
    .input_gradient = input_gradient,
};

static const property line_properties[] = {
    FILTERS_PROPERTY,
    {"kernel_size", PROPERTY_COUNT, offsetof(convolution_options, window.kernel[1]), NULL, 1, WINDOW_LARGEST, NULL,
     "how many steps a filter reads"},
    {"stride", PROPERTY_COUNT, offsetof(convolution_options, window.stride[1]), "1", 1, WINDOW_LARGEST, NULL,
     "how far a filter moves"},
    {"padding", PROPERTY_TEXT, offsetof(convolution_options, window.padding), "valid", 0, 0, NULL,
     "zeros at the ends: same, valid (none), causal (before the first step only), how many at each end, or left,right"},
    {"dilation", PROPERTY_COUNT, offsetof(convolution_options, window.dilation[1]), "1", 1, WINDOW_LARGEST, NULL,
     "how far the steps under a filter are apart"},
    GROUPS_PROPERTY,
    BIAS_PROPERTY,
    ACTIVATION_PROPERTY(convolution_options, activation),
    INITIALIZER_PROPERTIES(convolution_options, start),
    {0},
};

const layer_type layer_type_conv1d = {
    .name = "conv1d",
    .summary = "filters that slide over a line of steps, channels:1:steps",
    .hint = REMAT_FFN,
    .options_bytes = sizeof(convolution_options),
    .properties = line_properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .multiplies = true,
    .expand = expand,
    .resolve = resolve,
    .forward = forward,
    .weight_gradient = weight_gradient,
    .input_gradient = input_gradient,
};
