#include <math.h>

#include "base/half.h"
#include "gemm_case.h"
#include "support/device_kernels.h"

static void fast_agrees_with_the_reference(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 23, 24, 31, 33, 47, 48, 49, 64, 65, 80, 100};
    test_random random = random_open();
    for (int i = 0; i < LESS_WHEN_SANITIZED(400, 60); i++) {
        size_t m = sizes[test_random_below(&random, 23)], n = sizes[test_random_below(&random, 23)];
        size_t k = sizes[test_random_below(&random, 23)];
        judge(&random, m, n, k, (unsigned)test_random_below(&random, 128), test_random_below(&random, 3));
    }
}

/* Larger than the blocks that are packed at a time, each way, and worth several threads. */
static void large_ones_agree(void **state)
{
    (void)state;
    test_random random = random_open();
    for (unsigned shape = 0; shape < 4; shape += LESS_WHEN_SANITIZED(1, 3)) {
        unsigned rest = (unsigned)test_random_below(&random, 32) * 4;
        judge(&random, 421, 21, LESS_WHEN_SANITIZED(800, 390), shape | rest, 0);
        judge(&random, 5, 1601, LESS_WHEN_SANITIZED(790, 400), shape | rest, 1);
        judge(&random, 213, 795, 21, shape | rest, 0);
        judge(&random, 96, 96, 2 * OPERATION_K_BLOCK, shape | rest, 0);
    }
}

static void empty_ones_do_nothing(void **state)
{
    (void)state;
    test_random random = random_open();
    for (unsigned shape = 0; shape < 128; shape += LESS_WHEN_SANITIZED(1, 5)) {
        judge(&random, 0, 5, 7, shape, 1);
        judge(&random, 5, 0, 7, shape, 1);
        judge(&random, 11, 19, 0, shape, 1); /* 0 or what was there, and the bias */
    }
}

static void the_reference_is_a_gemm(void **state)
{
    (void)state;
    test_random random = random_open();
    kernel_run run = {1, NULL};
    for (unsigned shape = 0; shape < 16; shape++) {
        gemm_case of = case_open(&random, 6, 11, OPERATION_K_BLOCK + 9, shape, 2);
        const op_gemm *p = &of.p;
        float *before = values_copy(of.c, of.c_count);
        perform(kernels_reference(), &run, OP_gemm, p);
        for (size_t i = 0; i < p->m; i++) {
            for (size_t j = 0; j < p->n; j++) {
                double sum = p->accumulate ? (double)before[i * p->ldc + j] : 0;
                for (size_t l = 0; l < p->k; l++)
                    sum += (double)of.a[p->transpose_a ? l * p->lda + i : i * p->lda + l] *
                           (double)of.b[p->transpose_b ? j * p->ldb + l : l * p->ldb + j];
                expect_near(of.c[i * p->ldc + j], sum + (p->bias.at ? (double)of.bias[j] : 0), 1e-4);
            }
        }
        free(before);
        case_close(&of);
    }
}

/* ---- operands in bf16 ---- */

/* Makes the values of a matrix those of bf16, and returns them in bf16, in memory of exactly their size. */
static uint16_t *halve(float *values, size_t count)
{
    uint16_t *halves = malloc(count * sizeof *halves);
    half_pack(half_kernels_list(0), REMAT_BF16, false, values, halves, count);
    half_unpack(half_kernels_list(0), REMAT_BF16, halves, values, count);
    return halves;
}

/* In sets that multiply in fp32, operands in bf16 give the bits that they give in fp32, and a result in bf16 is that result,
 * rounded. */
