/* Measured with `bench_product blocks`, which tries blocks of many sizes on the shapes of training, by turns, with
 * operands that are in no near cache, and says how far the rows below are from the best of them. For another processor
 * or other shapes: run it, and add a row where it shows that one is missing.
 *
 * On a Zen 4 and a Sapphire Rapids, 64 to 96 rows are within 1 % of the best for all but the smallest shapes, and 384 to
 * 768 columns make no difference. Nothing is measured when a program runs, and results do not depend on blocks at all. */
#include "backend/cpu/fast_product_table.h"

/* The first row that a product fits into is taken. Few rows pay where A is most of the work (a narrow n): it is fetched
 * while the block before is at work; and where a wide C is (a short k): it is written in the order in which it lies. */
typedef struct table_row {
    size_t most_n, most_k;
    size_t rows, rows_amd; /* of a block; on AMD's processors */
} table_row;

static const table_row table[] = {
    {16, SIZE_MAX, 16, 16},  /* narrow */
    {128, SIZE_MAX, 64, 64}, /* C is small, whatever k is */
#if FAST_LANES == 16
    {SIZE_MAX, 64, 16, 64}, /* short; with AMD's and two threads, few rows lose up to half of the speed */
#else
    {SIZE_MAX, 16, 16, 16}, /* short */
#endif
    {SIZE_MAX, SIZE_MAX, 64, 64},
};

/* With B of 576 columns and A of 64 rows, most of the second cache is left for what is fetched. */
#define COLUMNS 576

/* Rows so far apart fall into few sets of a cache and drive each other out. AMD's processors lose more by packing them. */
#define FAR_APART (32768 / sizeof(float))

static bool processor_is_amd(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_is("amd");
#else
    return false;
#endif
}

product_blocks FAST(product_blocks_for)(const kernel_product *p)
{
    bool amd = processor_is_amd();
    const table_row *row = table;
    while (p->n > row->most_n || p->k > row->most_k)
        row++;
    return (product_blocks){amd ? row->rows_amd : row->rows, COLUMNS, !amd && p->lda % FAR_APART == 0};
}
