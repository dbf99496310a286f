/* Moments of an optimizer in 8 and 16 bits, one value at a time. This is the reference for the kernels.
 *
 * In 8 bits, every block of MOMENT_BLOCK values has a scale.
 *
 * A mean is a sign and a root in 7 bits: code c stands for c * |c| / 127^2 of the scale, the largest magnitude of the block.
 * Rows of a block may have gradients of other sizes: roots reach down to 1/16129 of the largest, and near it they are finer than
 * floats of 7 bits with such a range.
 *
 * A mean of squares is a float with as many bits of mantissa as the range of its block leaves, 3 to 7. The octaves of the block
 * begin at 2^L. The codes 1, 2, .. stand for 2^L and the floats after it that have no further bits of mantissa; code 0 is 0.
 * The scale is 2^L with the number of bits in the lowest bits of its mantissa. Squares of a block are mostly within 7 or 15
 * octaves, which leaves 5 or 4 bits. Whatever the largest and the smallest square do, floats with so many bits stay the same, so
 * that a square that does not change is not rounded again.
 *
 * Rounding is stochastic: a value between two codes becomes the upper one as often as it is near to it. Rounding to nearest
 * would leave a slow mean where it is, because its steps are smaller than half the distance of two codes. A square that is not
 * 0 never becomes 0, since updates are divided by its root. */
#ifndef REMAT_BASE_MOMENT_CODES_H
#define REMAT_BASE_MOMENT_CODES_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __CUDACC__
#define MOMENT_FUNCTION static inline __host__ __device__
#else
#define MOMENT_FUNCTION static inline
#endif

enum {
    MOMENT_BLOCK = 256,
    MEAN_TOP = 127,                          /* the largest code of a mean */
    SQUARE_MANTISSA = 3,                     /* bits, at least */
    SQUARE_OCTAVES = 254 >> SQUARE_MANTISSA, /* at most */
};
#define MEAN_UNIT         (1.0f / (MEAN_TOP * MEAN_TOP)) /* times MEAN_TOP^2 it is exactly 1 */
#define SQUARE_MOST       0x1p127f    /* larger ones count as this: rounded up they would be infinite */
#define MOMENT_TO_NEAREST 0x8000u     /* as a random number */
#define MOMENT_STREAM     0x60000000u /* random numbers are from the stream (seed, this + parameter, step) */
#define WEIGHT_STREAM     0x50000000u /* likewise, for weights in bf16 */

MOMENT_FUNCTION uint32_t moment_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

MOMENT_FUNCTION float moment_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- means ---- */

/* The code of a magnitude from 0 to `largest`. `random` is from 0 to 65535. */
MOMENT_FUNCTION uint32_t mean_code(float magnitude, float largest, uint32_t random)
{
    if (!(magnitude > 0))
        return 0; /* NaN too */
    const float square = fminf(magnitude, FLT_MAX) / largest * (float)(MEAN_TOP * MEAN_TOP),
                code = floorf(sqrtf(square));
    const bool up = (square - code * code) * 65536 >= (2 * code + 1) * (float)(65536 - random);
    return (uint32_t)code + up;
}

MOMENT_FUNCTION float mean_scale_of(const float *values, size_t count)
{
    float largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmaxf(largest, fminf(fabsf(values[i]), FLT_MAX));
    return largest;
}

/* What a code stands for. */
MOMENT_FUNCTION float mean_value(int code, float scale)
{
    return (float)(code * abs(code)) * MEAN_UNIT * scale;
}

/* ---- squares ---- */

/* The scale of a block by its largest square and its smallest one that is not 0, both at most SQUARE_MOST; 0 where all are
 * 0. */
MOMENT_FUNCTION float square_scale(float smallest, float largest)
{
    if (!(largest > 0))
        return 0;
    const uint32_t last = (moment_bits(largest) - 1) >> 23; /* a power of 2 ends its octave */
    uint32_t first = moment_bits(smallest) >> 23;
    first = first < 1 ? 1 : first; /* no numbers below the normal ones */
    first = last >= first + SQUARE_OCTAVES ? last - SQUARE_OCTAVES + 1 : first;
    const uint32_t octaves = last < first ? 1 : last - first + 1;
    uint32_t mantissa = 7;
    while (octaves << mantissa > 254)
        mantissa--;
    return moment_float(first << 23 | mantissa);
}

MOMENT_FUNCTION float square_scale_of(const float *values, size_t count)
{
    float smallest = SQUARE_MOST, largest = 0;
    for (size_t i = 0; i < count; i++) {
        const float square = fminf(values[i], SQUARE_MOST);
        largest = fmaxf(largest, square);
        smallest = square > 0 ? fminf(smallest, square) : smallest;
    }
    return square_scale(smallest, largest);
}

/* The first float of a block, and how far apart its codes are in the bits of a float, as a power of 2. */
MOMENT_FUNCTION uint32_t square_first(float scale)
{
    return moment_bits(scale) & 0x7f800000u;
}
MOMENT_FUNCTION uint32_t square_shift(float scale)
{
    return 23 - (moment_bits(scale) & 7);
}

MOMENT_FUNCTION uint32_t square_code(float square, float scale, uint32_t random)
{
    if (!(square > 0))
        return 0; /* NaN too */
    const uint32_t bits = moment_bits(fminf(square, SQUARE_MOST)), first = square_first(scale),
                   shift = square_shift(scale);
    const uint32_t above = bits > first ? bits - first : 0;
    return 1 + ((above + (random << (shift - 16))) >> shift);
}

MOMENT_FUNCTION float square_value(uint32_t code, float scale)
{
    return code ? moment_float(square_first(scale) + ((code - 1) << square_shift(scale))) : 0;
}

/* ---- 16 bits ---- */

/* bf16, rounded by a random number from 0 to 65535. Infinity stays; NaN does not come here. */
MOMENT_FUNCTION uint16_t moment_bf16(float value, uint32_t random)
{
    return (uint16_t)((moment_bits(value) + random) >> 16);
}

MOMENT_FUNCTION float moment_from_bf16(uint16_t half)
{
    return moment_float((uint32_t)half << 16);
}

#endif
