#include "backend/extents.h"

#include <string.h>

/* The values of `rows` rows of `columns` that are `distance` apart, from the first to the last. */
static uint64_t spread(uint64_t rows, uint64_t columns, uint64_t distance)
{
    return rows && columns ? (rows - 1) * distance + columns : 0;
}

static uint64_t input_values(const operation_window *w)
{
    return (uint64_t)w->batch * w->in_channels * w->in_h * w->in_w;
}

static uint64_t output_values(const operation_window *w)
{
    return (uint64_t)w->batch * w->out_channels * w->out_h * w->out_w;
}

static uint64_t weight_values(const operation_window *w)
{
    return w->groups ? (uint64_t)w->out_channels * (w->in_channels / w->groups) * w->kernel_h * w->kernel_w : 0;
}

#define IN(count)        ((operation_extent){(count), true, false})
#define OUT(count)       ((operation_extent){(count), false, true})
#define OUT_IF(count, r) ((operation_extent){(count), (r), true})
#define UNCOUNTED        ((operation_extent){0}) /* bytes and whole numbers are never converted */

/* `p` is the struct of the operation. */
#define EXTENTS(name, ...)                            \
    case OP_##name: {                                 \
        const op_##name *p = args;                    \
        const operation_extent all[] = {__VA_ARGS__}; \
        memcpy(extents, all, sizeof all);             \
        return true;                                  \
    }

static bool gemm_extents(const op_gemm *p, operation_extent extents[OPERATION_MAX_TENSORS])
{
    const bool gaps = p->ldc != p->n;
    const uint64_t c = spread(p->m, p->n, p->ldc);
    const operation_extent all[] = {
        IN(p->transpose_a ? spread(p->k, p->m, p->lda) : spread(p->m, p->k, p->lda)),
        IN(p->transpose_b ? spread(p->n, p->k, p->ldb) : spread(p->k, p->n, p->ldb)),
        OUT_IF(c, p->accumulate || gaps),
        IN(p->n),
        OUT_IF(c, gaps),
        IN(c),
    };
    memcpy(extents, all, sizeof all);
    return true;
}

static bool attention_extents(const op_attention *p, operation_extent extents[OPERATION_MAX_TENSORS])
{
    const uint64_t width = (uint64_t)p->heads * p->size, rows = (uint64_t)p->batch * p->steps;
    const uint64_t key_width = (uint64_t)attention_key_heads(p->heads, p->group) * p->size;
    const uint64_t keys = spread((uint64_t)p->batch * p->keys, key_width, p->key_row);
    const operation_extent all[] = {IN(spread(rows, width, p->row)),
                                    IN(keys),
                                    IN(keys),
                                    OUT_IF(spread(rows, width, p->out_row), p->out_row != width),
                                    OUT(rows * p->heads),
                                    {0}};
    memcpy(extents, all, sizeof all);
    return true;
}

static bool attention_backward_extents(const op_attention_backward *p, operation_extent extents[OPERATION_MAX_TENSORS])
{
    const uint64_t width = (uint64_t)p->heads * p->size, rows = (uint64_t)p->batch * p->steps;
    const uint64_t queries = spread(rows, width, p->row), out = spread(rows, width, p->out_row);
    const uint64_t key_width = (uint64_t)attention_key_heads(p->heads, p->group) * p->size;
    const uint64_t keys = spread((uint64_t)p->batch * p->keys, key_width, p->key_row);
    const operation_extent all[] = {
        IN(queries),        IN(keys),           IN(keys), IN(out), IN(rows * p->heads), IN(out), OUT_IF(queries, true),
        OUT_IF(keys, true), OUT_IF(keys, true), {0},      {0}};
    memcpy(extents, all, sizeof all);
    return true;
}

