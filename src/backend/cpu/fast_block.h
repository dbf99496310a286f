/* Square blocks of a matrix, FAST_LANES vectors each: loaded from any type that operands have, and transposed. Packing is made of
 * them, so that weights in fewer bits become fp32 nowhere but there. */
#ifndef REMAT_BACKEND_CPU_FAST_BLOCK_H
#define REMAT_BACKEND_CPU_FAST_BLOCK_H

#include "backend/cpu/fast_math.h"
#include "base/weight_blocks.h"

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

/* A matrix of depth x count values that is to be packed; where it is `transposed`, it is stored count x depth. Its first value is number
 * `first` from `from` on. Of a matrix in blocks, `stride` and where a part begins are such that no vector crosses the end of a block. */
typedef struct pack_source {
    const void *from;
    size_t stride, depth, count;
    bool transposed;
    remat_dtype type; /* fp32, bf16; of weights also fp16 and blocks */
    size_t first;
} pack_source;

/* The same from this step and value on. */
FAST_INLINE pack_source source_from(const pack_source *s, size_t step, size_t value)
{
    pack_source part = *s;
    part.first += s->transposed ? value * s->stride + step : step * s->stride + value;
    return part;
}

/* `count` values of each step from `first` on. */
FAST_INLINE pack_source source_part(const pack_source *s, size_t first, size_t count)
{
    pack_source part = source_from(s, 0, first);
    part.count = count;
    return part;
}

/* The bytes of `count` values, of whole blocks where these are. */
FAST_INLINE size_t values_bytes(remat_dtype type, size_t count)
{
    return type == REMAT_FP32          ? count * sizeof(float)
           : type == REMAT_INT8_BLOCKS ? divide_up(count, WEIGHT_BLOCK) * sizeof(int8_block)
           : type == REMAT_INT4_BLOCKS ? divide_up(count, WEIGHT_BLOCK) * sizeof(int4_block)
                                       : count * sizeof(uint16_t);
}

/* Where rows of a matrix are: the address of the first row, or of the block with its first value, the number of that value in the block,
 * and the bytes between rows. */
typedef struct matrix_rows {
    const char *at;
    size_t within, bytes;
} matrix_rows;

FAST_INLINE matrix_rows rows_of(remat_dtype type, const void *from, size_t first, size_t stride)
{
    const bool blocks = type == REMAT_INT8_BLOCKS || type == REMAT_INT4_BLOCKS;
    const size_t within = blocks ? first % WEIGHT_BLOCK : 0;
    return (matrix_rows){(const char *)from + values_bytes(type, first - within), within, values_bytes(type, stride)};
}

FAST_INLINE matrix_rows source_rows(const pack_source *s, remat_dtype type)
{
    return rows_of(type, s->from, s->first, s->stride);
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

/* ---- weights in fp16 and in blocks ---- */

/* `count` values in fp16, padded with 0; exactly as base/half_plain.h does it, so that no denormal occurs. */
FAST_INLINE fast_vector fp16_load(const uint16_t *from, size_t count)
{
    pack_halves halves = {0};
    if (count == FAST_LANES)
        memcpy(&halves, from, sizeof halves);
    else
        memcpy(&halves, from, count * sizeof *from);
#if defined(__AVX512F__)
    __m256i bits;
    memcpy(&bits, &halves, sizeof bits);
    return (fast_vector)_mm512_cvtph_ps(bits);
#else
    typedef int32_t whole __attribute__((vector_size(FAST_LANES * 4)));
    const pack_words bits = __builtin_convertvector(halves, pack_words), size = bits & 0x7fff;
    const pack_words small = (pack_words)(__builtin_convertvector((whole)size, fast_vector) * 0x1p-24f);
    const pack_words is_small = (pack_words)(size < 0x400), is_last = (pack_words)(size >= 0x7c00);
    const pack_words quiet = (pack_words)(size > 0x7c00) & 0x400000;
    const pack_words large = (size << 13) + ((is_last & 224u << 23) | (~is_last & 112u << 23));
    return (fast_vector)((is_small & small) | (~is_small & large) | quiet | (bits & 0x8000) << 16);
#endif
}

/* gcc takes many instructions to widen bytes, so the sets that have one for it are told. */
FAST_INLINE fast_vector int8_load(const int8_block *block, size_t within)
{
    const int8_t *codes = block->codes + within;
#if defined(__AVX512F__)
    const __m512i numbers = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)codes));
    return block->scale * (fast_vector)_mm512_cvtepi32_ps(numbers);
