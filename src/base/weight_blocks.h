/* Frozen weights in fewer bits: every WEIGHT_BLOCK values that follow each other are a block with a scale, the largest magnitude
 * of its values. Values of int8 blocks are multiples of scale / 127. Those of int4 blocks are the scale times one of 16 numbers,
 * which are the quantiles of a normal distribution (NF4 of Dettmers and others, 2023). */
#ifndef REMAT_BASE_WEIGHT_BLOCKS_H
#define REMAT_BASE_WEIGHT_BLOCKS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype_traits.h"

enum { WEIGHT_BLOCK = 64 };

/* The means of 16 equal parts of a normal distribution, scaled to -1 .. 1, with 0 among them. */
#define WEIGHT_LEVELS                                                                                               \
    -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f,                \
        -0.18477343022823334f, -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f,             \
        0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, \
        1.0f

typedef struct int8_block {
    float scale; /* of one step */
    int8_t codes[WEIGHT_BLOCK];
} int8_block;

/* The first value of a pair is in the lower four bits. */
typedef struct int4_block {
    float scale;
    uint8_t codes[WEIGHT_BLOCK / 2];
} int4_block;

static_assert(sizeof(int8_block) == 68 && sizeof(int4_block) == 36, "dtype_traits.c has these sizes");

/* To and from fp32, for REMAT_FP32, REMAT_FP16, REMAT_BF16, REMAT_INT8_BLOCKS and REMAT_INT4_BLOCKS. `count` is a multiple of WEIGHT_BLOCK for
 * blocks. Values that are not finite make their whole block NaN; what is
 * too large for fp16 becomes its largest number. */
void weight_blocks_pack(remat_dtype dtype, const float *from, void *to, size_t count);
void weight_blocks_unpack(remat_dtype dtype, const void *from, float *to, size_t count);

#endif
