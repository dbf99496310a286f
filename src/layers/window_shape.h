/* Windows that slide over an image: what conv2d and pooling2d have in common. */
#ifndef REMAT_LAYERS_WINDOW_SHAPE_H
#define REMAT_LAYERS_WINDOW_SHAPE_H

#include "layers/layer.h"

enum { WINDOW_LARGEST = 65535 }; /* kernel, stride and padding: no product of them overflows */

/* Padding is "valid" (none), "same" (inputs / stride outputs, rounded up; with an odd padding, the extra zero is below
 * and to the right), a count or a pair. Fails if the text is something else or the window does not fit into the
 * image. */
remat_status window_resolve(remat_context *context, const layer_node *layer, const uint64_t kernel[2],
                            const uint64_t stride[2], const char *padding, uint64_t out_channels,
                            operation_window *window);

#endif
