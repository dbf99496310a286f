#include "support/kernel_compare.h"

typedef struct elementwise_task {
    size_t count;
    const float *a, *b;
    float *y;
    bool accumulate;
} elementwise_task;

static void call_add(const kernel_table *table, const kernel_run *run, void *task)
{
    const elementwise_task *t = task;
    table->add(run, t->count, t->a, t->b, t->y);
}

static void call_multiply(const kernel_table *table, const kernel_run *run, void *task)
{
    const elementwise_task *t = task;
    table->multiply(run, t->count, t->a, t->b, t->y, t->accumulate);
}

static void call_accumulate(const kernel_table *table, const kernel_run *run, void *task)
{
    const elementwise_task *t = task;
    table->accumulate(run, t->count, t->a, t->y);
}

static void call_scale(const kernel_table *table, const kernel_run *run, void *task)
{
    const elementwise_task *t = task;
    table->scale(run, t->count, 1.7f, t->y);
}

/* Three rows, cut where blocks are. */
static void call_add_to_rows(const kernel_table *table, const kernel_run *run, void *task)
{
    const elementwise_task *t = task;
    table->add_to_rows(run, 3, t->count, t->a, t->b, t->y);
}

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
            elementwise_task task = {*size, a, b, places[place], false};
            kernel_trial trial = {.task = &task, .outputs = {{places[place], *size}}};
            trial.call = call_add;
            expect_agreement(&trial);
            trial.call = call_multiply;
            expect_agreement(&trial);
            task.accumulate = true;
            trial.absolute = 1e-6;
            expect_agreement(&trial);
        }
        elementwise_task task = {*size, a, b, y, false};
        kernel_trial trial = {.call = call_accumulate, .task = &task, .outputs = {{y, *size}}};
        expect_agreement(&trial);
        trial.call = call_scale;
        expect_agreement(&trial);
        free(a);
        free(b);
        free(y);
    }
}

static void rows_agree_with_the_reference(void **state)
{
    (void)state;
    test_random random = random_open();
    for (const size_t *size = KERNEL_SIZES; *size; size++) {
        float *x = values_random(&random, 3 * *size, -3, 3), *addend = values_random(&random, *size, -3, 3);
        float *y = values_random(&random, 3 * *size, -3, 3), *places[] = {y, x};
        for (int place = 0; place < 2; place++) { /* y apart, y on x */
            elementwise_task task = {*size, x, addend, places[place], false};
            expect_agreement(
                (&(kernel_trial){.call = call_add_to_rows, .task = &task, .outputs = {{places[place], 3 * *size}}}));
        }
        free(x);
        free(addend);
        free(y);
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
        table->add(&run, 3, a, b, y);
        expect_same_bits(y, ((const float[]){11, 18, 3.5f}), 3);
        table->multiply(&run, 3, a, b, y, false);
        expect_same_bits(y, ((const float[]){10, -40, 1.5f}), 3);
        table->multiply(&run, 3, a, b, y, true);
        expect_same_bits(y, ((const float[]){20, -80, 3}), 3);
        table->accumulate(&run, 3, a, y);
        expect_same_bits(y, ((const float[]){21, -82, 6}), 3);
        table->scale(&run, 3, 0.5f, y);
        expect_same_bits(y, ((const float[]){10.5f, -41, 3}), 3);
        table->add(&run, 0, a, b, y);
        table->add_to_rows(&run, 0, 3, a, b, y);
        table->add_to_rows(&run, 3, 0, a, b, y);
        expect_same_bits(y, ((const float[]){10.5f, -41, 3}), 3);
        table->add_to_rows(&run, 3, 1, a, b, y);
        expect_same_bits(y, ((const float[]){11, 8, 13}), 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_agrees_with_the_reference),
        cmocka_unit_test(rows_agree_with_the_reference),
        cmocka_unit_test(values_are_those_of_the_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