bool operation_extents(operation op, const void *args, operation_extent extents[OPERATION_MAX_TENSORS])
{
    memset(extents, 0, OPERATION_MAX_TENSORS * sizeof *extents);
    switch (op) {
    case OP_gemm: return gemm_extents(args, extents);
    case OP_attention: return attention_extents(args, extents);
    case OP_attention_backward:
        return attention_backward_extents(args, extents);
        EXTENTS(activate, IN(p->count), OUT(p->count));
        EXTENTS(activate_backward, IN(p->count), IN(p->count), IN(p->count), OUT_IF(p->count, p->accumulate));
        EXTENTS(rectify, IN(p->count), OUT(p->count), UNCOUNTED);
        EXTENTS(rectify_backward, UNCOUNTED, IN(p->count), OUT_IF(p->count, p->accumulate));
        EXTENTS(add, IN(p->count), IN(p->count), OUT(p->count));
        EXTENTS(multiply, IN(p->count), IN(p->count), OUT_IF(p->count, p->accumulate));
        EXTENTS(scale, OUT_IF(p->count, true));
        EXTENTS(accumulate, IN(p->count), OUT_IF(p->count, true));
        EXTENTS(copy, IN(p->count), OUT(p->count));
        EXTENTS(fill, OUT(p->count));
        EXTENTS(dropout, IN(p->count), OUT_IF(p->count, p->accumulate), UNCOUNTED);
        EXTENTS(softmax, IN(p->rows * p->columns), OUT(p->rows * p->columns));
        EXTENTS(softmax_backward, IN(p->rows * p->columns), IN(p->rows * p->columns),
                OUT_IF(p->rows * p->columns, p->accumulate));
        EXTENTS(add_to_rows, IN(p->rows * p->columns), IN(p->columns), OUT(p->rows * p->columns));
        EXTENTS(copy_rows, IN(spread(p->rows, p->columns, p->x_row)),
                OUT_IF(spread(p->rows, p->columns, p->y_row), p->accumulate || p->y_row != p->columns));
        EXTENTS(rotate, IN(p->rows * p->heads * p->size), OUT_IF(p->rows * p->heads * p->size, p->accumulate),
                UNCOUNTED);
        EXTENTS(column_sums, IN(p->rows * p->columns), OUT_IF(p->columns, p->accumulate));
        EXTENTS(add_to_channels, IN(p->channels), OUT_IF(p->batch * p->channels * p->area, true));
        EXTENTS(channel_sums, IN(p->batch * p->channels * p->area), OUT_IF(p->channels, p->accumulate));
        EXTENTS(gather, UNCOUNTED, UNCOUNTED, OUT(p->rows * p->width)); /* the table is no activation */
        EXTENTS(gather_backward, UNCOUNTED, IN(p->rows * p->width), UNCOUNTED);
        EXTENTS(normalize, IN(p->rows * p->columns), IN(p->columns), IN(p->columns), OUT(p->rows * p->columns),
                OUT(p->rows), OUT(p->rows));
        EXTENTS(normalize_backward, IN(p->rows * p->columns), IN(p->columns), IN(p->rows), IN(p->rows),
                IN(p->rows * p->columns), OUT_IF(p->rows * p->columns, p->accumulate), OUT_IF(p->columns, true),
                OUT_IF(p->columns, true), UNCOUNTED);
        EXTENTS(batch_statistics, IN(p->batch * p->channels * p->area), OUT(p->channels), OUT(p->channels),
                OUT_IF(p->channels, true), OUT_IF(p->channels, true));
        EXTENTS(batch_normalize, IN(p->batch * p->channels * p->area), IN(p->channels), IN(p->channels),
                IN(p->channels), IN(p->channels), OUT(p->batch * p->channels * p->area));
        EXTENTS(batch_normalize_backward, IN(p->batch * p->channels * p->area), IN(p->channels), IN(p->channels),
                IN(p->channels), IN(p->batch * p->channels * p->area),
                OUT_IF(p->batch * p->channels * p->area, p->accumulate), OUT_IF(p->channels, true),
                OUT_IF(p->channels, true));
        EXTENTS(group_normalize, IN(p->batch * p->channels * p->area), IN(p->channels), IN(p->channels),
                OUT(p->batch * p->channels * p->area), OUT(p->batch * p->groups), OUT(p->batch * p->groups));
        EXTENTS(group_normalize_backward, IN(p->batch * p->channels * p->area), IN(p->channels),
                IN(p->batch * p->groups), IN(p->batch * p->groups), IN(p->batch * p->channels * p->area),
                OUT_IF(p->batch * p->channels * p->area, p->accumulate), OUT_IF(p->channels, true),
                OUT_IF(p->channels, true), UNCOUNTED);
        EXTENTS(convolve, IN(input_values(&p->window)), IN(weight_values(&p->window)), IN(p->window.out_channels),
                OUT(output_values(&p->window)), UNCOUNTED);
        EXTENTS(convolve_backward_weight, IN(input_values(&p->window)), IN(output_values(&p->window)),
                OUT_IF(weight_values(&p->window), true), OUT_IF(p->window.out_channels, true), UNCOUNTED);
        EXTENTS(convolve_backward_input, IN(weight_values(&p->window)), IN(output_values(&p->window)),
                OUT_IF(input_values(&p->window), p->accumulate), UNCOUNTED);
        EXTENTS(pool_max, IN(input_values(&p->window)), OUT(output_values(&p->window)), UNCOUNTED);
        EXTENTS(pool_max_backward, UNCOUNTED, IN(output_values(&p->window)),
                OUT_IF(input_values(&p->window), p->accumulate));
        EXTENTS(pool_average, IN(input_values(&p->window)), OUT(output_values(&p->window)));
        EXTENTS(pool_average_backward, IN(output_values(&p->window)), OUT_IF(input_values(&p->window), p->accumulate));
        EXTENTS(cross_entropy, IN(p->rows * p->columns), UNCOUNTED, OUT(p->rows * p->columns), UNCOUNTED);
        EXTENTS(squared_error, IN(p->count), IN(p->count), OUT_IF(p->count, p->accumulate), UNCOUNTED);
        EXTENTS(pointwise_loss, IN(p->count), IN(p->count), OUT_IF(p->count, p->accumulate), UNCOUNTED);
        EXTENTS(count_correct, IN(p->rows * p->columns), UNCOUNTED, UNCOUNTED);
        EXTENTS(check_finite, IN(p->count), UNCOUNTED);
    default: return false; /* steps of recurrent cells, optimizers and functions of the user */
    }
}
