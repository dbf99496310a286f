/* Moments in 8 and 16 bits (base/moment_codes.h), and weights in bf16, on vectors: a block is unpacked to floats,
 * changed, and packed again. The same codes as those of the reference for the same floats. */
#ifndef REMAT_BACKEND_CPU_FAST_MOMENTS_H
#define REMAT_BACKEND_CPU_FAST_MOMENTS_H

#include "backend/cpu/fast_random.h"
#include "base/moment_codes.h"

typedef int8_t fast_chars __attribute__((vector_size(FAST_LANES)));
typedef uint8_t fast_bytes __attribute__((vector_size(FAST_LANES)));
typedef uint16_t fast_halves __attribute__((vector_size(FAST_LANES * 2)));

/* The random numbers of the MOMENT_BLOCK values from `from` on; returns where they begin in `drawn`. `of` is MOMENT_STREAM or
 * WEIGHT_STREAM, plus the number of the parameter. */
typedef uint32_t moment_drawn[MOMENT_BLOCK + FAST_DRAWN];
FAST_INLINE const uint32_t *moment_draw(const step_block *block, uint64_t of, size_t from, moment_drawn drawn)
{
    const remat_random stream = remat_random_stream(block->seed, (uint32_t)of, block->step);
    const size_t skipped = from % FAST_DRAWN;
    for (size_t i = 0; i < skipped + MOMENT_BLOCK; i += FAST_DRAWN)
        fast_draw_group(&stream, (from - skipped + i) / 4, drawn + i);
    return drawn + skipped;
}

/* The random numbers of FAST_LANES values: the lower 16 bits, or the upper. */
FAST_INLINE fast_integers moment_numbers(const uint32_t *numbers, int half)
{
    fast_words bits;
    memcpy(&bits, numbers, sizeof bits);
    return (fast_integers)(half ? bits >> 16 : bits & 0xffff);
}

/* moment_value of codes from 0 to 255. */
FAST_INLINE fast_vector moment_values(fast_integers codes, int kind)
{
    const fast_vector small = __builtin_convertvector(codes, fast_vector) * ldexpf(1, kind - 129);
    return fast_select(codes < 8, small, (fast_vector)((codes << 20) + (kind << 23)));
}

/* moment_code of magnitudes that are divided by the largest. */
FAST_INLINE fast_integers moment_codes(fast_vector share, int kind, fast_integers random)
{
    const fast_vector y = share * MOMENT_TOP;
    const float least = ldexpf(1, kind - 126);
    const fast_integers small =
        __builtin_convertvector(fast_min(y, fast_repeat(least)) * ldexpf(1, 149 - kind), fast_integers);
    const fast_integers is_small = y < least;
    const fast_integers fixed = (is_small & small) | (~is_small & ((fast_integers)y - (kind << 23)));
    fast_integers codes = (fixed + (random << 4)) >> 20;
    if (kind == MOMENT_SQUARES)
        codes -= (fast_integers)((codes == 0) & (share > 0.0f)); /* a comparison is -1 where it holds */
    return codes;
}

FAST_INLINE float moment_largest(const float values[MOMENT_BLOCK])
{
    fast_vector largest = {0};
    for (size_t i = 0; i < MOMENT_BLOCK; i += FAST_LANES)
        largest = fast_max(fast_magnitude(fast_load(values + i)), largest);
    const float found = fast_max_lanes(largest);
    return found < FLT_MAX ? found : FLT_MAX;
}

/* What each value is divided by, and its sign-free magnitude at most that. */
FAST_INLINE fast_vector moment_share(const float *values, float largest)
{
    return fast_min(fast_magnitude(fast_load(values)), fast_repeat(largest)) / largest;
}

