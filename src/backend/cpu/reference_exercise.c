#include "backend/cpu/reference.h"

double reference_exercise(const kernel_run *run, size_t rounds)
{
    double sink = 0, flops = 0;
#pragma omp parallel num_threads(run->threads) reduction(+ : sink, flops)
    {
        real a = 0, b = 1;
        for (size_t r = 0; r < rounds; r++) {
            a = a * (real)0.999 + (real)0.001;
            b = b * (real)0.999 + (real)0.001;
        }
        sink += (double)(a + b);
        flops += 4.0 * (double)rounds;
    }
    return flops + (sink != sink ? 1 : 0);
}
