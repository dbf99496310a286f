/* Optimizers of weights in bf16. A step gives what the same step gives with weights in fp32, rounded at random by the definition
 * in operation.h; moments get the same bits. */
#include <math.h>

#include "base/half.h"
#include "base/moment_codes.h"
#include "support/kernel_compare.h"

enum { MOST = 2000, NUMBER = 7 };

typedef struct problem {
    operation op;
    size_t count;
    remat_dtype state; /* of the moments: fp32, bf16, or int8 with scales */
    size_t columns;    /* of adafactor */
    float gradient[MOST], full[MOST];
    uint16_t half[MOST];
    float first[MOST], second[MOST]; /* memory for moments of any type */
    float first_scales[MOST / MOMENT_BLOCK + 1], second_scales[MOST / MOMENT_BLOCK + 1];
    step_block block;
} problem;

static tensor_ref moment(problem *p, float *values, bool squares)
{
    const remat_dtype small = squares ? REMAT_UINT8 : REMAT_INT8;
    return (tensor_ref){values, p->state == REMAT_INT8 ? small : p->state};
}

static tensor_ref scales(problem *p, float *values)
{
    return p->state == REMAT_INT8 ? fp32(values) : TENSOR_NONE;
}

static void run_problem(const kernel_table *table, int threads, problem *p, bool half)
{
    const tensor_ref gradient = fp32(p->gradient), step = raw(&p->block);
    const tensor_ref weight = half ? (tensor_ref){p->half, REMAT_BF16} : fp32(p->full);
    kernel_run run = kernel_run_open(table, threads);
    if (p->op == OP_sgd)
        perform(table, &run, p->op,
                &(op_sgd){gradient, weight, moment(p, p->first, false), scales(p, p->first_scales), step, p->count, 0.9,
                          0.01, true, NUMBER, 0});
    else if (p->op == OP_lion)
        perform(table, &run, p->op,
                &(op_lion){gradient, weight, moment(p, p->first, false), scales(p, p->first_scales), step, p->count,
                           0.9, 0.99, 0.01, NUMBER, 0});
    else if (p->op == OP_adam)
        perform(table, &run, p->op,
                &(op_adam){gradient, weight, moment(p, p->first, false), moment(p, p->second, true),
                           scales(p, p->first_scales), scales(p, p->second_scales), step, p->count, 0.9, 0.999, 1e-8,
                           0.1, true, NUMBER, 0});
    else
        perform(table, &run, p->op,
                &(op_adafactor){gradient, weight, fp32(p->first), p->columns ? fp32(p->second) : TENSOR_NONE, step,
                                p->columns ? p->count / p->columns : 1, p->columns ? p->columns : p->count, 1e-3, 1,
                                0.1, NUMBER});
    kernel_run_close(&run);
}

/* Value i in bf16: the upper of its two neighbours with the chance that its place between them says. */
static uint16_t slow_round(double value, const step_block *block, size_t i)
{
    uint32_t numbers[4];
    int exponent;
    const remat_random stream = remat_random_stream(block->seed, 0x50000000u + NUMBER, block->step);
    remat_random_block(&stream, i / 4, numbers);
    const double fraction = frexp(fabs(value), &exponent); /* 0.5 .. 1; eight bits of it are kept */
    const double units = floor(fraction * 256 + (numbers[i % 4] & 0xffff) / 65536.0);
    return (uint16_t)((int)units + ((exponent + 125) << 7) + (value < 0 ? 1 << 15 : 0));
}

static void fill(problem *p, test_random *random)
{
    p->block = (step_block){.seed = test_random_next(random),
                            .step = 5,
                            .rate = 1e-3,
                            .scale = 0.5,
                            .correction1 = 0.5,
                            .correction2 = 0.25};
    for (size_t i = 0; i < MOST; i++) {
        p->gradient[i] = random_value(random, -1, 1);
        p->full[i] = random_value(random, 0.01, 1) * (test_random_below(random, 2) ? 1.0f : -1.0f);
    }
    half_pack(half_kernels_list(0), REMAT_BF16, false, p->full, p->half, MOST);
    half_unpack(half_kernels_list(0), REMAT_BF16, p->half, p->full, MOST);
}