/* The values of a block, `count` of which are there; the others are 0. */
FAST_INLINE void moment_unpack(tensor_ref moment, tensor_ref scales, size_t from, size_t count,
                               float values[MOMENT_BLOCK])
{
    uint16_t halves[MOMENT_BLOCK] = {0};
    uint8_t bytes[MOMENT_BLOCK] = {0};
    if (moment.type == REMAT_BF16) {
        memcpy(halves, (const uint16_t *)moment.at + from, count * sizeof *halves);
        for (size_t i = 0; i < MOMENT_BLOCK; i += FAST_LANES) {
            fast_halves part;
            memcpy(&part, halves + i, sizeof part);
            fast_store(values + i, (fast_vector)(__builtin_convertvector(part, fast_words) << 16));
        }
        return;
    }
    const float scale = ((const float *)scales.at)[from / MOMENT_BLOCK] / MOMENT_TOP;
    memcpy(bytes, (const uint8_t *)moment.at + from, count);
    for (size_t i = 0; i < MOMENT_BLOCK; i += FAST_LANES) {
        if (moment.type == REMAT_UINT8) {
            fast_bytes part;
            memcpy(&part, bytes + i, sizeof part);
            fast_store(values + i, moment_values(__builtin_convertvector(part, fast_integers), MOMENT_SQUARES) * scale);
        } else {
            fast_chars part;
            memcpy(&part, bytes + i, sizeof part);
            const fast_integers codes = __builtin_convertvector(part, fast_integers), sign = codes >> 31;
            const fast_vector magnitude = moment_values((codes ^ sign) - sign, MOMENT_SIGNED) * scale;
            fast_store(values + i, (fast_vector)((fast_integers)magnitude | (sign & INT32_MIN)));
        }
    }
}

/* `half` is 0 for the first moment and 1 for the second. */
FAST_INLINE void moment_pack(tensor_ref moment, tensor_ref scales, size_t from, size_t count,
                             const float values[MOMENT_BLOCK], const uint32_t *numbers, int half)
{
    if (moment.type == REMAT_BF16) {
        uint16_t halves[MOMENT_BLOCK];
        for (size_t i = 0; i < MOMENT_BLOCK; i += FAST_LANES) {
            const fast_integers bits = (fast_integers)fast_load(values + i) + moment_numbers(numbers + i, half);
            const fast_halves part = __builtin_convertvector((fast_words)bits >> 16, fast_halves);
            memcpy(halves + i, &part, sizeof part);
        }
        memcpy((uint16_t *)moment.at + from, halves, count * sizeof *halves);
        return;
    }
    uint8_t bytes[MOMENT_BLOCK] = {0};
    const float largest = moment_largest(values);
    ((float *)scales.at)[from / MOMENT_BLOCK] = largest;
    for (size_t i = 0; i < MOMENT_BLOCK && largest > 0; i += FAST_LANES) {
        const fast_vector share = moment_share(values + i, largest);
        const fast_integers random = moment_numbers(numbers + i, half);
        if (moment.type == REMAT_UINT8) {
            const fast_bytes part = __builtin_convertvector(moment_codes(share, MOMENT_SQUARES, random), fast_bytes);
            memcpy(bytes + i, &part, sizeof part);
        } else {
            const fast_integers sign = (fast_integers)fast_load(values + i) >> 31;
            const fast_integers codes = (moment_codes(share, MOMENT_SIGNED, random) ^ sign) - sign;
            const fast_chars part = __builtin_convertvector(codes, fast_chars);
            memcpy(bytes + i, &part, sizeof part);
        }
    }
    memcpy((uint8_t *)moment.at + from, bytes, count);
}

/* ---- weights or moments of any type, as floats ---- */

/* The values of a block where they are, or unpacked in `room`; NULL for no tensor. */
FAST_INLINE float *moment_open(tensor_ref of, tensor_ref scales, size_t from, size_t count, float room[MOMENT_BLOCK])
{
    if (!of.at)
        return NULL;
    if (of.type == REMAT_FP32)
        return (float *)of.at + from;
    moment_unpack(of, scales, from, count, room);
    return room;
}

FAST_INLINE float *weight_open(tensor_ref weight, size_t from, size_t count, float room[MOMENT_BLOCK])
{
    return moment_open(weight, TENSOR_NONE, from, count, room);
}

/* Value 0 of the tensor is value `first` of the parameter. */
FAST_INLINE void weight_close(tensor_ref weight, const step_block *block, uint64_t number, size_t first, size_t from,
                              size_t count, const float *values)
{
    moment_drawn drawn;
    if (weight.type == REMAT_BF16)
        moment_pack(weight, TENSOR_NONE, from, count, values,
                    moment_draw(block, WEIGHT_STREAM + number, first + from, drawn), 0);
}

#endif
