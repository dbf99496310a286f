/* Sums are taken in double, one value after the other: the yardstick for sums in other orders. */
#include "backend/cpu/reference.h"

void reference_column_sums(const kernel_run *run, size_t rows, size_t columns, const real *x, real *sums,
                           bool accumulate)
{
#pragma omp parallel for num_threads(run->threads)
    for (size_t column = 0; column < columns; column++) {
        double sum = accumulate ? (double)sums[column] : 0;
        for (size_t row = 0; row < rows; row++)
            sum += (double)x[row * columns + column];
        sums[column] = (real)sum;
    }
}

double reference_sum_of_squares(const kernel_run *run, size_t count, const real *x)
{
    (void)run;
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}