static void judge_halves(test_random *random, size_t m, size_t n, size_t k, unsigned shape)
{
    gemm_case of = case_open(random, m, n, k, shape, shape & 1);
    uint16_t *a = halve(of.a, of.a_count), *b = halve(of.b, of.b_count);
    float *before = values_copy(of.c, of.c_count);
    free(halve(before, of.c_count)); /* values that bf16 has */
    const kernel_table *const *tables = kernels_available();
    for (size_t t = 0; tables[t]; t++) {
        if (tables[t]->multiplies_halves)
            continue; /* test_pairs.c */
        kernel_run run = kernel_run_open(tables[t], 2);
        memcpy(of.c, before, of.c_count * sizeof *before);
        perform(tables[t], &run, OP_gemm, &of.p);
        float *wanted = values_copy(of.c, of.c_count), *full = values_copy(of.c, of.c_count);
        uint16_t *rounded = halve(wanted, of.c_count), *c = halve(before, of.c_count);
        for (unsigned which = 1; which < 8; which++) {
            op_gemm p = of.p;
            p.a = which & 1 ? (tensor_ref){a, REMAT_BF16} : p.a;
            p.b = which & 2 ? (tensor_ref){b, REMAT_BF16} : p.b;
            p.c = which & 4 ? (tensor_ref){c, REMAT_BF16} : p.c;
            if (which & 4 && k > OPERATION_K_BLOCK)
                continue;
            memcpy(of.c, before, of.c_count * sizeof *before);
            half_pack(half_kernels_list(0), REMAT_BF16, false, before, c, of.c_count);
            perform(tables[t], &run, OP_gemm, &p);
            if (which & 4)
                assert_memory_equal(c, rounded, of.c_count * sizeof *c);
            else
                expect_same_bits(of.c, full, of.c_count);
        }
        free(full);
        free(rounded);
        free(c);
        free(wanted);
        kernel_run_close(&run);
    }
    free(before);
    free(a);
    free(b);
    case_close(&of);
}

static void halves_give_the_bits_of_floats(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 3, 4, 7, 8, 16, 23, 24, 31, 48, 49, 100};
    test_random random = random_open();
    for (int i = 0; i < LESS_WHEN_SANITIZED(200, 40); i++)
        judge_halves(&random, sizes[test_random_below(&random, 12)], sizes[test_random_below(&random, 12)],
                     sizes[test_random_below(&random, 12)], (unsigned)test_random_below(&random, 16));
    for (unsigned shape = 0; shape < 4; shape++)
        judge_halves(&random, 213, 795, OPERATION_K_BLOCK + 6, shape);
}

/* ---- weights in fewer bits ---- */

static void weights_give_the_bits_of_floats(void **state)
{
    (void)state;
    static const remat_dtype types[] = {REMAT_FP16, REMAT_INT8_BLOCKS, REMAT_INT4_BLOCKS};
    test_random random = random_open();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const char signature[] = {'f', dtype_traits_of(types[i])->letter, 'f', 'f', 'f', 'f', '\0'};
        for (const kernel_table *const *table = kernels_available(); *table; table++)
            judge_all_weights(&random, kernel_find(*table, OP_gemm, signature)->run, types[i], true);
    }
}

/* All numbers in fp16: 1 times each of them. */
static void every_half_is_exact(void **state)
{
    (void)state;
    enum { COUNT = 1 << 16, WIDTH = 1 << 10 };
    uint16_t *halves = malloc(COUNT * sizeof *halves);
    float *wanted = malloc(COUNT * sizeof *wanted), *found = malloc(COUNT * sizeof *found), one = 1;
    for (size_t i = 0; i < COUNT; i++)
        halves[i] = (uint16_t)i;
    half_unpack(half_kernels_list(0), REMAT_FP16, halves, wanted, COUNT);
    for (const kernel_table *const *table = kernels_available(); *table; table++) {
        kernel_run run = kernel_run_open(*table, 1);
        /* bf16 would round them, so products of pairs are not asked */
        const kernel_row *row = kernel_find(*table, OP_gemm, "fhffff");
        for (size_t at = 0; at < COUNT; at += WIDTH) {
            const op_gemm p = {.a = fp32(&one),
                               .b = {halves + at, REMAT_FP16},
                               .c = fp32(found + at),
                               .m = 1,
                               .n = WIDTH,
                               .k = 1,
                               .lda = 1,
                               .ldb = WIDTH,
                               .ldc = WIDTH};
            row->run(&run, &p);
        }
        for (size_t i = 0; i < COUNT; i++)
            assert_true(isnan(wanted[i]) ? isnan(found[i]) : found[i] == wanted[i]);
        kernel_run_close(&run);
    }
    free(halves);
    free(wanted);
    free(found);
}

/* ---- bits ---- */

typedef struct piece {
    size_t row, rows, column, columns, step, steps;
} piece;

