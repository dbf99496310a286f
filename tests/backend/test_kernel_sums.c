#include "support/kernel_compare.h"

typedef struct sums_task {
    size_t rows, columns;
    const float *x;
    float *sums;
    bool accumulate;
    double total;
} sums_task;

static void call_column_sums(const kernel_table *table, const kernel_run *run, void *task)
{
    const sums_task *t = task;
    table->column_sums(run, t->rows, t->columns, t->x, t->sums, t->accumulate);
}

static void call_sum_of_squares(const kernel_table *table, const kernel_run *run, void *task)
{
    sums_task *t = task;
    t->total = table->sum_of_squares(run, t->rows * t->columns, t->x);
}

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
            sums_task task = {rows, columns, x, sums, accumulate, 0};
            double bound = rows < 1000 ? 2e-5 : 2e-4; /* 2000 values in a row lose the last digits of a sum of 100 */
            expect_agreement(&((kernel_trial){
                .call = call_column_sums, .task = &task, .outputs = {{sums, columns}}, .absolute = bound}));
            free(x);
            free(sums);
        }
}

static void sums_of_squares_agree(void **state)
{
    (void)state;
    test_random random = random_open();
    for (const size_t *size = KERNEL_SIZES; *size; size++) {
        float *x = values_random(&random, *size, -1, 1);
        sums_task task = {1, *size, x, NULL, false, 0};
        expect_agreement(
            &((kernel_trial){.call = call_sum_of_squares, .task = &task, .sum = &task.total, .relative = 1e-13}));
        free(x);
    }
    const float large[] = {3e30f, 4e30f}; /* whose squares are no floats */
    for (const kernel_table *const *table = kernel_tables(); *table; table++) {
        kernel_run run = kernel_run_open(*table, 1);
        expect_near((*table)->sum_of_squares(&run, 2, large) * 1e-60, 25, 1e-5);
        expect_near((*table)->sum_of_squares(&run, 0, large), 0, 0);
        kernel_run_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(column_sums_agree),
        cmocka_unit_test(sums_of_squares_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
