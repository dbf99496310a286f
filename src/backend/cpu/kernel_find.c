#include "backend/cpu/kernel.h"
#include "backend/cpu/normalize_parts.h"
#include "backend/cpu/window.h"

static bool types_fit(const char *types, const char *wanted)
{
    while (*types && (*wanted == *types || *wanted == '-'))
        types++, wanted++;
    return *types == *wanted; /* both ended */
}

const kernel_row *kernel_find(const kernel_table *table, operation op, const char *types)
{
    for (size_t i = 0; i < table->row_count; i++)
        if (table->rows[i].op == op && types_fit(table->rows[i].types, types))
            return &table->rows[i];
    return NULL;
}

/* A part of the gradient of the weights and of the bias for each part of the images; the forward and the gradient of the
 * input pack the weights there. */
static uint64_t window_values(const operation_window *window)
{
    return window_parts(window) * (window_weights(window) + window->out_channels);
}

/* Kernels compute in the type in which sums are kept. */
static uint64_t computed_bytes(remat_dtype dtype, uint64_t count)
{
    return dtype_bytes(dtype_traits_of(dtype)->accumulator, count);
}

uint64_t kernel_workspace(operation op, const void *args)
{
    if (op == OP_convolve) {
        const op_convolve *p = args;
        return computed_bytes(p->x.type, window_values(&p->window));
    }
    if (op == OP_convolve_backward_weight) {
        const op_convolve_backward_weight *p = args;
        return computed_bytes(p->x.type, window_values(&p->window));
    }
    if (op == OP_convolve_backward_input) {
        const op_convolve_backward_input *p = args;
        return computed_bytes(p->dy.type, window_values(&p->window));
    }
    if (op == OP_normalize_backward) {
        const op_normalize_backward *p = args;
        return computed_bytes(p->x.type, normalize_parts(p->rows) * 2 * p->columns);
    }
    if (op == OP_group_normalize_backward) { /* two sums for each plane */
        const op_group_normalize_backward *p = args;
        return computed_bytes(p->x.type, 2 * p->batch * p->channels);
    }
    if (op == OP_attention_backward) { /* the gradient of one sample, before it is added */
        const op_attention_backward *p = args;
        return p->accumulate ? computed_bytes(p->q.type, p->steps * p->row) : 0;
    }
    return 0;
}
