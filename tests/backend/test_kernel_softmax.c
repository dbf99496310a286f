#include <math.h>

#include "support/kernel_compare.h"

static void judge(test_random *random, size_t rows, size_t columns)
{
    size_t count = rows * columns;
    float *x = values_random(random, count, -6, 6), *y = values_random(random, count, 0, 1);
    float *dy = values_random(random, count, -1, 1), *dx = values_random(random, count, -1, 1);
    op_softmax forward = {fp32(x), fp32(y), rows, columns};
    op_softmax_backward backward = {fp32(y), fp32(dy), fp32(dx), rows, columns, false};
    kernel_trial trial = {
        .op = OP_softmax, .args = &forward, .outputs = {{y, count}}, .absolute = 1e-7, .relative = 1e-5};
    expect_agreement(&trial);
    kernel_run run = {1, NULL};
    perform(kernels_reference(), &run, OP_softmax, &forward);
    kernel_trial back = {
        .op = OP_softmax_backward, .args = &backward, .outputs = {{dx, count}}, .absolute = 1e-6, .relative = 1e-5};
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        backward.accumulate = accumulate;
        expect_agreement(&back);
    }
    backward.accumulate = false; /* in place */
    backward.dx = fp32(dy);
    back.outputs[0].values = dy;
    expect_agreement(&back);
    forward.y = fp32(x);
    trial.outputs[0].values = x;
    expect_agreement(&trial);
    free(x);
    free(y);
    free(dy);
    free(dx);
}

static void fast_agrees_with_the_reference(void **state)
{
    (void)state;
    test_random random = random_open();
    for (const size_t *size = KERNEL_SIZES; *size; size++)
        judge(&random, *size > 100 ? 3 : 11, *size);
    judge(&random, 3000, 13);
}

static void large_values_do_not_overflow(void **state)
{
    (void)state;
    enum { COLUMNS = 21 };
    float x[COLUMNS], y[COLUMNS];
    const op_softmax row = {fp32(x), fp32(y), 1, COLUMNS}, nothing = {fp32(x), fp32(y), 5, 0};
    for (const kernel_table *const *table = kernel_tables(); *table; table++) {
        kernel_run run = {1, NULL};
        for (int i = 0; i < COLUMNS; i++)
            x[i] = i == 20 ? 3e38f : -3e38f;
        perform(*table, &run, OP_softmax, &row);
        for (int i = 0; i < COLUMNS; i++)
            assert_true(y[i] == (i == 20 ? 1.0f : 0.0f));
        for (int i = 0; i < COLUMNS; i++)
            x[i] = i % 2 ? 1e4f : -INFINITY; /* masked values count nothing */
        perform(*table, &run, OP_softmax, &row);
        for (int i = 0; i < COLUMNS; i++)
            expect_near(y[i], i % 2 ? 0.1 : 0, 1e-7);
        x[3] = NAN;
        perform(*table, &run, OP_softmax, &row);
        for (int i = 0; i < COLUMNS; i++)
            assert_true(isnan(y[i]));
        perform(*table, &run, OP_softmax, &nothing);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_agrees_with_the_reference),
        cmocka_unit_test(large_values_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
