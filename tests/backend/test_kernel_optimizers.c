#include <math.h>

#include "support/device_kernels.h"
#include "support/kernel_compare.h"

/* A step of one of the two, without its tensors. */
typedef struct optimizer {
    bool is_sgd;
    op_sgd sgd;
    op_adam adam;
    step_block block;
} optimizer;

static void set_tensors(optimizer *o, size_t count, const float *gradient, float *weight, float *first, float *second)
{
    o->sgd.gradient = o->adam.gradient = fp32(gradient);
    o->sgd.weight = o->adam.weight = fp32(weight);
    o->sgd.velocity = o->adam.first = fp32(first);
    o->adam.second = fp32(second);
    o->sgd.step = o->adam.step = raw(&o->block);
    o->sgd.count = o->adam.count = count;
}

static void apply(const kernel_table *table, const kernel_run *run, void *task)
{
    const optimizer *o = task;
    if (o->is_sgd)
        perform(table, run, OP_sgd, &o->sgd);
    else
        perform(table, run, OP_adam, &o->adam);
}

static void fast_agrees_with_the_reference(void **state)
{
    (void)state;
    test_random random = random_open();
    const optimizer kinds[] = {
        {.is_sgd = true, .block = {.rate = 0.1, .scale = 1}},
        {.is_sgd = true, .sgd = {.momentum = 0.9, .decay = 0.01}, .block = {.rate = 0.1, .scale = 0.5}},
        {.is_sgd = true, .sgd = {.momentum = 0.9, .decay = 0.01, .nesterov = true}, .block = {.rate = 0.1, .scale = 1}},
        {.adam = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .decay = 0.01},
         .block = {.rate = 1e-3, .scale = 1, .correction1 = 0.19, .correction2 = 0.002}},
        {.adam = {.beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .decay = 0.1, .decoupled = true},
         .block = {.rate = 1e-3, .scale = 0.3, .correction1 = 0.1, .correction2 = 0.05}}};
    for (const size_t *size = KERNEL_SIZES; *size; size++) {
        float *gradient = values_random(&random, *size, -1, 1), *weight = values_random(&random, *size, -1, 1);
        float *first = values_random(&random, *size, -1, 1), *second = values_random(&random, *size, 0, 1);
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            optimizer o = kinds[i];
            float *moment = i == 0 ? NULL : first;
            set_tensors(&o, *size, gradient, weight, moment, second);
            expect_agreement(&((kernel_trial){.call = apply,
                                              .task = &o,
                                              .outputs = {{weight, *size}, {moment, *size}, {second, *size}},
                                              .absolute = 5e-7,
                                              .relative = o.is_sgd ? 0 : 1e-6}));
        }
        free(gradient);
        free(weight);
        free(first);
        free(second);
    }
}

/* So many values that a block of a GPU goes over several parts of them. */
static void a_large_one_on_a_device(void **state)
{
    (void)state;
    enum { COUNT = 2048 * 2048 + 1028 };
    if (!device_kernels())
        skip();
    test_random random = random_open();
    optimizer o = {.adam = {.beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .decay = 0.1, .decoupled = true},
                   .block = {.rate = 1e-3, .scale = 0.3, .correction1 = 0.1, .correction2 = 0.05}};
    float *gradient = values_random(&random, COUNT, -1, 1), *weight = values_random(&random, COUNT, -1, 1);
    float *first = values_random(&random, COUNT, -1, 1), *second = values_random(&random, COUNT, 0, 1);
    set_tensors(&o, COUNT, gradient, weight, first, second);
    expect_agreement(&((kernel_trial){.call = apply,
                                      .task = &o,
                                      .outputs = {{weight, COUNT}, {first, COUNT}, {second, COUNT}},
                                      .absolute = 5e-7,
                                      .relative = 1e-6}));
    free(gradient);
    free(weight);
    free(first);
    free(second);
}

