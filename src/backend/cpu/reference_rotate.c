#include "backend/cpu/reference.h"

#include <math.h>

static void rotate_rows(const void *args, parallel_range range)
{
    const op_rotate *p = args;
    const real *x = p->x.at;
    real *y = p->y.at;
    const int32_t *positions = p->positions.at;
    const size_t half = p->size / 2;
    for (size_t row = range.begin; row < range.end; row++)
        for (size_t at = 0; at < p->heads * half; at++) {
            const float position = (float)(positions ? (size_t)positions[row] : row % p->steps);
            const size_t i = at % half, first = row * p->heads * p->size + at / half * p->size + i,
                         second = first + half;
            const double angle = (double)(position * rotary_frequency(&p->angles, p->size, i));
            const real c = (real)(p->scale * cos(angle)),
                       s = (real)(p->scale * (p->backward ? -sin(angle) : sin(angle)));
            const real a = x[first] * c - x[second] * s, b = x[second] * c + x[first] * s;
            y[first] = p->accumulate ? y[first] + a : a;
            y[second] = p->accumulate ? y[second] + b : b;
        }
}

void REFERENCE(rotate)(const kernel_run *run, const void *args)
{
    const op_rotate *p = args;
    parallel_static(run->threads, p->rows, rotate_rows, p);
}
