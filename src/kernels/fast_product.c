/* The matrix product. C is shared out to the threads as one rectangle each; within its rectangle a thread works alone, in
 * blocks whose packed operands stay in its caches:
 *
 *     for up to B_COLUMNS columns of the rectangle
 *         for KERNEL_K_BLOCK steps of k                pack B
 *             for up to A_ROWS rows of the rectangle   pack A
 *                 for every panel of B, for every tile of A: C (+)= tile
 *
 * Where the cuts lie has no influence on the bits of a value of C. */
#include <omp.h>

#include "kernels/fast_product_kernel.h"

/* A stays in the first cache, most of B in the second. */
#define A_ROWS    32
#define B_COLUMNS 768
_Static_assert((A_ROWS + B_COLUMNS) * KERNEL_K_BLOCK * sizeof(float) <= FAST_SCRATCH_BYTES, "packed blocks fit");
_Static_assert(A_ROWS % FAST_LANES == 0 && B_COLUMNS % TILE_COLUMNS == 0, "blocks are made of whole tiles");

/* Below this many multiplications a second thread costs more than it brings. */
#define WORTH_THREADS (1 << 18)

static size_t share(size_t units, size_t parts)
{
    return (units + parts - 1) / parts;
}

static void activate_tile(kernel_activation kind, size_t rows, size_t columns, const float *c, float *activated,
                          size_t ldc)
{
#define ROWS(kind)                                                          \
    for (size_t row = 0; row < rows; row++) {                               \
        const float *from = c + row * ldc;                                  \
        float *to = activated + row * ldc;                                  \
        size_t at = 0;                                                      \
        for (; at + FAST_LANES <= columns; at += FAST_LANES)                \
            fast_store(to + at, fast_activate(kind, fast_load(from + at))); \
        if (at < columns) {                                                 \
            fast_vector x = fast_load_part(from + at, columns - at);        \
            fast_store_part(to + at, fast_activate(kind, x), columns - at); \
        }                                                                   \
    }
    switch (kind) {
        FAST_ACTIVATION_CASES(ROWS)
    }
#undef ROWS
}

/* One thread's rectangle of C. */
typedef struct part {
    size_t row, rows, column, columns;
} part;

/* Asks for one part of `all` of a source: from the part `first` up to, not with, `last`. */
static void source_prefetch(const pack_source *s, size_t first, size_t last, size_t all)
{
    size_t lines = share(s->depth, FAST_LANES);
    if (s->by_count) {
        for (size_t line = lines * first / all; line < lines * last / all; line++)
            for (size_t row = 0; row < s->count; row++)
                __builtin_prefetch(s->from + row * s->stride + line * FAST_LANES);
        return;
    }
    for (size_t row = s->depth * first / all; row < s->depth * last / all; row++)
        for (size_t at = 0; at < s->count; at += FAST_LANES)
            __builtin_prefetch(s->from + row * s->stride + at);
}

/* The packed blocks against each other: rows x columns of C from (row, column) on, `depth` steps from `step` on. What
 * will be packed as A behind it, `next`, comes into the caches meanwhile. */
static void multiply_blocks(const kernel_product *p, const part *at, size_t step, size_t depth, const float *a,
                            const float *b, const pack_source *next)
{
    bool add = p->accumulate || step > 0, last = step + depth == p->k;
    size_t all = share(at->columns, FAST_LANES);
    for (size_t first = 0, vectors; first < all; first += vectors) {
        vectors = panel_vectors(all - first);
        size_t column = first * FAST_LANES, columns = smaller(at->columns - column, vectors * FAST_LANES);
        const float *panel = b + column * depth;
        source_prefetch(next, first, first + vectors, all);
        const float *bias = last && p->bias ? p->bias + at->column + column : NULL;
        for (size_t row = 0; row < at->rows; row += TILE_ROWS) {
            size_t rows = smaller(at->rows - row, TILE_ROWS);
            size_t place = (at->row + row) * p->ldc + at->column + column;
            tile_operands operands = {depth, a + row * depth, 1, TILE_ROWS, panel};
            tile_make(rows, columns, &operands, add, bias, p->c + place, p->ldc);
            if (last && p->activated)
                activate_tile(p->activation, rows, columns, p->c + place, p->activated + place, p->ldc);
        }
    }
}

