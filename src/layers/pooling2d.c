/* pooling2d: the largest or the mean value of every window of an image, or of each whole channel. */
#include "layers/layer_resolve.h"
#include "layers/window_shape.h"

#include <inttypes.h>

static const char *const poolings[] = {"max", "average", "global_max", "global_average", NULL};
enum { POOL_MAX, POOL_AVERAGE, POOL_GLOBAL_MAX, POOL_GLOBAL_AVERAGE };

typedef struct pooling2d_options {
    uint32_t pooling;
    uint64_t size[2], stride[2];
    const char *padding;
    bool count_padding, ceil_mode;
} pooling2d_options;

static const property properties[] = {
    {"pooling", PROPERTY_CHOICE, offsetof(pooling2d_options, pooling), "max", 0, 0, poolings,
     "what is taken from a window; global: the window is the image"},
    {"pool_size", PROPERTY_PAIR, offsetof(pooling2d_options, size), "2", 1, WINDOW_LARGEST, NULL,
     "height and width of a window"},
    {"stride", PROPERTY_PAIR, offsetof(pooling2d_options, stride), "0", 0, WINDOW_LARGEST, NULL,
     "how far a window moves down and right; 0: by its own size"},
    {"padding", PROPERTY_TEXT, offsetof(pooling2d_options, padding), "valid", 0, 0, NULL,
     "how far windows reach over the edge: same, valid (not), how far on each side, height,width, or "
     "top,bottom,left,right"},
    {"count_padding", PROPERTY_FLAG, offsetof(pooling2d_options, count_padding), "false", 0, 0, NULL,
     "whether an average counts the padding in a window as zeros, as PyTorch does by default (count_include_pad); "
     "false: padding does not count, and the average is over the points of the image"},
    {"ceil_mode", PROPERTY_FLAG, offsetof(pooling2d_options, ceil_mode), "false", 0, 0, NULL,
     "whether there is an output for a last window that reaches beyond the edge, as with ceil_mode in PyTorch"},
    {0},
};

static bool is_max(const layer_node *layer)
{
    const pooling2d_options *options = layer->options;
    return options->pooling == POOL_MAX || options->pooling == POOL_GLOBAL_MAX;
}

static window_options window_options_of(const layer_node *layer)
{
    const pooling2d_options *options = layer->options;
    layer_shape in = layer->inputs[0];
    if (options->pooling == POOL_GLOBAL_MAX || options->pooling == POOL_GLOBAL_AVERAGE)
        return (window_options){.kernel = {in.h, in.w}, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
    window_options shape = {
        .dilation = {1, 1}, .padding = options->padding, .groups = 1, .ceiling = options->ceil_mode};
    for (int i = 0; i < 2; i++) {
        shape.kernel[i] = options->size[i];
        shape.stride[i] = options->stride[i] ? options->stride[i] : options->size[i];
    }
    return shape;
}

static remat_status find_window(remat_context *context, const layer_node *layer, operation_window *window)
{
    const pooling2d_options *options = layer->options;
    layer_shape in = layer->inputs[0];
    window_options shape = window_options_of(layer);
    REMAT_TRY(window_resolve(context, layer, &shape, in.c, window));
    /* A window wholly over the edge would have nothing to choose from. */
    if (2 * window->pad_h > window->kernel_h || 2 * window->pad_w > window->kernel_w)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "pooling2d: padding %zu,%zu is more than half of pool_size %zu,%zu", window->pad_h,
                          window->pad_w, window->kernel_h, window->kernel_w);
    if ((window->out_h - 1) * window->stride_h >= in.h + window->pad_h ||
        (window->out_w - 1) * window->stride_w >= in.w + window->pad_w)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "pooling2d: with padding %.60s the last windows are wholly over the edge",
                          options->padding ? options->padding : "valid");
    return REMAT_OK;
}

