#include <math.h>

#include "base/half.h"
#include "support/kernel_compare.h"

static void judge_cross_entropy(test_random *random, size_t rows, size_t columns, double height)
{
    size_t count = rows * columns;
    float *x = values_random(random, count, -height, height), *gradient = values_random(random, count, 0, 1);
    int32_t *labels = malloc(rows * sizeof *labels);
    assert_non_null(labels);
    for (size_t row = 0; row < rows; row++)
        labels[row] = test_random_below(random, 5) ? (int32_t)test_random_below(random, columns) : -1;
    step_block block = {.loss_sum = 0.5, .labels = 3};
    op_cross_entropy args = {fp32(x), int32(labels), fp32(gradient), raw(&block), rows, columns, 0.25, 0, NULL, false};
    kernel_trial trial = {.op = OP_cross_entropy,
                          .args = &args,
                          .outputs = {{gradient, count}},
                          .sum = &block.loss_sum,
                          .absolute = 1e-6,
                          .relative = 1e-5};
    double *weights = malloc(columns * sizeof *weights);
    assert_non_null(weights);
    for (size_t i = 0; i < columns; i++)
        weights[i] = (double)test_random_below(random, 5) / 2;
    for (int way = 0; way < 8; way++) { /* plain, smoothed, weighted, both; the same divided by the labels */
        args.by_labels = way & 4;
        args.smoothing = way & 1 ? 0.25 : 0;
        args.weights = way & 2 ? weights : NULL;
        args.gradient = fp32(gradient);
        trial.outputs[0].values = gradient;
        expect_agreement(&trial);
        args.gradient = fp32(x); /* over the logits, which are restored */
        trial.outputs[0].values = x;
        expect_agreement(&trial);
        args.gradient = TENSOR_NONE;
        trial.outputs[0].values = NULL;
        expect_agreement(&trial);
    }
    free(weights);
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

static tensor_ref bf16(const void *values)
{
    return (tensor_ref){(void *)values, REMAT_BF16};
}

/* Logits in bf16 give what the same logits give in fp32, and a gradient that is rounded. */
static void judge_half_logits(test_random *random, const kernel_table *table, size_t rows, size_t columns, int way)
{
    size_t count = rows * columns;
    float *x = values_random(random, count, -5, 5), *wanted = values_random(random, count, 0, 1),
          *gradient = values_random(random, count, 0, 1);
    uint16_t *halves = malloc(count * sizeof *halves);
    int32_t *labels = malloc(rows * sizeof *labels);
    double *weights = malloc(columns * sizeof *weights);
    assert_true(halves && labels && weights);
    half_pack(half_kernels_list(0), REMAT_BF16, false, x, halves, count);
    half_unpack(half_kernels_list(0), REMAT_BF16, halves, x, count);
    for (size_t row = 0; row < rows; row++)
        labels[row] = test_random_below(random, 5) ? (int32_t)test_random_below(random, columns) : -1;
    for (size_t i = 0; i < columns; i++)
        weights[i] = (double)test_random_below(random, 5) / 2;
    step_block block = {.loss_sum = 0.5, .labels = 3}, full = block;
    op_cross_entropy args = {.logits = fp32(x),
                             .labels = int32(labels),
                             .gradient = fp32(wanted),
                             .step = raw(&full),
                             .rows = rows,
                             .columns = columns,
                             .factor = 0.25,
                             .smoothing = way & 1 ? 0.25 : 0,
                             .weights = way & 2 ? weights : NULL,
                             .by_labels = way & 4};
    kernel_run run = kernel_run_open(table, 2);
    op_count_correct correct = {fp32(x), int32(labels), raw(&full), rows, columns};
    perform(table, &run, OP_count_correct, &correct);
    perform(kernels_reference(), &run, OP_cross_entropy, &args);
    correct.logits = args.logits = bf16(halves);
    correct.step = args.step = raw(&block);
    args.gradient = TENSOR_NONE;
    perform(table, &run, OP_count_correct, &correct);
    perform(table, &run, OP_cross_entropy, &args);
    expect_near(block.loss_sum, full.loss_sum, 1e-5 * fabs(full.loss_sum));
    assert_int_equal(block.correct, full.correct);
    block.loss_sum = 0.5;
    args.gradient = bf16(halves); /* over the logits */
    perform(table, &run, OP_cross_entropy, &args);
    expect_near(block.loss_sum, full.loss_sum, 1e-5 * fabs(full.loss_sum));
    half_unpack(half_kernels_list(0), REMAT_BF16, halves, gradient, count);
    for (size_t i = 0; i < count; i++)
        expect_near(gradient[i], wanted[i], 0x1p-8 * fabs((double)wanted[i]) + 1e-6);
    kernel_run_close(&run);
    free(weights);
    free(x);
    free(wanted);
    free(gradient);
    free(halves);
    free(labels);
}

static void half_logits_agree(void **state)
{
    (void)state;
    test_random random = random_open();
    for (const kernel_table *const *table = kernel_tables(); *table; table++)
        for (const size_t *size = KERNEL_SIZES; *size; size++)
            for (int way = 0; way < 8; way++)
                if (kernel_find(*table, OP_cross_entropy, "bibu"))
                    judge_half_logits(&random, *table, *size > 100 ? 3 : 7, *size, way);
}

/* The loss is added to what is there, divided by the rows and added to the losses of other micro-batches. */
static void cross_entropy_of_known_logits(void **state)
{
    (void)state;
    const float logits[9] = {1e4f, -1e4f, 0, 2, 2, 2, 7, 8, 9};
    const int32_t labels[3] = {1, 0, -1};
    for (int fast = 0; fast < 2; fast++) {
        const kernel_table *table = fast ? kernels_fast() : kernels_reference();
        kernel_run run = kernel_run_open(table, 1);
        float gradient[9];
        step_block block = {.loss_sum = 5, .loss = 7};
        perform(
            table, &run, OP_cross_entropy,
            &(op_cross_entropy){fp32(logits), int32(labels), fp32(gradient), raw(&block), 3, 3, 0.5, 0, NULL, false});
        expect_near(block.loss_sum, 5 + 2e4 + log(3), 1e-3);
        const double third = 1.0 / 3, expected[9] = {0.5, -0.5, 0, -third, third / 2, third / 2, 0, 0, 0};
        for (int i = 0; i < 9; i++)
            expect_near(gradient[i], expected[i], 1e-7);
        perform(table, &run, OP_finish_loss, &(op_finish_loss){raw(&block), 3, false});
        expect_near(block.loss, 7 + (5 + 2e4 + log(3)) / 3, 1e-3);
        expect_near(block.loss_sum, 0, 0);
        block = (step_block){.loss_sum = 6, .labels = 4};
        perform(table, &run, OP_cross_entropy,
                &(op_cross_entropy){fp32(logits), int32(labels), fp32(gradient), raw(&block), 3, 3, 2, 0, NULL, true});
        for (int i = 0; i < 9; i++)
            expect_near(gradient[i], expected[i], 1e-7);
        perform(table, &run, OP_finish_loss, &(op_finish_loss){raw(&block), 0.5, true});
        expect_near(block.loss, (6 + 2e4 + log(3)) / 2, 1e-3);
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
        step_block block = {.loss_sum = 0};
        op_squared_error args = {fp32(x), fp32(target), TENSOR_NONE, raw(&block), *size, 0.25, false};
        expect_agreement(
            &((kernel_trial){.op = OP_squared_error, .args = &args, .sum = &block.loss_sum, .relative = 1e-13}));
        for (const kernel_table *const *table = kernel_tables(); *table; table++) {
            double sums[2];
            kernel_run run = kernel_run_open(*table, 1);
            for (int with = 0; with < 2; with++) { /* the gradient does not change the sum */
                block.loss_sum = 0;
                args.gradient = with ? fp32(gradient) : TENSOR_NONE;
                perform(*table, &run, OP_squared_error, &args);
                sums[with] = block.loss_sum;
            }
            assert_true(sums[0] == sums[1]);
            kernel_run_close(&run);
        }
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            args.accumulate = accumulate;
            expect_agreement(&((kernel_trial){.op = OP_squared_error,
                                              .args = &args,
                                              .outputs = {{gradient, *size}},
                                              .sum = &block.loss_sum,
                                              .absolute = 1e-6,
                                              .relative = 1e-13}));
        }
        args.accumulate = false;
        kernel_run run = {1, NULL};
        perform(kernels_reference(), &run, OP_squared_error, &args);
        for (size_t i = 0; i < *size; i++)
            expect_near(gradient[i], 0.5 * ((double)x[i] - (double)target[i]), 1e-6);
        free(x);
        free(target);
        free(gradient);
    }
}

