/* Converts one number at a time. This is the reference for all kernels, and they use it for the last few numbers. It
 * computes in integers, so that the rounding and denormal settings of the calling thread do not matter. */
#ifndef REMAT_BASE_HALF_PLAIN_H
#define REMAT_BASE_HALF_PLAIN_H

#include "base/half.h"

#include <string.h>

#define FP32_INFINITY 0x7f800000u /* larger magnitudes are NaN */
#define FP16_OVERFLOW 0x477ff000u /* 65,520: the least fp32 that rounds to infinity in fp16 */
#define BF16_OVERFLOW 0x7f7f8000u /* likewise */

static inline uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Finite, but infinite in the format whose first infinite magnitude is `limit`. */
static inline uint32_t bits_overflow(uint32_t bits, uint32_t limit)
{
    uint32_t magnitude = bits & 0x7fffffff;
    return (magnitude >= limit) & (magnitude < FP32_INFINITY);
}

static inline uint16_t fp16_from_bits(uint32_t bits)
{
    uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff, half;
    if (magnitude > FP32_INFINITY) {
        half = 0x7e00 | (magnitude >> 13 & 0x3ff);
    } else if (magnitude >= FP16_OVERFLOW) {
        half = 0x7c00;
    } else if (magnitude >= 0x38800000) { /* normal in fp16: the exponent moves by 112 */
        half = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    } else {
        /* Denormal: the unit is 2^-24. From a shift by 25 on, less than half a unit is left. */
        uint32_t shift = 126 - (magnitude >> 23), whole = (magnitude & 0x7fffff) | 0x800000;
        shift = shift < 25 ? shift : 25;
        half = (whole + (1u << (shift - 1)) - 1 + (whole >> shift & 1)) >> shift;
    }
    return (uint16_t)(sign | half);
}

static inline uint32_t bits_from_fp16(uint16_t from)
{
    uint32_t sign = (uint32_t)(from & 0x8000) << 16, magnitude = from & 0x7fff, bits;
    if (magnitude > 0x7c00)
        bits = FP32_INFINITY | 0x400000 | (magnitude & 0x3ff) << 13; /* quiet, as the hardware makes it */
    else if (magnitude == 0x7c00)
        bits = FP32_INFINITY;
    else if (magnitude >= 0x400)
        bits = (magnitude << 13) + (112u << 23);
    else
        bits = float_bits((float)magnitude * 0x1p-24f); /* exact, and no denormal occurs */
    return sign | bits;
}

static inline uint16_t bf16_from_bits(uint32_t bits)
{
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > FP32_INFINITY ? quiet : rounded);
}

/* Loops of a fixed length, which compilers turn into vectors of whatever the calling function may use. */
#define BF16_RUN 64
typedef uint32_t __attribute__((may_alias)) float_as_bits;

__attribute__((always_inline)) static inline uint64_t bf16_pack_runs(const float *restrict from, uint16_t *restrict to,
                                                                     size_t count)
{
    uint64_t overflows = 0;
    size_t at = 0;
    for (; count - at >= BF16_RUN; at += BF16_RUN) {
        const float_as_bits *bits = (const float_as_bits *)(const void *)(from + at);
        uint32_t run = 0;
        for (size_t i = 0; i < BF16_RUN; i++)
            run += bits_overflow(bits[i], BF16_OVERFLOW);
        for (size_t i = 0; i < BF16_RUN; i++)
            to[at + i] = bf16_from_bits(bits[i]);
        overflows += run;
    }
    for (; at < count; at++) {
        overflows += bits_overflow(float_bits(from[at]), BF16_OVERFLOW);
        to[at] = bf16_from_bits(float_bits(from[at]));
    }
    return overflows;
}

__attribute__((always_inline)) static inline void bf16_unpack_runs(const uint16_t *from, float *to, size_t count)
{
    size_t at = 0;
    for (; count - at >= BF16_RUN; at += BF16_RUN) {
        uint32_t bits[BF16_RUN];
        for (size_t i = 0; i < BF16_RUN; i++)
            bits[i] = (uint32_t)from[at + i] << 16;
        memcpy(to + at, bits, sizeof bits);
    }
    for (; at < count; at++) {
        uint32_t bits = (uint32_t)from[at] << 16;
        memcpy(to + at, &bits, sizeof bits);
    }
}

__attribute__((always_inline)) static inline uint64_t fp16_pack_each(const float *from, uint16_t *to, size_t count)
{
    uint64_t overflows = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = float_bits(from[i]);
        overflows += bits_overflow(bits, FP16_OVERFLOW);
        to[i] = fp16_from_bits(bits);
    }
    return overflows;
}

__attribute__((always_inline)) static inline void fp16_unpack_each(const uint16_t *from, float *to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = bits_from_fp16(from[i]);
        memcpy(to + i, &bits, sizeof bits);
    }
}

/* The vector kernels of x86 that this machine can run, best first. NULL past the end and on other processors. */
const half_kernels *half_kernels_x86(size_t position);

#endif
