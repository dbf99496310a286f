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

void REFERENCE(add_squares)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_add_squares *p = args;
    const real *x = p->x.at;
    step_block *block = p->step.at;
    double sum = 0;
    for (size_t i = 0; i < p->count; i++)
        sum += (double)x[i] * (double)x[i];
    block->squares += sum;
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
