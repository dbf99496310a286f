/* Moments in 8 and 16 bits (base/moment_codes.h), and weights in bf16, on vectors: a block is unpacked to floats,
 * changed, and packed again. The same codes as those of the reference for the same floats. */
#ifndef REMAT_BACKEND_CPU_FAST_MOMENTS_H
#define REMAT_BACKEND_CPU_FAST_MOMENTS_H

#include "backend/cpu/fast_random.h"
#include "base/moment_codes.h"

#if defined(__SSE2__) && FAST_LANES == 4
#include <xmmintrin.h>
#endif

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

/* fast_sqrt takes one lane at a time in portable kernels, which is a tenth of adam's time. */
FAST_INLINE fast_vector moment_roots(fast_vector x)
{
#if defined(__SSE2__) && FAST_LANES == 4
    return (fast_vector)_mm_sqrt_ps((__m128)x);
#else
    return fast_sqrt(x);
#endif
}

/* mean_value. */
FAST_INLINE fast_vector mean_values(fast_integers codes, float scale)
{
    const fast_vector roots = __builtin_convertvector(codes, fast_vector);
    return roots * fast_magnitude(roots) * MEAN_UNIT * scale;
}

/* mean_code of magnitudes that are divided by the largest. */
FAST_INLINE fast_integers mean_codes(fast_vector share, fast_integers random)
{
    const fast_vector square = share * (float)(MEAN_TOP * MEAN_TOP);
    const fast_integers codes = __builtin_convertvector(moment_roots(square), fast_integers);
    const fast_vector root = __builtin_convertvector(codes, fast_vector);
    const fast_vector chance = __builtin_convertvector(65536 - random, fast_vector);
    const fast_integers up = (square - root * root) * 65536.0f >= (2.0f * root + 1.0f) * chance;
    return codes - up; /* a comparison is -1 where it holds */
}

FAST_INLINE float mean_scale_of_block(const float values[MOMENT_BLOCK])
{
    fast_vector largest = {0};
    for (size_t i = 0; i < MOMENT_BLOCK; i += FAST_LANES)
        largest = fast_max(fast_magnitude(fast_load(values + i)), largest);
    const float found = fast_max_lanes(largest);
    return found < FLT_MAX ? found : FLT_MAX;
}

/* What each value is divided by, and its sign-free magnitude at most that. */
FAST_INLINE fast_vector mean_share(const float *values, float largest)
{
    return fast_min(fast_magnitude(fast_load(values)), fast_repeat(largest)) / largest;
}

/* square_value and square_code. `first` and `shift` are those of the scale. */
FAST_INLINE fast_vector square_values(fast_integers codes, int first, int shift)
{
    return (fast_vector)((codes > 0) & (((codes - 1) << shift) + first));
}

FAST_INLINE fast_integers square_codes(fast_vector squares, int first, int shift, fast_integers random)
{
    const fast_integers above = (fast_integers)fast_min(squares, fast_repeat(SQUARE_MOST)) - first;
    const fast_integers codes = (((above & (above > 0)) + (random << (shift - 16))) >> shift) + 1;
    return codes & (fast_integers)(squares > 0.0f);
}

FAST_INLINE float square_scale_of_block(const float values[MOMENT_BLOCK])
{
    const fast_vector most = fast_repeat(SQUARE_MOST);
    fast_vector largest = {0}, smallest = most;
    for (size_t i = 0; i < MOMENT_BLOCK; i += FAST_LANES) {
        const fast_vector squares = fast_load(values + i);
        largest = fast_max(squares, largest);
        smallest = fast_min(fast_select(squares > 0.0f, squares, most), smallest);
    }
    return square_scale(-fast_max_lanes(-smallest), fminf(fast_max_lanes(largest), SQUARE_MOST));
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
    const float scale = ((const float *)scales.at)[from / MOMENT_BLOCK];
    const int lowest = (int)square_first(scale), shift = (int)square_shift(scale);
    memcpy(bytes, (const uint8_t *)moment.at + from, count);
    for (size_t i = 0; i < MOMENT_BLOCK; i += FAST_LANES) {
        if (moment.type == REMAT_UINT8) {
            fast_bytes part;
            memcpy(&part, bytes + i, sizeof part);
            fast_store(values + i, square_values(__builtin_convertvector(part, fast_integers), lowest, shift));
        } else {
            fast_chars part;
            memcpy(&part, bytes + i, sizeof part);
            fast_store(values + i, mean_values(__builtin_convertvector(part, fast_integers), scale));
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
    const float scale = moment.type == REMAT_INT8 ? mean_scale_of_block(values) : square_scale_of_block(values);
    const int lowest = (int)square_first(scale), shift = (int)square_shift(scale);
    ((float *)scales.at)[from / MOMENT_BLOCK] = scale;
    for (size_t i = 0; i < MOMENT_BLOCK && scale > 0; i += FAST_LANES) {
        const fast_integers random = moment_numbers(numbers + i, half);
        if (moment.type == REMAT_UINT8) {
            const fast_integers codes = square_codes(fast_load(values + i), lowest, shift, random);
            const fast_bytes part = __builtin_convertvector(codes, fast_bytes);
            memcpy(bytes + i, &part, sizeof part);
        } else {
            const fast_integers sign = (fast_integers)fast_load(values + i) >> 31;
            const fast_integers codes = (mean_codes(mean_share(values + i, scale), random) ^ sign) - sign;
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
