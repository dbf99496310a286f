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

void FAST(softmax)(const kernel_run *run, size_t rows, size_t columns, const float *x, float *y)
{
    if (!columns)
        return;
#pragma omp parallel for num_threads(fast_threads(run, rows *columns)) schedule(static)
    for (size_t row = 0; row < rows; row++)
        softmax_row(columns, x + row * columns, y + row * columns);
}

void FAST(softmax_backward)(const kernel_run *run, size_t rows, size_t columns, const float *y, const float *dy,
                            float *dx, bool accumulate)
{
#pragma omp parallel for num_threads(fast_threads(run, rows *columns)) schedule(static)
    for (size_t row = 0; row < rows; row++)
        softmax_backward_row(columns, y + row * columns, dy + row * columns, dx + row * columns, accumulate);
}
