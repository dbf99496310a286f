/* Optimizers whose moments have 8 or 16 bits, against a slow version that knows the codes from their definition only: a list
 * of what each code stands for, and two neighbours with a chance for each. */
#include <float.h>
#include <math.h>

#include "base/moment_codes.h"
#include "support/kernel_compare.h"

enum { BLOCK = 256, MOST = 2000 };

/* How the scale of squares is made: 2^lowest, and the number of bits of mantissa in units of its last place. */
typedef struct square_format {
    int lowest, bits;
} square_format;

static square_format format_of(double scale)
{
    const int lowest = ilogb(scale);
    return (square_format){lowest, (int)lrint((ldexp(scale, -lowest) - 1) * 0x1p23)};
}

/* As many bits as 254 codes allow for all octaves from the smallest square to the largest, 7 at most. With more than 31 octaves
 * the lowest are left out. */
static square_format slow_format(double smallest, double largest)
{
    square_format f = {ilogb(smallest), 7};
    int octaves = 1;
    while (ldexp(1, f.lowest + octaves) < largest)
        octaves++;
    if (octaves > 31) {
        f.lowest += octaves - 31;
        octaves = 31;
    }
    while (octaves * (1 << f.bits) > 254)
        f.bits--;
    return f;
}

/* What a code from 0 on stands for. */
static double listed(int code, double scale, bool squares)
{
    if (!squares)
        return scale * code * code / 127 / 127;
    const square_format f = format_of(scale);
    const int each = 1 << f.bits;
    return code ? ldexp(1 + (code - 1) % each / (double)each, f.lowest + (code - 1) / each) : 0;
}

/* The code of a magnitude: the upper of its two neighbours with the chance that its place between them says. */
static int slow_code(double value, double scale, bool squares, uint32_t random)
{
    int code = squares && value > 0;
    const int top = squares ? 255 : 127;
    while (code < top && listed(code + 1, scale, squares) <= value)
        code++;
    if (code < top && value > listed(code, scale, squares)) {
        const double below = listed(code, scale, squares), above = listed(code + 1, scale, squares);
        code += (value - below) / (above - below) + random / 65536.0 >= 1;
    }
    return code;
}

static float square_scale_with(int lowest, int bits)
{
    return (float)ldexp(1 + bits * 0x1p-23, lowest);
}

static uint32_t code_of(float value, float scale, bool squares, uint32_t random)
{
    return squares ? square_code(value, scale, random) : mean_code(value, scale, random);
}

static void codes_are_those_of_the_list(void **state)
{
    (void)state;
    test_random random = random_open();
    for (int bits = 2; bits <= 7; bits++) { /* 2 stands for means */
        const bool squares = bits > 2;
        const float scale = squares ? square_scale_with(-20, bits) : 3;
        const int top = squares ? ((254 >> bits) << bits) + 1 : 127;
        for (int code = 0; code <= top; code++) { /* what a code stands for has that code */
            const float value = squares ? square_value((uint32_t)code, scale) : mean_value(code, scale);
            expect_near(value, listed(code, (double)scale, squares), 2e-7 * listed(code, (double)scale, squares));
            assert_int_equal(code_of(value, scale, squares, MOMENT_TO_NEAREST), code);
            if (squares) { /* exactly, whatever the random number */
                assert_int_equal(square_code(value, scale, 0), code);
                assert_int_equal(square_code(value, scale, 65535), code);
            }
        }
        const double largest = listed(top, (double)scale, squares);
        for (int i = 0; i < 20000; i++) {
            const float value = (float)(largest * pow(10, random_value(&random, -8, 0)));
            const uint32_t number = (uint32_t)test_random_below(&random, 65534) + 1;
            const int got = (int)code_of(value, scale, squares, number);
            const int wanted = slow_code((double)value, (double)scale, squares, number);
            if (got != wanted) { /* a place between two codes on the edge of the random number */
                const uint32_t nearby = got < wanted ? number + 1 : number - 1;
                assert_int_equal(code_of(value, scale, squares, nearby), wanted);
            }
        }
    }
    assert_int_equal(mean_code(INFINITY, FLT_MAX, 0), 127);
    assert_int_equal(mean_code(NAN, 1, 65535), 0);
    assert_int_equal(mean_code(2.5f, 2.5f, 65535), 127);
    expect_same_bits(&(float){mean_value(-127, 2.7f)}, &(float){-2.7f}, 1); /* the largest magnitude is kept as it is */
}