static pack_source rows_of_a(const kernel_product *p, size_t row, size_t rows, size_t step, size_t depth)
{
    const float *from = p->transpose_a ? p->a + step * p->lda + row : p->a + row * p->lda + step;
    return (pack_source){from, p->lda, depth, rows, !p->transpose_a};
}

static pack_source columns_of_b(const kernel_product *p, size_t column, size_t columns, size_t step, size_t depth)
{
    const float *from = p->transpose_b ? p->b + column * p->ldb + step : p->b + step * p->ldb + column;
    return (pack_source){from, p->ldb, depth, columns, p->transpose_b};
}

/* The largest piece when `length` is cut into equal ones of at most `most`, each a multiple of `unit` but the last. */
static size_t piece_of(size_t length, size_t most, size_t unit)
{
    size_t pieces = (length + most - 1) / most;
    return round_up((length + pieces - 1) / pieces, unit);
}

static void multiply_part(const kernel_product *p, const part *at, float *scratch)
{
    float *b = scratch, *a = scratch + B_COLUMNS * KERNEL_K_BLOCK;
    size_t wide = piece_of(at->columns, B_COLUMNS, TILE_COLUMNS), high = piece_of(at->rows, A_ROWS, FAST_LANES);
    for (size_t column = 0; column < at->columns; column += wide) {
        size_t columns = smaller(at->columns - column, wide), step = 0;
        do { /* once even where k is 0 */
            size_t depth = smaller(p->k - step, KERNEL_K_BLOCK);
            pack_source from_b = columns_of_b(p, at->column + column, columns, step, depth);
            pack_panels(&from_b, b);
            for (size_t row = 0; row < at->rows; row += high) {
                size_t rows = smaller(at->rows - row, high), left = at->rows - row - rows;
                pack_source from_a = rows_of_a(p, at->row + row, rows, step, depth);
                pack_source next = rows_of_a(p, at->row + row + rows, smaller(left, high), step, depth);
                pack_tiles(&from_a, a);
                multiply_blocks(p, &(part){at->row + row, rows, at->column + column, columns}, step, depth, a, b,
                                &next);
            }
            step += depth;
        } while (step < p->k);
    }
}

/* ---- threads ---- */

/* Rectangles across and down. Rows are shared out by tiles, columns by vectors. */
typedef struct grid {
    size_t down, across;
} grid;

/* The grid with the least work for the busiest thread: multiplications, and packing at a few values a cycle. */
static grid choose_grid(const kernel_product *p, size_t threads)
{
    grid best = {1, 1};
    double least = 0;
    if ((double)p->m * (double)p->n * (double)p->k < WORTH_THREADS)
        return best;
    for (size_t down = 1; down <= threads; down++) {
        if (threads % down)
            continue;
        size_t rows = share(share(p->m, TILE_ROWS), down) * TILE_ROWS;
        size_t columns = share(share(p->n, FAST_LANES), threads / down) * FAST_LANES;
        double packed = (double)(columns + rows * share(columns, B_COLUMNS));
        double work = (double)rows * (double)columns / FAST_LANES + 0.4 * packed;
        if (least == 0 || work < least) {
            least = work;
            best = (grid){down, threads / down};
        }
    }
    return best;
}

/* Cuts 0 .. length into `parts`, as even as whole units allow; part `i` is from *first on. */
static size_t cut(size_t length, size_t unit, size_t parts, size_t i, size_t *first)
{
    size_t units = share(length, unit);
    *first = smaller(units * i / parts * unit, length);
    return smaller(units * (i + 1) / parts * unit, length) - *first;
}

void FAST(product)(const kernel_run *run, const kernel_product *p)
{
    if (p->m == 0 || p->n == 0)
        return;
    grid parts = choose_grid(p, (size_t)run->threads);
    size_t count = parts.down * parts.across;
#pragma omp parallel for schedule(static, 1) num_threads((int)count) if (count > 1)
    for (size_t i = 0; i < count; i++) {
        part at;
        at.rows = cut(p->m, TILE_ROWS, parts.down, i / parts.across, &at.row);
        at.columns = cut(p->n, FAST_LANES, parts.across, i % parts.across, &at.column);
        if (at.rows && at.columns)
            multiply_part(p, &at, fast_scratch(run, omp_get_thread_num()));
    }
}
