/* The blocks of GEMMs: every row of the table, and sizes around blocks' and tiles' limits in blocks of every kind. */
#include <string.h>

#include "support/device_kernels.h"
#include "gemm_case.h"
#include "backend/cpu/fast_gemm_table.h"

static const gemm_isa isas[] = {GEMM_ISAS(GEMM_ISA_ROW)};

static const gemm_isa *isa_of(const kernel_table *table)
{
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        if (strcmp(isas[i].name, table->name) == 0)
            return &isas[i];
    fail_msg("no blocks for %s", table->name);
    return NULL;
}

/* ---- the table ---- */

static void blocks_are_whole_tiles_and_fit(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 10, 15, 16, 17, 33, 63, 64, 65, 128, 129, 384, 1000, 8192, 100000};
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        for (size_t n = 0; n < 15; n++)
            for (size_t k = 0; k < 15; k++)
                for (unsigned transposed = 0; transposed < 4; transposed++) {
                    op_gemm p = {.transpose_a = transposed & 1, .transpose_b = transposed & 2, .m = 100};
                    p.n = p.ldc = sizes[n];
                    p.k = sizes[k];
                    p.lda = p.transpose_a ? p.m : p.k;
                    p.ldb = p.transpose_b ? p.k : p.n;
                    gemm_blocks blocks = isas[i].blocks_for(&p), again = isas[i].blocks_for(&p);
                    assert_true(blocks.rows > 0 && blocks.rows % 16 == 0);
                    assert_true(blocks.columns > 0 && blocks.columns % 48 == 0);
                    assert_true(gemm_blocks_fit(&blocks));
                    assert_true(blocks.rows == again.rows && blocks.columns == again.columns);
                    assert_true(blocks.pack_a == again.pack_a);
                }
}

/* n and k on both sides of every limit in the tables, m on both sides of tiles and of blocks. */
static void every_row_agrees(void **state)
{
    (void)state;
    static const size_t ms[] = {1, 3, 7, 8, 10, 15, 17, 31, 63, 65, 130}, ns[] = {1, 10, 16, 17, 48, 70, 128, 129},
                        ks[] = {1, 10, 16, 17, 64, 65, 100};
    test_random random = random_open();
    for (size_t n = 0; n < 8; n++)
        for (size_t k = 0; k < 7; k++)
            for (size_t i = 0; i < LESS_WHEN_SANITIZED(4, 1); i++)
                judge(&random, ms[test_random_below(&random, 11)], ns[n], ks[k],
                      (unsigned)test_random_below(&random, 128), test_random_below(&random, 3));
}

/* More columns than a block has, worth several threads; rows of A so far apart that some processors pack them. */
static void wide_and_far_ones_agree(void **state)
{
    (void)state;
    test_random random = random_open();
    for (unsigned shape = 0; shape < 4; shape++) {
        unsigned rest = (unsigned)test_random_below(&random, 32) * 4;
        judge(&random, 67, 1200, LESS_WHEN_SANITIZED(70, 20), shape | rest, 0);
        judge(&random, 10, 1029, 128, shape | rest, 0);
        judge(&random, 131, 10, LESS_WHEN_SANITIZED(500, 65), shape | rest, 0);
        judge(&random, 21, 50, 40, shape | rest, 8192 - 40);
    }
}

/* ---- other blocks than the table's ---- */

/* The bits that the table's blocks give with one thread, in these blocks with `threads`. */
static void judge_blocks(const kernel_table *table, gemm_case *of, gemm_blocks blocks, int threads)
{
    kernel_run one = kernel_run_open(table, 1), run = kernel_run_open(table, threads);
    float *start = values_copy(of->c, of->c_count);
    assert_true(gemm_blocks_fit(&blocks));
    perform(table, &one, OP_gemm, &of->p);
    float *wanted = values_copy(of->c, of->c_count), *activated = values_copy(of->activated, of->c_count);
    memcpy(of->c, start, of->c_count * sizeof(float));
    isa_of(table)->in_blocks(&run, &of->p, &blocks);
    expect_same_bits(of->c, wanted, of->c_count);
    expect_same_bits(of->activated, activated, of->c_count);
    free(start);
    free(wanted);
    free(activated);
    kernel_run_close(&one);
    kernel_run_close(&run);
}

static void blocks_keep_the_bits(void **state)
{
    (void)state;
    if (device_kernels())
        skip(); /* blocks are the processor's */
    static const gemm_blocks kinds[] = {{16, 48, false}, {16, 48, true},   {32, 96, false},  {32, 96, true},
                                        {64, 48, true},  {48, 144, false}, {96, 576, false}, {16, 672, true}};
    test_random random = random_open();
    for (unsigned i = 0; i < 96; i += LESS_WHEN_SANITIZED(1, 5)) {
        gemm_blocks blocks = kinds[i % 8];
        /* One block, a bit less or more, or several. */
        size_t m = blocks.rows * (1 + i % 3) + test_random_below(&random, 19) - 9;
        size_t n = blocks.columns * (1 + i / 3 % 2) + test_random_below(&random, 35) - 17;
        size_t k = i % 5 == 0 ? OPERATION_K_BLOCK + test_random_below(&random, 40) : 1 + test_random_below(&random, 60);
        for (const kernel_table *const *table = kernel_tables(); *table; table++) {
            if ((*table)->multiplies_halves)
                continue; /* in fp32 they are avx512 */
            gemm_case of = case_open(&random, m, n, k, (unsigned)test_random_below(&random, 128), i % 2);
            judge_blocks(*table, &of, blocks, 1 + (int)(i % 3));
            case_close(&of);
        }
    }
}

/* Every number of rows and columns up to more than a tile, so that each of the tiles' functions is called, with all that
 * a GEMM can do behind it. */
static void every_tile_agrees(void **state)
{
    (void)state;
    test_random random = random_open();
    for (size_t m = 1; m <= 17; m++)
        for (size_t n = 1; n <= 50; n += LESS_WHEN_SANITIZED(1, 7))
            judge(&random, m, n, 1 + test_random_below(&random, 20), (unsigned)(m * 50 + n * 3) % 128, m % 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_whole_tiles_and_fit),
        cmocka_unit_test(every_row_agrees),
        cmocka_unit_test(wide_and_far_ones_agree),
        cmocka_unit_test(blocks_keep_the_bits),
        cmocka_unit_test(every_tile_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
