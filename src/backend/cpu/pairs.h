/* Matrix products in bf16, for instructions that multiply pairs of bf16 and add the products in fp32: AMX's tiles and AVX-512's
 * dot products. The pairs_*.c are compiled once for each such set, PAIRS_SET naming it (amx, avx512bf16); PAIRS(gemm) is then
 * gemm_amx. Everything else in the tables of these sets is what FAST_ISA, avx512, has, but for attention.
 *
 * A product is one of pairs where its left operand or its result is in bf16 (or will be: op_gemm's half_result), and where it is
 * the gradient of weights with an operand in bf16. An operand in fp32 is rounded to bf16 while it is packed. Weights in bf16 that
 * multiply activations in fp32 are not: such a product stays in fp32.
 *
 * Sums. Every sum goes along k in steps of PAIRS_STEP values, filled up with zeros, and starts with C where C is added
 * to. So its order depends on k alone, and a sum that is cut at a multiple of PAIRS_STEP, kept in fp32 and continued has the same bits.
 * Products of two bf16 are exact in fp32, and every addition is rounded: the error is at most k * 2^-24 of the sum of all
 * magnitudes. Denormals, of operands and of sums, count as 0. */
#ifndef REMAT_BACKEND_CPU_PAIRS_H
#define REMAT_BACKEND_CPU_PAIRS_H

#include "backend/cpu/fast.h"

#ifndef PAIRS_SET
#define PAIRS_SET model
#endif
#define PAIRS(name) FAST_JOIN(name, PAIRS_SET)

/* The set has AMX's tiles: gcc's name for it, and clang's. */
#if defined(__AMX_BF16__) || defined(__AMXBF16__)
#define PAIRS_TILES
enum { HAS_TILES = 1 };
#else
enum { HAS_TILES = 0 };
#endif

void PAIRS(gemm)(const kernel_run *run, const void *args);

/* Of tensors in bf16 (fast_attention.h). */
void PAIRS(attention)(const kernel_run *run, const void *args);
void PAIRS(attention_backward)(const kernel_run *run, const void *args);

#endif
