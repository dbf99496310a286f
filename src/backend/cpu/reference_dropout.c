/* The number of position i is number i of the stream as remat_random_block counts them, its upper 24 bits as a value in
 * [0, 1). */
#include "backend/cpu/reference.h"

void reference_dropout(const kernel_run *run, size_t count, const remat_random *stream, real keep, const real *x,
                       real *y, bool accumulate)
{
#pragma omp parallel for num_threads(run->threads)
    for (size_t first = 0; first < count; first += 4) {
        uint32_t numbers[4];
        remat_random_block(stream, first / 4, numbers);
        for (size_t i = first; i < count && i < first + 4; i++) {
            bool kept = (real)(numbers[i - first] >> 8) * (real)0x1p-24 < keep;
            real value = kept ? x[i] / keep : 0;
            y[i] = accumulate ? y[i] + value : value;
        }
    }
}

void reference_draw(const kernel_run *run, const remat_random *stream, uint64_t first, size_t count, uint32_t *numbers)
{
#pragma omp parallel for num_threads(run->threads)
    for (size_t from = 0; from < count; from += 4) {
        uint32_t block[4];
        remat_random_block(stream, (first + from) / 4, block);
        for (size_t i = from; i < count && i < from + 4; i++)
            numbers[i] = block[i - from];
    }
}
