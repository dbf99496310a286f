/* Square blocks of a matrix, FAST_LANES vectors each: loaded from fp32 or bf16, and transposed. Packing is made of them. */
#ifndef REMAT_BACKEND_CPU_FAST_BLOCK_H
#define REMAT_BACKEND_CPU_FAST_BLOCK_H

#include "backend/cpu/fast_math.h"

#define LINE_BYTES 64 /* of a cache */

/* A loop that must be unrolled, so that what it indexes lives in registers. Not under AddressSanitizer, whose checks of
 * unrolled code take minutes to compile. */
#if defined(__SANITIZE_ADDRESS__)
#define UNROLLED(i, count) for (size_t i = 0; i < (count); i++)
#elif defined(__clang__)
#define UNROLLED(i, count) _Pragma("clang loop unroll(full)") for (size_t i = 0; i < (count); i++)
#else
#define UNROLLED(i, count) _Pragma("GCC unroll 16") for (size_t i = 0; i < (count); i++)
#endif

FAST_INLINE fast_vector interleave_low(fast_vector x, fast_vector y)
{
#if FAST_LANES == 16
    return FAST_SHUFFLE(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif FAST_LANES == 8
    return FAST_SHUFFLE(x, y, 0, 8, 1, 9, 2, 10, 3, 11);
#else
    return FAST_SHUFFLE(x, y, 0, 4, 1, 5);
#endif
}

FAST_INLINE fast_vector interleave_high(fast_vector x, fast_vector y)
{
#if FAST_LANES == 16
    return FAST_SHUFFLE(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif FAST_LANES == 8
    return FAST_SHUFFLE(x, y, 4, 12, 5, 13, 6, 14, 7, 15);
#else
    return FAST_SHUFFLE(x, y, 2, 6, 3, 7);
#endif
}

/* Every round moves the top bit of the row's number to the bottom of the lane's number: after the last round, rows and
 * lanes have changed places. */
FAST_INLINE void block_transpose(fast_vector *block)
{
    UNROLLED (round, FAST_LANES == 16 ? 4 : FAST_LANES == 8 ? 3 : 2) {
        fast_vector next[FAST_LANES];
        UNROLLED (i, FAST_LANES / 2) {
            next[2 * i] = interleave_low(block[i], block[i + FAST_LANES / 2]);
            next[2 * i + 1] = interleave_high(block[i], block[i + FAST_LANES / 2]);
        }
        UNROLLED (i, FAST_LANES)
            block[i] = next[i];
    }
}

/* A matrix of depth x count values that is to be packed; where it is `transposed`, it is stored count x depth. Its values are
 * floats, or bf16 where it is `half`. */
typedef struct pack_source {
    const void *from;
    size_t stride, depth, count;
    bool transposed, half;
} pack_source;

/* The same from this step and value on. */
FAST_INLINE pack_source source_from(const pack_source *s, size_t step, size_t value)
{
    pack_source part = *s;
    const size_t place = s->transposed ? value * s->stride + step : step * s->stride + value;
    part.from = (const char *)s->from + place * (s->half ? sizeof(uint16_t) : sizeof(float));
    return part;
}

/* `count` values of each step from `first` on. */
FAST_INLINE pack_source source_part(const pack_source *s, size_t first, size_t count)
{
    pack_source part = source_from(s, 0, first);
    part.count = count;
    return part;
}

typedef uint16_t pack_halves __attribute__((vector_size(FAST_LANES * 2)));
typedef uint32_t pack_words __attribute__((vector_size(FAST_LANES * 4)));

/* `count` values in bf16, padded with 0. */
FAST_INLINE fast_vector halves_load(const uint16_t *from, size_t count)
{
    pack_halves halves = {0};
    if (count == FAST_LANES)
        memcpy(&halves, from, sizeof halves);
    else
        memcpy(&halves, from, count * sizeof *from);
    return (fast_vector)(__builtin_convertvector(halves, pack_words) << 16);
}

/* The first `count` values, rounded to bf16. */
FAST_INLINE void halves_store(uint16_t *to, fast_vector values, size_t count)
{
    const pack_words bits = (pack_words)values, quiet = bits >> 16 | 0x40;
    const pack_words rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const pack_words nan = (pack_words)((bits & 0x7fffffff) > 0x7f800000);
    const pack_words chosen = (nan & quiet) | (~nan & rounded);
#if defined(__AVX512F__) /* gcc takes many instructions to leave out the upper halves */
    const __m256i narrow = _mm512_cvtepi32_epi16((__m512i)chosen);
    pack_halves halves;
    memcpy(&halves, &narrow, sizeof halves);
#else
    const pack_halves halves = __builtin_convertvector(chosen, pack_halves);
#endif
    if (count == FAST_LANES)
        memcpy(to, &halves, sizeof halves);
    else
        memcpy(to, &halves, count * sizeof *to);
}

/* FAST_EACH for loops over values in fp32 or bf16: LOAD and STORE take pointers to either, the compiler sees to which. */
FAST_INLINE fast_vector halves_load_all(const uint16_t *from)
{
    return halves_load(from, FAST_LANES);
}
FAST_INLINE void halves_store_all(uint16_t *to, fast_vector values)
{
    halves_store(to, values, FAST_LANES);
}
#define FAST_BY_TYPE_(at, halves, floats) \
    _Generic((at), uint16_t * : halves, const uint16_t * : halves, default : floats)
#define FAST_LOAD_ANY_(from)        FAST_BY_TYPE_(from, halves_load_all, fast_load)(from)
#define FAST_STORE_ANY_(to, x)      FAST_BY_TYPE_(to, halves_store_all, fast_store)(to, x)
#define FAST_LOAD_ANY_PART_(from)   FAST_BY_TYPE_(from, halves_load, fast_load_part)(from, fast_left)
#define FAST_STORE_ANY_PART_(to, x) FAST_BY_TYPE_(to, halves_store, fast_store_part)(to, x, fast_left)
#define FAST_EACH_ANY(count, STEP)                                                 \
    do {                                                                           \
        size_t fast_at = 0, fast_count = (count);                                  \
        for (; fast_at + FAST_LANES <= fast_count; fast_at += FAST_LANES)          \
            STEP(FAST_LOAD_ANY_, FAST_STORE_ANY_, fast_at, FAST_ALL_);             \
        size_t fast_left = fast_count - fast_at;                                   \
        if (fast_left)                                                             \
            STEP(FAST_LOAD_ANY_PART_, FAST_STORE_ANY_PART_, fast_at, FAST_FIRST_); \
    } while (0)

/* Loads `rows` x `columns` values, padded with 0. */
FAST_INLINE void block_load(const void *from, bool half, size_t stride, size_t rows, size_t columns, fast_vector *block)
{
    const float *floats = from;
    const uint16_t *halves = from;
    UNROLLED (i, FAST_LANES)
        block[i] = i >= rows               ? (fast_vector){0}
                   : half                  ? halves_load(halves + i * stride, columns)
                   : columns == FAST_LANES ? fast_load(floats + i * stride)
                                           : fast_load_part(floats + i * stride, columns);
}

/* FAST_LANES values of FAST_LANES steps from (step, at) on, a vector for each step; 0 where there are no more. */
FAST_INLINE void block_of(const pack_source *s, size_t step, size_t at, size_t steps, fast_vector *block)
{
    size_t values = s->count - at;
    bool whole = steps == FAST_LANES && values >= FAST_LANES;
    if (!whole)
        values = smaller(values, FAST_LANES);
    const void *from = source_from(s, step, at).from;
    if (whole && s->half)
        block_load(from, true, s->stride, FAST_LANES, FAST_LANES, block);
    else if (whole)
        block_load(from, false, s->stride, FAST_LANES, FAST_LANES, block);
    else
        block_load(from, s->half, s->stride, s->transposed ? values : steps, s->transposed ? steps : values, block);
    if (s->transposed)
        block_transpose(block);
}

#endif
