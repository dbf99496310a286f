#include <math.h>

#include "support/kernel_compare.h"

/* Single operations round once: the results are the reference's to the bit, except where a product and a sum may round
 * together. */
static void fast_agrees_with_the_reference(void **state)
{
    (void)state;
    test_random random = random_open();
    for (const size_t *size = KERNEL_SIZES; *size; size++) {
        float *a = values_random(&random, *size, -3, 3), *b = values_random(&random, *size, -3, 3);
        float *y = values_random(&random, *size, -3, 3), *places[] = {y, a, b};
        for (int place = 0; place < 3; place++) { /* y apart, y on a, y on b */
            op_add add = {fp32(a), fp32(b), fp32(places[place]), *size};
            op_multiply multiply = {fp32(a), fp32(b), fp32(places[place]), *size, false};
            kernel_trial trial = {.op = OP_add, .args = &add, .outputs = {{places[place], *size}}};
            expect_agreement(&trial);
            trial.op = OP_multiply;
            trial.args = &multiply;
            expect_agreement(&trial);
            multiply.accumulate = true;
            trial.absolute = 1e-6;
            expect_agreement(&trial);
        }
        op_accumulate accumulate = {fp32(a), fp32(y), *size};
        op_scale scale = {fp32(y), *size, 1.7};
        op_copy copy = {fp32(a), fp32(y), *size};
        op_fill fill = {fp32(y), *size, -1.3}, zero = {fp32(y), *size, 0}, minus_zero = {fp32(y), *size, -0.0};
        const kernel_trial trials[] = {
            {.op = OP_accumulate, .args = &accumulate, .outputs = {{y, *size}}},
            {.op = OP_scale, .args = &scale, .outputs = {{y, *size}}},
            {.op = OP_copy, .args = &copy, .outputs = {{y, *size}}},
            {.op = OP_fill, .args = &fill, .outputs = {{y, *size}}},
            {.op = OP_fill, .args = &zero, .outputs = {{y, *size}}},
            {.op = OP_fill, .args = &minus_zero, .outputs = {{y, *size}}},
        };
        for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++)
            expect_agreement(&trials[i]);
        free(a);
        free(b);
        free(y);
    }
}

/* Three rows, cut where blocks are. */
static void rows_agree_with_the_reference(void **state)
{
    (void)state;
    test_random random = random_open();
    for (const size_t *size = KERNEL_SIZES; *size; size++) {
        float *x = values_random(&random, 3 * *size, -3, 3), *addend = values_random(&random, *size, -3, 3);
        float *y = values_random(&random, 3 * *size, -3, 3), *places[] = {y, x};
        for (int place = 0; place < 2; place++) { /* y apart, y on x */
            op_add_to_rows args = {fp32(x), fp32(addend), fp32(places[place]), 3, *size};
            expect_agreement(
                (&(kernel_trial){.op = OP_add_to_rows, .args = &args, .outputs = {{places[place], 3 * *size}}}));
        }
        free(x);
        free(addend);
        free(y);
    }
}

/* Rows of other lengths on each side; nothing between the rows is touched. */
static void rows_are_copied_and_added(void **state)
{
    (void)state;
    test_random random = random_open();
    static const size_t shapes[][2] = {{1, 1}, {3, 5}, {7, 16},   {2, 33},  {40, 17},
                                       {9, 0}, {0, 9}, {600, 48}, {5, 9000}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            size_t rows = shapes[i][0], columns = shapes[i][1], x_row = columns + i % 3, y_row = columns + i % 4;
            size_t x_count = rows && columns ? (rows - 1) * x_row + columns : 0;
            size_t y_count = rows && columns ? (rows - 1) * y_row + columns : 0;
            float *x = values_random(&random, x_count, -3, 3), *y = values_random(&random, y_count, -3, 3);
            float *before = values_copy(y, y_count);
            op_copy_rows args = {fp32(x), fp32(y), rows, columns, x_row, y_row, accumulate};
            expect_agreement((&(kernel_trial){.op = OP_copy_rows, .args = &args, .outputs = {{y, y_count}}}));
            kernel_run run = {2, NULL};
            perform(kernels_fast(), &run, OP_copy_rows, &args);
            for (size_t k = 0; k < y_count; k++) {
                size_t row = k / y_row, column = k % y_row;
                float add = column < columns ? x[row * x_row + column] : 0;
                float want = column >= columns ? before[k] : accumulate ? before[k] + add : add;
                expect_same_bits(&y[k], &want, 1);
            }
            free(x);
            free(y);
            free(before);
        }
}

static void values_are_those_of_the_formulas(void **state)
{
    (void)state;
    const float a[3] = {1, -2, 3}, b[3] = {10, 20, 0.5f};
    for (int fast = 0; fast < 2; fast++) {
        const kernel_table *table = fast ? kernels_fast() : kernels_reference();
        kernel_run run = {1, NULL};
        float y[3] = {0};
        perform(table, &run, OP_add, &(op_add){fp32(a), fp32(b), fp32(y), 3});
        expect_same_bits(y, ((const float[]){11, 18, 3.5f}), 3);
        perform(table, &run, OP_multiply, &(op_multiply){fp32(a), fp32(b), fp32(y), 3, false});
        expect_same_bits(y, ((const float[]){10, -40, 1.5f}), 3);
        perform(table, &run, OP_multiply, &(op_multiply){fp32(a), fp32(b), fp32(y), 3, true});
        expect_same_bits(y, ((const float[]){20, -80, 3}), 3);
        perform(table, &run, OP_accumulate, &(op_accumulate){fp32(a), fp32(y), 3});
        expect_same_bits(y, ((const float[]){21, -82, 6}), 3);
        perform(table, &run, OP_scale, &(op_scale){fp32(y), 3, 0.5});
        expect_same_bits(y, ((const float[]){10.5f, -41, 3}), 3);
        perform(table, &run, OP_add, &(op_add){fp32(a), fp32(b), fp32(y), 0});
        perform(table, &run, OP_copy, &(op_copy){fp32(a), fp32(y), 0});
        perform(table, &run, OP_fill, &(op_fill){fp32(y), 0, 7});
        perform(table, &run, OP_add_to_rows, &(op_add_to_rows){fp32(a), fp32(b), fp32(y), 0, 3});
        perform(table, &run, OP_add_to_rows, &(op_add_to_rows){fp32(a), fp32(b), fp32(y), 3, 0});
        expect_same_bits(y, ((const float[]){10.5f, -41, 3}), 3);
        perform(table, &run, OP_add_to_rows, &(op_add_to_rows){fp32(a), fp32(b), fp32(y), 3, 1});
        expect_same_bits(y, ((const float[]){11, 8, 13}), 3);
        perform(table, &run, OP_copy, &(op_copy){fp32(a), fp32(y), 2});
        expect_same_bits(y, ((const float[]){1, -2, 13}), 3);
        perform(table, &run, OP_fill, &(op_fill){fp32(y), 2, 0.1});
        expect_same_bits(y, ((const float[]){0.1f, 0.1f, 13}), 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_agrees_with_the_reference),
        cmocka_unit_test(rows_agree_with_the_reference),
        cmocka_unit_test(rows_are_copied_and_added),
        cmocka_unit_test(values_are_those_of_the_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
