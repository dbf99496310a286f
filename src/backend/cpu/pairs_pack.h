/* Packs operands for the microkernel of pairs, from bf16, fp32, fp16 or blocks of weights, a block of FAST_LANES x FAST_LANES pairs at a time:
 *
 *     values along k side by side: the rows of a block are rows of A; B gets the block transposed
 *     values along k below each other: pairs are made of two rows each; the rows of a block are rows of B, and A gets it
 *     transposed
 *
 * Blocks are filled up with zeros to whole panels and whole steps. */
#ifndef REMAT_BACKEND_CPU_PAIRS_PACK_H
#define REMAT_BACKEND_CPU_PAIRS_PACK_H

#include "backend/cpu/fast_block.h"
#include "backend/cpu/pairs_kernel.h"
#include "base/half_plain.h"

#if defined(__AVX512BF16__)

/* 2 * FAST_LANES values that lie side by side, as pairs. */
FAST_INLINE fast_vector pairs_beside(const void *at, remat_dtype type, size_t within)
{
    if (type == REMAT_BF16)
        return (fast_vector)_mm512_loadu_si512(at);
    return (fast_vector)_mm512_cvtne2ps_pbh((__m512)values_load(at, type, within + FAST_LANES, FAST_LANES),
                                            (__m512)values_load(at, type, within, FAST_LANES));
}

/* FAST_LANES values, and as many below them. */
FAST_INLINE fast_vector pairs_below(const void *at, const void *below, remat_dtype type, size_t within)
{
    if (type == REMAT_BF16) {
        const __m512i first = _mm512_cvtepu16_epi32(_mm256_loadu_si256(at)),
                      second = _mm512_cvtepu16_epi32(_mm256_loadu_si256(below));
        return (fast_vector)_mm512_or_si512(first, _mm512_slli_epi32(second, 16));
    }
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512bh both = _mm512_cvtne2ps_pbh((__m512)values_load(below, type, within, FAST_LANES),
                                              (__m512)values_load(at, type, within, FAST_LANES));
    return (fast_vector)_mm512_permutexvar_epi16(order, (__m512i)both);
}

#else

FAST_INLINE uint32_t pairs_value(float value)
{
    return bf16_from_bits(float_bits(value));
}

FAST_INLINE fast_vector pairs_beside(const void *at, remat_dtype type, size_t within)
{
    const fast_vector sides[2] = {values_load(at, type, within, FAST_LANES),
                                  values_load(at, type, within + FAST_LANES, FAST_LANES)};
    pack_words words = {0};
    for (size_t i = 0; i < FAST_LANES; i++) {
        const fast_vector side = sides[2 * i / FAST_LANES];
        words[i] = pairs_value(side[2 * i % FAST_LANES]) | pairs_value(side[2 * i % FAST_LANES + 1]) << 16;
    }
    return (fast_vector)words;
}

FAST_INLINE fast_vector pairs_below(const void *at, const void *below, remat_dtype type, size_t within)
{
    const fast_vector first = values_load(at, type, within, FAST_LANES),
                      second = values_load(below, type, within, FAST_LANES);
    pack_words words = {0};
    for (size_t i = 0; i < FAST_LANES; i++)
        words[i] = pairs_value(first[i]) | pairs_value(second[i]) << 16;
    return (fast_vector)words;
}

#endif

/* Values of a row, and zeros from `count` on; in fp32, where they are not in bf16. */
typedef union pairs_buffer {
    float floats[2 * FAST_LANES];
    uint16_t halves[2 * FAST_LANES];
} pairs_buffer;

FAST_INLINE const void *pairs_filled(const matrix_rows *from, remat_dtype type, size_t row, size_t count,
                                     pairs_buffer *buffer)
{
    const char *at = from->at + row * from->bytes;
    memset(buffer, 0, sizeof *buffer);
    if (count > 0 && type == REMAT_BF16)
        memcpy(buffer, at, count * sizeof(uint16_t));
    else
        for (size_t i = 0; i < count; i += FAST_LANES)
            fast_store(buffer->floats + i, values_load(at, type, from->within + i, smaller(count - i, FAST_LANES)));
    return buffer;
}

/* The next row, so that the compiler does not keep the addresses of all rows in registers, of which it has too few. */
FAST_INLINE const char *pairs_next(const char *row, size_t bytes)
{
    row += bytes;
    __asm__("" : "+r"(row));
    return row;
}

/* A whole block at the beginning of the source. */
FAST_INLINE void pairs_whole_block(const pack_source *s, remat_dtype type, fast_vector *block)
{
    const matrix_rows from = source_rows(s, type);
    const char *row = from.at;
    if (s->transposed)
        UNROLLED (i, FAST_LANES) {
            block[i] = pairs_beside(row, type, from.within);
            row = pairs_next(row, from.bytes);
        }
    else
        UNROLLED (i, FAST_LANES) {
            block[i] = pairs_below(row, row + from.bytes, type, from.within);
            row = pairs_next(row, 2 * from.bytes);
        }
}

