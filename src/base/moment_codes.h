/* Moments of an optimizer in 8 and 16 bits, one value at a time. This is the reference for the kernels.
 *
 * In 8 bits, every block of MOMENT_BLOCK values has a scale: its largest magnitude. A code is a small float with three bits
 * of mantissa, and the largest code stands for the scale:
 *
 *     signed   1 bit sign, 4 bits exponent, 3 bits mantissa: magnitudes down to 2^-17 of the scale
 *     squares  5 bits exponent, 3 bits mantissa: from 2^-33 of the scale
 *
 * Rounding is stochastic: a value between two codes becomes the upper one as often as it is near to it. Rounding to nearest
 * would leave a slow mean where it is, because its steps are smaller than half the distance of two codes. A square that is not
 * 0 never becomes 0, since updates are divided by its root. */
#ifndef REMAT_BASE_MOMENT_CODES_H
#define REMAT_BASE_MOMENT_CODES_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    MOMENT_BLOCK = 256,
    /* What is taken from the exponent of a float, by kind. */
    MOMENT_SIGNED = 112,
    MOMENT_SQUARES = 96,
};
#define MOMENT_TOP        1.875f      /* the largest code, before it is scaled */
#define MOMENT_TO_NEAREST 0x8000u     /* as a random number */
#define MOMENT_STREAM     0x60000000u /* random numbers are from the stream (seed, this + parameter, step) */
#define WEIGHT_STREAM     0x50000000u /* likewise, for weights in bf16 */

/* The code of a magnitude from 0 to `largest`. `random` is from 0 to 65535. */
static inline uint32_t moment_code(float magnitude, float largest, uint32_t kind, uint32_t random)
{
    if (!(magnitude > 0))
        return 0; /* NaN too */
    const float y = fminf(magnitude, FLT_MAX) / largest * MOMENT_TOP;
    uint32_t fixed; /* the code, with 20 bits behind the point */
    if (y >= ldexpf(1, (int)kind - 126)) {
        memcpy(&fixed, &y, sizeof fixed);
        fixed -= kind << 23;
    } else {
        fixed = (uint32_t)ldexpf(y, 149 - (int)kind);
    }
    const uint32_t code = (fixed + (random << 4)) >> 20;
    return kind == MOMENT_SQUARES && code == 0 ? 1 : code;
}

/* What a code stands for, before it is multiplied by the scale / MOMENT_TOP. */
static inline float moment_value(uint32_t code, uint32_t kind)
{
    if (code < 8)
        return ldexpf((float)code, (int)kind - 129);
    const uint32_t bits = (code << 20) + (kind << 23);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* bf16, rounded by a random number from 0 to 65535. Infinity stays; NaN does not come here. */
static inline uint16_t moment_bf16(float value, uint32_t random)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + random) >> 16);
}

static inline float moment_from_bf16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
