#include "backend/cpu/fast_math.h"

/* Enough independent sums to hide the latency of a multiply-add; they fit the registers of the smallest set. */
enum { SUMS = 12 };

double FAST(multiply_adds)(const kernel_run *run, size_t rounds)
{
    double sink = 0, flops = 0;
#pragma omp parallel num_threads(run->threads) reduction(+ : sink, flops)
    {
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
            sink += (double)sums[i][0];
        flops += 2.0 * FAST_LANES * SUMS * (double)rounds; /* of threads that run: they may be fewer than asked for */
    }
    /* The sum is used, so that the compiler cannot leave the work out. */
    return flops + (sink != sink ? 1 : 0);
}
