/* The products of attention as pairs; a part of fast_attention.h, whose types it takes. */
#ifndef REMAT_BACKEND_CPU_FAST_ATTENTION_PAIRS_H
#define REMAT_BACKEND_CPU_FAST_ATTENTION_PAIRS_H

/* The tiles of C from this row on that are all below `end`, 2 at most. */
FAST_INLINE size_t tiles_down(size_t row, size_t end)
{
    return end - row > PAIRS_TILE ? 2 : 1;
}

#ifdef PAIRS_TILES

static inline void multiply_pairs(const pairing *of, size_t padded, const uint16_t *keys, const uint32_t *queries,
                                  float *scores, size_t scores_row, prefetch_list *prefetch)
{
    for (size_t key = 0; key < of->keys; key += PAIRS_PANEL) {
        const size_t blind = queries_blind(of, key) / FAST_LANES, column = blind * FAST_LANES;
        if (blind == STRIP_VECTORS)
            break;
        for (size_t i = 0; i < 4 * padded; i += PREFETCH_STEPS)
            prefetch_some(prefetch);
        const pairs_operands operands = {.steps = padded / PAIRS_STEP,
                                         .a = keys + key * padded,
                                         .a_row = padded,
                                         .b = queries + pairs_place(0, column),
                                         .c = scores + key * scores_row + column,
                                         .ldc = scores_row,
                                         .down = tiles_down(key, of->keys),
                                         .across = 2 - blind};
        pairs_multiply(&operands);
    }
}

#else

_Static_assert(TILE_ROWS == PAIRS_ROWS, "tiles of scores have the rows of pairs");

FAST_NOINLINE void score_narrow(const uint16_t *keys, size_t padded, const uint32_t *queries, float *scores, size_t row)
{
    pairs_sums sums;
    pairs_sum(keys, padded, queries, padded / 2, NULL, 0, false, 1, &sums);
    pairs_store(&sums, scores, row, 1);
}

FAST_NOINLINE void score_wide(const uint16_t *keys, size_t padded, const uint32_t *queries, float *scores, size_t row)
{
    pairs_sums sums;
    pairs_sum(keys, padded, queries, padded / 2, NULL, 0, false, 2, &sums);
    pairs_store(&sums, scores, row, 2);
}

static inline void multiply_pairs(const pairing *of, size_t padded, const uint16_t *keys, const uint32_t *queries,
                                  float *scores, size_t scores_row, prefetch_list *prefetch)
{
    for (size_t key = 0; key < of->keys; key += PAIRS_ROWS) {
        const size_t blind = queries_blind(of, key) / FAST_LANES, column = blind * FAST_LANES;
        if (blind == STRIP_VECTORS)
            break;
        for (size_t i = 0; i < padded; i += PREFETCH_STEPS)
            prefetch_some(prefetch);
        (blind ? score_narrow : score_wide)(keys + key * padded, padded, queries + pairs_place(0, column),
                                            scores + key * scores_row + column, scores_row);
    }
}

#endif

/* Between rows of K or V transposed: all keys of a block, and so many more that rows do not share sets of the first cache. */
static inline size_t turned_row(const head_view *h)
{
    return keys_in_block(h->padded) + PAIRS_STEP;
}

/* Copies these rows of K or V transposed. */
static inline void gather_turned(const head_view *h, tensor_ref from, const key_range *of, uint16_t *to)
{
    const size_t row = h->of->key_row;
    const pack_source rows = {
        tensor_from(from, (of->key + of->first) * row).at, row, of->end - of->first, h->of->size, false, REMAT_BF16, 0};
    pairs_pack_a(&rows, to + of->first, turned_row(h));
}

/* Two rows of weights, of one vector of queries, as pairs. */
FAST_INLINE void store_pairs(uint32_t *panel, size_t key, size_t column, fast_vector first, fast_vector second)
{
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512bh both = _mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
    _mm512_storeu_si512(panel + pairs_place(key / 2, column), _mm512_permutexvar_epi16(order, (__m512i)both));
}

FAST_INLINE void store_halves(uint16_t *to, fast_vector values)
{
    const __m256i halves = (__m256i)_mm512_cvtneps_pbh((__m512)values);
    memcpy(to, &halves, sizeof halves);
}

/* sums'[column][query] = values' weights: for a strip of queries, over these keys. A row of values has all keys of a block. */
static inline void sum_pairs_over_keys(const head_view *h, size_t keys, const uint16_t *values, const uint32_t *weights,
                                       bool add, float *sums)
{
    for (size_t row = 0; row < h->of->size; row += PAIRS_PANEL) {
        const pairs_operands operands = {.steps = divide_up(keys, PAIRS_STEP),
                                         .a = values + row * turned_row(h),
                                         .a_row = turned_row(h),
                                         .b = weights,
                                         .c = sums + row * STRIP,
                                         .ldc = STRIP,
                                         .add = add,
                                         .down = 2,
                                         .across = 2};
        pairs_multiply(&operands);
    }
}

/* Rounds sums'[column][query] of `count` queries to bf16, and transposes them. */
static inline void scatter_transposed(const head_view *h, const float *sums, size_t count, tensor_ref rows, size_t row)
{
    for (size_t at = 0; at < count; at += FAST_LANES)
        for (size_t c = 0; c < h->of->size; c += FAST_LANES) {
            fast_vector block[FAST_LANES];
            UNROLLED (i, FAST_LANES)
                block[i] = fast_load(sums + (c + i) * STRIP + at);
            block_transpose(block);
            UNROLLED (i, FAST_LANES)
                if (at + i < count)
                    store_halves((uint16_t *)rows.at + (at + i) * row + c, block[i]);
        }
}

/* For every key, the sum of weights * rows over the queries of a panel. Rows of weights are `weights_row` apart, the others are packed,
 * a panel for every 32 columns. */
static inline void sum_pairs_over_queries(const pairing *of, const uint16_t *weights, size_t weights_row,
                                          const uint32_t *rows, const gemm_rows *to)
{
    const size_t depth = round_up(of->queries, PAIRS_STEP);
    for (size_t i = 0, down; i < of->keys; i += down * PAIRS_TILE) {
        const size_t blind = queries_blind(of, i) / PAIRS_STEP * PAIRS_STEP,
                     end = i < to->old && to->old < of->keys ? to->old : of->keys;
        down = tiles_down(i, end);
        for (size_t column = 0; column < to->size; column += PAIRS_PANEL) {
            const pairs_operands operands = {.steps = (depth - blind) / PAIRS_STEP,
                                             .a = weights + i * weights_row + blind,
                                             .a_row = weights_row,
                                             .b = rows + depth / 2 * column + pairs_place(blind / 2, 0),
                                             .c = to->first + i * to->row + column,
                                             .ldc = to->row,
                                             .add = i < to->old,
                                             .down = down,
                                             .across = 2};
            pairs_multiply(&operands);
        }
    }
}

#endif
