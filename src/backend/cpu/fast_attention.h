/* What forward and backward of the fast attention share.
 *
 * Scores are computed for one panel of queries and some keys at a time, with keys as rows and queries as columns:
 *
 *              queries: a vector lane each
 *     key 0    s s s s ...        The softmax goes down the columns, without sums across lanes. A row of queries is in
 *     key 1    s s s s ...        the order in which a tile reads its A operand: P V needs no packing of P.
 *
 * The rows of K and V are copied once, one behind the other. As they are, they serve as the A operand of the scores and as
 * the B operand of P V. Only queries need to be transposed, a strip at a time. Where attention is causal, a tile goes no
 * further than its last query sees, and scores beyond that are neither computed nor read. */
#ifndef REMAT_BACKEND_CPU_FAST_ATTENTION_H
#define REMAT_BACKEND_CPU_FAST_ATTENTION_H

#include "backend/cpu/fast_gemm_kernel.h"

/* Compiled for the sets with products of pairs, too (pairs.h). There, scores of tensors in bf16, and dO V' of the backward, are made of
 * pairs, and nothing is rounded for that. Where a head is of whole steps, so are the other products, and weights and gradients of
 * scores are rounded to bf16 for them:
 *
 *     out' = V' P     dQ' = K' dS     dV = P dO     dK = dS Q
 *
 * P and dS, rows of keys, need no transposing: they are rows of A as they are, and two rows side by side are pairs of B. */
#if defined(PAIRS_SET)
#include "backend/cpu/pairs_pack.h"
#define ATTENTION(name) PAIRS(name)
#define HAS_PAIRS       1
#else
#define ATTENTION(name) FAST(name)
#define HAS_PAIRS       0
enum { HAS_TILES = 0 };
FAST_INLINE void pairs_begin(void)
{
}
FAST_INLINE void pairs_end(void)
{
}
#endif

/* The queries of a tile of scores. */
#define STRIP_VECTORS (FAST_LANES == 16 ? 2 : 3)
#define STRIP         (STRIP_VECTORS * FAST_LANES)

#define MOST_VALUES 32768 /* of K or V in a block, and of Q in a panel or a group of panels */
#define MOST_SIZE   1024  /* of a head; wider heads go to the reference */
#define MOST_KEYS   256   /* whose scores are held at a time */

/* What forward and backward read and write. */
typedef struct attention_args {
    size_t batch, heads, steps, size, row, out_row, keys, key_row, group;
    bool causal, add_dq, add_dkv;
    tensor_ref q, k, v, dout, out, dq, dk, dv; /* all in fp32, or all in bf16 */
    float *sums;
} attention_args;

/* One sequence and head. */
typedef struct head_view {
    const attention_args *of;
    size_t padded; /* size in whole vectors */
    float scale;
    tensor_ref q, k, v, dout, out, dq, dk, dv;
    float *sums;
} head_view;

FAST_INLINE head_view head_view_of(const attention_args *a, size_t number)
{
    size_t sequence = number / a->heads, head = number % a->heads;
    size_t at = sequence * a->steps * a->row + head * a->size;
    size_t out = sequence * a->steps * a->out_row + head * a->size;
    size_t key = sequence * a->keys * a->key_row + head / a->group * a->size;
    return (head_view){.of = a,
                       .padded = round_up(a->size, FAST_LANES),
                       .scale = 1.0f / sqrtf((float)a->size),
                       .q = tensor_from(a->q, at),
                       .k = tensor_from(a->k, key),
                       .v = tensor_from(a->v, key),
                       .out = tensor_from(a->out, out),
                       .sums = a->sums + number * a->steps,
                       .dout = tensor_from(a->dout, out),
                       .dq = tensor_from(a->dq, at),
                       .dk = tensor_from(a->dk, key),
                       .dv = tensor_from(a->dv, key)};
}

FAST_INLINE bool attention_is_half(const attention_args *a)
{
    return a->q.type == REMAT_BF16;
}

/* All products are made of pairs: rows of heads are whole steps, and there is memory for whole strips of dq. */
FAST_INLINE bool all_are_pairs(const attention_args *a)
{
    return HAS_PAIRS && attention_is_half(a) && a->size % STRIP == 0 &&
           a->steps <= ATTENTION_HALF_VALUES / a->size / STRIP * STRIP;
}

