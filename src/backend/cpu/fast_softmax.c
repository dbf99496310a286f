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

void FAST(softmax)(const kernel_run *run, const void *args)
{
    const op_softmax *p = args;
    const float *x = p->x.at;
    float *y = p->y.at;
    const size_t rows = p->rows, columns = p->columns;
    if (!columns)
        return;
#pragma omp parallel for num_threads(fast_threads(run, rows *columns)) schedule(static)
    for (size_t row = 0; row < rows; row++)
        softmax_row(columns, x + row * columns, y + row * columns);
}

void FAST(softmax_backward)(const kernel_run *run, const void *args)
{
    const op_softmax_backward *p = args;
    const float *y = p->y.at, *dy = p->dy.at;
    float *dx = p->dx.at;
    const size_t rows = p->rows, columns = p->columns;
#pragma omp parallel for num_threads(fast_threads(run, rows *columns)) schedule(static)
    for (size_t row = 0; row < rows; row++)
        softmax_backward_row(columns, y + row * columns, dy + row * columns, dx + row * columns, p->accumulate);
}
