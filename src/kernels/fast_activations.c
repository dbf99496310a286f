#include "kernels/fast_math.h"

FAST_INLINE void activate_values(kernel_activation kind, size_t count, const float *x, float *y)
{
#define STEP(LOAD, STORE, i, FIRST) STORE(y + i, fast_activate(kind, LOAD(x + i)))
    FAST_EACH(count, STEP);
#undef STEP
}

FAST_INLINE void activate_backward_values(kernel_activation kind, size_t count, const float *v, const float *dy,
                                          float *dx, bool accumulate)
{
    if (accumulate) {
#define STEP(LOAD, STORE, i, FIRST) \
    STORE(dx + i, LOAD(dx + i) + LOAD(dy + i) * fast_activate_derivative(kind, LOAD(v + i)))
        FAST_EACH(count, STEP);
#undef STEP
    } else {
#define STEP(LOAD, STORE, i, FIRST) STORE(dx + i, LOAD(dy + i) * fast_activate_derivative(kind, LOAD(v + i)))
        FAST_EACH(count, STEP);
#undef STEP
    }
}

static void activate_block(kernel_activation kind, size_t count, const float *x, float *y)
{
    switch (kind) {
#define DO(constant) activate_values(constant, count, x, y)
        FAST_ACTIVATION_CASES(DO)
#undef DO
    }
}

static void activate_backward_block(kernel_activation kind, size_t count, const float *v, const float *dy, float *dx,
                                    bool accumulate)
{
    switch (kind) {
#define DO(constant) activate_backward_values(constant, count, v, dy, dx, accumulate)
        FAST_ACTIVATION_CASES(DO)
#undef DO
    }
}

void FAST(activate)(const kernel_run *run, kernel_activation kind, size_t count, const float *x, float *y)
{
#pragma omp parallel for num_threads(fast_threads(run, count)) schedule(static)
    for (size_t from = 0; from < count; from += FAST_BLOCK)
        activate_block(kind, fast_block_length(count, from), x + from, y + from);
}

void FAST(activate_backward)(const kernel_run *run, kernel_activation kind, size_t count, const float *x,
                             const float *y, const float *dy, float *dx, bool accumulate)
{
    /* Nothing is read of v where the derivative is 1: any pointer will do. */
    const float *v = kind == KERNEL_NONE ? dy : kernel_activation_reads_output(kind) ? y : x;
#pragma omp parallel for num_threads(fast_threads(run, count)) schedule(static)
    for (size_t from = 0; from < count; from += FAST_BLOCK)
        activate_backward_block(kind, fast_block_length(count, from), v + from, dy + from, dx + from, accumulate);
}