FAST_INLINE bool scores_are_pairs(const attention_args *a)
{
    return HAS_TILES ? all_are_pairs(a) : HAS_PAIRS && attention_is_half(a);
}

/* Windows that leave out keys go to the reference, like wide heads. */
FAST_INLINE bool attention_is_fast(size_t size, size_t steps, size_t window)
{
    return size <= MOST_SIZE && (window == 0 || window >= steps);
}

FAST_INLINE size_t keys_in_block(size_t padded)
{
    const size_t unit = HAS_PAIRS ? 2 * FAST_LANES : FAST_LANES;
    return MOST_VALUES / padded / unit * unit;
}

/* The queries of the largest panel or group that has at most so many strips. */
FAST_INLINE size_t queries_in_strips(size_t most, size_t padded)
{
    return smaller(most, MOST_VALUES / padded / STRIP) * STRIP;
}
_Static_assert(STRIP *MOST_SIZE <= MOST_VALUES, "a strip always fits");

/* ---- who sees whom ---- */

/* Some keys and the queries that look at them. */
typedef struct pairing {
    bool causal;
    size_t key, keys;
    size_t query, queries;
} pairing;

/* How many of the keys are seen by some query before `end`. */
FAST_INLINE size_t keys_seen(const pairing *of, size_t end)
{
    if (!of->causal)
        return of->keys;
    return end <= of->key ? 0 : smaller(of->keys, end - of->key);
}

/* How many of the queries, from the first on, do not see key `i`. */
FAST_INLINE size_t queries_blind(const pairing *of, size_t i)
{
    size_t key = of->key + i;
    return of->causal && key > of->query ? smaller(of->queries, key - of->query) : 0;
}

/* All bits in the lanes whose query sees the key; `query` is that of the first lane. */
FAST_INLINE fast_integers sees(size_t key, size_t query)
{
    fast_integers lane;
    for (int i = 0; i < FAST_LANES; i++)
        lane[i] = i;
    return lane >= (int32_t)((int64_t)key - (int64_t)query);
}

/* ---- packing ---- */

/* Values of a row in either type, a whole vector or the first `count` of one. */
FAST_INLINE fast_vector load_values(const void *row, bool half, size_t at, size_t count)
{
    const float *floats = row;
    const uint16_t *halves = row;
    return half                  ? halves_load(halves + at, count)
           : count == FAST_LANES ? fast_load(floats + at)
                                 : fast_load_part(floats + at, count);
}

FAST_INLINE void gather_rows_as(bool half, const char *rows, size_t row_bytes, size_t count, size_t size, float *to)
{
    size_t whole = size / FAST_LANES * FAST_LANES;
    for (; count > 0; count--, rows += row_bytes) {
        for (size_t c = 0; c < whole; c += FAST_LANES, to += FAST_LANES)
            fast_store(to, load_values(rows, half, c, FAST_LANES));
        if (whole < size) {
            fast_store(to, load_values(rows, half, whole, size - whole));
            to += FAST_LANES;
        }
    }
}

/* Copies `count` rows of a head one behind the other, each filled up with 0 to whole vectors. */
static inline void gather_rows(tensor_ref rows, size_t row, size_t count, size_t size, float *to)
{
    if (rows.type == REMAT_BF16)
        gather_rows_as(true, rows.at, row * sizeof(uint16_t), count, size, to);
    else
        gather_rows_as(false, rows.at, row * sizeof(float), count, size, to);
}

/* The other way: rounds rows to bf16. */
static inline void scatter_halves(const float *from, size_t padded, size_t count, size_t size, tensor_ref rows,
                                  size_t row)
{
    uint16_t *to = rows.at;
    for (; count > 0; count--, from += padded, to += row)
        for (size_t c = 0; c < size; c += FAST_LANES)
            halves_store(to + c, fast_load(from + c), smaller(size - c, FAST_LANES));
}

/* The keys first .. end - 1 of the block that begins at `key`. */
typedef struct key_range {
    size_t key, first, end;
} key_range;

