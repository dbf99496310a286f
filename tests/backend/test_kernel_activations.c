#include <math.h>

#include "support/device_kernels.h"
#include "support/kernel_compare.h"

static const char *const NAMES[] = {"none", "relu", "leaky_relu", "gelu_tanh", "gelu_erf", "sigmoid", "tanh", "swish"};
enum { KINDS = 8 };

/* Without the tensor that the activation does not read. */
static op_activate_backward backward_of(activation_kind kind, size_t count, const float *x, const float *y,
                                        const float *dy, float *dx, bool accumulate)
{
    bool of_output = activation_reads_output(kind);
    return (op_activate_backward){of_output ? TENSOR_NONE : fp32(x),
                                  of_output ? fp32(y) : TENSOR_NONE,
                                  fp32(dy),
                                  fp32(dx),
                                  count,
                                  kind,
                                  accumulate};
}

static void activate(const kernel_table *table, activation_kind kind, size_t count, const float *x, float *y)
{
    kernel_run run = kernel_run_open(table, 2);
    perform(table, &run, OP_activate, &(op_activate){fp32(x), fp32(y), count, kind});
    kernel_run_close(&run);
}

static void fast_agrees_with_the_reference(void **state)
{
    (void)state;
    test_random random = random_open();
    for (const size_t *size = KERNEL_SIZES; *size; size++)
        for (int kind = 0; kind < KINDS; kind++) {
            float *x = values_random(&random, *size, -8, 8), *y = values_random(&random, *size, 0, 1);
            float *dy = values_random(&random, *size, -2, 2), *dx = values_random(&random, *size, -1, 1);
            op_activate forward = {fp32(x), fp32(y), *size, (activation_kind)kind};
            expect_agreement(&((kernel_trial){
                .op = OP_activate, .args = &forward, .outputs = {{y, *size}}, .absolute = 1e-6, .relative = 1e-6}));
            activate(kernels_reference(), forward.kind, *size, x, y);
            for (int accumulate = 0; accumulate < 2; accumulate++) {
                op_activate_backward backward = backward_of(forward.kind, *size, x, y, dy, dx, accumulate);
                expect_agreement(&((kernel_trial){.op = OP_activate_backward,
                                                  .args = &backward,
                                                  .outputs = {{dx, *size}},
                                                  .absolute = 4e-6,
                                                  .relative = 1e-6}));
            }
            /* In place. */
            forward.y = forward.x;
            expect_agreement(&((kernel_trial){
                .op = OP_activate, .args = &forward, .outputs = {{x, *size}}, .absolute = 1e-6, .relative = 1e-6}));
            op_activate_backward backward = backward_of(forward.kind, *size, x, y, dy, dy, false);
            expect_agreement(&((kernel_trial){.op = OP_activate_backward,
                                              .args = &backward,
                                              .outputs = {{dy, *size}},
                                              .absolute = 4e-6,
                                              .relative = 1e-6}));
            free(x);
            free(y);
            free(dy);
            free(dx);
        }
}

static double exact(activation_kind kind, double x)
{
    switch (kind) {
    case ACTIVATION_NONE: return x;
    case ACTIVATION_RELU: return x > 0 ? x : 0;
    case ACTIVATION_LEAKY_RELU: return x > 0 ? x : 0.01 * x;
    case ACTIVATION_GELU_TANH: return x * 0.5 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case ACTIVATION_GELU_ERF: return x * 0.5 * erfc(-x / sqrt(2));
    case ACTIVATION_SIGMOID: return 1 / (1 + exp(-x));
    case ACTIVATION_TANH: return tanh(x);
    case ACTIVATION_SWISH: return x / (1 + exp(-x));
    }
    return x;
}

