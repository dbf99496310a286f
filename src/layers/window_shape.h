/* Windows that slide over an image: what convolutions and pooling2d have in common. */
#ifndef REMAT_LAYERS_WINDOW_SHAPE_H
#define REMAT_LAYERS_WINDOW_SHAPE_H

#include "layers/layer.h"

enum { WINDOW_LARGEST = 65535 }; /* kernel, stride, dilation and padding: no product of them overflows */

/* Height and width each. */
typedef struct window_options {
    uint64_t kernel[2], stride[2], dilation[2];
    const char *padding; /* NULL: valid */
    uint64_t groups;
    bool line;    /* of height 1: padding is for both ends or for each, and may be causal */
    bool ceiling; /* a last window that reaches beyond the padding counts, if it does not begin there */
} window_options;

/* The help of the property `padding`. */
#define WINDOW_PADDING_HELP \
    "zeros around the image: same, valid (none), how many on each side, height,width, or top,bottom,left,right"

/* Padding is "valid" (none), "same" (inputs / stride outputs, rounded up; with an odd padding, the extra zero is below
 * and to the right), a count for each side, a pair for height and width, or four counts: top, bottom, left, right. Fails
 * if the text is something else or the window does not fit into the image. */
remat_status window_resolve(remat_context *context, const layer_node *layer, const window_options *options,
                            uint64_t out_channels, operation_window *window);

/* The height and width of the image with its padding. With `same` it ends where the last window ends. */
remat_status window_padded_size(remat_context *context, const layer_node *layer, const window_options *options,
                                size_t size[2]);

/* The window of the convolution that a transposed one reverses: its output is the layer's input, and its input, of
 * `channels` channels, the layer's output. There `same` means inputs * stride outputs, and `extra` is added below and to the
 * right. */
remat_status window_resolve_transposed(remat_context *context, const layer_node *layer, const window_options *options,
                                       uint64_t channels, const uint64_t extra[2], operation_window *window);

#endif
