/* conv2d_transpose: the reverse of a convolution, from a small image to a larger one. Its forward is the gradient of the
 * input of that convolution, and its gradient of the input is that convolution's forward. Weights are
 * [channels, filters / groups, kernel height, kernel width]. */
#include "base/checked.h"
#include "layers/activation.h"
#include "layers/initializer.h"
#include "layers/layer_resolve.h"
#include "layers/window_shape.h"

#include <inttypes.h>

typedef struct transpose_options {
    uint64_t filters, extra[2];
    window_options window;
    bool bias;
    uint32_t activation;
    initializer start;
} transpose_options;

static const property properties[] = {
    {"filters", PROPERTY_COUNT, offsetof(transpose_options, filters), NULL, 1, 0, NULL, "how many channels come out"},
    {"kernel_size", PROPERTY_PAIR, offsetof(transpose_options, window.kernel), NULL, 1, WINDOW_LARGEST, NULL,
     "height and width of a filter"},
    {"stride", PROPERTY_PAIR, offsetof(transpose_options, window.stride), "1", 1, WINDOW_LARGEST, NULL,
     "how far a filter moves down and right in the output for each point of the input"},
    {"padding", PROPERTY_TEXT, offsetof(transpose_options, window.padding), "valid", 0, 0, NULL,
     "what is cut off the output: same (inputs x stride points stay), valid (nothing), how much on each side, "
     "height,width, or top,bottom,left,right"},
    {"output_padding", PROPERTY_PAIR, offsetof(transpose_options, extra), "0", 0, WINDOW_LARGEST, NULL,
     "rows and columns more, below and to the right; not with padding=same"},
    {"dilation", PROPERTY_PAIR, offsetof(transpose_options, window.dilation), "1", 1, WINDOW_LARGEST, NULL,
     "how far the points of a filter are apart, down and right"},
    {"groups", PROPERTY_COUNT, offsetof(transpose_options, window.groups), "1", 1, 0, NULL,
     "how many groups the channels are in; filters of a group read its channels only"},
    {"bias", PROPERTY_FLAG, offsetof(transpose_options, bias), "true", 0, 0, NULL, "whether a bias is added"},
    ACTIVATION_PROPERTY(transpose_options, activation),
    INITIALIZER_PROPERTIES(transpose_options, start),
    {0},
};

/* With an activation: itself without, and the activation. */
static remat_status expand(remat_context *context, const layer_node *layer, layer_parts *parts)
{
    (void)context;
    transpose_options plain = *(const transpose_options *)layer->options;
    const uint32_t activation = plain.activation;
    plain.activation = ACTIVATION_NONE;
    return activation == ACTIVATION_NONE ? REMAT_OK : activation_expand(parts, layer->type, &plain, activation);
}

static remat_status find_window(remat_context *context, const layer_node *layer, operation_window *window)
{
    const transpose_options *options = layer->options;
    return window_resolve_transposed(context, layer, &options->window, options->filters, options->extra, window);
}

static remat_status check_shape(remat_context *context, const layer_node *layer)
{
    const transpose_options *options = layer->options;
    const uint64_t *stride = options->window.stride, *dilation = options->window.dilation;
    uint64_t channels = layer->inputs[0].c, groups = options->window.groups;
    if (channels % groups != 0 || options->filters % groups != 0)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "conv2d_transpose: groups=%" PRIu64 " must divide the %" PRIu64
                          " channels of the input and the %" PRIu64 " filters",
                          groups, channels, options->filters);
    for (int i = 0; i < 2; i++)
        if (options->extra[i] >= stride[i] && options->extra[i] >= dilation[i])
            return remat_fail(context, REMAT_INVALID, NULL,
                              "conv2d_transpose: output_padding must be less than the stride or the dilation");
    return REMAT_OK;
}

static void set_workspaces(layer_node *layer, const operation_window *window)
{
    const tensor_ref like = layer_tensor_like(layer->dtype);
    const op_convolve_backward_input forward = {.weight = like, .dy = like, .window = *window};
    const op_convolve_backward_weight weight = {.x = like, .window = *window};
    const op_convolve input = {.x = like, .window = *window};
    layer->workspace[LAYER_FORWARD] = backend_workspace(layer->device, OP_convolve_backward_input, &forward);
    layer->workspace[LAYER_WEIGHT_GRADIENT] = backend_workspace(layer->device, OP_convolve_backward_weight, &weight);
    layer->workspace[LAYER_INPUT_GRADIENT] = backend_workspace(layer->device, OP_convolve, &input);
}

