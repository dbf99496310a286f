#include "base/weight_blocks.h"

#include "base/half.h"
#include "base/half_plain.h"

#include <math.h>
#include <string.h>

static const float levels[16] = {WEIGHT_LEVELS};

/* NaN where one of the values is not finite. */
static float largest_of(const float *from)
{
    float largest = 0, sum = 0;
    for (size_t i = 0; i < WEIGHT_BLOCK; i++) {
        largest = fabsf(from[i]) > largest ? fabsf(from[i]) : largest;
        sum += from[i] - from[i];
    }
    return sum == 0 ? largest : NAN;
}

static void pack_int8(const float *from, int8_block *to)
{
    const float round = 0x1.8p23f; /* added and taken away, it leaves whole numbers, rounded to nearest even */
    to->scale = largest_of(from) / 127;
    const float divisor = to->scale > 0 ? to->scale : INFINITY;
    for (size_t i = 0; i < WEIGHT_BLOCK; i++) {
        float code = from[i] / divisor;
        code = code > 127 ? 127 : code < -127 ? -127 : code;
        to->codes[i] = to->scale > 0 ? (int8_t)(int32_t)(code + round - round) : 0;
    }
}

static void pack_int4(const float *from, int4_block *to)
{
    float shares[WEIGHT_BLOCK];
    int32_t codes[WEIGHT_BLOCK] = {0};
    to->scale = largest_of(from);
    const float divisor = to->scale > 0 ? to->scale : 1;
    for (size_t i = 0; i < WEIGHT_BLOCK; i++)
        shares[i] = from[i] / divisor;
    for (size_t k = 0; k < 15; k++) { /* the nearest level is as many steps up as there are middles below */
        const float middle = (levels[k] + levels[k + 1]) / 2;
        for (size_t i = 0; i < WEIGHT_BLOCK; i++)
            codes[i] += shares[i] > middle;
    }
    for (size_t i = 0; i < WEIGHT_BLOCK / 2; i++)
        to->codes[i] = (uint8_t)(codes[2 * i] | codes[2 * i + 1] << 4);
}

void weight_blocks_pack(remat_dtype dtype, const float *from, void *to, size_t count)
{
    if (dtype == REMAT_BF16)
        bf16_pack_runs(from, to, count);
    else if (dtype == REMAT_FP16)
        half_pack(half_kernels_choose(), REMAT_FP16, true, from, to, count);
    else if (dtype == REMAT_INT8_BLOCKS)
        for (size_t b = 0; b < count / WEIGHT_BLOCK; b++)
            pack_int8(from + b * WEIGHT_BLOCK, (int8_block *)to + b);
    else if (dtype == REMAT_INT4_BLOCKS)
        for (size_t b = 0; b < count / WEIGHT_BLOCK; b++)
            pack_int4(from + b * WEIGHT_BLOCK, (int4_block *)to + b);
    else
        memcpy(to, from, count * sizeof *from);
}

static void unpack_int8(const int8_block *from, float *to)
{
    for (size_t i = 0; i < WEIGHT_BLOCK; i++)
        to[i] = from->scale * (float)from->codes[i];
}

static void unpack_int4(const int4_block *from, float *to)
{
    float scaled[16];
    for (size_t i = 0; i < 16; i++)
        scaled[i] = from->scale * levels[i];
    for (size_t i = 0; i < WEIGHT_BLOCK / 2; i++) {
        to[2 * i] = scaled[from->codes[i] & 15];
        to[2 * i + 1] = scaled[from->codes[i] >> 4];
    }
}

enum { MANY = 8192 }; /* values for which asking the processor what it can do is worth it */

void weight_blocks_unpack(remat_dtype dtype, const void *from, float *to, size_t count)
{
    if (dtype == REMAT_BF16)
        bf16_unpack_runs(from, to, count);
    else if (dtype == REMAT_FP16)
        half_unpack(count < MANY ? half_kernels_list(0) : half_kernels_choose(), REMAT_FP16, from, to, count);
    else if (dtype == REMAT_INT8_BLOCKS)
        for (size_t b = 0; b < count / WEIGHT_BLOCK; b++)
            unpack_int8((const int8_block *)from + b, to + b * WEIGHT_BLOCK);
    else if (dtype == REMAT_INT4_BLOCKS)
        for (size_t b = 0; b < count / WEIGHT_BLOCK; b++)
            unpack_int4((const int4_block *)from + b, to + b * WEIGHT_BLOCK);
    else
        memcpy(to, from, count * sizeof *to);
}