/* The image with the padding that counts in an average; 0 x 0: none. */
static remat_status find_counted(remat_context *context, const layer_node *layer, size_t counted[2])
{
    const pooling2d_options *options = layer->options;
    window_options shape = window_options_of(layer);
    counted[0] = counted[1] = 0;
    return options->count_padding ? window_padded_size(context, layer, &shape, counted) : REMAT_OK;
}

/* Which point of each window is the largest, in as few bits as the window needs. */
static remat_status add_chosen(remat_context *context, layer_node *layer, const operation_window *window)
{
    const uint64_t rows = layer->batch * layer->output.c * layer->output.h; /* layer_set_output checked their values */
    if (operation_chosen_bits(window))
        return layer_add_saved(context, layer, "chosen", rows * operation_chosen_row(window), REMAT_UINT8);
    return layer_add_saved(context, layer, "chosen", rows * layer->output.w, REMAT_INT32);
}

static remat_status resolve(remat_context *context, layer_node *layer)
{
    operation_window window;
    REMAT_TRY(find_window(context, layer, &window));
    layer_shape in = layer->inputs[0];
    REMAT_TRY(layer_set_output(context, layer, (layer_shape){in.c, window.out_h, window.out_w}));
    if (is_max(layer)) {
        if (layer_flops(in.h, in.w, 1) > INT32_MAX)
            return remat_fail(context, REMAT_INVALID, NULL,
                              "pooling2d: an image of %" PRIu64 " x %" PRIu64 " is too large; it has over 2^31 places",
                              in.h, in.w);
        REMAT_TRY(add_chosen(context, layer, &window));
        layer->needs[LAYER_INPUT_GRADIENT] = LAYER_NEEDS_SAVED;
    }
    uint64_t taps = layer_flops(window.kernel_h, window.kernel_w, 1);
    layer_set_pointwise_flops(layer, taps, is_max(layer) ? 1 : taps);
    return REMAT_OK;
}

static remat_status forward(const layer_node *layer, const layer_call *call)
{
    operation_window window;
    REMAT_TRY(find_window(call->calls->owner->context, layer, &window));
    if (is_max(layer))
        return record_pool_max(
            call->calls,
            &(op_pool_max){.x = call->inputs[0], .y = call->output, .chosen = call->saved[0], .window = window});
    if (!call->output.at)
        return REMAT_OK;
    size_t counted[2];
    REMAT_TRY(find_counted(call->calls->owner->context, layer, counted));
    return record_pool_average(call->calls, &(op_pool_average){.x = call->inputs[0],
                                                               .y = call->output,
                                                               .window = window,
                                                               .counted_h = counted[0],
                                                               .counted_w = counted[1]});
}

static remat_status input_gradient(const layer_node *layer, const layer_call *call)
{
    operation_window window;
    REMAT_TRY(find_window(call->calls->owner->context, layer, &window));
    if (!call->d_inputs[0].at)
        return REMAT_OK;
    if (is_max(layer))
        return record_pool_max_backward(call->calls, &(op_pool_max_backward){.chosen = call->saved[0],
                                                                             .dy = call->d_output,
                                                                             .dx = call->d_inputs[0],
                                                                             .window = window,
                                                                             .accumulate = call->accumulate_inputs[0]});
    size_t counted[2];
    REMAT_TRY(find_counted(call->calls->owner->context, layer, counted));
    return record_pool_average_backward(call->calls,
                                        &(op_pool_average_backward){.dy = call->d_output,
                                                                    .dx = call->d_inputs[0],
                                                                    .window = window,
                                                                    .counted_h = counted[0],
                                                                    .counted_w = counted[1],
                                                                    .accumulate = call->accumulate_inputs[0]});
}

const layer_type layer_type_pooling2d = {
    .name = "pooling2d",
    .summary = "the largest or the mean value of every window of an image",
    .hint = REMAT_OTHER,
    .options_bytes = sizeof(pooling2d_options),
    .properties = properties,
    .min_inputs = 1,
    .max_inputs = 1,
    .may_skip_output = true,
    .resolve = resolve,
    .forward = forward,
    .input_gradient = input_gradient,
};
