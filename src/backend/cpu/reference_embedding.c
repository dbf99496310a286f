#include "backend/cpu/reference.h"

#include <string.h>

void reference_gather(const kernel_run *run, size_t rows, size_t width, const int32_t *ids, const real *table, real *y)
{
#pragma omp parallel for num_threads(run->threads)
    for (size_t row = 0; row < rows; row++)
        memcpy(y + row * width, table + (size_t)ids[row] * width, width * sizeof *y);
}

void reference_gather_backward(const kernel_run *run, size_t rows, size_t width, size_t entries, const int32_t *ids,
                               const real *dy, real *dtable, bool accumulate)
{
    (void)run;
    for (size_t i = 0; !accumulate && i < entries * width; i++)
        dtable[i] = 0;
    for (size_t row = 0; row < rows; row++)
        for (size_t i = 0; i < width; i++)
            dtable[(size_t)ids[row] * width + i] += dy[row * width + i];
}