static void multiply_piece(const kernel_table *table, const kernel_run *run, const op_gemm *whole, piece at)
{
    op_gemm p = *whole;
    size_t place = at.row * p.ldc + at.column;
    p.m = at.rows;
    p.n = at.columns;
    p.k = at.steps;
    p.a = tensor_from(p.a, p.transpose_a ? at.step * p.lda + at.row : at.row * p.lda + at.step);
    p.b = tensor_from(p.b, p.transpose_b ? at.column * p.ldb + at.step : at.step * p.ldb + at.column);
    p.c = tensor_from(p.c, place);
    p.accumulate = whole->accumulate || at.step > 0;
    bool last = at.step + at.steps == whole->k;
    p.bias = last ? tensor_from(whole->bias, at.column) : TENSOR_NONE;
    p.activated = last ? tensor_from(whole->activated, place) : TENSOR_NONE;
    p.derivative_at = tensor_from(whole->derivative_at, place);
    perform(table, run, OP_gemm, &p);
}

static void judge_cuts(const kernel_table *table, int threads, gemm_case *of, test_random *random)
{
    const op_gemm *p = &of->p;
    kernel_run run = kernel_run_open(table, threads);
    float *start = values_copy(of->c, of->c_count), *wanted, *wanted_activated;
    perform(table, &run, OP_gemm, p);
    wanted = values_copy(of->c, of->c_count);
    wanted_activated = values_copy(of->activated, of->c_count);
    memcpy(of->c, start, of->c_count * sizeof(float));
    for (size_t row = 0, rows; row < p->m; row += rows) {
        rows = 1 + test_random_below(random, p->m - row);
        for (size_t column = 0, columns; column < p->n; column += columns) {
            columns = 1 + test_random_below(random, p->n - column);
            for (size_t step = 0, steps; step < p->k; step += steps) {
                steps = p->k - step < OPERATION_K_BLOCK ? p->k - step : OPERATION_K_BLOCK;
                multiply_piece(table, &run, p, (piece){row, rows, column, columns, step, steps});
            }
        }
    }
    expect_same_bits(of->c, wanted, of->c_count);
    expect_same_bits(of->activated, wanted_activated, of->c_count);
    free(start);
    free(wanted);
    free(wanted_activated);
    kernel_run_close(&run);
}

static void cuts_keep_the_bits(void **state)
{
    (void)state;
    if (device_kernels())
        skip(); /* only the processor's kernels promise it */
    test_random random = random_open();
    for (unsigned i = 0; i < 48; i += LESS_WHEN_SANITIZED(1, 3)) {
        unsigned shape = i < 32 ? i : i + 48; /* the last 16 with a derivative */
        size_t m = 1 + test_random_below(&random, 60), n = 1 + test_random_below(&random, 150);
        size_t k = 1 + test_random_below(&random, 2 * OPERATION_K_BLOCK + 50);
        for (const kernel_table *const *table = kernel_tables(); *table; table++) {
            gemm_case of = case_open(&random, m, n, k, shape, 1);
            judge_cuts(*table, 1 + (int)test_random_below(&random, 3), &of, &random);
            case_close(&of);
        }
        if (i % 4 == 0) {
            gemm_case of = case_open(&random, m, n, k, shape, 1);
            judge_cuts(kernels_reference(), 1, &of, &random);
            case_close(&of);
        }
    }
}

/* ---- what comes behind the GEMM: the same bits as a call of its own ---- */

/* Rows and columns around the edges of tiles and vectors; k of one block and of several. */
typedef struct extent {
    size_t m, n, k;
} extent;
static const extent extents[] = {
    {1, 1, 3},    {5, 16, 30},  {6, 17, 7},   {8, 15, 2},  {13, 48, 40},
    {14, 49, 12}, {19, 77, 30}, {29, 97, 12}, {37, 33, 2}, {12, 65, OPERATION_K_BLOCK + 5}};
enum { EXTENTS = sizeof extents / sizeof extents[0] };

static void judge_behind(const kernel_table *table, gemm_case *of, int threads)
{
    op_gemm *p = &of->p, plain = *p;
    kernel_run run = kernel_run_open(table, threads);
    float *wanted = values_copy(of->c, of->c_count), *made;
    plain.c = fp32(wanted);
    plain.activated = TENSOR_NONE;
    perform(table, &run, OP_gemm, &plain);
    made = values_copy(wanted, of->c_count);
    if (p->derivative_at.at)
        perform(table, &run, OP_activate_backward,
                &(op_activate_backward){p->derivative_at, p->derivative_at, plain.c, plain.c, of->c_count,
                                        p->activation, false});
    else
        perform(table, &run, OP_activate, &(op_activate){plain.c, plain.c, of->c_count, p->activation});
    perform(table, &run, OP_gemm, p);
    expect_same_bits(p->activated.at, wanted, of->c_count);
    if (p->activated.at != p->c.at)
        expect_same_bits(of->c, made, of->c_count);
    free(wanted);
    free(made);
    kernel_run_close(&run);
}

