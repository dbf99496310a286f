#include "backend/cpu/reference.h"

#include <tgmath.h>

void REFERENCE(softmax)(const kernel_run *run, const void *args)
{
    const op_softmax *p = args;
    const size_t columns = p->columns;
    if (!columns)
        return;
#pragma omp parallel for num_threads(run->threads)
    for (size_t row = 0; row < p->rows; row++) {
        const real *in = (const real *)p->x.at + row * columns;
        real *out = (real *)p->y.at + row * columns;
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

void REFERENCE(softmax_backward)(const kernel_run *run, const void *args)
{
    const op_softmax_backward *p = args;
    const size_t columns = p->columns;
#pragma omp parallel for num_threads(run->threads)
    for (size_t row = 0; row < p->rows; row++) {
        const real *out = (const real *)p->y.at + row * columns, *dout = (const real *)p->dy.at + row * columns;
        real *din = (real *)p->dx.at + row * columns;
        double sum = 0;
        for (size_t i = 0; i < columns; i++)
            sum += (double)out[i] * (double)dout[i];
        for (size_t i = 0; i < columns; i++) {
            real value = out[i] * (dout[i] - (real)sum);
            din[i] = p->accumulate ? din[i] + value : value;
        }
    }
}