/* Copies these rows of K or V. */
static inline void gather_keys(const head_view *h, tensor_ref from, const key_range *of, float *to)
{
    const size_t row = h->of->key_row;
    gather_rows(tensor_from(from, (of->key + of->first) * row), row, of->end - of->first, h->of->size,
                to + of->first * h->padded);
}

/* Row `i` of what scores are made of: floats, or bf16 where they are made of pairs. */
FAST_INLINE void *scored_from(const head_view *h, void *rows, size_t i)
{
    return (char *)rows + i * h->padded * (scores_are_pairs(h->of) ? sizeof(uint16_t) : sizeof(float));
}

/* The same as gather_keys, for multiply_scores. */
static inline void gather_scored(const head_view *h, tensor_ref from, const key_range *of, void *to)
{
    if (!scores_are_pairs(h->of)) {
        gather_keys(h, from, of, to);
        return;
    }
    const size_t size = h->of->size;
    for (size_t i = of->first; i < of->end; i++) {
        uint16_t *row = scored_from(h, to, i);
        memcpy(row, (const uint16_t *)from.at + (of->key + i) * h->of->key_row, size * sizeof *row);
        memset(row + size, 0, (h->padded - size) * sizeof *row);
    }
}

FAST_INLINE void pack_strip_as(bool half, const char *rows, size_t row_bytes, size_t count, size_t size, float *to)
{
    for (size_t at = 0; at < STRIP; at += FAST_LANES) {
        for (size_t step = 0; step < size; step += FAST_LANES) {
            fast_vector block[FAST_LANES];
            size_t steps = smaller(size - step, FAST_LANES);
            UNROLLED (i, FAST_LANES)
                block[i] =
                    at + i >= count ? (fast_vector){0} : load_values(rows + (at + i) * row_bytes, half, step, steps);
            block_transpose(block);
            UNROLLED (i, FAST_LANES)
                if (i < steps)
                    fast_store(to + (step + i) * STRIP + at, block[i]);
        }
    }
}

/* Packs `count` <= STRIP rows as one panel with the size as the depth; missing queries are 0. */
static inline void pack_strip(tensor_ref rows, size_t row, size_t count, size_t size, float *to)
{
    if (rows.type == REMAT_BF16)
        pack_strip_as(true, rows.at, row * sizeof(uint16_t), count, size, to);
    else
        pack_strip_as(false, rows.at, row * sizeof(float), count, size, to);
}

/* The same for multiply_scores. */
static inline void pack_scored(const head_view *h, tensor_ref rows, size_t row, size_t count, float *to)
{
#if HAS_PAIRS
    if (scores_are_pairs(h->of)) {
        const pack_source strip = {rows.at, row, h->of->size, count, true, REMAT_BF16, 0}, next = {0};
        if (count <= PAIRS_TILE)
            memset(to, 0, round_up(h->of->size, PAIRS_STEP) / 2 * STRIP * sizeof(uint32_t));
        pairs_pack_b(&strip, &next, (uint32_t *)(void *)to);
        return;
    }
#endif
    pack_strip(rows, row, count, h->of->size, to);
}

/* ---- GEMMs ---- */

/* The list that prefetches `count` rows, and then what `then` says. */
#define PREFETCH_LINES 4
FAST_INLINE prefetch_list rows_to_prefetch(tensor_ref rows, size_t row, size_t count, size_t size,
                                           const prefetch_list *then)
{
    if (count == 0)
        return then ? *then : (prefetch_list){0};
    const size_t bytes = rows.type == REMAT_BF16 ? sizeof(uint16_t) : sizeof(float),
                 lines = divide_up(size * bytes, LINE_BYTES);
    return (prefetch_list){rows.at, row * bytes, count, lines, 0, PREFETCH_LINES, then};
}

/* Where a GEMM is written. */
typedef struct gemm_rows {
    float *first;
    size_t row, size;
    size_t old; /* so many rows are added to, the others are written for the first time */
} gemm_rows;

#if HAS_PAIRS
#include "backend/cpu/fast_attention_pairs.h"
#endif