static void activated_is_the_activation_of_c(void **state)
{
    (void)state;
    test_random random = random_open();
    for (int kind = ACTIVATION_NONE; kind <= ACTIVATION_SWISH; kind++)
        for (size_t i = 0; i < EXTENTS; i += LESS_WHEN_SANITIZED(1, 3)) {
            unsigned shape = (unsigned)test_random_below(&random, 16);
            for (const kernel_table *const *table = kernel_tables(); *table; table++)
                for (unsigned behind = 0; behind < 4; behind++) { /* apart or in place, value or derivative */
                    unsigned whole = shape | (behind & 1 ? 32 : 16) | (behind & 2 ? 64 : 0);
                    gemm_case of = case_open(&random, extents[i].m, extents[i].n, extents[i].k, whole, 0);
                    of.p.activation = (activation_kind)kind;
                    judge_behind(*table, &of, 1 + (int)(i % 3));
                    case_close(&of);
                }
        }
    /* Worth several threads. */
    for (unsigned behind = 0; behind < 4; behind++) {
        gemm_case of = case_open(&random, 131, 203, 40, 8 | (behind & 1 ? 32 : 16) | (behind & 2 ? 64 : 0), 0);
        judge_behind(kernel_tables()[0], &of, 3);
        case_close(&of);
    }
}

/* In double, from what the derivatives are. */
static double derivative_of(activation_kind kind, double v)
{
    double t = tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)), s = 1 / (1 + exp(-v));
    switch (kind) {
    case ACTIVATION_NONE: return 1;
    case ACTIVATION_RELU: return v > 0;
    case ACTIVATION_LEAKY_RELU: return v > 0 ? 1 : 0.01;
    case ACTIVATION_GELU_TANH:
        return 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * v * v);
    case ACTIVATION_GELU_ERF: return 0.5 * (1 + erf(v / 1.4142135623730951)) + v * exp(-v * v / 2) / 2.5066282746310002;
    case ACTIVATION_SIGMOID: return v * (1 - v);
    case ACTIVATION_TANH: return 1 - v * v;
    case ACTIVATION_SWISH: return s + v * s * (1 - s);
    }
    return 0;
}

static void derivatives_are_right(void **state)
{
    (void)state;
    test_random random = random_open();
    for (int kind = ACTIVATION_NONE; kind <= ACTIVATION_SWISH; kind++)
        for (unsigned in_place = 0; in_place < 2; in_place++) {
            gemm_case of = case_open(&random, 7, 19, 11, 2 | 4 | 64 | (in_place ? 32 : 16), 1);
            kernel_run run = {1, NULL};
            of.p.activation = (activation_kind)kind;
            op_gemm plain = of.p;
            float *c = values_copy(of.c, of.c_count);
            const float *activated = of.p.activated.at;
            plain.c = fp32(c);
            plain.activated = TENSOR_NONE;
            perform(kernels_reference(), &run, OP_gemm, &plain);
            perform(kernels_reference(), &run, OP_gemm, &of.p);
            for (size_t i = 0; i < of.p.m; i++)
                for (size_t j = 0; j < of.p.n; j++) {
                    size_t place = i * of.p.ldc + j;
                    double wanted = (double)c[place] * derivative_of(of.p.activation, (double)of.at[place]);
                    expect_near(activated[place], wanted, 2e-6 * (1 + fabs(wanted)));
                }
            free(c);
            case_close(&of);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_give_the_bits_of_floats),
        cmocka_unit_test(weights_give_the_bits_of_floats),
        cmocka_unit_test(every_half_is_exact),
        cmocka_unit_test(the_reference_is_a_gemm),
        cmocka_unit_test(fast_agrees_with_the_reference),
        cmocka_unit_test(large_ones_agree),
        cmocka_unit_test(empty_ones_do_nothing),
        cmocka_unit_test(cuts_keep_the_bits),
        cmocka_unit_test(activated_is_the_activation_of_c),
        cmocka_unit_test(derivatives_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
