#include <math.h>

#include "support/kernel_compare.h"

typedef struct loss_task {
    size_t rows, columns;
    const float *x, *target;
    const int32_t *labels;
    float *gradient;
    bool accumulate;
    double loss;
} loss_task;

static void call_cross_entropy(const kernel_table *table, const kernel_run *run, void *task)
{
    loss_task *t = task;
    t->loss = table->cross_entropy(run, t->rows, t->columns, t->x, t->labels, 0.25f, t->gradient);
}

static void call_squared_error(const kernel_table *table, const kernel_run *run, void *task)
{
    loss_task *t = task;
    t->loss = table->squared_error(run, t->rows * t->columns, t->x, t->target, 0.25f, t->gradient, t->accumulate);
}

static void judge_cross_entropy(test_random *random, size_t rows, size_t columns, double height)
{
    size_t count = rows * columns;
    float *x = values_random(random, count, -height, height), *gradient = values_random(random, count, 0, 1);
    int32_t *labels = malloc(rows * sizeof *labels);
    assert_non_null(labels);
    for (size_t row = 0; row < rows; row++)
        labels[row] = test_random_below(random, 5) ? (int32_t)test_random_below(random, columns) : -1;
    loss_task task = {rows, columns, x, NULL, labels, gradient, false, 0};
    kernel_trial trial = {.call = call_cross_entropy,
                          .task = &task,
                          .outputs = {{gradient, count}},
                          .sum = &task.loss,
                          .absolute = 1e-6,
                          .relative = 1e-5};
    expect_agreement(&trial);
    task.gradient = trial.outputs[0].values = x; /* over the logits */
    expect_agreement(&trial);
    task.gradient = trial.outputs[0].values = NULL;
    expect_agreement(&trial);
    free(x);
    free(gradient);
    free(labels);
}

static void cross_entropy_agrees(void **state)
{
    (void)state;
    test_random random = random_open();
    for (const size_t *size = KERNEL_SIZES; *size; size++) {
        judge_cross_entropy(&random, *size > 100 ? 3 : 7, *size, 5);
        judge_cross_entropy(&random, *size > 100 ? 3 : 7, *size, 1e4);
    }
    judge_cross_entropy(&random, 3001, 11, 3);
}

static void cross_entropy_of_known_logits(void **state)
{
    (void)state;
    const float logits[9] = {1e4f, -1e4f, 0, 2, 2, 2, 7, 8, 9};
    const int32_t labels[3] = {1, 0, -1};
    for (int fast = 0; fast < 2; fast++) {
        const kernel_table *table = fast ? kernels_fast() : kernels_reference();
        kernel_run run = kernel_run_open(table, 1);
        float gradient[9];
        double loss = table->cross_entropy(&run, 3, 3, logits, labels, 0.5f, gradient);
        expect_near(loss, 2e4 + log(3), 1e-3);
        const double third = 1.0 / 3, expected[9] = {0.5, -0.5, 0, -third, third / 2, third / 2, 0, 0, 0};
        for (int i = 0; i < 9; i++)
            expect_near(gradient[i], expected[i], 1e-7);
        kernel_run_close(&run);
    }
}

static void squared_error_agrees(void **state)
{
    (void)state;
    test_random random = random_open();
    for (const size_t *size = KERNEL_SIZES; *size; size++) {
        float *x = values_random(&random, *size, -1, 1), *target = values_random(&random, *size, -1, 1);
        float *gradient = values_random(&random, *size, -1, 1);
        loss_task task = {1, *size, x, target, NULL, NULL, false, 0};
        expect_agreement(
            &((kernel_trial){.call = call_squared_error, .task = &task, .sum = &task.loss, .relative = 1e-13}));
        double alone = task.loss;
        task.gradient = gradient;
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            task.accumulate = accumulate;
            expect_agreement(&((kernel_trial){
                .call = call_squared_error, .task = &task, .outputs = {{gradient, *size}}, .absolute = 1e-6}));
            assert_true(task.loss == alone); /* of the same kernels, called last */
        }
        task.accumulate = false;
        kernel_run run = {1, NULL};
        call_squared_error(kernels_reference(), &run, &task);
        for (size_t i = 0; i < *size; i++)
            expect_near(gradient[i], 0.5 * ((double)x[i] - (double)target[i]), 1e-6);
        free(x);
        free(target);
        free(gradient);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cross_entropy_agrees),
        cmocka_unit_test(cross_entropy_of_known_logits),
        cmocka_unit_test(squared_error_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
