#include "backend/cpu/reference.h"
#include "base/half_plain.h"
#include "base/moment_codes.h"
#include "base/weight_blocks.h"

/* A value of A or B, which may be in bf16; B may be in fp16 or blocks. */
static real value_at(tensor_ref tensor, size_t place)
{
    static const float levels[16] = {WEIGHT_LEVELS};
    if (tensor.type == REMAT_INT8_BLOCKS) {
        const int8_block *block = (const int8_block *)tensor.at + place / WEIGHT_BLOCK;
        return (real)(block->scale * (float)block->codes[place % WEIGHT_BLOCK]);
    }
    if (tensor.type == REMAT_INT4_BLOCKS) {
        const int4_block *block = (const int4_block *)tensor.at + place / WEIGHT_BLOCK;
        return (real)(block->scale * levels[block->codes[place % WEIGHT_BLOCK / 2] >> (place % 2 * 4) & 15]);
    }
    if (tensor.type == REMAT_FP16) {
        const uint32_t bits = bits_from_fp16(((const uint16_t *)tensor.at)[place]);
        float value;
        memcpy(&value, &bits, sizeof value);
        return (real)value;
    }
    if (tensor.type == REMAT_BF16)
        return (real)moment_from_bf16(((const uint16_t *)tensor.at)[place]);
    return ((const real *)tensor.at)[place];
}

/* One value of the GEMM: a sum for each block of OPERATION_K_BLOCK terms, the sums added in order to `start`. */
static real gemm_value(const op_gemm *p, size_t i, size_t j, real start)
{
    real value = start;
    for (size_t first = 0; first < p->k; first += OPERATION_K_BLOCK) {
        size_t last = p->k - first < OPERATION_K_BLOCK ? p->k : first + OPERATION_K_BLOCK;
        real sum = 0;
        for (size_t l = first; l < last; l++)
            sum += value_at(p->a, p->transpose_a ? l * p->lda + i : i * p->lda + l) *
                   value_at(p->b, p->transpose_b ? j * p->ldb + l : l * p->ldb + j);
        value += sum;
    }
    return value;
}

/* The activation of row i of C, or its gradient. */
static void activate_row(const kernel_run *run, const op_gemm *p, size_t i)
{
    tensor_ref row = tensor_from(p->c, i * p->ldc), to = tensor_from(p->activated, i * p->ldc);
    tensor_ref at = tensor_from(p->derivative_at, i * p->ldc);
    if (at.at) {
        op_activate_backward backward = {
            .x = at, .y = at, .dy = row, .dx = to, .count = p->n, .kind = p->activation, .accumulate = false};
        REFERENCE(activate_backward)(run, &backward);
    } else {
        op_activate forward = {.x = row, .y = to, .count = p->n, .kind = p->activation};
        REFERENCE(activate)(run, &forward);
    }
}

void REFERENCE(gemm)(const kernel_run *run, const void *args)
{
    const op_gemm *p = args;
    const real *bias = p->bias.at;
    for (size_t i = 0; i < p->m; i++) {
        for (size_t j = 0; j < p->n; j++) {
            const size_t at = i * p->ldc + j;
            const real value = gemm_value(p, i, j, p->accumulate ? value_at(p->c, at) : 0) + (bias ? bias[j] : 0);
            if (p->c.type == REMAT_BF16)
                ((uint16_t *)p->c.at)[at] = bf16_from_bits(float_bits((float)value));
            else
                ((real *)p->c.at)[at] = value;
        }
        if (p->activated.at)
            activate_row(run, p, i);
    }
}
