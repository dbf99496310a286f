/* How the gradient of a convolution's weights, a sum over the batch, is cut: into groups of images, each with a partial sum
 * of its own in the workspace. The number of groups follows from the sizes alone. */
#ifndef REMAT_BACKEND_CPU_WINDOW_H
#define REMAT_BACKEND_CPU_WINDOW_H

#include "backend/operation.h"

#define WINDOW_MOST_GROUPS    32
#define WINDOW_PARTIAL_VALUES ((size_t)1 << 17) /* of all groups together, unless one alone is larger */

static inline size_t window_weights(const operation_window *window)
{
    return window->out_channels * window->in_channels * window->kernel_h * window->kernel_w;
}

static inline size_t window_groups(const operation_window *window)
{
    size_t values = window_weights(window) + window->out_channels;
    size_t groups = values ? WINDOW_PARTIAL_VALUES / values : 0;
    groups = groups < WINDOW_MOST_GROUPS ? groups : WINDOW_MOST_GROUPS;
    groups = groups < window->batch ? groups : window->batch;
    return groups ? groups : 1;
}

#endif
