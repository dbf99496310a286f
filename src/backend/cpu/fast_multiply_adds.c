#include "backend/cpu/fast_math.h"

/* Enough independent sums to hide the latency of a multiply-add; they fit the registers of the smallest set. */
enum { SUMS = 12 };

static void multiply_and_add(const void *args, parallel_range range)
{
    const size_t rounds = *(const size_t *)args;
    for (size_t pass = range.begin; pass < range.end; pass++) {
        fast_vector sums[SUMS], factor, step;
        for (int lane = 0; lane < FAST_LANES; lane++) {
            factor[lane] = 0.999f;
            step[lane] = 0.001f;
        }
        for (int i = 0; i < SUMS; i++)
            sums[i] = factor * (float)i;
        for (size_t r = 0; r < rounds; r++)
            for (int i = 0; i < SUMS; i++)
                sums[i] = fast_fma(sums[i], factor, step);
        for (int i = 0; i < SUMS; i++)
            kernel_keep_value((double)sums[i][0]);
    }
}

double FAST(multiply_adds)(const kernel_run *run, size_t rounds)
{
    int threads = parallel_start(run->threads); /* may be fewer than asked for */
    parallel_static(threads, (size_t)threads, multiply_and_add, &rounds);
    return 2.0 * FAST_LANES * SUMS * (double)rounds * threads;
}
