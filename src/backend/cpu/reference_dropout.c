/* The number of position i is number i of the stream as remat_random_block counts them, its upper 24 bits as a value in
 * [0, 1). */
#include "backend/cpu/reference.h"

/* A pass of the loop is a block of four numbers. */
static void dropout_blocks(const void *args, parallel_range range)
{
    const op_dropout *p = args;
    const step_block *block = p->step.at;
    const remat_random stream = remat_random_stream(block->seed, p->layer, block->step);
    const real keep = (real)p->keep, *x = p->x.at;
    real *y = p->y.at;
    for (size_t number = range.begin; number < range.end; number++) {
        uint32_t numbers[4];
        size_t first = 4 * number;
        remat_random_block(&stream, number, numbers);
        for (size_t i = first; i < p->count && i < first + 4; i++) {
            bool kept = (real)(numbers[i - first] >> 8) * (real)0x1p-24 < keep;
            real value = kept ? x[i] / keep : 0;
            y[i] = p->accumulate ? y[i] + value : value;
        }
    }
}

void REFERENCE(dropout)(const kernel_run *run, const void *args)
{
    const op_dropout *p = args;
    parallel_static(run->threads, (p->count + 3) / 4, dropout_blocks, p);
}