/* A convolution replaces its output. To add to a gradient, it is made apart first. */
static remat_status resolve(remat_context *context, layer_node *layer)
{
    const transpose_options *options = layer->options;
    layer_shape in = layer->inputs[0];
    operation_window window;
    REMAT_TRY(check_shape(context, layer));
    REMAT_TRY(find_window(context, layer, &window));
    REMAT_TRY(layer_set_output(context, layer, (layer_shape){options->filters, window.in_h, window.in_w}));
    uint64_t filters = options->filters / window.groups, taps = window.kernel_h * window.kernel_w, fan;
    if (!remat_multiply(filters, taps, &fan))
        return remat_fail(context, REMAT_INVALID, NULL, "conv2d_transpose: a filter is too large");
    REMAT_TRY(initializer_add(context, layer, &options->start,
                              (uint64_t[4]){in.c, filters, window.kernel_h, window.kernel_w}, fan,
                              layer_flops(in.c, taps, 1), options->bias ? options->filters : 0));
    set_workspaces(layer, &window);
    layer->needs[LAYER_WEIGHT_GRADIENT] = LAYER_NEEDS_INPUT(0);
    for (int pass = 0; pass < LAYER_PASSES; pass++)
        layer->flops[pass] = layer_flops(2 * layer->batch, layer_values(in), fan);
    return layer_set_workspace(context, layer, layer_input_values(layer, 0), &layer->accumulate_workspace);
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    op_convolve_backward_input spread = {
        .weight = call->parameters[0], .dy = call->inputs[0], .dx = call->output, .workspace = call->workspace};
    REMAT_TRY(find_window(call->calls->owner->context, layer, &spread.window));
    REMAT_TRY(record_convolve_backward_input(call->calls, &spread));
    if (!call->parameters[1].at)
        return REMAT_OK;
    return record_add_to_channels(call->calls, &(op_add_to_channels){.addend = call->parameters[1],
                                                                     .y = call->output,
                                                                     .batch = layer->batch,
                                                                     .channels = layer->output.c,
                                                                     .area = layer->output.h * layer->output.w});
}

static remat_status weight_gradient(const layer_node *layer, const layer_call *call)
{
    op_convolve_backward_weight backward = {.x = call->d_output,
                                            .dy = call->inputs[0],
                                            .dweight = call->gradients[0],
                                            .workspace = call->workspace,
                                            .accumulate = call->accumulate_gradients[0]};
    REMAT_TRY(find_window(call->calls->owner->context, layer, &backward.window));
    REMAT_TRY(record_convolve_backward_weight(call->calls, &backward));
    if (!call->gradients[1].at)
        return REMAT_OK;
    return record_channel_sums(call->calls, &(op_channel_sums){.x = call->d_output,
                                                               .sums = call->gradients[1],
                                                               .batch = layer->batch,
                                                               .channels = layer->output.c,
                                                               .area = layer->output.h * layer->output.w,
                                                               .accumulate = call->accumulate_gradients[1]});
}

static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    if (!call->d_inputs[0].at)
        return REMAT_OK;
    const tensor_ref apart = {(char *)call->workspace.at + layer->workspace[LAYER_INPUT_GRADIENT], layer->dtype};
    bool adds = call->accumulate_inputs[0];
    op_convolve gather = {.x = call->d_output,
                          .weight = call->parameters[0],
                          .y = adds ? apart : call->d_inputs[0],
                          .workspace = call->workspace};
    REMAT_TRY(find_window(call->calls->owner->context, layer, &gather.window));
    REMAT_TRY(record_convolve(call->calls, &gather));
    if (!adds)
        return REMAT_OK;
    return record_accumulate(
        call->calls, &(op_accumulate){.x = apart, .y = call->d_inputs[0], .count = layer_input_values(layer, 0)});
}

const layer_type layer_type_conv2d_transpose = {
    .name = "conv2d_transpose",
    .summary = "the reverse of conv2d: from a small image to a larger one",
    .hint = REMAT_FFN,
    .options_bytes = sizeof(transpose_options),
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
