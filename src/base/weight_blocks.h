/* Frozen weights in fewer bits: every WEIGHT_BLOCK values that follow each other are a block with a scale, the largest magnitude
 * of its values. Values of int8 blocks are multiples of scale / 127. Those of int4 blocks are the scale times one of 16 numbers,
 * which are the quantiles of a normal distribution (NF4 of Dettmers and others, 2023). */
#ifndef REMAT_BASE_WEIGHT_BLOCKS_H
#define REMAT_BASE_WEIGHT_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype_traits.h"

enum { WEIGHT_BLOCK = 64 };

typedef struct int8_block {
    float scale; /* of one step */
    int8_t codes[WEIGHT_BLOCK];
} int8_block;

/* The first value of a pair is in the lower four bits. */
typedef struct int4_block {
    float scale;
    uint8_t codes[WEIGHT_BLOCK / 2];
} int4_block;

_Static_assert(sizeof(int8_block) == 68 && sizeof(int4_block) == 36, "dtype_traits.c has these sizes");

/* To and from fp32, for REMAT_FP32, REMAT_BF16, REMAT_INT8_BLOCKS and REMAT_INT4_BLOCKS. `count` is a multiple of WEIGHT_BLOCK for
 * blocks. Values that are not finite make their whole block NaN. */
void weight_blocks_pack(remat_dtype dtype, const float *from, void *to, size_t count);
void weight_blocks_unpack(remat_dtype dtype, const void *from, float *to, size_t count);

#endif
