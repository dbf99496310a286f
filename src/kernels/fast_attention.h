/* What the two directions of fast attention share.
 *
 * Scores are made with keys as rows and queries as columns, for one panel of queries and one block of keys at a time:
 *
 *              QUERIES queries: a vector lane each
 *     key 0    s s s s ...        the softmax goes down the columns, without sums across lanes, and a row of 8 queries
 *     key 1    s s s s ...        is in the order in which a tile reads its A operand: P V needs no packing of P
 */
#ifndef REMAT_KERNELS_FAST_ATTENTION_H
#define REMAT_KERNELS_FAST_ATTENTION_H

#include "kernels/fast_product_kernel.h"

/* Vectors of queries in a panel. */
#define QUERY_VECTORS (FAST_LANES == 16 ? 2 : 3)
#define QUERIES       (QUERY_VECTORS * FAST_LANES)

/* A block has up to this many keys, and up to this many values of K. Wider heads go to the reference. */
#define MOST_KEYS   256
#define MOST_VALUES 32768
#define MOST_SIZE   1024

/* One sequence and head. */
typedef struct head_view {
    const kernel_attention *of;
    size_t padded; /* size in whole vectors */
    float scale;
    const float *q, *k, *v, *dout;
    float *out, *sums, *dq, *dk, *dv;
} head_view;

FAST_INLINE head_view head_view_of(const kernel_attention *a, size_t sequence, size_t head)
{
    size_t at = sequence * a->steps * a->row + head * a->size;
    size_t out = sequence * a->steps * a->out_row + head * a->size;
    return (head_view){.of = a,
                       .padded = round_up(a->size, FAST_LANES),
                       .scale = 1.0f / sqrtf((float)a->size),
                       .q = a->q + at,
                       .k = a->k + at,
                       .v = a->v + at,
                       .out = a->out + out,
                       .sums = a->sums + (sequence * a->heads + head) * a->steps,
                       .dout = a->dout ? a->dout + out : NULL,
                       .dq = a->dq ? a->dq + at : NULL,
                       .dk = a->dk ? a->dk + at : NULL,
                       .dv = a->dv ? a->dv + at : NULL};
}

FAST_INLINE size_t keys_in_block(size_t padded)
{
    return smaller(MOST_KEYS, MOST_VALUES / padded / FAST_LANES * FAST_LANES);
}

/* ---- packing ---- */

/* `count` rows of a head as rows of A or columns of B: the depth is the head's size. */
FAST_INLINE pack_source across_rows(const float *rows, size_t row, size_t count, size_t size)
{
    return (pack_source){rows, row, size, count, true};
}

/* `count` rows of a head as rows of B: the depth is their number. */
FAST_INLINE pack_source along_rows(const float *rows, size_t row, size_t count, size_t size)
{
    return (pack_source){rows, row, count, size, false};
}

/* `count` <= QUERIES rows as one panel with the size as the depth; missing queries are 0. */
static inline void pack_queries(const float *rows, size_t row, size_t count, size_t size, float *to)
{
    for (size_t v = 0; v < QUERY_VECTORS; v++) {
        for (size_t step = 0; step < size; step += FAST_LANES) {
            fast_vector block[FAST_LANES];
            size_t steps = smaller(size - step, FAST_LANES), at = v * FAST_LANES;
            size_t values = at < count ? smaller(count - at, FAST_LANES) : 0;
            if (steps == FAST_LANES && values == FAST_LANES)
                block_load(rows + at * row + step, row, FAST_LANES, FAST_LANES, block);
            else
                block_load(rows + at * row + step, row, values, steps, block);
            block_transpose(block);
            UNROLLED (i, FAST_LANES)
                if (i < steps)
                    fast_store(to + ((step + i) * QUERY_VECTORS + v) * FAST_LANES, block[i]);
        }
    }
}

/* ---- products ---- */

/* scores[key][query] = K Q': `keys` packed as A, `queries` as one panel. Rows are made in whole tiles. */
static inline void multiply_scores(size_t count, size_t size, const float *keys, const float *queries, float *scores)
{
    for (size_t key = 0; key < count; key += TILE_ROWS) {
        tile_sums sums;
        tile_operands operands = {size, keys + key * size, 1, TILE_ROWS, queries, QUERIES, .next = NULL};
        tile_multiply(QUERY_VECTORS, 1, TILE_ROWS, &operands, sums);
        UNROLLED (i, TILE_ROWS)
            UNROLLED (v, QUERY_VECTORS)
                fast_store(scores + (key + i) * QUERIES + v * FAST_LANES, sums[i][v]);
    }
}

/* c[row][0 .. size-1] += A B over `depth` steps. Value (row, step) of A is at a[row * a_row + step * a_step]; A may be
 * read up to a whole tile of rows. B is packed panels of `b_depth` rows. */
FAST_INLINE void add_product(size_t rows, size_t depth, size_t size, const float *a, size_t a_row, size_t a_step,
                             const float *b, size_t b_depth, float *c, size_t ldc)
{
    size_t all = (size + FAST_LANES - 1) / FAST_LANES;
    for (size_t first = 0, vectors; first < all; first += vectors) {
        vectors = panel_vectors(all - first);
        size_t column = first * FAST_LANES, columns = smaller(size - column, vectors * FAST_LANES);
        for (size_t row = 0; row < rows; row += TILE_ROWS) {
            tile_operands operands = {
                depth, a + row * a_row, a_row, a_step, b + column * b_depth, vectors * FAST_LANES, .next = NULL};
            tile_make(smaller(rows - row, TILE_ROWS), columns, &operands, true, NULL, c + row * ldc + column, ldc);
        }
    }
}

/* ---- masks ---- */

/* All bits in the lanes whose query may look at the key; queries count from `query` on. */
FAST_INLINE fast_integers sees(size_t key, size_t query)
{
    fast_integers lane;
    for (int i = 0; i < FAST_LANES; i++)
        lane[i] = i;
    return lane >= (int32_t)((int64_t)key - (int64_t)query);
}

/* How many keys of a block a panel of queries needs. */
FAST_INLINE size_t keys_needed(const kernel_attention *a, size_t first_key, size_t keys, size_t query, size_t queries)
{
    if (!a->causal)
        return keys;
    size_t end = query + queries; /* the last query sees itself */
    return end <= first_key ? 0 : smaller(keys, end - first_key);
}

#endif
