#include <math.h>

#include "support/kernel_compare.h"

typedef struct softmax_task {
    size_t rows, columns;
    const float *x, *y, *dy;
    float *out;
    bool accumulate;
} softmax_task;

static void call_softmax(const kernel_table *table, const kernel_run *run, void *task)
{
    const softmax_task *t = task;
    table->softmax(run, t->rows, t->columns, t->x, t->out);
}

static void call_backward(const kernel_table *table, const kernel_run *run, void *task)
{
    const softmax_task *t = task;
    table->softmax_backward(run, t->rows, t->columns, t->y, t->dy, t->out, t->accumulate);
}

static void judge(test_random *random, size_t rows, size_t columns)
{
    size_t count = rows * columns;
    float *x = values_random(random, count, -6, 6), *y = values_random(random, count, 0, 1);
    float *dy = values_random(random, count, -1, 1), *dx = values_random(random, count, -1, 1);
    softmax_task task = {rows, columns, x, y, dy, y, false};
    kernel_trial trial = {.task = &task, .outputs = {{y, count}}, .absolute = 1e-7, .relative = 1e-5};
    trial.call = call_softmax;
    expect_agreement(&trial);
    kernel_run run = {1, NULL};
    kernels_reference()->softmax(&run, rows, columns, x, y);
    trial.call = call_backward;
    trial.absolute = 1e-6;
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        task.accumulate = accumulate;
        task.out = trial.outputs[0].values = dx;
        expect_agreement(&trial);
    }
    task.accumulate = false;
    task.out = trial.outputs[0].values = dy; /* in place */
    expect_agreement(&trial);
    task.out = trial.outputs[0].values = x;
    trial.call = call_softmax;
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
    for (const kernel_table *const *table = kernel_tables(); *table; table++) {
        kernel_run run = {1, NULL};
        for (int i = 0; i < COLUMNS; i++)
            x[i] = i == 20 ? 3e38f : -3e38f;
        (*table)->softmax(&run, 1, COLUMNS, x, y);
        for (int i = 0; i < COLUMNS; i++)
            assert_true(y[i] == (i == 20 ? 1.0f : 0.0f));
        for (int i = 0; i < COLUMNS; i++)
            x[i] = i % 2 ? 1e4f : -INFINITY; /* masked values count nothing */
        (*table)->softmax(&run, 1, COLUMNS, x, y);
        for (int i = 0; i < COLUMNS; i++)
            expect_near(y[i], i % 2 ? 0.1 : 0, 1e-7);
        x[3] = NAN;
        (*table)->softmax(&run, 1, COLUMNS, x, y);
        for (int i = 0; i < COLUMNS; i++)
            assert_true(isnan(y[i]));
        (*table)->softmax(&run, 5, 0, x, y);
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