/* Of every instruction set, against the formulas in double: close in the last places where values are not tiny. */
static void values_are_exact_to_a_few_ulp(void **state)
{
    (void)state;
    enum { COUNT = 40000 };
    float *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
    assert_true(x && y);
    for (int i = 0; i < COUNT; i++)
        x[i] = -1.0f + 0.0003f * (float)i;
    for (const kernel_table *const *table = kernel_tables(); *table; table++)
        for (int kind = 0; kind < KINDS; kind++) {
            activate(*table, (activation_kind)kind, COUNT, x, y);
            for (int i = 0; i < COUNT; i++)
                if (ulps_from(y[i], exact((activation_kind)kind, (double)x[i])) > 3.5)
                    fail_msg("%s: %s(%.9g) is %.9g, exact is %.9g", (*table)->name, NAMES[kind], (double)x[i],
                             (double)y[i], exact((activation_kind)kind, (double)x[i]));
        }
    free(x);
    free(y);
}

/* The erf form of gelu keeps its last places where it is tiny too, of every instruction set. */
static void gelu_is_exact_in_its_tail(void **state)
{
    (void)state;
    if (device_kernels())
        skip(); /* erfc of CUDA loses places where it is tiny */
    enum { COUNT = 40000 };
    float *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
    assert_true(x && y);
    for (int i = 0; i < COUNT; i++)
        x[i] = -14.5f * (float)i / COUNT;
    for (const kernel_table *const *table = kernel_tables(); *table; table++) {
        activate(*table, ACTIVATION_GELU_ERF, COUNT, x, y);
        for (int i = 0; i < COUNT; i++)
            if (ulps_from(y[i], exact(ACTIVATION_GELU_ERF, (double)x[i])) > 2.5)
                fail_msg("%s: gelu_erf(%.9g) is %.9g, exact is %.9g", (*table)->name, (double)x[i], (double)y[i],
                         exact(ACTIVATION_GELU_ERF, (double)x[i]));
    }
    free(x);
    free(y);
}

/* The derivative of both tables against central differences of the formulas. */
static void derivatives_match_differences(void **state)
{
    (void)state;
    enum { COUNT = 400 };
    float x[COUNT], y[COUNT], ones[COUNT], dx[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = -9.975f + 0.05f * (float)i; /* never 0, where relu has a corner */
        ones[i] = 1;
    }
    for (int kind = 0; kind < KINDS; kind++)
        for (int fast = 0; fast < 2; fast++) {
            const kernel_table *table = fast ? kernels_fast() : kernels_reference();
            kernel_run run = kernel_run_open(table, 1);
            op_activate_backward backward = backward_of((activation_kind)kind, COUNT, x, y, ones, dx, false);
            activate(table, (activation_kind)kind, COUNT, x, y);
            perform(table, &run, OP_activate_backward, &backward);
            kernel_run_close(&run);
            for (int i = 0; i < COUNT; i++) {
                double h = 1e-5, at = (double)x[i];
                double slope = (exact((activation_kind)kind, at + h) - exact((activation_kind)kind, at - h)) / (2 * h);
                expect_near(dx[i], slope, 3e-6);
            }
        }
}

/* A value has the same bits wherever it stands. */
static void position_does_not_matter(void **state)
{
    (void)state;
    enum { COUNT = 67 };
    float x[COUNT], y[COUNT], alone;
    for (const kernel_table *const *table = kernel_tables(); *table; table++)
        for (int kind = 0; kind < KINDS; kind++)
            for (float value = -5; value < 5; value += 0.37f) {
                for (int i = 0; i < COUNT; i++)
                    x[i] = value;
                activate(*table, (activation_kind)kind, COUNT, x, y);
                activate(*table, (activation_kind)kind, 1, x, &alone);
                for (int i = 0; i < COUNT; i++)
                    expect_same_bits(&y[i], &alone, 1);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_agrees_with_the_reference), cmocka_unit_test(values_are_exact_to_a_few_ulp),
        cmocka_unit_test(gelu_is_exact_in_its_tail),      cmocka_unit_test(derivatives_match_differences),
        cmocka_unit_test(position_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