/* Squares over so many octaves are off by less than the last of the bits that these leave; what is read can be written, and is
 * then the same. */
static void squares_have_the_bits_that_their_range_leaves(void **state)
{
    (void)state;
    test_random random = random_open();
    for (int i = 0; i < 4000; i++) {
        float values[BLOCK], read[BLOCK];
        const double range = random_value(&random, 0, 36), top = random_value(&random, -80, 100);
        double smallest = INFINITY, largest = 0;
        for (int j = 0; j < BLOCK; j++) {
            values[j] = test_random_below(&random, 9) ? (float)pow(2, top - random_value(&random, 0, range)) : 0;
            largest = fmax(largest, (double)values[j]);
            smallest = values[j] > 0 ? fmin(smallest, (double)values[j]) : smallest;
        }
        const float scale = square_scale_of(values, BLOCK);
        const square_format wanted = slow_format(smallest, largest), got = format_of((double)scale);
        assert_int_equal(got.lowest, wanted.lowest);
        assert_int_equal(got.bits, wanted.bits);
        const double least = ldexp(1, got.lowest);
        for (int j = 0; j < BLOCK; j++) {
            const uint32_t code = square_code(values[j], scale, (uint32_t)test_random_below(&random, 65536));
            const double value = fmax((double)values[j], values[j] > 0 ? least : 0);
            assert_true(code <= 255 && (code > 0) == (values[j] > 0));
            read[j] = square_value(code, scale);
            assert_true(fabs((double)read[j] - value) <= ldexp(value, -got.bits));
        }
        const float again = square_scale_of(read, BLOCK);
        for (int j = 0; j < BLOCK; j++)
            expect_same_bits(&(float){square_value(square_code(read[j], again, 65535), again)}, &read[j], 1);
    }
}

/* Squares at the ends of what a float can be: none becomes 0, infinite or NaN. */
static void squares_at_the_ends_stay_numbers(void **state)
{
    (void)state;
    const float ends[] = {FLT_TRUE_MIN, FLT_MIN, 0x1p-20f, 1, 0x1p126f, FLT_MAX, INFINITY};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        for (size_t j = i; j < sizeof ends / sizeof ends[0]; j++) {
            const float values[3] = {ends[i], ends[j], 0}, scale = square_scale_of(values, 3);
            for (int k = 0; k < 2; k++) {
                const uint32_t code = square_code(values[k], scale, 65535);
                assert_true(code > 0 && code <= 255);
                assert_true(isfinite(square_value(code, scale)) && square_value(code, scale) > 0);
            }
            assert_int_equal(square_code(0, scale, 65535), 0);
            assert_int_equal(square_code(NAN, scale, 65535), 0);
        }
    const float none[2] = {0, 0};
    expect_same_bits(&(float){square_scale_of(none, 2)}, &none[0], 1);
}

/* ---- kernels ---- */

typedef struct moment {
    remat_dtype type;
    uint8_t bytes[MOST * 2];
    float scales[MOST / BLOCK + 1];
} moment;

static tensor_ref codes_of(moment *m)
{
    return (tensor_ref){m->bytes, m->type};
}

static tensor_ref scales_of(moment *m)
{
    return m->type == REMAT_BF16 ? TENSOR_NONE : fp32(m->scales);
}

static int code_at(const moment *m, size_t i)
{
    if (m->type == REMAT_BF16)
        return ((const uint16_t *)(const void *)m->bytes)[i];
    return m->type == REMAT_INT8 ? (int8_t)m->bytes[i] : m->bytes[i];
}

static double value_at(const moment *m, size_t i)
{
    int code = code_at(m, i);
    if (m->type == REMAT_BF16) { /* a float's upper half */
        const int exponent = code >> 7 & 255, mantissa = code & 127;
        const double value = exponent ? ldexp(1 + mantissa / 128.0, exponent - 127) : ldexp(mantissa / 128.0, -126);
        return code >> 15 ? -value : value;
    }
    const double value = listed(abs(code), (double)m->scales[i / BLOCK], m->type == REMAT_UINT8);
    return code < 0 ? -value : value;
}

