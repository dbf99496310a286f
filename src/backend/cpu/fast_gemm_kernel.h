/* The GEMM microkernel, shared by GEMM, attention and convolutions, and the packing of its operands. The microkernel
 * computes a tile of C: TILE_ROWS x up to TILE_COLUMNS sums, held in registers.
 *
 *        B, packed: panels of up to 3 vectors
 *            | p0: b b b | p1 ...
 *   A        | p0: b b b |               Each step along the depth reads one column of TILE_ROWS values of A, each
 *   a a ..   | sums      |               repeated in all lanes of a vector, and one row of a panel of B.
 *   a a ..   | sums      |
 *
 * Every sum is one chain of multiply-adds along the depth, whatever the tile's shape. */
#ifndef REMAT_BACKEND_CPU_FAST_GEMM_KERNEL_H
#define REMAT_BACKEND_CPU_FAST_GEMM_KERNEL_H

#include "backend/cpu/fast_block.h"

/* The sums take 24 of AVX-512's 32 registers, or 12 of 16. TILE_ROWS divides FAST_LANES: packing relies on it. */
#define TILE_ROWS    (FAST_LANES == 16 ? 8 : 4)
#define TILE_SIZES   (FAST_LANES == 16 ? 4 : 3) /* powers of 2 up to TILE_ROWS */
#define TILE_VECTORS 3
#define TILE_COLUMNS (TILE_VECTORS * FAST_LANES)

typedef fast_vector tile_sums[TILE_ROWS][TILE_VECTORS];

/* ---- prefetching ---- */

/* Rows of memory to prefetch while tiles are computed: `lines_at_once` cache lines with every PREFETCH_STEPS steps. The
 * processor would drop most of the requests if all were made at once. */
#define PREFETCH_STEPS 16
typedef struct prefetch_list prefetch_list;
struct prefetch_list {
    const char *row;
    size_t stride, rows; /* bytes between rows; rows that are left */
    size_t lines, line;  /* of a row: all, and the next one */
    size_t lines_at_once;
    const prefetch_list *then; /* the list that follows the last row, or NULL */
};

FAST_INLINE void prefetch_some(prefetch_list *list)
{
    for (size_t i = 0; i < list->lines_at_once && list->rows > 0; i++) {
        __builtin_prefetch(list->row + list->line * LINE_BYTES);
        if (++list->line == list->lines) {
            list->line = 0;
            list->row += list->stride;
            if (--list->rows == 0 && list->then)
                *list = *list->then;
        }
    }
}

/* ---- the tile ---- */

/* The operands of a tile. Value (row, step) of A is at a[row * a_row + step * a_step], one of these distances being 1; the
 * rows of B are b_step apart. All other pointers may be NULL.
 *
 * An operand that is not packed yet and will be read again is packed on the way, to packed_a or packed_b: a tile has time to
 * store while it multiplies. Prefetched on the way are `prefetch`, which will be read next, and the rows of
 * up to three tiles that are read or written next, c_row apart, `prefetch_tile_rows` with every PREFETCH_STEPS steps. */
typedef struct tile_operands {
    size_t depth;
    const float *a;
    size_t a_row, a_step;
    const float *b;
    size_t b_step;
    float *packed_a, *packed_b;
    prefetch_list *prefetch;
    const float *prefetch_tiles[3];
    size_t c_row, prefetch_tile_rows;
} tile_operands;

/* What a tile's function is compiled for. */
typedef struct tile_form {
    size_t rows, vectors;
    bool by_row; /* the values of a row of A lie side by side, not those of a step */
    bool pack_a, pack_b;
} tile_form;

