#include "support/kernel_compare.h"

static void column_sums_agree(void **state)
{
    (void)state;
    test_random random = random_open();
    static const size_t SHAPES[][2] = {{0, 5},   {1, 1},     {1, 100},  {2, 17},    {3, 70},
                                       {4, 16},  {31, 33},   {33, 5},   {70, 129},  {129, 700},
                                       {513, 3}, {2000, 31}, {9, 5000}, {40, 4097}, {40, 20011}};
    for (size_t s = 0; s < sizeof SHAPES / sizeof SHAPES[0]; s++)
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            size_t rows = SHAPES[s][0], columns = SHAPES[s][1];
            float *x = values_random(&random, rows * columns, -1, 1), *sums = values_random(&random, columns, -1, 1);
            op_column_sums args = {fp32(x), fp32(sums), rows, columns, accumulate};
            double bound = rows < 1000 ? 2e-5 : 2e-4; /* 2000 values in a row lose the last digits of a sum of 100 */
            expect_agreement(&(
                (kernel_trial){.op = OP_column_sums, .args = &args, .outputs = {{sums, columns}}, .absolute = bound}));
            free(x);
            free(sums);
        }
}

static void channels_are_added(void **state)
{
    (void)state;
    test_random random = random_open();
    static const size_t SHAPES[][3] = {{0, 5, 3}, {1, 1, 1}, {3, 7, 33}, {2, 40, 1}, {5, 3, 4099}, {64, 65, 17}};
    for (size_t s = 0; s < sizeof SHAPES / sizeof SHAPES[0]; s++)
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            size_t batch = SHAPES[s][0], channels = SHAPES[s][1], area = SHAPES[s][2], count = batch * channels * area;
            float *x = values_random(&random, count, -1, 1), *sums = values_random(&random, channels, -1, 1);
            double bound = 2e-5 + 1e-7 * (double)area; /* 4099 values in a row lose the last digits of their sum */
            op_channel_sums sum = {fp32(x), fp32(sums), batch, channels, area, accumulate};
            op_add_to_channels add = {fp32(sums), fp32(x), batch, channels, area};
            expect_agreement(&(
                (kernel_trial){.op = OP_channel_sums, .args = &sum, .outputs = {{sums, channels}}, .absolute = bound}));
            expect_agreement(
                &((kernel_trial){.op = OP_add_to_channels, .args = &add, .outputs = {{x, count}}, .absolute = 1e-6}));
            free(x);
            free(sums);
        }
}

static void squares_are_added(void **state)
{
    (void)state;
    test_random random = random_open();
    step_block block = {.squares = 0};
    for (const size_t *size = KERNEL_SIZES; *size; size++) {
        float *x = values_random(&random, *size, -1, 1);
        op_add_squares args = {fp32(x), raw(&block), *size};
        block.squares = *size % 2 ? 0 : 3;
        expect_agreement(
            &((kernel_trial){.op = OP_add_squares, .args = &args, .sum = &block.squares, .relative = 1e-13}));
        free(x);
    }
    const float large[] = {3e30f, 4e30f}; /* whose squares are no floats */
    for (const kernel_table *const *table = kernel_tables(); *table; table++) {
        kernel_run run = kernel_run_open(*table, 1);
        block.squares = 0;
        perform(*table, &run, OP_add_squares, &(op_add_squares){fp32(large), raw(&block), 0});
        expect_near(block.squares, 0, 0);
        perform(*table, &run, OP_add_squares, &(op_add_squares){fp32(large), raw(&block), 2});
        perform(*table, &run, OP_add_squares, &(op_add_squares){fp32(large), raw(&block), 2});
        expect_near(block.squares * 1e-60, 50, 1e-5);
        kernel_run_close(&run);
    }
}

/* Sums of blocks, added in order by whoever has them, are the sum of all. */
static void squares_of_blocks_are_added(void **state)
{
    (void)state;
    enum { COUNT = 3 * OPERATION_SQUARES_BLOCK + 100, BLOCKS = 4 };
    test_random random = random_open();
    float *x = values_random(&random, COUNT, -1, 1);
    const kernel_table *const tables[] = {kernels_reference(), kernels_fast()};
    for (size_t t = 0; t < 2; t++)
        for (int threads = 1; threads < 4; threads++) {
            kernel_run run = kernel_run_open(tables[t], threads);
            step_block block = {.squares = 0.1};
            double sums[BLOCKS], sum = 0.1;
            const size_t cut = 2 * OPERATION_SQUARES_BLOCK;
            perform(tables[t], &run, OP_add_squares, &(op_add_squares){fp32(x), raw(&block), COUNT});
            perform(tables[t], &run, OP_block_squares, &(op_block_squares){fp32(x), raw(sums), cut});
            perform(tables[t], &run, OP_block_squares, &(op_block_squares){fp32(x + cut), raw(sums + 2), COUNT - cut});
            for (size_t i = 0; i < BLOCKS; i++)
                sum += sums[i];
            assert_memory_equal(&sum, &block.squares, sizeof sum);
            kernel_run_close(&run);
        }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(column_sums_agree),
        cmocka_unit_test(channels_are_added),
        cmocka_unit_test(squares_are_added),
        cmocka_unit_test(squares_of_blocks_are_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