static moment random_moment(test_random *random, remat_dtype type)
{
    moment m = {.type = type};
    for (size_t i = 0; i < MOST; i++) {
        const float value = random_value(random, type == REMAT_UINT8 ? 0 : -1, 1);
        const int bits = 3 + (int)test_random_below(random, 5);
        if (type == REMAT_BF16)
            ((uint16_t *)(void *)m.bytes)[i] = (uint16_t)(moment_bf16(value, 0) & 0x7fff);
        else
            m.bytes[i] = type == REMAT_INT8 ? (uint8_t)(int8_t)(value * 127) : (uint8_t)(255 * value);
        m.scales[i / BLOCK] =
            type == REMAT_UINT8 ? square_scale_with(1 - (254 >> bits), bits) : random_value(random, 0.1, 2);
    }
    return m;
}

/* The bits that the reference rounds value i with, by the definition in operation.h. */
static uint32_t number_at(const step_block *block, uint64_t parameter, size_t i, int half)
{
    uint32_t numbers[4];
    const remat_random stream = remat_random_stream(block->seed, 0x60000000u + (uint32_t)parameter, block->step);
    remat_random_block(&stream, i / 4, numbers);
    return half ? numbers[i % 4] >> 16 : numbers[i % 4] & 0xffff;
}

/* A new moment is a sum of two floats below 2; where they nearly cancel out, their rounding is all that is left. */
static const double SUM_ERROR = 4e-7;

static int wanted_code(double value, const moment *got, size_t i, uint32_t number)
{
    int code;
    if (got->type == REMAT_BF16) {
        int exponent;
        const double fraction = frexp(fabs(value), &exponent); /* 0.5 .. 1; eight bits of it are kept */
        const double units = floor(fraction * 256 + number / 65536.0);
        code = (int)units + ((exponent + 125) << 7); /* the bit before the point adds 1 << 7 */
        return value < 0 ? code | 1 << 15 : code;
    }
    code = slow_code(fabs(value), (double)got->scales[i / BLOCK], got->type == REMAT_UINT8, number);
    return value < 0 ? -code : code;
}

/* The scale of squares is that of the exact ones, or, where these are next to a power of 2, of their neighbours. */
static void expect_format(float scale, double smallest, double largest)
{
    const square_format got = format_of((double)scale);
    bool found = false;
    for (int i = 0; i < 9; i++) {
        const square_format f = slow_format(smallest * (1 + (i % 3 - 1) * 2e-6), largest * (1 + (i / 3 - 1) * 2e-6));
        found |= f.lowest == got.lowest && f.bits == got.bits;
    }
    assert_true(found);
}

/* How many codes of the moment differ from the slow ones; none by more than 1 from those of a value within the error of
 * the sum. `wanted` are the exact new values. */
static size_t count_other(const moment *got, const double *wanted, size_t count, const step_block *block,
                          uint64_t parameter, int half)
{
    size_t other = 0;
    for (size_t from = 0; from < count && got->type != REMAT_BF16; from += BLOCK) {
        double smallest = INFINITY, largest = 0;
        for (size_t i = from; i < count && i < from + BLOCK; i++) {
            largest = fmax(largest, fabs(wanted[i]));
            smallest = fmin(smallest, fabs(wanted[i]));
        }
        if (got->type == REMAT_UINT8)
            expect_format(got->scales[from / BLOCK], smallest, largest);
        else
            expect_near(got->scales[from / BLOCK], largest, 2e-6 * largest + SUM_ERROR);
    }
    for (size_t i = 0; i < count; i++) {
        const uint32_t number = number_at(block, parameter, i, half);
        const int code = wanted_code(wanted[i], got, i, number), found = code_at(got, i);
        other += code != found;
        if (abs(code - found) > 1) {
            const int a = wanted_code(wanted[i] - SUM_ERROR, got, i, number);
            const int b = wanted_code(wanted[i] + SUM_ERROR, got, i, number);
            const bool crosses = fabs(wanted[i]) <= SUM_ERROR;
            if (!crosses && (found < (a < b ? a : b) - 1 || found > (a < b ? b : a) + 1))
                fail_msg("value %zu: code %d, not %d", i, found, code);
        }
    }
    return other;
}

typedef struct problem {
    operation op;
    size_t count;
    float gradient[MOST], weight[MOST];
    moment first, second;
    step_block block;
} problem;

