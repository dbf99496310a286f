#include "backend/cpu/reference.h"

void reference_add(const kernel_run *run, size_t count, const real *a, const real *b, real *y)
{
#pragma omp parallel for num_threads(run->threads)
    for (size_t i = 0; i < count; i++)
        y[i] = a[i] + b[i];
}

void reference_multiply(const kernel_run *run, size_t count, const real *a, const real *b, real *y, bool accumulate)
{
#pragma omp parallel for num_threads(run->threads)
    for (size_t i = 0; i < count; i++)
        y[i] = accumulate ? y[i] + a[i] * b[i] : a[i] * b[i];
}

void reference_accumulate(const kernel_run *run, size_t count, const real *x, real *y)
{
#pragma omp parallel for num_threads(run->threads)
    for (size_t i = 0; i < count; i++)
        y[i] += x[i];
}

void reference_scale(const kernel_run *run, size_t count, real factor, real *y)
{
#pragma omp parallel for num_threads(run->threads)
    for (size_t i = 0; i < count; i++)
        y[i] *= factor;
}

void reference_add_to_rows(const kernel_run *run, size_t rows, size_t columns, const real *x, const real *addend,
                           real *y)
{
#pragma omp parallel for num_threads(run->threads)
    for (size_t i = 0; i < rows * columns; i++)
        y[i] = x[i] + addend[i % columns];
}