static void lion_agrees_with_the_reference(void **state)
{
    (void)state;
    test_random random = random_open();
    for (const size_t *size = KERNEL_SIZES; *size; size++) {
        float *gradient = values_random(&random, *size, -1, 1), *weight = values_random(&random, *size, -1, 1);
        float *mean = values_random(&random, *size, -1, 1);
        step_block block = {.rate = 1e-3, .scale = 0.5};
        gradient[0] = mean[0] = 0; /* a direction without a sign */
        const op_lion args = {
            fp32(gradient), fp32(weight), fp32(mean), TENSOR_NONE, raw(&block), *size, 0.9, 0.99, 0.1, 0, 0};
        expect_agreement(&((kernel_trial){
            .op = OP_lion, .args = &args, .outputs = {{weight, *size}, {mean, *size}}, .absolute = 5e-7}));
        free(gradient);
        free(weight);
        free(mean);
    }
}

static void adafactor_agrees_with_the_reference(void **state)
{
    (void)state;
    test_random random = random_open();
    static const size_t shapes[][2] = {{1, 1}, {1, 37}, {37, 1}, {5, 63}, {64, 65}, {300, 129}, {3, 9001}};
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof shapes[0]; i++) {
        const bool is_vector = i % 2;
        const size_t rows = is_vector ? 1 : shapes[i / 2][0], columns = shapes[i / 2][1], count = rows * columns;
        float *gradient = values_random(&random, count, -1, 1), *weight = values_random(&random, count, -1, 1);
        float *of_rows = values_random(&random, is_vector ? columns : rows, 0.1, 1);
        float *of_columns = values_random(&random, columns, 0.1, 1);
        step_block block = {.rate = 1e-2, .scale = 0.5, .correction1 = 0.3, .correction2 = 1e-2};
        const op_adafactor args = {.gradient = fp32(gradient),
                                   .weight = fp32(weight),
                                   .row_squares = fp32(of_rows),
                                   .column_squares = is_vector ? TENSOR_NONE : fp32(of_columns),
                                   .step = raw(&block),
                                   .rows = rows,
                                   .columns = columns,
                                   .least_scale = 1e-3,
                                   .threshold = 0.5,
                                   .decay = 0.1};
        expect_agreement(
            &((kernel_trial){.op = OP_adafactor,
                             .args = &args,
                             .outputs = {{weight, count}, {of_rows, is_vector ? columns : rows}, {of_columns, columns}},
                             .absolute = 1e-6}));
        gradient[count / 2] = INFINITY; /* nothing changes, and it is noted */
        float *before = values_copy(weight, count);
        kernel_run run = {2, NULL};
        perform(kernels_fast(), &run, OP_adafactor, &args);
        assert_int_equal(block.broken, 1);
        expect_same_bits(before, weight, count);
        free(before);
        free(gradient);
        free(weight);
        free(of_rows);
        free(of_columns);
    }
}

/* One weight in double, as the papers and PyTorch have it. */
typedef struct slow_state {
    double weight, first, second;
} slow_state;

static void slow_sgd(const optimizer *o, double gradient, slow_state *s)
{
    double g = gradient * o->block.scale + o->sgd.decay * s->weight;
    s->first = o->sgd.momentum * s->first + g;
    s->weight -= o->block.rate * (o->sgd.nesterov ? g + o->sgd.momentum * s->first : s->first);
}

static void slow_adam(const optimizer *o, double gradient, int step, slow_state *s)
{
    double beta1 = o->adam.beta1, beta2 = o->adam.beta2, rate = o->block.rate, g = gradient * o->block.scale;
    if (o->adam.decoupled)
        s->weight *= 1 - rate * o->adam.decay;
    else
        g += o->adam.decay * s->weight;
    s->first = beta1 * s->first + (1 - beta1) * g;
    s->second = beta2 * s->second + (1 - beta2) * g * g;
    double mean = s->first / (1 - pow(beta1, step)), square = s->second / (1 - pow(beta2, step));
    s->weight -= rate * mean / (sqrt(square) + o->adam.epsilon);
}

/* 1 - beta^step for beta as a kernel has it, rounded as it is: from the second moment's first value of (1 - beta) g^2 it
 * must give back g^2. */