/* sums = A B. */
FAST_INLINE void tile_multiply(tile_form form, const tile_operands *of, tile_sums sums)
{
    const size_t a_row = form.by_row ? of->a_row : 1, a_step = form.by_row ? 1 : of->a_step, b_step = of->b_step;
    const float *a = of->a, *b = of->b;
    const float *prefetch_a = a + 8 * a_step, *prefetch_b = b + 8 * b_step; /* they are in the second cache */
    float *packed_a = of->packed_a, *packed_b = of->packed_b;
    UNROLLED (i, form.rows)
        UNROLLED (v, form.vectors)
            sums[i][v] = (fast_vector){0};
    for (size_t left = of->depth, steps, tile_row = 0; left > 0; left -= steps) {
        steps = smaller(left, PREFETCH_STEPS);
        if (of->prefetch)
            prefetch_some(of->prefetch);
        for (size_t last = smaller(tile_row + of->prefetch_tile_rows, form.rows); tile_row < last; tile_row++)
            for (size_t i = 0; i < 3; i++)
                for (size_t v = 0; of->prefetch_tiles[i] && v < form.vectors; v++)
                    __builtin_prefetch(of->prefetch_tiles[i] + tile_row * of->c_row + v * FAST_LANES, 1);
#pragma GCC unroll 1 /* the body fills the registers; more of it would only fill the instruction cache */
        for (size_t p = 0; p < steps; p++) {
            fast_vector row[TILE_VECTORS];
            UNROLLED (v, form.vectors)
                row[v] = fast_load(b + v * FAST_LANES);
            UNROLLED (i, form.rows) {
                fast_vector spread = fast_repeat(a[i * a_row]);
                UNROLLED (v, form.vectors)
                    sums[i][v] = fast_fma(spread, row[v], sums[i][v]);
            }
            UNROLLED (v, form.vectors)
                __builtin_prefetch(prefetch_b + v * FAST_LANES);
            if (form.pack_a) {
                __builtin_prefetch(prefetch_a);
                memcpy(packed_a, a, form.rows * sizeof(float));
                prefetch_a += a_step;
                packed_a += form.rows;
            }
            if (form.pack_b) {
                UNROLLED (v, form.vectors)
                    fast_store(packed_b + v * FAST_LANES, row[v]);
                packed_b += form.vectors * FAST_LANES;
            }
            a += a_step;
            b += b_step;
            prefetch_b += b_step;
        }
    }
}

/* C = sums or C += sums, then the bias where there is one. The last vector of a row of C has `edge` values only, if that
 * is not 0. */
FAST_INLINE void tile_store(tile_form form, tile_sums sums, bool add, const float *bias, float *c, size_t ldc,
                            size_t edge)
{
    UNROLLED (i, form.rows)
        UNROLLED (v, form.vectors) {
            float *to = c + i * ldc + v * FAST_LANES;
            fast_vector value = sums[i][v];
            if (v + 1 < form.vectors || edge == 0) {
                value = add ? fast_load(to) + value : value;
                fast_store(to, bias ? value + fast_load(bias + v * FAST_LANES) : value);
            } else {
                value = add ? fast_load_part(to, edge) + value : value;
                fast_store_part(to, bias ? value + fast_load_part(bias + v * FAST_LANES, edge) : value, edge);
            }
        }
}

typedef void tile_function(const tile_operands *of, bool add, const float *bias, float *c, size_t ldc, size_t edge);
#define TILE_FUNCTION(name, ...)                                                                                     \
    FAST_NOINLINE void name(const tile_operands *of, bool add, const float *bias, float *c, size_t ldc, size_t edge) \
    {                                                                                                                \
        const tile_form form = {__VA_ARGS__};                                                                        \
        tile_sums sums;                                                                                              \
        tile_multiply(form, of, sums);                                                                               \
        tile_store(form, sums, add, bias, c, ldc, edge);                                                             \
    }
