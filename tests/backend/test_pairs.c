/* Products in bf16 by the sets that have instructions for them, and by a model of AMX in plain C, which has the same packing and
 * runs on every processor. */
#include <math.h>
#include <stdio.h>

#include "backend/cpu/fast.h"
#include "base/half.h"
#include "gemm_case.h"

void gemm_model(const kernel_run *run, const void *args);

/* A GEMM of pairs. */
typedef struct product {
    const char *name;
    kernel_function run;
} product;

/* The model and the sets of this processor; returns how many. */
static size_t find_products(product all[4])
{
    size_t count = 0;
    all[count++] = (product){"model", gemm_model};
    for (const kernel_table *const *table = kernels_available(); *table; table++)
        if ((*table)->multiplies_halves)
            all[count++] = (product){(*table)->name, kernel_find(*table, OP_gemm, "bbbfff")->run};
    return count;
}

static void run_product(const product *of, int threads, const op_gemm *p)
{
    kernel_run run = {threads, aligned_alloc(64, (size_t)threads * FAST_SCRATCH_BYTES)};
    assert_non_null(run.scratch);
    of->run(&run, p);
    free(run.scratch);
}

/* ---- operands in both types ---- */

enum { HALF_A = 1, HALF_B = 2, HALF_C = 4 };

/* A case whose operands are also there in bf16. Values of a half operand are those of bf16 in fp32 as well. */
typedef struct pairs_case {
    gemm_case full;
    uint16_t *a, *b, *c;
    float *rounded_a, *rounded_b; /* as pairs multiply them */
    float *before;                /* C */
} pairs_case;

static float *rounded_values(const float *values, size_t count)
{
    float *rounded = values_copy(values, count);
    uint16_t *halves = malloc((count ? count : 1) * sizeof *halves);
    half_pack(half_kernels_list(0), REMAT_BF16, false, values, halves, count);
    half_unpack(half_kernels_list(0), REMAT_BF16, halves, rounded, count);
    free(halves);
    return rounded;
}

static uint16_t *halves_of(float *values, size_t count, bool round)
{
    uint16_t *halves = aligned_alloc(64, (count / 32 + 1) * 64); /* whole lines, which tiles are loaded from */
    assert_non_null(halves);
    half_pack(half_kernels_list(0), REMAT_BF16, false, values, halves, count);
    if (round)
        half_unpack(half_kernels_list(0), REMAT_BF16, halves, values, count);
    return halves;
}

static pairs_case pairs_open(test_random *random, size_t m, size_t n, size_t k, unsigned shape, unsigned halves)
{
    pairs_case of = {.full = case_open(random, m, n, k, halves & HALF_C ? shape & 15 : shape, shape % 3)};
    gemm_case *full = &of.full;
    of.a = halves_of(full->a, full->a_count, halves & HALF_A);
    of.b = halves_of(full->b, full->b_count, halves & HALF_B);
    of.c = halves_of(full->c, full->c_count, halves & HALF_C);
    of.rounded_a = rounded_values(full->a, full->a_count);
    of.rounded_b = rounded_values(full->b, full->b_count);
    of.before = values_copy(full->c, full->c_count);
    full->p.a = halves & HALF_A ? (tensor_ref){of.a, REMAT_BF16} : full->p.a;
    full->p.b = halves & HALF_B ? (tensor_ref){of.b, REMAT_BF16} : full->p.b;
    full->p.c = halves & HALF_C ? (tensor_ref){of.c, REMAT_BF16} : full->p.c;
    return of;
}

/* C as it was. */
static void pairs_reset(pairs_case *of)
{
    memcpy(of->full.c, of->before, of->full.c_count * sizeof(float));
    half_pack(half_kernels_list(0), REMAT_BF16, false, of->before, of->c, of->full.c_count);
}

/* C as fp32; the caller frees. */
static float *pairs_result(const pairs_case *of)
{
    float *result = values_copy(of->full.c, of->full.c_count);
    if (of->full.p.c.type == REMAT_BF16)
        half_unpack(half_kernels_list(0), REMAT_BF16, of->c, result, of->full.c_count);
    return result;
}

static void pairs_close(pairs_case *of)
{
    free(of->a);
    free(of->b);
    free(of->c);
    free(of->rounded_a);
    free(of->rounded_b);
    free(of->before);
    case_close(&of->full);
}

/* ---- against sums in fp64 ---- */

/* Products that are not of pairs round no operand. */
static bool is_of_pairs(const op_gemm *p)
{
    return p->a.type == REMAT_BF16 || p->c.type == REMAT_BF16 || (p->transpose_a && p->b.type == REMAT_BF16);
}

/* The error of a sum is at most k * 2^-24 of the sum of all magnitudes, and what is flushed; then come the bias and the
 * rounding of C to bf16. */