static tensor_ref behind(tensor_ref tensor, size_t values)
{
    return tensor.at ? (tensor_ref){(char *)tensor.at + dtype_bytes(tensor.type, values), tensor.type} : tensor;
}

/* The values from `from` on, a multiple of BLOCK. */
static void run_part(const kernel_table *table, const kernel_run *run, problem *p, size_t from, size_t count)
{
    const tensor_ref gradient = fp32(p->gradient + from), weight = fp32(p->weight + from), step = raw(&p->block);
    const tensor_ref first = behind(codes_of(&p->first), from), second = behind(codes_of(&p->second), from);
    const tensor_ref first_scales = behind(scales_of(&p->first), from / BLOCK);
    const tensor_ref second_scales = behind(scales_of(&p->second), from / BLOCK);
    if (p->op == OP_sgd)
        perform(table, run, p->op,
                &(op_sgd){gradient, weight, first, first_scales, step, count, 0.9, 0.01, true, 7, from});
    else if (p->op == OP_lion)
        perform(table, run, p->op,
                &(op_lion){gradient, weight, first, first_scales, step, count, 0.9, 0.99, 0.01, 7, from});
    else
        perform(table, run, p->op,
                &(op_adam){gradient, weight, first, second, first_scales, second_scales, step, count, 0.9, 0.999, 1e-8,
                           0.1, true, 7, from});
}

static void run_problem(const kernel_table *table, const kernel_run *run, problem *p)
{
    run_part(table, run, p, 0, p->count);
}

/* One step in double from what the codes stand for. */
static void slow_step(const problem *p, double *weight, double *first, double *second)
{
    for (size_t i = 0; i < p->count; i++) {
        const double m = value_at(&p->first, i), w = (double)p->weight[i], rate = p->block.rate;
        double g = (double)p->gradient[i] * p->block.scale;
        if (p->op == OP_sgd) {
            g += 0.01 * w;
            first[i] = 0.9 * m + g;
            weight[i] = w - rate * (g + 0.9 * first[i]);
        } else if (p->op == OP_lion) {
            const double direction = 0.9 * m + 0.1 * g;
            first[i] = 0.99 * m + 0.01 * g;
            weight[i] = w * (1 - rate * 0.01) - rate * (direction > 0 ? 1 : direction < 0 ? -1 : 0);
        } else {
            const double beta1 = (double)0.9f, beta2 = (double)0.999f; /* as the kernels have them */
            first[i] = beta1 * m + (1 - beta1) * g;
            second[i] = beta2 * value_at(&p->second, i) + (1 - beta2) * g * g;
            weight[i] = w * (1 - rate * 0.1) -
                        rate * (first[i] / p->block.correction1) / (sqrt(second[i] / p->block.correction2) + 1e-8);
        }
    }
}

static void expect_slow_step(const kernel_table *table, const problem *start)
{
    static double weight[MOST], first[MOST], second[MOST];
    slow_step(start, weight, first, second);
    problem done[3];
    const int threads[3] = {1, 2, 8};
    for (int t = 0; t < 3; t++) {
        kernel_run run = kernel_run_open(table, threads[t]);
        done[t] = *start;
        run_problem(table, &run, &done[t]);
        kernel_run_close(&run);
        assert_memory_equal(&done[0], &done[t], sizeof done[0]);
    }
    assert_int_equal(done[0].block.broken, 0);
    for (size_t i = 0; i < start->count; i++)
        expect_near(done[0].weight[i], weight[i], 2e-6 * fmax(1, fabs(weight[i])));
    size_t other = count_other(&done[0].first, first, start->count, &start->block, 7, 0);
    if (start->op == OP_adam)
        other += count_other(&done[0].second, second, start->count, &start->block, 7, 1);
    assert_true(other <= start->count / 200 + 1);  /* on an edge a rounding of the float decides */
    for (size_t i = start->count; i < MOST; i++) { /* nothing beyond the end */
        assert_int_equal(code_at(&done[0].first, i), code_at(&start->first, i));
        expect_same_bits(&done[0].weight[i], &start->weight[i], 1);
    }
}

