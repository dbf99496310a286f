/* The sizes were measured with `bench_gemm blocks`. It tries blocks of many sizes on the shapes of training, with
 * operands that are in no near cache, and prints how far this table is from the best of them. For another processor or
 * other shapes: run it, and add a row where one is missing.
 *
 * On a Zen 4 and a Sapphire Rapids, 64 to 96 rows are within 1 % of the best for all but the smallest shapes, and 384 to
 * 768 columns make no difference. Nothing is measured when a program runs, and the bits do not depend on the blocks. */
#include "backend/cpu/fast_gemm_table.h"

/* A GEMM takes the first row that it fits into. Blocks of few rows pay where n is narrow and reading A is most of the
 * work, because A is prefetched while the block before is computed; and where k is short and writing C is most of the
 * work, because C is then written in the order of its addresses. */
typedef struct table_row {
    size_t most_n, most_k;
    size_t rows, rows_amd; /* of a block; on AMD's processors */
} table_row;

static const table_row table[] = {
    {16, SIZE_MAX, 16, 16},  /* narrow */
    {128, SIZE_MAX, 64, 64}, /* C is small, whatever k is */
#if FAST_LANES == 16
    {SIZE_MAX, 64, 16, 64}, /* short; on AMD with two threads, few rows lose up to half of the speed */
#else
    {SIZE_MAX, 16, 16, 16}, /* short */
#endif
    {SIZE_MAX, SIZE_MAX, 64, 64},
};

/* With 576 columns of B and 64 rows of A, most of the second cache is left for what is prefetched. */
#define COLUMNS 576

/* Rows this far apart share few sets of a cache and evict each other, unless they are packed. On AMD's processors packing
 * them loses more than it saves. */
#define FAR_APART (32768 / sizeof(float))

static bool processor_is_amd(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_is("amd");
#else
    return false;
#endif
}

gemm_blocks FAST(gemm_blocks_for)(const op_gemm *p)
{
    bool amd = processor_is_amd();
    const table_row *row = table;
    while (p->n > row->most_n || p->k > row->most_k)
        row++;
    return (gemm_blocks){amd ? row->rows_amd : row->rows, COLUMNS, !amd && p->lda % FAR_APART == 0};
}