#elif defined(__AVX2__)
    const __m256i numbers = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)codes));
    return block->scale * (fast_vector)_mm256_cvtepi32_ps(numbers);
#else
    fast_vector values;
    for (size_t i = 0; i < FAST_LANES; i++)
        values[i] = (float)codes[i];
    return block->scale * values;
#endif
}

/* A pair of codes is a byte: in a lane of 64 bits, the byte and its copy 28 bits higher have one in the lowest bits of each half. */
FAST_INLINE fast_vector int4_load(const int4_block *block, size_t within)
{
    static const float levels[16] = {WEIGHT_LEVELS};
    const uint8_t *codes = block->codes + within / 2;
#if defined(__AVX512F__)
    const __m512i bytes = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)codes));
    const __m512i numbers = _mm512_or_si512(bytes, _mm512_slli_epi64(bytes, 28));
    return block->scale * (fast_vector)_mm512_permutexvar_ps(numbers, _mm512_loadu_ps(levels));
#elif defined(__AVX2__)
    const __m256i bytes = _mm256_cvtepu8_epi64(_mm_loadu_si32(codes));
    const __m256i numbers = _mm256_or_si256(bytes, _mm256_slli_epi64(bytes, 28));
    const __m256 lower = _mm256_permutevar8x32_ps(_mm256_loadu_ps(levels), numbers),
                 upper = _mm256_permutevar8x32_ps(_mm256_loadu_ps(levels + 8), numbers);
    return block->scale *
           (fast_vector)_mm256_blendv_ps(lower, upper, _mm256_castsi256_ps(_mm256_slli_epi32(numbers, 28)));
#else
    fast_vector values;
    for (size_t i = 0; i < FAST_LANES; i++)
        values[i] = levels[codes[i / 2] >> (i % 2 * 4) & 15];
    return block->scale * values;
#endif
}

/* `count` values from number `within` on, padded with 0. Those of blocks are all in one. */
FAST_INLINE fast_vector values_load(const void *at, remat_dtype type, size_t within, size_t count)
{
    const float *floats = (const float *)at + within;
    if (type == REMAT_FP32)
        return count == FAST_LANES ? fast_load(floats) : fast_load_part(floats, count);
    if (type == REMAT_BF16)
        return halves_load((const uint16_t *)at + within, count);
    if (type == REMAT_FP16)
        return fp16_load((const uint16_t *)at + within, count);
    const fast_vector all = type == REMAT_INT8_BLOCKS ? int8_load(at, within) : int4_load(at, within);
    return count == FAST_LANES ? all : fast_first(all, count);
}

/* ---- blocks of vectors ---- */

/* Loads `rows` x `columns` values, padded with 0. */
FAST_INLINE void block_load(matrix_rows from, remat_dtype type, size_t rows, size_t columns, fast_vector *block)
{
    UNROLLED (i, FAST_LANES)
        block[i] = i < rows ? values_load(from.at + i * from.bytes, type, from.within, columns) : (fast_vector){0};
}

/* A whole one at the beginning of the source. */
FAST_INLINE void block_load_whole(const pack_source *s, remat_dtype type, fast_vector *block)
{
    block_load(source_rows(s, type), type, FAST_LANES, FAST_LANES, block);
}

/* FAST_LANES values of FAST_LANES steps from (step, at) on, a vector for each step; 0 where there are no more. */
FAST_INLINE void block_of(const pack_source *s, size_t step, size_t at, size_t steps, fast_vector *block)
{
    const size_t values = smaller(s->count - at, FAST_LANES);
    const pack_source part = source_from(s, step, at);
    if (steps < FAST_LANES || values < FAST_LANES)
        block_load(source_rows(&part, s->type), s->type, s->transposed ? values : steps, s->transposed ? steps : values,
                   block);
    else if (s->type == REMAT_FP32)
        block_load_whole(&part, REMAT_FP32, block);
    else if (s->type == REMAT_BF16)
        block_load_whole(&part, REMAT_BF16, block);
    else if (s->type == REMAT_FP16)
        block_load_whole(&part, REMAT_FP16, block);
    else if (s->type == REMAT_INT8_BLOCKS)
        block_load_whole(&part, REMAT_INT8_BLOCKS, block);
    else
        block_load_whole(&part, REMAT_INT4_BLOCKS, block);
    if (s->transposed)
        block_transpose(block);
}

#endif
