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

static remat_status find_window(remat_context *context, const layer_node *layer, kernel_window *window)
{
    const conv2d_options *options = layer->options;
    return window_resolve(context, layer, options->kernel, options->stride,
                          options->padding ? options->padding : "valid", options->filters, window);
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    const conv2d_options *options = layer->options;
    const uint64_t *kernel = options->kernel;
    kernel_window window;
    REMAT_TRY(find_window(context, layer, &window));
    REMAT_TRY(layer_set_output(context, layer, (layer_shape){options->filters, window.out_h, window.out_w}));
    uint64_t channels = layer->inputs[0].c, taps = kernel[0] * kernel[1], fan_in;
    if (!remat_multiply(channels, taps, &fan_in))
        return remat_fail(context, REMAT_INVALID, NULL, "conv2d: a filter is too large");
    REMAT_TRY(initializer_add(context, layer, &options->start,
                              (uint64_t[4]){options->filters, channels, kernel[0], kernel[1]}, fan_in,
                              layer_flops(options->filters, taps, 1), options->bias ? options->filters : 0));
    uint64_t workspace;
    REMAT_TRY(layer_set_workspace(context, layer, window_workspace(&window), &workspace));
    layer->forward_workspace = layer->gradient_workspace = layer->derivative_workspace = workspace;
    layer->gradient_needs = LAYER_NEEDS_INPUT(0);
    layer->forward_flops = layer->gradient_flops = layer->derivative_flops =
        layer_flops(2 * layer->batch, layer_values(layer->output), fan_in);
    return REMAT_OK;
}

/* As resolve() found it. */
static kernel_window window_of(const layer_node *layer)
{
    kernel_window window;
    find_window(NULL, layer, &window);
    return window;
}

static void forward(const layer_node *layer, const layer_call *call)
{
    const kernel_window window = window_of(layer);
    call->kernels->convolve(call->run, &window, call->inputs[0], call->parameters[0], call->parameters[1], call->output,
                            call->workspace);
}

static void gradient(const layer_node *layer, const layer_call *call)
{
    const kernel_window window = window_of(layer);
    call->kernels->convolve_backward_weight(call->run, &window, call->inputs[0], call->d_output, call->gradients[0],
                                            call->gradients[1], call->accumulate_gradients[0], call->workspace);
}

static void derivative(const layer_node *layer, const layer_call *call)
{
    const kernel_window window = window_of(layer);
    if (call->d_inputs[0])
        call->kernels->convolve_backward_input(call->run, &window, call->parameters[0], call->d_output,
                                               call->d_inputs[0], call->accumulate_inputs[0], call->workspace);
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
    .gradient = gradient,
    .derivative = derivative,
};
