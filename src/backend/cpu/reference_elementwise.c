#include "backend/cpu/reference.h"

void REFERENCE(add)(const kernel_run *run, const void *args)
{
    const op_add *p = args;
    const real *a = p->a.at, *b = p->b.at;
    real *y = p->y.at;
#pragma omp parallel for num_threads(run->threads)
    for (size_t i = 0; i < p->count; i++)
        y[i] = a[i] + b[i];
}

void REFERENCE(multiply)(const kernel_run *run, const void *args)
{
    const op_multiply *p = args;
    const real *a = p->a.at, *b = p->b.at;
    real *y = p->y.at;
#pragma omp parallel for num_threads(run->threads)
    for (size_t i = 0; i < p->count; i++)
        y[i] = p->accumulate ? y[i] + a[i] * b[i] : a[i] * b[i];
}

void REFERENCE(scale)(const kernel_run *run, const void *args)
{
    const op_scale *p = args;
    const real factor = (real)p->factor;
    real *y = p->y.at;
#pragma omp parallel for num_threads(run->threads)
    for (size_t i = 0; i < p->count; i++)
        y[i] *= factor;
}

void REFERENCE(accumulate)(const kernel_run *run, const void *args)
{
    const op_accumulate *p = args;
    const real *x = p->x.at;
    real *y = p->y.at;
#pragma omp parallel for num_threads(run->threads)
    for (size_t i = 0; i < p->count; i++)
        y[i] += x[i];
}

void REFERENCE(copy)(const kernel_run *run, const void *args)
{
    const op_copy *p = args;
    const real *x = p->x.at;
    real *y = p->y.at;
#pragma omp parallel for num_threads(run->threads)
    for (size_t i = 0; i < p->count; i++)
        y[i] = x[i];
}

void REFERENCE(fill)(const kernel_run *run, const void *args)
{
    const op_fill *p = args;
    real *y = p->y.at;
#pragma omp parallel for num_threads(run->threads)
    for (size_t i = 0; i < p->count; i++)
        y[i] = (real)p->value;
}

void REFERENCE(add_to_rows)(const kernel_run *run, const void *args)
{
    const op_add_to_rows *p = args;
    const real *x = p->x.at, *addend = p->addend.at;
    real *y = p->y.at;
#pragma omp parallel for num_threads(run->threads)
    for (size_t i = 0; i < p->rows * p->columns; i++)
        y[i] = x[i] + addend[i % p->columns];
}

void REFERENCE(copy_rows)(const kernel_run *run, const void *args)
{
    const op_copy_rows *p = args;
#pragma omp parallel for num_threads(run->threads)
    for (size_t row = 0; row < p->rows; row++) {
        const real *x = (const real *)p->x.at + row * p->x_row;
        real *y = (real *)p->y.at + row * p->y_row;
        for (size_t i = 0; i < p->columns; i++)
            y[i] = p->accumulate ? y[i] + x[i] : x[i];
    }
}
