/* How the gradient of a convolution's weights, a sum over the batch, is cut: into parts of some images, each with a partial
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

#endif