#define TILE_FUNCTIONS(rows, vectors)                                                  \
    TILE_FUNCTION(tile_by_step_##rows##x##vectors, rows, vectors, false, false, false) \
    TILE_FUNCTION(tile_by_row_##rows##x##vectors, rows, vectors, true, false, false)
#define TILES_OF(rows)      \
    TILE_FUNCTIONS(rows, 1) \
    TILE_FUNCTIONS(rows, 2) \
    TILE_FUNCTIONS(rows, 3)
TILES_OF(1)
TILES_OF(2)
TILES_OF(4)
#if FAST_LANES == 16
TILES_OF(8)
#endif

#define TILES_NAMED(rows)                                                                                     \
    {                                                                                                         \
        {tile_by_step_##rows##x1, tile_by_row_##rows##x1}, {tile_by_step_##rows##x2, tile_by_row_##rows##x2}, \
        {                                                                                                     \
            tile_by_step_##rows##x3, tile_by_row_##rows##x3                                                   \
        }                                                                                                     \
    }
/* For 1, 2, 4 and 8 rows. */
static tile_function *const tile_functions[][TILE_VECTORS][2] = {TILES_NAMED(1), TILES_NAMED(2), TILES_NAMED(4),
#if FAST_LANES == 16
                                                                 TILES_NAMED(8)
#endif
};
#undef TILE_FUNCTIONS
#undef TILES_OF
#undef TILES_NAMED

/* A tile of fewer rows than TILE_ROWS, cut into tiles of 4, 2 and 1 rows. */
FAST_NOINLINE void tile_make_low(size_t rows, size_t columns, const tile_operands *of, bool add, const float *bias,
                                 float *c, size_t ldc)
{
    tile_operands part = *of;
    for (size_t size = TILE_SIZES - 1; size-- > 0;) {
        size_t high = (size_t)1 << size;
        if (!(rows & high))
            continue;
        tile_functions[size][(columns - 1) / FAST_LANES][of->a_row != 1](&part, add, bias, c, ldc,
                                                                         columns % FAST_LANES);
        part.a += high * part.a_row;
        c += high * ldc;
        for (size_t i = 0; i < 3; i++)
            part.prefetch_tiles[i] = part.prefetch_tiles[i] ? part.prefetch_tiles[i] + high * part.c_row : NULL;
    }
}

/* A tile of C, of `rows` x `columns` values. */
FAST_INLINE void tile_make(size_t rows, size_t columns, const tile_operands *of, bool add, const float *bias, float *c,
                           size_t ldc)
{
    if (rows == TILE_ROWS)
        tile_functions[TILE_SIZES - 1][(columns - 1) / FAST_LANES][of->a_row != 1](of, add, bias, c, ldc,
                                                                                   columns % FAST_LANES);
    else
        tile_make_low(rows, columns, of, add, bias, c, ldc);
}

/* ---- packing ---- */

/* The vectors of the next panel, when `left` are left: 3, but 4 become 2 and 2. */
FAST_INLINE size_t panel_vectors(size_t left)
{
    return left == 4 ? 2 : smaller(left, TILE_VECTORS);
}

/* Packs one panel of B: a row of whole vectors for every step. */
static inline void pack_panel(const pack_source *s, float *to)
{
    size_t width = round_up(s->count, FAST_LANES);
    if (!s->transposed && s->type == REMAT_FP32 && s->count == TILE_COLUMNS) { /* nothing but copying */
        const float *from = (const float *)s->from + s->first;
        for (size_t step = 0; step < s->depth; step++)
            UNROLLED (v, TILE_VECTORS)
                fast_store(to + step * width + v * FAST_LANES, fast_load(from + step * s->stride + v * FAST_LANES));
        return;
    }
    for (size_t step = 0; step < s->depth; step += FAST_LANES) {
        size_t steps = smaller(s->depth - step, FAST_LANES);
        for (size_t at = 0; at < s->count; at += FAST_LANES) {
            fast_vector block[FAST_LANES];
            block_of(s, step, at, steps, block);
            UNROLLED (i, FAST_LANES)
                if (i < steps)
                    fast_store(to + (step + i) * width + at, block[i]);
        }
    }
}

/* Packs A: tile behind tile, each with columns of TILE_ROWS values. Takes depth * round_up(count, FAST_LANES) values. */
static inline void pack_tiles(const pack_source *s, float *to)
{
    for (size_t at = 0; at < s->count; at += FAST_LANES) {
        for (size_t step = 0; step < s->depth; step += FAST_LANES) {
            fast_vector block[FAST_LANES];
            size_t steps = smaller(s->depth - step, FAST_LANES);
            block_of(s, step, at, steps, block);
            UNROLLED (part, FAST_LANES / TILE_ROWS) {
                float *tile = to + (at + part * TILE_ROWS) * s->depth + step * TILE_ROWS;
                UNROLLED (i, FAST_LANES)
                    if (i < steps)
                        memcpy(tile + i * TILE_ROWS, (const float *)&block[i] + part * TILE_ROWS,
                               TILE_ROWS * sizeof(float));
            }
        }
    }
}

#endif
