#include "backend/cpu/reference.h"

#include <tgmath.h>

void reference_softmax(const kernel_run *run, size_t rows, size_t columns, const real *x, real *y)
{
    if (!columns)
        return;
#pragma omp parallel for num_threads(run->threads)
    for (size_t row = 0; row < rows; row++) {
        const real *in = x + row * columns;
        real *out = y + row * columns;
        real largest = in[0];
        for (size_t i = 1; i < columns; i++)
            largest = in[i] > largest ? in[i] : largest;
        double sum = 0;
        for (size_t i = 0; i < columns; i++) {
            out[i] = exp(in[i] - largest);
            sum += (double)out[i];
        }
        for (size_t i = 0; i < columns; i++)
            out[i] = (real)((double)out[i] / sum);
    }
}

void reference_softmax_backward(const kernel_run *run, size_t rows, size_t columns, const real *y, const real *dy,
                                real *dx, bool accumulate)
{
#pragma omp parallel for num_threads(run->threads)
    for (size_t row = 0; row < rows; row++) {
        const real *out = y + row * columns, *dout = dy + row * columns;
        real *din = dx + row * columns;
        double sum = 0;
        for (size_t i = 0; i < columns; i++)
            sum += (double)out[i] * (double)dout[i];
        for (size_t i = 0; i < columns; i++) {
            real value = out[i] * (dout[i] - (real)sum);
            din[i] = accumulate ? din[i] + value : value;
        }
    }
}
