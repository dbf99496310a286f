/* Sums are taken in double, one value after the other: the yardstick for sums in other orders. */
#include "backend/cpu/reference.h"

static void sum_columns(const void *args, parallel_range range)
{
    const op_column_sums *p = args;
    const real *x = p->x.at;
    real *sums = p->sums.at;
    for (size_t column = range.begin; column < range.end; column++) {
        double sum = p->accumulate ? (double)sums[column] : 0;
        for (size_t row = 0; row < p->rows; row++)
            sum += (double)x[row * p->columns + column];
        sums[column] = (real)sum;
    }
}

void REFERENCE(column_sums)(const kernel_run *run, const void *args)
{
    const op_column_sums *p = args;
    parallel_static(run->threads, p->columns, sum_columns, p);
}

/* Of a block. */
static double squares_from(const real *x, size_t count, size_t from)
{
    double sum = 0;
    for (size_t i = from; i < count && i < from + OPERATION_SQUARES_BLOCK; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

void REFERENCE(add_squares)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_add_squares *p = args;
    step_block *block = p->step.at;
    for (size_t from = 0; from < p->count; from += OPERATION_SQUARES_BLOCK)
        block->squares += squares_from(p->x.at, p->count, from);
}

void REFERENCE(block_squares)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_block_squares *p = args;
    double *sums = p->sums.at;
    for (size_t from = 0; from < p->count; from += OPERATION_SQUARES_BLOCK)
        sums[from / OPERATION_SQUARES_BLOCK] = squares_from(p->x.at, p->count, from);
}

void REFERENCE(check_finite)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_check_finite *p = args;
    const real *x = p->x.at;
    step_block *block = p->step.at;
    for (size_t i = 0; i < p->count; i++)
        if (!isfinite(x[i]) && block->broken == 0)
            block->broken = 1 + p->number;
}
