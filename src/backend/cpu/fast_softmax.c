#include "backend/cpu/fast_row.h"

static void softmax_row(size_t columns, const float *x, float *y)
{
    float sum = fast_row_exp(columns, x, fast_row_max(columns, x), y);
    fast_row_scale(columns, 1.0f / sum, y);
}

static void softmax_backward_row(size_t columns, const float *y, const float *dy, float *dx, bool accumulate)
{
    fast_vector sums = {0};
#define STEP(LOAD, STORE, i, FIRST) sums = fast_fma(LOAD(y + i), LOAD(dy + i), sums)
    FAST_EACH(columns, STEP);
#undef STEP
    float sum = fast_sum_lanes(sums);
    if (accumulate) {
#define STEP(LOAD, STORE, i, FIRST) STORE(dx + i, fast_fma(LOAD(y + i), LOAD(dy + i) - sum, LOAD(dx + i)))
        FAST_EACH(columns, STEP);
#undef STEP
    } else {
#define STEP(LOAD, STORE, i, FIRST) STORE(dx + i, LOAD(y + i) * (LOAD(dy + i) - sum))
        FAST_EACH(columns, STEP);
#undef STEP
    }
}

static void softmax_rows(const void *args, parallel_range range)
{
    const op_softmax *p = args;
    const float *x = p->x.at;
    float *y = p->y.at;
    const size_t columns = p->columns;
    for (size_t row = range.begin; row < range.end; row++)
        softmax_row(columns, x + row * columns, y + row * columns);
}

void FAST(softmax)(const kernel_run *run, const void *args)
{
    const op_softmax *p = args;
    if (p->columns)
        parallel_static(fast_threads(run, p->rows * p->columns), p->rows, softmax_rows, p);
}

static void softmax_backward_rows(const void *args, parallel_range range)
{
    const op_softmax_backward *p = args;
    const float *y = p->y.at, *dy = p->dy.at;
    float *dx = p->dx.at;
    const size_t columns = p->columns;
    for (size_t row = range.begin; row < range.end; row++)
        softmax_backward_row(columns, y + row * columns, dy + row * columns, dx + row * columns, p->accumulate);
}

void FAST(softmax_backward)(const kernel_run *run, const void *args)
{
    const op_softmax_backward *p = args;
    parallel_static(fast_threads(run, p->rows * p->columns), p->rows, softmax_backward_rows, p);
}
