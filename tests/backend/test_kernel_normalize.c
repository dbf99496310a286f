#include <math.h>

#include "support/kernel_compare.h"

/* With a workspace of its own, full of NaN: nothing may be read from before. */
static void call_backward(const kernel_table *table, const kernel_run *run, void *task)
{
    op_normalize_backward args = *(op_normalize_backward *)task;
    size_t bytes = kernel_workspace(OP_normalize_backward, &args);
    void *workspace = malloc(bytes ? bytes : 1);
    assert_non_null(workspace);
    memset(workspace, 0xff, bytes);
    args.workspace = raw(workspace);
    perform(table, run, OP_normalize_backward, &args);
    free(workspace);
}

static void judge(test_random *random, size_t rows, size_t columns, bool centred, bool shifted)
{
    size_t count = rows * columns;
    float *x = values_random(random, count, -2, 3), *y = values_random(random, count, 0, 1);
    float *gain = values_random(random, columns, 0.5, 1.5), *shift = values_random(random, columns, -1, 1);
    float *means = values_random(random, rows, 0, 1), *scales = values_random(random, rows, 0, 1);
    float *dy = values_random(random, count, -1, 1), *dx = values_random(random, count, -1, 1);
    float *dgain = values_random(random, columns, -1, 1), *dshift = values_random(random, columns, -1, 1);
    tensor_ref at_means = centred ? fp32(means) : TENSOR_NONE;
    float *want_means = centred ? means : NULL, *want_dshift = shifted ? dshift : NULL;
    op_normalize forward = {.x = fp32(x),
                            .gain = fp32(gain),
                            .shift = shifted ? fp32(shift) : TENSOR_NONE,
                            .y = fp32(y),
                            .means = at_means,
                            .scales = fp32(scales),
                            .rows = rows,
                            .columns = columns,
                            .epsilon = 1e-5};
    expect_agreement(&((kernel_trial){.op = OP_normalize,
                                      .args = &forward,
                                      .outputs = {{y, count}, {want_means, rows}, {scales, rows}},
                                      .absolute = 1e-5,
                                      .relative = 1e-4}));
    forward.y = TENSOR_NONE; /* the statistics alone */
    expect_agreement(&((kernel_trial){.op = OP_normalize,
                                      .args = &forward,
                                      .outputs = {{want_means, rows}, {scales, rows}},
                                      .absolute = 1e-5,
                                      .relative = 1e-4}));
    kernel_run run = {1, NULL};
    perform(kernels_reference(), &run, OP_normalize, &forward);
    op_normalize_backward backward = {.x = fp32(x),
                                      .gain = fp32(gain),
                                      .means = at_means,
                                      .scales = fp32(scales),
                                      .dy = fp32(dy),
                                      .dx = fp32(dx),
                                      .dgain = fp32(dgain),
                                      .dshift = fp32(want_dshift),
                                      .rows = rows,
                                      .columns = columns};
    for (int mode = 0; mode < 4; mode++) {
        backward.accumulate = mode & 1;
        backward.accumulate_parameters = mode & 2;
        kernel_trial trial = {.call = call_backward,
                              .task = &backward,
                              .outputs = {{dx, count}, {dgain, columns}, {want_dshift, columns}},
                              .absolute = 5e-5,
                              .relative = 1e-4};
        expect_agreement(&trial);
    }
    backward.dx = fp32(dy); /* in place, and without parameters */
    backward.dgain = backward.dshift = TENSOR_NONE;
    backward.accumulate = false;
    expect_agreement(&((kernel_trial){
        .call = call_backward, .task = &backward, .outputs = {{dy, count}}, .absolute = 5e-5, .relative = 1e-4}));
    float *all[] = {x, y, gain, shift, means, scales, dy, dx, dgain, dshift};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static void fast_agrees_with_the_reference(void **state)
{
    (void)state;
    test_random random = random_open();
    static const size_t SHAPES[][2] = {{1, 2},   {2, 3},    {3, 16},   {5, 17},    {17, 31},  {33, 64},  {7, 70},
                                       {65, 33}, {600, 48}, {520, 65}, {40, 1000}, {9, 2000}, {6, 2056}, {3, 4104}};
    for (size_t s = 0; s < sizeof SHAPES / sizeof SHAPES[0]; s++)
        for (int kind = 0; kind < 4; kind++)
            judge(&random, SHAPES[s][0], SHAPES[s][1], kind & 1, kind & 2);
}

/* The reference itself: rows come out with mean 0 and deviation 1, and gradients match central differences. */
static void gradients_match_differences(void **state)
{
    (void)state;
    enum { ROWS = 2, COLUMNS = 6, COUNT = ROWS * COLUMNS };
    test_random random = random_open();
    for (int centred = 0; centred < 2; centred++) {
        float *x = values_random(&random, COUNT, -2, 2), *dy = values_random(&random, COUNT, -1, 1);
        float *gain = values_random(&random, COLUMNS, 0.5, 1.5), y[COUNT], means[ROWS], scales[ROWS], dx[COUNT];
        kernel_run run = {1, NULL};
        const kernel_table *table = kernels_reference();
        tensor_ref at_means = centred ? fp32(means) : TENSOR_NONE;
        op_normalize forward = {fp32(x), fp32(gain), TENSOR_NONE, fp32(y), at_means, fp32(scales), ROWS, COLUMNS, 1e-5};
        op_normalize_backward backward = {.x = fp32(x),
                                          .gain = fp32(gain),
                                          .means = at_means,
                                          .scales = fp32(scales),
                                          .dy = fp32(dy),
                                          .dx = fp32(dx),
                                          .rows = ROWS,
                                          .columns = COLUMNS};
        perform(table, &run, OP_normalize, &forward);
        perform(table, &run, OP_normalize_backward, &backward);
        for (int i = 0; i < COUNT; i++) {
            double loss[2] = {0, 0}, h = 0.01;
            for (int side = 0; side < 2; side++) {
                float kept = x[i];
                x[i] = (float)((double)kept + (side ? h : -h));
                perform(table, &run, OP_normalize, &forward);
                for (int k = 0; k < COUNT; k++)
                    loss[side] += (double)y[k] * (double)dy[k];
                x[i] = kept;
            }
            expect_near(dx[i], (loss[1] - loss[0]) / (2 * h), 5e-3);
        }
        free(x);
        free(dy);
        free(gain);
    }
}

static void rows_are_centred_and_scaled(void **state)
{
    (void)state;
    float x[50], gain[50], y[50], mean, scale;
    for (int i = 0; i < 50; i++) {
        x[i] = 1000 + (float)(i % 7);
        gain[i] = 1;
    }
    for (const kernel_table *const *table = kernel_tables(); *table; table++) {
        kernel_run run = {1, NULL};
        perform(*table, &run, OP_normalize,
                &(op_normalize){fp32(x), fp32(gain), TENSOR_NONE, fp32(y), fp32(&mean), fp32(&scale), 1, 50, 1e-5});
        double sum = 0, square = 0;
        for (int i = 0; i < 50; i++) {
            sum += (double)y[i];
            square += (double)y[i] * (double)y[i];
        }
        expect_near(sum / 50, 0, 1e-4);
        expect_near(square / 50, 1, 1e-3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_agrees_with_the_reference),
        cmocka_unit_test(gradients_match_differences),
        cmocka_unit_test(rows_are_centred_and_scaled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