static void expect_rounded_step(const kernel_table *table, problem *start)
{
    static problem wanted, got[3];
    wanted = *start;
    run_problem(table, 1, &wanted, false);
    for (int t = 0; t < 3; t++) {
        got[t] = *start;
        run_problem(table, 1 << t, &got[t], true);
        assert_memory_equal(&got[0], &got[t], sizeof got[0]);
    }
    assert_int_equal(got[0].block.broken, 0);
    assert_memory_equal(got[0].first, wanted.first, sizeof wanted.first);
    assert_memory_equal(got[0].second, wanted.second, sizeof wanted.second);
    assert_memory_equal(got[0].first_scales, wanted.first_scales, sizeof wanted.first_scales);
    for (size_t i = 0; i < start->count; i++)
        assert_int_equal(got[0].half[i], slow_round((double)wanted.full[i], &start->block, i));
    assert_memory_equal(got[0].half + start->count, start->half + start->count, /* nothing beyond the end */
                        (MOST - start->count) * sizeof *start->half);
}

static void steps_are_those_of_fp32_rounded(void **state)
{
    (void)state;
    test_random random = random_open();
    static const operation ops[] = {OP_sgd, OP_adam, OP_lion, OP_adafactor};
    static const remat_dtype types[] = {REMAT_FP32, REMAT_BF16, REMAT_INT8};
    static const size_t sizes[] = {1, 7, 255, 256, 257, 700, 1999}, columns[] = {0, 7, 85, 64, 0, 350, 1999};
    static problem p;
    for (size_t kind = 0; kind < 10; kind++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            p = (problem){.op = ops[kind / 3], .count = sizes[s], .state = types[kind % 3], .columns = columns[s]};
            fill(&p, &random);
            expect_rounded_step(kernels_reference(), &p);
            for (const kernel_table *const *table = kernel_tables(); *table; table++)
                expect_rounded_step(*table, &p);
        }
}

/* Weights that move by less than half the distance of two values move all the same: rounding has no bias. */
static void small_steps_add_up(void **state)
{
    (void)state;
    test_random random = random_open();
    static problem p;
    for (int fast = 0; fast < 2; fast++) {
        p = (problem){.op = OP_sgd, .count = MOST, .state = REMAT_FP32};
        fill(&p, &random);
        for (size_t i = 0; i < MOST; i++) {
            p.half[i] = 0x3f80; /* 1; its neighbours are 2^-8 and 2^-7 away */
            p.gradient[i] = 1;
        }
        double mean = 0;
        for (uint32_t step = 0; step < 50; step++) {
            p.block = (step_block){.seed = 3, .step = step, .rate = 0x1p-12, .scale = 1};
            memset(p.first, 0, sizeof p.first);
            run_problem(fast ? kernels_fast() : kernels_reference(), 1, &p, true);
        }
        half_unpack(half_kernels_list(0), REMAT_BF16, p.half, p.full, MOST);
        for (size_t i = 0; i < MOST; i++)
            mean += (double)p.full[i] / MOST;
        const double moved = 50 * 0x1p-12 * (1 + 0.01) * 1.9; /* nesterov and decay, about */
        if (!(fabs(1 - mean - moved) < 0.05 * moved))
            fail_msg("the weights moved by %g, not %g", 1 - mean, moved);
    }
}

/* A gradient that is not finite leaves its block as it was, and is noted. */
static void a_broken_gradient_changes_no_weight(void **state)
{
    (void)state;
    test_random random = random_open();
    const kernel_table *tables[] = {kernels_reference(), kernels_fast()};
    static problem p, before;
    for (int fast = 0; fast < 2; fast++) {
        p = (problem){.op = OP_adam, .count = 300, .state = REMAT_INT8};
        fill(&p, &random);
        p.gradient[290] = NAN;
        before = p;
        run_problem(tables[fast], 2, &p, true);
        assert_int_equal(p.block.broken, 1 + NUMBER);
        assert_memory_equal(p.half + 256, before.half + 256, 44 * sizeof *p.half);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_those_of_fp32_rounded),
        cmocka_unit_test(small_steps_add_up),
        cmocka_unit_test(a_broken_gradient_changes_no_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
