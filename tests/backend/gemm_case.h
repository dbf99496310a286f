/* GEMMs to be tested, in memory of exactly their size. */
#ifndef TESTS_GEMM_CASE_H
#define TESTS_GEMM_CASE_H

#include "base/half.h"
#include "base/weight_blocks.h"
#include "support/fixture.h"
#include "support/kernel_compare.h"

/* A GEMM with its memory: every matrix ends where its last value does. */
typedef struct gemm_case {
    op_gemm p;
    float *a, *b, *c, *activated, *at, *bias;
    size_t a_count, b_count, c_count;
} gemm_case;

static inline size_t matrix_count(size_t rows, size_t columns, size_t stride)
{
    return rows && columns ? (rows - 1) * stride + columns : 0;
}

/* `shape` bits: 1 transpose_a, 2 transpose_b, 4 accumulate, 8 bias, 16 activated apart, 32 activated in place, 64 the
 * activation's derivative. */
static inline gemm_case case_open(test_random *random, size_t m, size_t n, size_t k, unsigned shape, size_t padding)
{
    gemm_case of = {.p = {.m = m, .n = n, .k = k}};
    op_gemm *p = &of.p;
    p->transpose_a = shape & 1;
    p->transpose_b = shape & 2;
    p->accumulate = shape & 4;
    p->lda = (p->transpose_a ? m : k) + padding;
    p->ldb = (p->transpose_b ? k : n) + 2 * padding;
    p->ldc = n + 3 * padding;
    of.a_count = matrix_count(p->transpose_a ? k : m, p->transpose_a ? m : k, p->lda);
    of.b_count = matrix_count(p->transpose_b ? n : k, p->transpose_b ? k : n, p->ldb);
    of.c_count = matrix_count(m, n, p->ldc);
    of.a = values_random(random, of.a_count, -1, 1);
    of.b = values_random(random, of.b_count, -1, 1);
    of.c = values_random(random, of.c_count, -1, 1);
    of.bias = values_random(random, n, -1, 1);
    of.activated = values_random(random, of.c_count, -1, 1);
    of.at = values_random(random, of.c_count, -3, 3);
    p->a = fp32(of.a);
    p->b = fp32(of.b);
    p->c = fp32(of.c);
    p->bias = shape & 8 ? fp32(of.bias) : TENSOR_NONE;
    p->activated = shape & 32 ? fp32(of.c) : shape & 16 ? fp32(of.activated) : TENSOR_NONE;
    p->derivative_at = p->activated.at && shape & 64 ? fp32(of.at) : TENSOR_NONE;
    p->activation =
        p->activated.at ? (activation_kind)test_random_below(random, ACTIVATION_SWISH + 1) : ACTIVATION_NONE;
    return of;
}

static inline void case_close(gemm_case *of)
{
    free(of->a);
    free(of->b);
    free(of->c);
    free(of->bias);
    free(of->activated);
    free(of->at);
}

/* Weights of a type in fewer bits give the bits of what they stand for in fp32, with A and C in fp32 or bf16. The rows of B are whole
 * blocks. */
static inline void judge_weights(test_random *random, kernel_function kernel, remat_dtype type, size_t m, size_t n,
                                 size_t k, unsigned shape)
{
    gemm_case of = case_open(random, m, n, k, shape & 15, 0);
    const size_t values = of.b_count + WEIGHT_BLOCK - 1, bytes = of.c_count * sizeof(float);
    int8_block *packed = malloc(dtype_bytes(type, values));
    uint16_t *a = malloc(of.a_count * sizeof *a), *c[2] = {malloc(bytes), malloc(bytes)};
    float *before = values_copy(of.c, of.c_count), *wanted = malloc(bytes);
    kernel_run run = {1 + (int)(shape % 3), aligned_alloc(64, 3u << 21)};
    weight_blocks_pack(type, of.b, packed, of.b_count);
    weight_blocks_unpack(type, packed, of.b, of.b_count);
    half_pack(half_kernels_list(0), REMAT_BF16, false, of.a, a, of.a_count);
    for (unsigned halves = 0; halves < 4; halves++) {
        op_gemm p = of.p;
        p.a = halves & 1 ? (tensor_ref){a, REMAT_BF16} : p.a;
        if (halves & 2 && k > OPERATION_K_BLOCK)
            continue;
        for (int in_bits = 0; in_bits < 2; in_bits++) {
            memcpy(of.c, before, bytes);
            half_pack(half_kernels_list(0), REMAT_BF16, false, before, c[in_bits], of.c_count);
            p.b = in_bits ? (tensor_ref){packed, type} : of.p.b;
            p.c = halves & 2 ? (tensor_ref){c[in_bits], REMAT_BF16} : of.p.c;
            kernel(&run, &p);
            if (!in_bits)
                memcpy(wanted, of.c, bytes);
        }
        if (halves & 2)
            assert_memory_equal(c[0], c[1], of.c_count * sizeof *c[0]);
        else
            expect_same_bits(of.c, wanted, of.c_count);
    }
    free(packed);
    free(a);
    free(c[0]);
    free(c[1]);
    free(before);
    free(wanted);
    free(run.scratch);
    case_close(&of);
}

/* Sizes around tiles and blocks. Whole blocks are k, where B is transposed, otherwise n. */
static inline void judge_all_weights(test_random *random, kernel_function kernel, remat_dtype type, bool large)
{
    static const size_t sizes[] = {1, 3, 8, 15, 16, 17, 31, 48, 49, 100};
    for (unsigned i = 0; i < LESS_WHEN_SANITIZED(60, 20); i++) {
        const size_t whole = WEIGHT_BLOCK * (1 + test_random_below(random, 3)), other = sizes[i % 10];
        const size_t m = sizes[test_random_below(random, 10)];
        judge_weights(random, kernel, type, m, i & 2 ? other : whole, i & 2 ? whole : other, i);
    }
    for (unsigned shape = 0; large && shape < 4; shape++) { /* several blocks each way, and threads */
        judge_weights(random, kernel, type, 213, shape & 2 ? 795 : 640, shape & 2 ? 448 : 403, shape);
        judge_weights(random, kernel, type, 70, 1216, OPERATION_K_BLOCK, shape);
    }
}

/* Against the reference, and the same bits with 1, 2 and 8 threads. */
static inline void judge(test_random *random, size_t m, size_t n, size_t k, unsigned shape, size_t padding)
{
    gemm_case of = case_open(random, m, n, k, shape, padding);
    kernel_trial trial = {.op = OP_gemm,
                          .args = &of.p,
                          .outputs = {{of.c, of.c_count}, {of.activated, of.c_count}},
                          .absolute = 2e-6 + 2e-7 * (double)k,
                          .relative = 1e-5};
    expect_agreement(&trial);
    case_close(&of);
}

#endif
