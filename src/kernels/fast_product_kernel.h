/* The heart of every matrix product, shared by product and attention: a tile of TILE_ROWS x up to TILE_COLUMNS sums held
 * in registers, and the packing that puts operands into the order in which a tile reads them.
 *
 *        B, packed: panels of up to 3 vectors              for each step along the depth a tile reads one
 *            | p0: b b b | p1 ...                          column of TILE_ROWS values of A, each spread over
 *   A        | p0: b b b |                                 a vector, and one row of a panel of B
 *   a a ..   | sums      |
 *   a a ..   | sums      |
 *
 * Every sum is one chain of multiply-adds along the depth, whatever the tile's shape. */
#ifndef REMAT_KERNELS_FAST_PRODUCT_KERNEL_H
#define REMAT_KERNELS_FAST_PRODUCT_KERNEL_H

#include "kernels/fast_math.h"

/* 24 sums of AVX-512's 32 registers, or 12 of 16. Rows divide the lanes: packing relies on it. */
#define TILE_ROWS    (FAST_LANES == 16 ? 8 : 4)
#define TILE_VECTORS 3
#define TILE_COLUMNS (TILE_VECTORS * FAST_LANES)

/* A loop that must vanish, so that what it indexes lives in registers. Left alone under the sanitizers, whose checks of
 * unrolled code take minutes to compile. */
#if defined(__SANITIZE_ADDRESS__)
#define UNROLLED(i, count) for (size_t i = 0; i < (count); i++)
#elif defined(__clang__)
#define UNROLLED(i, count) _Pragma("unroll") for (size_t i = 0; i < (count); i++)
#else
#define UNROLLED(i, count) _Pragma("GCC unroll 16") for (size_t i = 0; i < (count); i++)
#endif

#ifdef __clang__
#define SHUFFLE(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define SHUFFLE(x, y, ...) __builtin_shuffle(x, y, (fast_integers){__VA_ARGS__})
#endif

typedef fast_vector tile_sums[TILE_ROWS][TILE_VECTORS];

FAST_INLINE size_t smaller(size_t x, size_t y)
{
    return x < y ? x : y;
}

FAST_INLINE size_t round_up(size_t x, size_t unit)
{
    return (x + unit - 1) / unit * unit;
}

/* ---- the tile ---- */

/* sums = A B over `depth` steps. Value (row, step) of A is at a[row * a_row + step * a_step]; B is a packed panel. */
FAST_INLINE void tile_multiply(size_t vectors, size_t depth, const float *a, size_t a_row, size_t a_step,
                               const float *b, tile_sums sums)
{
    UNROLLED (i, TILE_ROWS)
        UNROLLED (v, vectors)
            sums[i][v] = (fast_vector){0};
    for (size_t p = 0; p < depth; p++) {
        fast_vector row[TILE_VECTORS];
        UNROLLED (v, vectors)
            row[v] = *(const fast_vector *)(b + v * FAST_LANES);
        UNROLLED (i, TILE_ROWS) {
            fast_vector spread = fast_repeat(a[i * a_row]);
            UNROLLED (v, vectors)
                sums[i][v] += spread * row[v];
        }
        UNROLLED (v, vectors)
            __builtin_prefetch(b + (8 * vectors + v) * FAST_LANES); /* B comes from the second cache: 8 steps ahead */
        a += a_step;
        b += vectors * FAST_LANES;
    }
}

/* What becomes of the sums: C = sums or C += sums, then the bias where there is one. */
FAST_INLINE void tile_store(size_t vectors, tile_sums sums, bool add, const float *bias, float *c, size_t ldc)
{
    UNROLLED (i, TILE_ROWS)
        UNROLLED (v, vectors) {
            float *to = c + i * ldc + v * FAST_LANES;
            fast_vector value = add ? fast_load(to) + sums[i][v] : sums[i][v];
            fast_store(to, bias ? value + fast_load(bias + v * FAST_LANES) : value);
        }
}

/* Operands of a tile: value (row, step) of A is at a[row * a_row + step * a_step]; b is a packed panel. */
typedef struct tile_operands {
    size_t depth;
    const float *a;
    size_t a_row, a_step;
    const float *b;
} tile_operands;

FAST_INLINE void tile_run(size_t vectors, const tile_operands *of, bool add, const float *bias, float *c, size_t ldc)
{
    tile_sums sums;
    UNROLLED (i, TILE_ROWS) /* C arrives while the sums are being made */
        UNROLLED (v, vectors)
            __builtin_prefetch(c + i * ldc + v * FAST_LANES, 1);
    tile_multiply(vectors, of->depth, of->a, of->a_row, of->a_step, of->b, sums);
    tile_store(vectors, sums, add, bias, c, ldc);
}

static inline void copy_rows(size_t rows, size_t columns, const float *from, size_t from_row, float *to, size_t to_row)
{
    for (size_t i = 0; i < rows; i++)
        memcpy(to + i * to_row, from + i * from_row, columns * sizeof(float));
}

/* A tile of C, of `rows` x `columns` values. One that reaches over the edge of C is made in a whole one beside it. */
FAST_INLINE void tile_make(size_t rows, size_t columns, const tile_operands *of, bool add, const float *bias, float *c,
                           size_t ldc)
{
    bool whole = rows == TILE_ROWS && columns % FAST_LANES == 0;
    float tile[TILE_ROWS * TILE_COLUMNS], bias_part[TILE_COLUMNS] = {0}, *to = c;
    size_t to_row = ldc;
    if (!whole) {
        memset(tile, 0, sizeof tile);
        to = tile;
        to_row = TILE_COLUMNS;
        if (add)
            copy_rows(rows, columns, c, ldc, tile, TILE_COLUMNS);
        if (bias)
            bias = memcpy(bias_part, bias, columns * sizeof(float));
    }
    switch ((columns + FAST_LANES - 1) / FAST_LANES) {
    case 1: tile_run(1, of, add, bias, to, to_row); break;
    case 2: tile_run(2, of, add, bias, to, to_row); break;
    default: tile_run(3, of, add, bias, to, to_row); break;
    }
    if (!whole)
        copy_rows(rows, columns, tile, TILE_COLUMNS, c, ldc);
}

