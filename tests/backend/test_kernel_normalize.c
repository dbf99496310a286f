#include <math.h>

#include "support/kernel_compare.h"

typedef struct normalize_task {
    size_t rows, columns;
    const float *x, *gain, *shift, *dy;
    float *y, *means, *scales, *dx, *dgain, *dshift;
    bool accumulate, accumulate_parameters;
} normalize_task;

static void call_forward(const kernel_table *table, const kernel_run *run, void *task)
{
    const normalize_task *t = task;
    table->normalize(run, t->rows, t->columns, 1e-5f, t->x, t->gain, t->shift, t->y, t->means, t->scales);
}

static void call_backward(const kernel_table *table, const kernel_run *run, void *task)
{
    const normalize_task *t = task;
    size_t values = normalize_workspace(t->rows, t->columns);
    float *workspace = malloc(values ? values * sizeof *workspace : 1);
    assert_non_null(workspace);
    memset(workspace, 0xff, values * sizeof *workspace); /* NaN: nothing may be taken over from before */
    table->normalize_backward(run, t->rows, t->columns, t->x, t->gain, t->means, t->scales, t->dy, t->dx, t->accumulate,
                              t->dgain, t->dshift, t->accumulate_parameters, workspace);
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
    normalize_task t = {rows,
                        columns,
                        x,
                        gain,
                        shifted ? shift : NULL,
                        dy,
                        y,
                        centred ? means : NULL,
                        scales,
                        dx,
                        dgain,
                        shifted ? dshift : NULL,
                        false,
                        false};
    expect_agreement(&((kernel_trial){.call = call_forward,
                                      .task = &t,
                                      .outputs = {{y, count}, {t.means, rows}, {scales, rows}},
                                      .absolute = 1e-5,
                                      .relative = 1e-4}));
    t.y = NULL; /* the statistics alone */
    expect_agreement(&((kernel_trial){.call = call_forward,
                                      .task = &t,
                                      .outputs = {{t.means, rows}, {scales, rows}},
                                      .absolute = 1e-5,
                                      .relative = 1e-4}));
    t.y = y;
    kernel_run run = {1, NULL};
    call_forward(kernels_reference(), &run, &t);
    for (int mode = 0; mode < 4; mode++) {
        t.accumulate = mode & 1;
        t.accumulate_parameters = mode & 2;
        kernel_trial trial = {.call = call_backward,
                              .task = &t,
                              .outputs = {{dx, count}, {dgain, columns}, {t.dshift, columns}},
                              .absolute = 5e-5,
                              .relative = 1e-4};
        expect_agreement(&trial);
    }
    t.dx = dy; /* in place, and without parameters */
    t.dgain = t.dshift = NULL;
    t.accumulate = false;
    expect_agreement(&((kernel_trial){
        .call = call_backward, .task = &t, .outputs = {{dy, count}}, .absolute = 5e-5, .relative = 1e-4}));
    float *all[] = {x, y, gain, shift, means, scales, dy, dx, dgain, dshift};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static void fast_agrees_with_the_reference(void **state)
{
    (void)state;
    test_random random = random_open();
    static const size_t SHAPES[][2] = {{1, 2},  {2, 3},   {3, 16},   {5, 17},   {17, 31},  {33, 64},
                                       {7, 70}, {65, 33}, {600, 48}, {520, 65}, {40, 1000}};
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
        table->normalize(&run, ROWS, COLUMNS, 1e-5f, x, gain, NULL, y, centred ? means : NULL, scales);
        table->normalize_backward(&run, ROWS, COLUMNS, x, gain, centred ? means : NULL, scales, dy, dx, false, NULL,
                                  NULL, false, NULL);
        for (int i = 0; i < COUNT; i++) {
            double loss[2] = {0, 0}, h = 0.01;
            for (int side = 0; side < 2; side++) {
                float kept = x[i];
                x[i] = (float)((double)kept + (side ? h : -h));
                table->normalize(&run, ROWS, COLUMNS, 1e-5f, x, gain, NULL, y, centred ? means : NULL, scales);
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
        (*table)->normalize(&run, 1, 50, 1e-5f, x, gain, NULL, y, &mean, &scale);
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