static void pointwise_losses_agree(void **state)
{
    (void)state;
    test_random random = random_open();
    for (const size_t *size = KERNEL_SIZES; *size; size++)
        for (int way = 0; way < 8; way++) {
            float *x = values_random(&random, *size, -3, 3), *target = values_random(&random, *size, 0, 1);
            float *gradient = values_random(&random, *size, -1, 1);
            step_block block = {.loss_sum = 0};
            op_pointwise_loss args = {.x = fp32(x),
                                      .target = fp32(target),
                                      .gradient = way & 1 ? fp32(gradient) : TENSOR_NONE,
                                      .step = raw(&block),
                                      .count = *size,
                                      .kind = way & 2 ? LOSS_HUBER : LOSS_LOGISTIC,
                                      .parameter = 0.75,
                                      .factor = 0.25,
                                      .accumulate = way & 4};
            expect_agreement(&((kernel_trial){.op = OP_pointwise_loss,
                                              .args = &args,
                                              .outputs = {{way & 1 ? gradient : NULL, *size}},
                                              .sum = &block.loss_sum,
                                              .absolute = 1e-6,
                                              .relative = 1e-12}));
            free(x);
            free(target);
            free(gradient);
        }
}

/* Logits whose exponential is no number have a loss and a slope all the same. */
static void large_logits_have_a_loss(void **state)
{
    (void)state;
    const float x[4] = {1e4f, -1e4f, 1e4f, -1e4f}, target[4] = {1, 0, 0, 1};
    const double expected[4] = {0, 0, 1e4, 1e4}, slopes[4] = {0, 0, 1, -1};
    for (const kernel_table *const *table = kernel_tables(); *table; table++)
        for (int i = 0; i < 4; i++) {
            kernel_run run = kernel_run_open(*table, 1);
            float gradient;
            step_block block = {.loss_sum = 0};
            perform(*table, &run, OP_pointwise_loss,
                    &(op_pointwise_loss){.x = fp32(x + i),
                                         .target = fp32(target + i),
                                         .gradient = fp32(&gradient),
                                         .step = raw(&block),
                                         .count = 1,
                                         .kind = LOSS_LOGISTIC,
                                         .parameter = 1,
                                         .factor = 1});
            expect_near(block.loss_sum, expected[i], 1e-9);
            expect_near(gradient, slopes[i], 1e-9);
            kernel_run_close(&run);
        }
}

