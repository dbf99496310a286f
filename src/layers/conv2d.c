/* conv2d: filters that slide over an image. Weights are [filters, channels, kernel height, kernel width]. */
#include "base/checked.h"
#include "layers/initializer.h"
#include "layers/layer_resolve.h"
#include "layers/window_shape.h"

typedef struct conv2d_options {
    uint64_t filters, kernel[2], stride[2];
    const char *padding;
    bool bias;
    initializer start;
} conv2d_options;

static const property properties[] = {
    {"filters", PROPERTY_COUNT, offsetof(conv2d_options, filters), NULL, 1, 0, NULL, "how many channels come out"},
    {"kernel_size", PROPERTY_PAIR, offsetof(conv2d_options, kernel), NULL, 1, WINDOW_LARGEST, NULL,
     "height and width of a filter"},
    {"stride", PROPERTY_PAIR, offsetof(conv2d_options, stride), "1", 1, WINDOW_LARGEST, NULL,
     "how far a filter moves down and right"},
    {"padding", PROPERTY_TEXT, offsetof(conv2d_options, padding), "valid", 0, 0, NULL,
     "zeros around the image: same, valid (none), or how many above and left"},
    {"bias", PROPERTY_FLAG, offsetof(conv2d_options, bias), "true", 0, 0, NULL, "whether a bias is added"},
    INITIALIZER_PROPERTIES(conv2d_options, start),
    {0},
};

static remat_status find_window(remat_context *context, const layer_node *layer, operation_window *window)
{
    const conv2d_options *options = layer->options;
    return window_resolve(context, layer, options->kernel, options->stride,
                          options->padding ? options->padding : "valid", options->filters, window);
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

static remat_status resolve(remat_context *context, layer_node *layer)
{
    const conv2d_options *options = layer->options;
    const uint64_t *kernel = options->kernel;
    operation_window window;
    REMAT_TRY(find_window(context, layer, &window));
    REMAT_TRY(layer_set_output(context, layer, (layer_shape){options->filters, window.out_h, window.out_w}));
    uint64_t channels = layer->inputs[0].c, taps = kernel[0] * kernel[1], fan_in;
    if (!remat_multiply(channels, taps, &fan_in))
        return remat_fail(context, REMAT_INVALID, NULL, "conv2d: a filter is too large");
    REMAT_TRY(initializer_add(context, layer, &options->start,
                              (uint64_t[4]){options->filters, channels, kernel[0], kernel[1]}, fan_in,
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

const layer_type layer_type_conv2d = {
    .name = "conv2d",
    .summary = "filters that slide over an image",
    .hint = REMAT_FFN,
    .options_bytes = sizeof(conv2d_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .multiplies = true,
    .resolve = resolve,
    .forward = forward,
    .weight_gradient = weight_gradient,
    .input_gradient = input_gradient,
};
