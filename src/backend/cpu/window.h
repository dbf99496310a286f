/* What the kernels for windows share.
 *
 * How the gradient of a convolution's weights, a sum over the batch, is cut: into parts of some images, each with a partial
 * sum of its own in the workspace. The number of parts follows from the sizes alone. */
#ifndef REMAT_BACKEND_CPU_WINDOW_H
#define REMAT_BACKEND_CPU_WINDOW_H

#include "backend/operation.h"

#define WINDOW_MOST_PARTS     32
#define WINDOW_PARTIAL_VALUES ((size_t)1 << 17) /* of all parts together, unless one alone is larger */

static inline size_t window_weights(const operation_window *window)
{
    return window->out_channels * (window->in_channels / window->groups) * window->kernel_h * window->kernel_w;
}

static inline size_t window_parts(const operation_window *window)
{
    size_t values = window_weights(window) + window->out_channels;
    size_t parts = values ? WINDOW_PARTIAL_VALUES / values : 0;
    parts = parts < WINDOW_MOST_PARTS ? parts : WINDOW_MOST_PARTS;
    parts = parts < window->batch ? parts : window->batch;
    return parts ? parts : 1;
}

/* How many taps of output `out` count in a mean, along one axis. `counted` is the size of the image with the padding that
 * counts; 0: only the taps inside the image count. */
static inline size_t window_counted(size_t out, size_t stride, size_t kernel, size_t counted, size_t inside)
{
    size_t begin = out * stride, end = begin + kernel;
    if (!counted)
        return inside;
    end = end < counted ? end : counted;
    return end > begin ? end - begin : 0;
}

#endif