static void judge_value(const product *by, const pairs_case *of, size_t i, size_t j, const float *result)
{
    const gemm_case *full = &of->full;
    const op_gemm *p = &full->p;
    const float *a = is_of_pairs(p) ? of->rounded_a : full->a, *b = is_of_pairs(p) ? of->rounded_b : full->b;
    const size_t place = i * p->ldc + j;
    double sum = p->accumulate ? (double)of->before[place] : 0, magnitude = fabs(sum);
    for (size_t l = 0; l < p->k; l++) {
        const double term = (double)a[p->transpose_a ? l * p->lda + i : i * p->lda + l] *
                            (double)b[p->transpose_b ? j * p->ldb + l : l * p->ldb + j];
        sum += term;
        magnitude += fabs(term);
    }
    sum += p->bias.at ? (double)full->bias[j] : 0;
    magnitude += p->bias.at ? fabs((double)full->bias[j]) : 0;
    const double bound = (double)(p->k + 2) * (0x1p-24 * magnitude + 0x1p-126) +
                         (p->c.type == REMAT_BF16 ? 0x1p-8 * (fabs(sum) + 0x1p-24 * magnitude) : 0);
    if (!(fabs((double)result[place] - sum) <= bound))
        fail_msg("%s: %zu x %zu x %zu, transposed %d %d: value %zu, %zu is %.9g, not %.9g", by->name, p->m, p->n, p->k,
                 p->transpose_a, p->transpose_b, i, j, (double)result[place], sum);
}

static void judge_activated(const pairs_case *of, const float *result)
{
    const gemm_case *full = &of->full;
    const op_gemm *p = &full->p;
    kernel_run run = {1, NULL};
    float *wanted = values_copy(result, full->c_count);
    const tensor_ref at = p->derivative_at;
    if (at.at)
        perform(kernels_reference(), &run, OP_activate_backward,
                &(op_activate_backward){at, at, fp32(wanted), fp32(wanted), full->c_count, p->activation, false});
    else
        perform(kernels_reference(), &run, OP_activate,
                &(op_activate){fp32(wanted), fp32(wanted), full->c_count, p->activation});
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < p->n; j++)
            expect_near(full->activated[i * p->ldc + j], wanted[i * p->ldc + j],
                        1e-5 * (1 + fabs((double)wanted[i * p->ldc + j])));
    free(wanted);
}

/* Every value, and the same bits with any number of threads. Values between the rows of C are not touched. */
static void judge_pairs(test_random *random, size_t m, size_t n, size_t k, unsigned shape, unsigned halves)
{
    product all[4];
    const size_t count = find_products(all);
    pairs_case of = pairs_open(random, m, n, k, shape & ~32u, halves);
    for (size_t i = 0; i < count; i++) {
        pairs_reset(&of);
        run_product(&all[i], 1, &of.full.p);
        float *first = pairs_result(&of);
        for (size_t row = 0; row < m; row++) {
            for (size_t column = 0; column < n; column++)
                judge_value(&all[i], &of, row, column, first);
            for (size_t column = n; n > 0 && row + 1 < m && column < of.full.p.ldc; column++)
                assert_true(first[row * of.full.p.ldc + column] == of.before[row * of.full.p.ldc + column]);
        }
        if (of.full.p.activated.at)
            judge_activated(&of, first);
        for (int threads = 2; threads <= 8; threads += 3) {
            pairs_reset(&of);
            run_product(&all[i], threads, &of.full.p);
            float *again = pairs_result(&of);
            expect_same_bits(again, first, of.full.c_count);
            free(again);
        }
        free(first);
    }
    pairs_close(&of);
}

static void small_ones_are_within_their_error(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 40, 47, 48, 49, 63, 64, 65, 70, 100};
    test_random random = random_open();
    for (unsigned i = 0; i < LESS_WHEN_SANITIZED(420, 84); i++)
        judge_pairs(&random, sizes[test_random_below(&random, 20)], sizes[test_random_below(&random, 20)],
                    sizes[test_random_below(&random, 20)], (unsigned)test_random_below(&random, 128), 1 + i % 7);
}

/* Larger than the blocks in each direction. */
static void large_ones_are_within_their_error(void **state)
{
    (void)state;
    test_random random = random_open();
    for (unsigned shape = 0; shape < 4; shape += LESS_WHEN_SANITIZED(1, 3)) {
        judge_pairs(&random, 33, 1145, 520, shape | 8, HALF_A);
        judge_pairs(&random, 70, 1045, 40, shape | 8, HALF_A | HALF_C);
        judge_pairs(&random, 40, 70, 1100, shape | 4, HALF_A | HALF_B);
        judge_pairs(&random, 43, 300, 520, shape | 12, HALF_B | HALF_C);
        judge_pairs(&random, 530, 33, 545, shape | 4, HALF_A | HALF_B | HALF_C);
        judge_pairs(&random, 100, 100, 200, shape | 8 | 16, HALF_A);
    }
}

