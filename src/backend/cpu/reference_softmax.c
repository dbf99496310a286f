#include "backend/cpu/reference.h"

#include <tgmath.h>

static void softmax_rows(const void *args, parallel_range range)
{
    const op_softmax *p = args;
    const size_t columns = p->columns;
    for (size_t row = range.begin; row < range.end; row++) {
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

void REFERENCE(softmax)(const kernel_run *run, const void *args)
{
    const op_softmax *p = args;
    if (p->columns)
        parallel_static(run->threads, p->rows, softmax_rows, p);
}

static void softmax_backward_rows(const void *args, parallel_range range)
{
    const op_softmax_backward *p = args;
    const size_t columns = p->columns;
    for (size_t row = range.begin; row < range.end; row++) {
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

void REFERENCE(softmax_backward)(const kernel_run *run, const void *args)
{
    const op_softmax_backward *p = args;
    parallel_static(run->threads, p->rows, softmax_backward_rows, p);
}
