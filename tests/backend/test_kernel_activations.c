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

/* ---- a bit for each value ---- */

static const activation_kind RECTIFIERS[] = {ACTIVATION_RELU, ACTIVATION_LEAKY_RELU};

/* Values with all kinds of numbers among them. */
static float *odd_values(test_random *random, size_t count)
{
    static const float odd[] = {0.0f, -0.0f, NAN, INFINITY, -INFINITY, 1e-45f, -1e-45f, 3e38f, -3e38f, 1e-39f};
    float *values = values_random(random, count, -2, 2);
    for (size_t i = 0; i < count; i += 1 + test_random_below(random, 5))
        values[i] = odd[test_random_below(random, sizeof odd / sizeof odd[0])];
    return values;
}

static uint8_t *bytes_for(size_t count)
{
    uint8_t *bytes = malloc((count + 7) / 8);
    assert_non_null(bytes);
    memset(bytes, 0xa5, (count + 7) / 8);
    return bytes;
}

static void expect_bits_of(const float *x, const uint8_t *positive, size_t count)
{
    for (size_t i = 0; i < 8 * ((count + 7) / 8); i++)
        assert_int_equal(positive[i / 8] >> i % 8 & 1, i < count && x[i] > 0);
}

/* A rectifier that leaves bits gives what activate gives, forward and backward, bit by bit: of every table, in fp32 and in bf16. */
static void expect_as_without_bits(const kernel_table *table, activation_kind kind, size_t count, remat_dtype type,
                                   int threads, test_random *random)
{
    const size_t bytes = dtype_bytes(type, count);
    float *x = odd_values(random, count), *dy = odd_values(random, count);
    uint16_t *halves[2] = {malloc(bytes), malloc(bytes)};
    char *wanted = malloc(bytes), *got = malloc(bytes);
    uint8_t *positive = bytes_for(count), *again = bytes_for(count);
    assert_true(halves[0] && halves[1] && wanted && got);
    kernel_run run = kernel_run_open(table, threads);
    tensor_ref from = fp32(x), gradient = fp32(dy), to = {wanted, type}, made = {got, type};
    if (type == REMAT_BF16) {
        perform(table, &run, OP_convert, &(op_convert){from, {halves[0], type}, count});
        perform(table, &run, OP_convert, &(op_convert){gradient, {halves[1], type}, count});
        from = (tensor_ref){halves[0], type};
        gradient = (tensor_ref){halves[1], type};
        perform(table, &run, OP_convert, &(op_convert){from, fp32(x), count}); /* as they are after rounding */
    }
    perform(table, &run, OP_activate, &(op_activate){from, to, count, kind});
    perform(table, &run, OP_rectify, &(op_rectify){from, made, raw(positive), count, kind});
    assert_memory_equal(got, wanted, bytes);
    expect_bits_of(x, positive, count);
    /* From the input or the output, alone. */
    perform(table, &run, OP_rectify, &(op_rectify){from, TENSOR_NONE, raw(again), count, kind});
    assert_memory_equal(again, positive, (count + 7) / 8);
    perform(table, &run, OP_rectify, &(op_rectify){to, TENSOR_NONE, raw(again), count, kind});
    assert_memory_equal(again, positive, (count + 7) / 8);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        char *output = malloc(bytes);
        assert_non_null(output);
        memcpy(output, wanted, bytes); /* what is added to is that output as well */
        memcpy(got, wanted, bytes);
        perform(table, &run, OP_activate_backward,
                &(op_activate_backward){TENSOR_NONE, {output, type}, gradient, to, count, kind, accumulate});
        perform(table, &run, OP_rectify_backward,
                &(op_rectify_backward){raw(positive), gradient, made, count, kind, accumulate});
        assert_memory_equal(got, wanted, bytes);
        memcpy(wanted, output, bytes);
        free(output);
    }
    /* In place. */
    perform(table, &run, OP_rectify_backward,
            &(op_rectify_backward){raw(positive), gradient, made, count, kind, false});
    perform(table, &run, OP_rectify_backward,
            &(op_rectify_backward){raw(positive), gradient, gradient, count, kind, false});
    assert_memory_equal(gradient.at, got, bytes);
    perform(table, &run, OP_rectify, &(op_rectify){from, from, raw(again), count, kind});
    assert_memory_equal(from.at, wanted, bytes);
    assert_memory_equal(again, positive, (count + 7) / 8);
    kernel_run_close(&run);
    free(x);
    free(dy);
    free(halves[0]);
    free(halves[1]);
    free(wanted);
    free(got);
    free(positive);
    free(again);
}

static void bits_stand_for_the_output(void **state)
{
    (void)state;
    test_random random = random_open();
    for (const size_t *size = KERNEL_SIZES; *size; size++)
        for (int kind = 0; kind < 2; kind++)
            for (int half = 0; half < 2; half++) {
                const remat_dtype type = half ? REMAT_BF16 : REMAT_FP32;
                for (const kernel_table *const *table = kernel_tables(); *table; table++)
                    for (int threads = 1; threads <= 3; threads += 2)
                        expect_as_without_bits(*table, RECTIFIERS[kind], *size, type, threads, &random);
                if (!device_kernels())
                    expect_as_without_bits(kernels_reference(), RECTIFIERS[kind], *size, type, 2, &random);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_agrees_with_the_reference), cmocka_unit_test(values_are_exact_to_a_few_ulp),
        cmocka_unit_test(gelu_is_exact_in_its_tail),      cmocka_unit_test(derivatives_match_differences),
        cmocka_unit_test(position_does_not_matter),       cmocka_unit_test(bits_stand_for_the_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