/* Sums in several blocks of tiles, and tiles of A that are loaded from where it is: with shape % 3 = 0 its rows are whole lines. */
static void long_ones_are_within_their_error(void **state)
{
    (void)state;
    test_random random = random_open();
    for (unsigned shape = 0; shape < 16; shape += LESS_WHEN_SANITIZED(3, 6)) {
        judge_pairs(&random, 50, 40, 1632, shape, HALF_A | HALF_C);
        judge_pairs(&random, 48, 40, 3136, shape, HALF_A | HALF_B);
        judge_pairs(&random, 90, 70, 96, shape, HALF_A | HALF_C);
    }
}

static void empty_ones_do_nothing(void **state)
{
    (void)state;
    test_random random = random_open();
    for (unsigned shape = 0; shape < 16; shape++)
        for (unsigned halves = 1; halves < 8; halves++) {
            judge_pairs(&random, 0, 5, 7, shape, halves);
            judge_pairs(&random, 5, 0, 7, shape, halves);
            judge_pairs(&random, 11, 19, 0, shape, halves);
        }
}

/* ---- bits ---- */

/* A sum that is cut along k keeps its bits, and so do rows and columns by themselves. */
static void cuts_keep_the_bits(void **state)
{
    (void)state;
    test_random random = random_open();
    product all[4];
    const size_t count = find_products(all);
    for (unsigned shape = 0; shape < 8; shape++) {
        const size_t m = 60, n = 75, k = 2 * OPERATION_K_BLOCK + 21, row = 1 + test_random_below(&random, m - 1),
                     column = 1 + test_random_below(&random, n - 1);
        pairs_case of = pairs_open(&random, m, n, k, shape, HALF_A | HALF_B);
        for (size_t i = 0; i < count; i++) {
            pairs_reset(&of);
            run_product(&all[i], 1, &of.full.p);
            float *wanted = pairs_result(&of);
            pairs_reset(&of);
            for (size_t piece = 0; piece < 12; piece++) {
                op_gemm p = of.full.p;
                const size_t step = piece / 4 * OPERATION_K_BLOCK;
                const size_t down = piece & 1 ? row : 0, right = piece & 2 ? column : 0;
                p.m = piece & 1 ? m - row : row;
                p.n = piece & 2 ? n - column : column;
                p.k = k - step < OPERATION_K_BLOCK ? k - step : OPERATION_K_BLOCK;
                p.a = tensor_from(p.a, p.transpose_a ? step * p.lda + down : down * p.lda + step);
                p.b = tensor_from(p.b, p.transpose_b ? right * p.ldb + step : step * p.ldb + right);
                p.c = tensor_from(p.c, down * p.ldc + right);
                p.accumulate |= step > 0;
                run_product(&all[i], 2, &p);
            }
            expect_same_bits(of.full.c, wanted, of.full.c_count);
            free(wanted);
        }
        pairs_close(&of);
    }
}

/* What is not finite stays in its row or column, whatever is filled up around it. */
static void infinities_stay_where_they_are(void **state)
{
    (void)state;
    test_random random = random_open();
    product all[4];
    const size_t count = find_products(all);
    for (unsigned shape = 0; shape < 4; shape++) {
        pairs_case of = pairs_open(&random, 19, 21, 37, shape, HALF_A | HALF_B);
        const op_gemm *p = &of.full.p;
        of.a[p->transpose_a ? 36 * p->lda + 4 : 4 * p->lda + 36] = 0x7f80;
        of.b[p->transpose_b ? 7 * p->ldb + 36 : 36 * p->ldb + 7] = 0x7fc0;
        for (size_t i = 0; i < count; i++) {
            run_product(&all[i], 1, p);
            for (size_t row = 0; row < p->m; row++)
                for (size_t column = 0; column < p->n; column++)
                    assert_int_equal(!isfinite(of.full.c[row * p->ldc + column]), row == 4 || column == 7);
        }
        pairs_close(&of);
    }
}

/* Weights in fewer bits are rounded as those in fp32 are. */
static void weights_give_the_bits_of_floats(void **state)
{
    (void)state;
    test_random random = random_open();
    judge_all_weights(&random, gemm_model, REMAT_FP16, false);
    judge_all_weights(&random, gemm_model, REMAT_INT8_BLOCKS, false);
    judge_all_weights(&random, gemm_model, REMAT_INT4_BLOCKS, false);
}

/* Who reads the output knows which sets were tested here. */
static void sets_that_this_processor_lacks(void **state)
{
    (void)state;
    product all[4];
    const size_t count = find_products(all);
    for (size_t i = 1; i < count; i++)
        printf("tested here: %s\n", all[i].name);
    if (count < 3)
        skip(); /* amx, avx512bf16 or both */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_ones_are_within_their_error),
        cmocka_unit_test(large_ones_are_within_their_error),
        cmocka_unit_test(long_ones_are_within_their_error),
        cmocka_unit_test(empty_ones_do_nothing),
        cmocka_unit_test(cuts_keep_the_bits),
        cmocka_unit_test(infinities_stay_where_they_are),
        cmocka_unit_test(weights_give_the_bits_of_floats),
        cmocka_unit_test(sets_that_this_processor_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