/* A parameter in two parts has the same bits as the whole. */
static void expect_parts(const kernel_table *table, const problem *start)
{
    problem whole = *start, parts = *start;
    const size_t cut = start->count > 2 * BLOCK ? 2 * BLOCK : 0;
    kernel_run run = kernel_run_open(table, 1);
    run_problem(table, &run, &whole);
    run_part(table, &run, &parts, cut, start->count - cut);
    run_part(table, &run, &parts, 0, cut);
    kernel_run_close(&run);
    assert_memory_equal(&whole, &parts, sizeof whole);
}

static void steps_are_those_of_the_slow_version(void **state)
{
    (void)state;
    test_random random = random_open();
    static const operation ops[] = {OP_sgd, OP_adam, OP_lion};
    static const size_t sizes[] = {1, 7, 255, 256, 257, 700, 1999};
    for (size_t kind = 0; kind < 6; kind++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            problem p = {.op = ops[kind / 2], .count = sizes[s]};
            p.first = random_moment(&random, kind % 2 ? REMAT_INT8 : REMAT_BF16);
            p.second = random_moment(&random, kind % 2 ? REMAT_UINT8 : REMAT_BF16);
            p.block = (step_block){.seed = test_random_next(&random),
                                   .step = 5,
                                   .rate = 1e-3,
                                   .scale = 0.5,
                                   .correction1 = 0.5,
                                   .correction2 = 0.25};
            for (size_t i = 0; i < MOST; i++) {
                p.gradient[i] = random_value(&random, -1, 1);
                p.weight[i] = random_value(&random, -1, 1);
            }
            expect_slow_step(kernels_reference(), &p);
            expect_parts(kernels_reference(), &p);
            expect_parts(kernels_fast(), &p);
            for (const kernel_table *const *table = kernel_tables(); *table; table++)
                expect_slow_step(*table, &p);
        }
}

/* A mean that shrinks by less than the distance of two codes goes down all the same: rounding has no bias. */
static void slow_means_do_not_stand_still(void **state)
{
    (void)state;
    test_random random = random_open();
    for (int type = 0; type < 2; type++)
        for (int fast = 0; fast < 2; fast++) {
            static problem p;
            const kernel_table *table = fast ? kernels_fast() : kernels_reference();
            p = (problem){.op = OP_lion, .count = MOST};
            p.first = random_moment(&random, type ? REMAT_INT8 : REMAT_BF16);
            double before = 0, after = 0;
            for (size_t i = 0; i < MOST; i++)
                before += fabs(value_at(&p.first, i));
            kernel_run run = kernel_run_open(table, 1);
            for (uint32_t step = 0; step < 100; step++) { /* the gradient is 0 */
                p.block = (step_block){.seed = 3, .step = step, .scale = 1};
                run_problem(table, &run, &p);
            }
            kernel_run_close(&run);
            for (size_t i = 0; i < MOST; i++)
                after += fabs(value_at(&p.first, i));
            expect_near(after / before, pow(0.99, 100), 0.02);
        }
}

/* A gradient that is not finite leaves its block as it was, and is noted. */
static void a_broken_gradient_changes_no_moment(void **state)
{
    (void)state;
    test_random random = random_open();
    const kernel_table *tables[] = {kernels_reference(), kernels_fast()};
    for (int fast = 0; fast < 2; fast++) {
        problem p = {.op = OP_adam, .count = 300, .block = {.rate = 1, .scale = 1, .correction1 = 1, .correction2 = 1}};
        p.first = random_moment(&random, REMAT_INT8);
        p.second = random_moment(&random, REMAT_UINT8);
        p.gradient[290] = NAN;
        const problem before = p;
        kernel_run run = kernel_run_open(tables[fast], 2);
        run_problem(tables[fast], &run, &p);
        kernel_run_close(&run);
        assert_int_equal(p.block.broken, 8);
        assert_memory_equal(p.first.bytes + 256, before.first.bytes + 256, 44);
        assert_memory_equal(p.weight + 256, before.weight + 256, 44 * sizeof *p.weight);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_those_of_the_list),
        cmocka_unit_test(squares_have_the_bits_that_their_range_leaves),
        cmocka_unit_test(squares_at_the_ends_stay_numbers),
        cmocka_unit_test(steps_are_those_of_the_slow_version),
        cmocka_unit_test(slow_means_do_not_stand_still),
        cmocka_unit_test(a_broken_gradient_changes_no_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
