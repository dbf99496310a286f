#include "backend/cpu/reference.h"
#include "base/half_plain.h"

static void add_range(const void *args, parallel_range range)
{
    const op_add *p = args;
    const real *a = p->a.at, *b = p->b.at;
    real *y = p->y.at;
    for (size_t i = range.begin; i < range.end; i++)
        y[i] = a[i] + b[i];
}

void REFERENCE(add)(const kernel_run *run, const void *args)
{
    const op_add *p = args;
    parallel_static(run->threads, p->count, add_range, p);
}

static void multiply_range(const void *args, parallel_range range)
{
    const op_multiply *p = args;
    const real *a = p->a.at, *b = p->b.at;
    real *y = p->y.at;
    for (size_t i = range.begin; i < range.end; i++)
        y[i] = p->accumulate ? y[i] + a[i] * b[i] : a[i] * b[i];
}

void REFERENCE(multiply)(const kernel_run *run, const void *args)
{
    const op_multiply *p = args;
    parallel_static(run->threads, p->count, multiply_range, p);
}

static void scale_range(const void *args, parallel_range range)
{
    const op_scale *p = args;
    const real factor = (real)p->factor;
    real *y = p->y.at;
    for (size_t i = range.begin; i < range.end; i++)
        y[i] *= factor;
}

void REFERENCE(scale)(const kernel_run *run, const void *args)
{
    const op_scale *p = args;
    parallel_static(run->threads, p->count, scale_range, p);
}

static void accumulate_range(const void *args, parallel_range range)
{
    const op_accumulate *p = args;
    const real *x = p->x.at;
    real *y = p->y.at;
    for (size_t i = range.begin; i < range.end; i++)
        y[i] += x[i];
}

void REFERENCE(accumulate)(const kernel_run *run, const void *args)
{
    const op_accumulate *p = args;
    parallel_static(run->threads, p->count, accumulate_range, p);
}

static void copy_range(const void *args, parallel_range range)
{
    const op_copy *p = args;
    const real *x = p->x.at;
    real *y = p->y.at;
    for (size_t i = range.begin; i < range.end; i++)
        y[i] = x[i];
}

void REFERENCE(copy)(const kernel_run *run, const void *args)
{
    const op_copy *p = args;
    parallel_static(run->threads, p->count, copy_range, p);
}

static void fill_range(const void *args, parallel_range range)
{
    const op_fill *p = args;
    real *y = p->y.at;
    for (size_t i = range.begin; i < range.end; i++)
        y[i] = (real)p->value;
}

void REFERENCE(fill)(const kernel_run *run, const void *args)
{
    const op_fill *p = args;
    parallel_static(run->threads, p->count, fill_range, p);
}

static void add_to_rows_range(const void *args, parallel_range range)
{
    const op_add_to_rows *p = args;
    const real *x = p->x.at, *addend = p->addend.at;
    real *y = p->y.at;
    for (size_t i = range.begin; i < range.end; i++)
        y[i] = x[i] + addend[i % p->columns];
}

void REFERENCE(add_to_rows)(const kernel_run *run, const void *args)
{
    const op_add_to_rows *p = args;
    parallel_static(run->threads, p->rows * p->columns, add_to_rows_range, p);
}

static void copy_rows_range(const void *args, parallel_range range)
{
    const op_copy_rows *p = args;
    for (size_t row = range.begin; row < range.end; row++) {
        const real *x = (const real *)p->x.at + row * p->x_row;
        real *y = (real *)p->y.at + row * p->y_row;
        for (size_t i = 0; i < p->columns; i++)
            y[i] = p->accumulate ? y[i] + x[i] : x[i];
    }
}

void REFERENCE(copy_rows)(const kernel_run *run, const void *args)
{
    const op_copy_rows *p = args;
    parallel_static(run->threads, p->rows, copy_rows_range, p);
}

static void convert_range(const void *args, parallel_range range)
{
    const op_convert *p = args;
    for (size_t i = range.begin; i < range.end; i++)
        if (p->x.type == p->y.type) {
            ((real *)p->y.at)[i] = ((const real *)p->x.at)[i];
        } else if (p->x.type == REMAT_BF16) {
            const uint32_t bits = (uint32_t)((const uint16_t *)p->x.at)[i] << 16;
            memcpy((float *)p->y.at + i, &bits, sizeof bits);
        } else {
            ((uint16_t *)p->y.at)[i] = bf16_from_bits(float_bits(((const float *)p->x.at)[i]));
        }
}

void REFERENCE(convert)(const kernel_run *run, const void *args)
{
    const op_convert *p = args;
    parallel_static(run->threads, p->count, convert_range, p);
}