/* A block of what is left of a source, which is less than a whole one. */
FAST_NOINLINE void pairs_part_block(const pack_source *s, fast_vector *block)
{
    const matrix_rows from = source_rows(s, s->type);
    const remat_dtype filled = s->type == REMAT_BF16 ? REMAT_BF16 : REMAT_FP32;
    for (size_t i = 0; i < FAST_LANES; i++) {
        pairs_buffer first, second;
        if (s->transposed) {
            const size_t count = i < s->count ? smaller(s->depth, 2 * FAST_LANES) : 0;
            block[i] = pairs_beside(pairs_filled(&from, s->type, i, count, &first), filled, 0);
            continue;
        }
        const size_t count = smaller(s->count, FAST_LANES), one = 2 * i < s->depth ? count : 0,
                     two = 2 * i + 1 < s->depth ? count : 0;
        block[i] = pairs_below(pairs_filled(&from, s->type, 2 * i, one, &first),
                               pairs_filled(&from, s->type, 2 * i + 1, two, &second), filled, 0);
    }
}

/* The block at (step, at), transposed if asked for. Beyond the source it is 0. */
FAST_INLINE void pairs_block(const pack_source *s, size_t step, size_t at, bool transpose, fast_vector *block)
{
    const bool inside = step < s->depth && at < s->count;
    pack_source part = inside ? source_from(s, step, at) : *s;
    part.depth = inside ? s->depth - step : 0;
    part.count = inside ? s->count - at : 0;
    if (part.depth < 2 * FAST_LANES || part.count < FAST_LANES)
        pairs_part_block(&part, block);
    else if (s->type == REMAT_BF16)
        pairs_whole_block(&part, REMAT_BF16, block);
    else if (s->type == REMAT_FP32)
        pairs_whole_block(&part, REMAT_FP32, block);
    else if (s->type == REMAT_FP16)
        pairs_whole_block(&part, REMAT_FP16, block);
    else if (s->type == REMAT_INT8_BLOCKS)
        pairs_whole_block(&part, REMAT_INT8_BLOCKS, block);
    else
        pairs_whole_block(&part, REMAT_INT4_BLOCKS, block);
    if (transpose)
        block_transpose(block);
}

/* ---- prefetching ---- */

/* The lines of a source, some of them with each of `calls` calls. */
FAST_INLINE lines_ahead lines_of(const pack_source *s, size_t calls)
{
    const matrix_rows from = source_rows(s, s->type);
    const size_t rows = s->transposed ? s->count : s->depth,
                 bytes = values_bytes(s->type, s->transposed ? s->depth : s->count);
    return (lines_ahead){from.at, from.bytes, rows,
                         bytes,   0,          divide_up(rows * divide_up(bytes, LINE_BYTES), calls ? calls : 1)};
}

/* ---- panels ---- */

FAST_INLINE void pairs_pack_block_a(const pack_source *s, size_t step, size_t at, uint16_t *to, size_t row)
{
    fast_vector block[FAST_LANES];
    pairs_block(s, step, at, !s->transposed, block);
    UNROLLED (i, FAST_LANES)
        memcpy(to + (at + i) * row + step, &block[i], sizeof block[i]);
}

/* Packs rows of A, `row` values apart; both are filled up, the rows to whole tiles. It reads along the rows of the source. */
static inline void pairs_pack_a(const pack_source *s, uint16_t *to, size_t row)
{
    const size_t rows = round_up(s->count, PAIRS_TILE), depth = round_up(s->depth, PAIRS_STEP);
    if (s->transposed)
        for (size_t at = 0; at < rows; at += FAST_LANES)
            for (size_t step = 0; step < depth; step += 2 * FAST_LANES)
                pairs_pack_block_a(s, step, at, to, row);
    else
        for (size_t step = 0; step < depth; step += 2 * FAST_LANES)
            for (size_t at = 0; at < rows; at += FAST_LANES)
                pairs_pack_block_a(s, step, at, to, row);
}

/* Packs a panel of B; the columns are filled up to whole tiles. Meanwhile the panel that is packed `next` is prefetched. */
static inline void pairs_pack_b(const pack_source *s, const pack_source *next, uint32_t *to)
{
    lines_ahead ahead = lines_of(next, divide_up(s->depth, 2 * FAST_LANES) * divide_up(s->count, FAST_LANES));
    for (size_t step = 0; step < round_up(s->depth, PAIRS_STEP); step += 2 * FAST_LANES)
        for (size_t at = 0; at < round_up(s->count, PAIRS_TILE); at += FAST_LANES) {
            fast_vector block[FAST_LANES];
            prefetch_lines(&ahead, ahead.at_once);
            pairs_block(s, step, at, s->transposed, block);
            UNROLLED (i, FAST_LANES)
                memcpy(to + pairs_place(step / 2 + i, at), &block[i], sizeof block[i]);
        }
}

#endif