/* scores[key][query] = K Q' for a strip of queries. Keys are computed in whole tiles. */
static inline void multiply_scores(const head_view *h, const pairing *of, const void *scored, const float *queries,
                                   float *scores, size_t scores_row, prefetch_list *prefetch)
{
    const size_t size = h->of->size, padded = h->padded;
    const float *keys = scored;
#if HAS_PAIRS
    if (scores_are_pairs(h->of)) {
        multiply_pairs(of, padded, scored, (const uint32_t *)(const void *)queries, scores, scores_row, prefetch);
        return;
    }
#endif
    for (size_t key = 0; key < of->keys; key += TILE_ROWS) {
        size_t blind = queries_blind(of, key) / FAST_LANES;
        if (blind == STRIP_VECTORS)
            break;
        size_t column = blind * FAST_LANES;
        tile_operands operands = {.depth = size,
                                  .a = keys + key * padded,
                                  .a_row = padded,
                                  .a_step = 1,
                                  .b = queries + column,
                                  .b_step = STRIP,
                                  .prefetch = prefetch};
        tile_make(TILE_ROWS, STRIP - column, &operands, false, NULL, scores + key * scores_row + column, scores_row);
    }
}

/* A tile of rows from `row` on, one panel of columns after the other. */
FAST_INLINE void multiply_rows(tile_operands *operands, size_t row, size_t rows, const gemm_rows *to)
{
    size_t all = round_up(to->size, FAST_LANES) / FAST_LANES;
    for (size_t first = 0, vectors; first < all; first += vectors) {
        vectors = panel_vectors(all - first);
        size_t column = first * FAST_LANES, columns = smaller(to->size - column, vectors * FAST_LANES);
        tile_make(smaller(rows - row, TILE_ROWS), columns, operands, row < to->old, NULL,
                  to->first + row * to->row + column, to->row);
        operands->b += vectors * FAST_LANES;
    }
}

/* For every query, the sum of scores * values over the keys. */
static inline void sum_over_keys(const pairing *of, const float *scores, size_t scores_row, const float *values,
                                 const gemm_rows *to, prefetch_list *prefetch)
{
    size_t padded = round_up(to->size, FAST_LANES);
    for (size_t i = 0; i < of->queries; i += TILE_ROWS) {
        size_t keys = keys_seen(of, of->query + i + TILE_ROWS);
        tile_operands operands = {.depth = keys,
                                  .a = scores + i,
                                  .a_row = 1,
                                  .a_step = scores_row,
                                  .b = values,
                                  .b_step = padded,
                                  .prefetch = prefetch};
        multiply_rows(&operands, i, of->queries, to);
    }
}

/* For every key, the sum of scores * values over the queries. */
static inline void sum_over_queries(const pairing *of, const float *scores, size_t scores_row, const float *values,
                                    const gemm_rows *to, prefetch_list *prefetch)
{
    size_t padded = round_up(to->size, FAST_LANES);
    for (size_t i = 0; i < of->keys; i += TILE_ROWS) {
        size_t blind = queries_blind(of, i);
        tile_operands operands = {.depth = of->queries - blind,
                                  .a = scores + i * scores_row + blind,
                                  .a_row = scores_row,
                                  .a_step = 1,
                                  .b = values + blind * padded,
                                  .b_step = padded,
                                  .prefetch = prefetch};
        multiply_rows(&operands, i, of->keys, to);
    }
}

/* ---- exponentials ---- */

#define LOG2_E 1.44269504f

/* 2^x for x <= 0; NaN passes. Within 1.2 ulp. */
FAST_INLINE fast_vector power_of_2(fast_vector x)
{
    x = fast_max(fast_repeat(-150.0f), x); /* below: 0 */
    fast_vector n = x + 0x1.8p23f - 0x1.8p23f, r = x - n;
    fast_vector p = fast_horner(fast_repeat(1.546973197e-4f), r, 1.341000097e-3f);
    p = fast_horner(p, r, 9.618030783e-3f);
    p = fast_horner(p, r, 5.550297314e-2f);
    p = fast_horner(p, r, 2.402265108e-1f);
    p = fast_horner(p, r, 6.931472254e-1f);
    return fast_scale((fast_scaled){fast_horner(p, r, 1.0f), n});
}

#endif