static double correction(double beta, int step)
{
    return (double)(float)(1 - pow((double)(float)beta, step));
}

static void steps_follow_the_formulas(void **state)
{
    (void)state;
    enum { COUNT = 37, STEPS = 20 };
    test_random random = random_open();
    const kernel_table *tables[] = {kernels_reference(), kernels_fast()};
    for (int fast = 0; fast < 2; fast++)
        for (int variant = 0; variant < 4; variant++) { /* sgd plain and nesterov, adam coupled and decoupled */
            optimizer o = {
                .is_sgd = variant < 2,
                .sgd = {.momentum = 0.9, .decay = 0.01, .nesterov = variant == 1},
                .adam = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .decay = 0.1, .decoupled = variant == 3},
                .block = {.rate = variant < 2 ? 0.05 : 0.01, .scale = 0.7}};
            float weight[COUNT], first[COUNT] = {0}, second[COUNT] = {0}, gradient[COUNT];
            slow_state slow[COUNT];
            set_tensors(&o, COUNT, gradient, weight, first, second);
            for (int i = 0; i < COUNT; i++) {
                weight[i] = random_value(&random, -1, 1);
                slow[i] = (slow_state){(double)weight[i], 0, 0};
            }
            kernel_run run = {2, NULL};
            for (int step = 1; step <= STEPS; step++) {
                o.block.correction1 = correction(o.adam.beta1, step);
                o.block.correction2 = correction(o.adam.beta2, step);
                for (int i = 0; i < COUNT; i++) {
                    gradient[i] = random_value(&random, -1, 1);
                    if (o.is_sgd)
                        slow_sgd(&o, (double)gradient[i], &slow[i]);
                    else
                        slow_adam(&o, (double)gradient[i], step, &slow[i]);
                }
                apply(tables[fast], &run, &o);
            }
            for (int i = 0; i < COUNT; i++)
                expect_near(weight[i], slow[i].weight, 2e-5);
        }
}

/* Adam's first step has the size of the rate, whatever the gradient's. */
static void the_first_step_of_adam_is_the_rate(void **state)
{
    (void)state;
    const kernel_table *tables[] = {kernels_reference(), kernels_fast()};
    for (int fast = 0; fast < 2; fast++) {
        float gradient[3] = {1e-3f, -1, 1000}, weight[3] = {0}, first[3] = {0}, second[3] = {0};
        optimizer o = {.adam = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8}, .block = {.rate = 0.1, .scale = 1}};
        o.block.correction1 = correction(o.adam.beta1, 1);
        o.block.correction2 = correction(o.adam.beta2, 1);
        set_tensors(&o, 3, gradient, weight, first, second);
        kernel_run run = {1, NULL};
        apply(tables[fast], &run, &o);
        for (int i = 0; i < 3; i++)
            expect_near(weight[i], gradient[i] > 0 ? -0.1 : 0.1, 2e-6);
    }
}

static void clipping_brings_the_norm_to_the_limit(void **state)
{
    (void)state;
    const kernel_table *tables[] = {kernels_reference(), kernels_fast()};
    kernel_run run = {1, NULL};
    for (int fast = 0; fast < 2; fast++) {
        step_block block = {.squares = 25, .scale = 1};
        perform(tables[fast], &run, OP_clip, &(op_clip){raw(&block), 2});
        assert_true(block.scale == 2 / (5 + 1e-6));
        perform(tables[fast], &run, OP_clip, &(op_clip){raw(&block), 8}); /* the norm is below the limit */
        assert_true(block.scale == 1);
        block.squares = NAN;
        perform(tables[fast], &run, OP_clip, &(op_clip){raw(&block), 8});
        assert_true(block.scale == 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_agrees_with_the_reference),
        cmocka_unit_test(a_large_one_on_a_device),
        cmocka_unit_test(lion_agrees_with_the_reference),
        cmocka_unit_test(adafactor_agrees_with_the_reference),
        cmocka_unit_test(steps_follow_the_formulas),
        cmocka_unit_test(the_first_step_of_adam_is_the_rate),
        cmocka_unit_test(clipping_brings_the_norm_to_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
