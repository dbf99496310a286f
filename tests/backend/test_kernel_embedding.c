#include "support/kernel_compare.h"

/* Copies and sums in the order of the rows: the reference's bits. */
static void judge(test_random *random, size_t rows, size_t width, size_t entries)
{
    float *table = values_random(random, entries * width, -1, 1), *y = values_random(random, rows * width, -1, 1);
    int32_t *ids = malloc(rows ? rows * sizeof *ids : 1);
    assert_non_null(ids);
    for (size_t row = 0; row < rows; row++)
        ids[row] = (int32_t)test_random_below(random, entries);
    op_gather gather = {int32(ids), fp32(table), fp32(y), rows, width};
    expect_agreement(&((kernel_trial){.op = OP_gather, .args = &gather, .outputs = {{y, rows * width}}}));
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        op_gather_backward backward = {int32(ids), fp32(y), fp32(table), rows, width, entries, accumulate};
        expect_agreement(
            &((kernel_trial){.op = OP_gather_backward, .args = &backward, .outputs = {{table, entries * width}}}));
    }
    free(table);
    free(y);
    free(ids);
}

static void fast_agrees_with_the_reference(void **state)
{
    (void)state;
    test_random random = random_open();
    for (size_t width = 1; width <= 70; width++)
        judge(&random, 1 + test_random_below(&random, 40), width, 1 + test_random_below(&random, 20));
    judge(&random, 0, 20, 7);
    judge(&random, 700, 48, 5);
    judge(&random, 300, 129, 1000);
    judge(&random, 5000, 7, 3);
}

static void rows_of_equal_ids_are_added(void **state)
{
    (void)state;
    const int32_t ids[4] = {2, 0, 2, 2};
    const float dy[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (int fast = 0; fast < 2; fast++) {
        float table[6] = {9, 9, 9, 9, 9, 9};
        kernel_run run = {3, NULL};
        perform(fast ? kernels_fast() : kernels_reference(), &run, OP_gather_backward,
                &(op_gather_backward){int32(ids), fp32(dy), fp32(table), 4, 2, 3, false});
        expect_same_bits(table, ((const float[]){3, 4, 0, 0, 13, 16}), 6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_agrees_with_the_reference),
        cmocka_unit_test(rows_of_equal_ids_are_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