/* Few different values, so that many are equal: the first counts. */
static void correct_rows_are_counted(void **state)
{
    (void)state;
    test_random random = random_open();
    static const size_t shapes[][2] = {{0, 3}, {1, 1}, {7, 10}, {300, 4}, {33, 1000}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        size_t rows = shapes[s][0], columns = shapes[s][1];
        float *logits = values_random(&random, rows * columns, 0, 1);
        int32_t *labels = malloc((rows + 1) * sizeof *labels);
        uint64_t want = 5;
        assert_non_null(labels);
        for (size_t i = 0; i < rows * columns; i++)
            logits[i] = (float)test_random_below(&random, 4);
        for (size_t row = 0; row < rows; row++) {
            const float *of = logits + row * columns;
            size_t best = columns - 1;
            for (size_t i = columns; i-- > 0;)
                best = of[i] >= of[best] ? i : best;
            labels[row] = row % 3 == 0   ? -1
                          : row % 3 == 1 ? (int32_t)best
                                         : (int32_t)test_random_below(&random, columns);
            want += labels[row] >= 0 && (size_t)labels[row] == best;
        }
        for (int which = 0; which < 3; which++) {
            const kernel_table *table = which ? kernels_fast() : kernels_reference();
            kernel_run run = {1 + which, NULL};
            step_block block = {.correct = 5};
            perform(table, &run, OP_count_correct,
                    &(op_count_correct){fp32(logits), int32(labels), raw(&block), rows, columns});
            assert_int_equal(block.correct, want);
        }
        free(logits);
        free(labels);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cross_entropy_agrees),     cmocka_unit_test(cross_entropy_of_known_logits),
        cmocka_unit_test(squared_error_agrees),     cmocka_unit_test(pointwise_losses_agree),
        cmocka_unit_test(large_logits_have_a_loss), cmocka_unit_test(correct_rows_are_counted),
        cmocka_unit_test(half_logits_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