/* ---- packing ---- */

/* How many vectors the next panel has when so many are left: 3 but at the end, where 4 are better as 2 and 2. */
FAST_INLINE size_t panel_vectors(size_t left)
{
    return left == 4 ? 2 : smaller(left, TILE_VECTORS);
}

FAST_INLINE fast_vector interleave_low(fast_vector x, fast_vector y)
{
#if FAST_LANES == 16
    return SHUFFLE(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif FAST_LANES == 8
    return SHUFFLE(x, y, 0, 8, 1, 9, 2, 10, 3, 11);
#else
    return SHUFFLE(x, y, 0, 4, 1, 5);
#endif
}

FAST_INLINE fast_vector interleave_high(fast_vector x, fast_vector y)
{
#if FAST_LANES == 16
    return SHUFFLE(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif FAST_LANES == 8
    return SHUFFLE(x, y, 4, 12, 5, 13, 6, 14, 7, 15);
#else
    return SHUFFLE(x, y, 2, 6, 3, 7);
#endif
}

/* Every round moves the top bit of the row's number to the bottom of the lane's: after all of them they are exchanged. */
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

/* A matrix of depth x count values to be packed. `by_count`: it is stored count x depth. */
typedef struct pack_source {
    const float *from;
    size_t stride, depth, count;
    bool by_count;
} pack_source;

/* Where in the source a block starts, and what of it there is: FAST_LANES each way but at the edges. */
typedef struct pack_block {
    size_t step, at, steps, values;
} pack_block;

/* Loads `rows` x `columns` values, padded with 0, and asks for what follows in the rows. */
FAST_INLINE void block_load(const float *from, size_t stride, size_t rows, size_t columns, fast_vector *block)
{
    UNROLLED (i, FAST_LANES) {
        block[i] = (fast_vector){0};
        if (i < rows) {
            block[i] =
                columns == FAST_LANES ? fast_load(from + i * stride) : fast_load_part(from + i * stride, columns);
            __builtin_prefetch(from + i * stride + 4 * FAST_LANES);
        }
    }
}

/* The B operand: panels one behind the other, each with `depth` rows. */
FAST_INLINE void store_in_panel(const pack_source *s, const pack_block *b, const fast_vector *block, float *to)
{
    size_t all = (s->count + FAST_LANES - 1) / FAST_LANES, v = b->at / FAST_LANES;
    size_t pairs = all % TILE_VECTORS == 1 && all > 1 ? all - 4 : all; /* from here on panels are of 2 vectors */
    size_t first = v < pairs ? v / TILE_VECTORS * TILE_VECTORS : pairs + (v - pairs) / 2 * 2;
    size_t width = panel_vectors(all - first) * FAST_LANES;
    to += first * FAST_LANES * s->depth + b->step * width + (v - first) * FAST_LANES;
    UNROLLED (i, FAST_LANES)
        if (i < b->steps)
            fast_store(to + i * width, block[i]);
}

/* The A operand: tile behind tile, each with columns of TILE_ROWS values. */
FAST_INLINE void store_in_tiles(const pack_source *s, const pack_block *b, const fast_vector *block, float *to)
{
    UNROLLED (part, FAST_LANES / TILE_ROWS) {
        float *tile = to + (b->at + part * TILE_ROWS) * s->depth + b->step * TILE_ROWS;
        UNROLLED (i, FAST_LANES)
            if (i < b->steps)
                memcpy(tile + i * TILE_ROWS, (const float *)&block[i] + part * TILE_ROWS, TILE_ROWS * sizeof(float));
    }
}

typedef void store_block(const pack_source *s, const pack_block *b, const fast_vector *block, float *to);
FAST_INLINE void pack_one(const pack_source *s, const pack_block *b, store_block *store, float *to)
{
    fast_vector block[FAST_LANES];
    if (s->by_count) {
        block_load(s->from + b->at * s->stride + b->step, s->stride, b->values, b->steps, block);
        block_transpose(block);
    } else {
        block_load(s->from + b->step * s->stride + b->at, s->stride, b->steps, b->values, block);
    }
    store(s, b, block, to);
}

/* Goes along FAST_LANES stored rows at once, block by block. */
FAST_INLINE void pack(const pack_source *s, store_block *store, float *to)
{
    size_t rows = s->by_count ? s->count : s->depth, length = s->by_count ? s->depth : s->count;
    for (size_t row = 0; row < rows; row += FAST_LANES) {
        for (size_t at = 0; at < length; at += FAST_LANES) {
            size_t step = s->by_count ? at : row, place = s->by_count ? row : at;
            size_t steps = s->depth - step, values = s->count - place;
            if (steps >= FAST_LANES && values >= FAST_LANES)
                pack_one(s, &(pack_block){step, place, FAST_LANES, FAST_LANES}, store, to);
            else
                pack_one(s, &(pack_block){step, place, smaller(steps, FAST_LANES), smaller(values, FAST_LANES)}, store,
                         to);
        }
    }
}

/* Both take depth * round_up(count, FAST_LANES) values. */
static inline void pack_panels(const pack_source *s, float *to)
{
    pack(s, store_in_panel, to);
}

static inline void pack_tiles(const pack_source *s, float *to)
{
    pack(s, store_in_tiles, to);
}

#endif
