/* GEMMs to be tested, in memory of exactly their size. */
#ifndef TESTS_GEMM_CASE_H
#define TESTS_GEMM_CASE_H

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
