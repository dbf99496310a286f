/* The matrix product. C is shared out to the threads as one rectangle each; within its rectangle a thread works alone, in
 * blocks whose packed operands stay in its caches:
 *
 *     for up to B_COLUMNS columns of the rectangle
 *         for KERNEL_K_BLOCK steps of k
 *             for up to A_ROWS rows of the rectangle   pack A
 *                 for every panel of B                 pack it, the first time
 *                     for every tile of A: C (+)= tile; what will be packed next is fetched meanwhile
 *
 * Where the cuts lie has no influence on the bits of a value of C. */
#include <omp.h>

#include "kernels/fast_activations.h"
#include "kernels/fast_product_kernel.h"

/* Both together fill the second cache. */
#define A_ROWS    128
#define B_COLUMNS 672
_Static_assert((A_ROWS + B_COLUMNS) * KERNEL_K_BLOCK * sizeof(float) <= FAST_SCRATCH_BYTES, "packed blocks fit");
_Static_assert(A_ROWS % FAST_LANES == 0 && B_COLUMNS % TILE_COLUMNS == 0, "blocks are made of whole tiles");

/* With fewer rows than this, packing B costs more than reading it where it is. */
#define FEW_ROWS 24

/* With fewer columns than this, the same is true of A where it is stored row by row. AMD's processors read such rows in
 * their place as fast as packed ones; others (measured: Intel's) lose 3 to 5 % of the time if they do. */
static size_t few_columns(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_is("amd"))
        return SIZE_MAX;
#endif
    return 96;
}

/* Below this many multiplications a second thread costs more than it brings. */
#define WORTH_THREADS (1 << 18)

static size_t share(size_t units, size_t parts)
{
    return (units + parts - 1) / parts;
}

/* What follows a finished tile of C while it is in the cache. */
static void activate_tile(const kernel_product *p, size_t rows, size_t columns, size_t place)
{
    fast_matrix size = {rows, columns, p->ldc};
    const float *c = p->c + place;
    float *to = p->activated + place;
    if (p->derivative_at)
        FAST(activate_matrix_backward)(p->activation, &size, p->derivative_at + place, c, to, false);
    else
        FAST(activate_matrix)(p->activation, &size, c, to);
}

/* One thread's rectangle of C. */
typedef struct part {
    size_t row, rows, column, columns;
} part;

/* Fetches two sources, one behind the other, during so many paces. */
static void fetch_during(const pack_source *first, const pack_source *second, size_t paces, tile_ahead ahead[2])
{
    size_t all = 0;
    for (int i = 0; i < 2; i++) {
        const pack_source *s = i ? second : first;
        size_t rows = s->by_count ? s->count : s->depth, lines = share(s->by_count ? s->depth : s->count, LINE_VALUES);
        ahead[i] = (tile_ahead){.row = s->from, .stride = s->stride, .rows = lines ? rows : 0, .lines = lines};
        all += rows * lines;
    }
    ahead[0].pace = ahead[1].pace = share(all, paces ? paces : 1);
    if (ahead[0].rows == 0)
        ahead[0] = ahead[1];
    else if (ahead[1].rows > 0)
        ahead[0].then = &ahead[1];
}

/* How a thread cuts its rectangle, and where its packed blocks lie. */
typedef struct cuts {
    const kernel_product *of;
    part at;
    size_t wide, high; /* columns and rows of a block */
    float *a, *b;
    bool a_in_place, b_in_place; /* not packed */
} cuts;

/* One block: from this column, row and step on. */
typedef struct block {
    size_t column, columns, step, depth, row, rows;
} block;

static block block_at(const cuts *c, size_t column, size_t step, size_t row)
{
    const part *at = &c->at;
    return (block){
        at->column + column, smaller(at->columns - column, c->wide), step, smaller(c->of->k - step, KERNEL_K_BLOCK),
        at->row + row,       smaller(at->rows - row, c->high)};
}

/* The next block: of the rows below, else of the next steps, else of the next columns. False: there is none. */
static bool block_next(const cuts *c, const block *now, block *next)
{
    size_t column = now->column - c->at.column, step = now->step, row = now->row - c->at.row + now->rows;
    if (row == c->at.rows) {
        row = 0;
        step += now->depth;
    }
    if (row == 0 && step == c->of->k) {
        step = 0;
        column += now->columns;
    }
    if (column == c->at.columns)
        return false;
    *next = block_at(c, column, step, row);
    return true;
}

static bool packs_b(const cuts *c, const block *o)
{
    return o->row == c->at.row && !c->b_in_place;
}

static pack_source block_rows(const kernel_product *p, const block *o)
{
    const float *from = p->transpose_a ? p->a + o->step * p->lda + o->row : p->a + o->row * p->lda + o->step;
    return (pack_source){from, p->lda, o->depth, o->rows, !p->transpose_a};
}

static pack_source block_columns(const kernel_product *p, const block *o)
{
    const float *from = p->transpose_b ? p->b + o->column * p->ldb + o->step : p->b + o->step * p->ldb + o->column;
    return (pack_source){from, p->ldb, o->depth, o->columns, p->transpose_b};
}

/* A tile from `row` of the block on. In its place only where it does not reach over the edge. */
static tile_operands tile_rows(const cuts *c, const block *o, size_t row)
{
    const kernel_product *p = c->of;
    if (!c->a_in_place || o->rows - row < TILE_ROWS)
        return (tile_operands){
            .depth = o->depth, .a = c->a + (c->a_in_place ? 0 : row * o->depth), .a_row = 1, .a_step = TILE_ROWS};
    return (tile_operands){
        .depth = o->depth, .a = p->a + (o->row + row) * p->lda + o->step, .a_row = p->lda, .a_step = 1};
}

/* A panel of B, packed or in its place, and the columns of C that it makes; `after` is where C goes on behind its last
 * tile, or NULL. */
typedef struct panel {
    const float *b;
    size_t b_step, column, columns;
    const float *after;
    tile_ahead *next;
} panel;

static void multiply_panel(const cuts *c, const block *o, const panel *with)
{
    const kernel_product *p = c->of;
    bool add = p->accumulate || o->step > 0, last = o->step + o->depth == p->k, activate = last && p->activated;
    const float *bias = last && p->bias ? p->bias + with->column : NULL;
    size_t paces = share(o->depth, PACE_STEPS);
    for (size_t row = 0; row < o->rows; row += TILE_ROWS) {
        size_t rows = smaller(o->rows - row, TILE_ROWS), place = (o->row + row) * p->ldc + with->column;
        tile_operands operands = tile_rows(c, o, row);
        operands.b = with->b;
        operands.b_step = with->b_step;
        operands.next = with->next;
        operands.soon[0] = row + rows < o->rows ? p->c + place + rows * p->ldc : with->after;
        if (activate) {
            operands.soon[1] = p->activated + place;
            operands.soon[2] = p->derivative_at ? p->derivative_at + place : NULL;
        }
        operands.c_row = p->ldc;
        operands.soon_rows = paces ? share(TILE_ROWS, paces) : 0;
        tile_make(rows, with->columns, &operands, add, bias, p->c + place, p->ldc);
        if (activate)
            activate_tile(p, rows, with->columns, place);
    }
}

/* Packs what has to be: all of A, or the rows of A that do not fill a tile. */
static void pack_rows(const cuts *c, const block *o)
{
    pack_source all = block_rows(c->of, o);
    size_t first = c->a_in_place ? o->rows / TILE_ROWS * TILE_ROWS : 0;
    pack_source from = source_part(&all, first, o->rows - first);
    pack_tiles(&from, c->a);
}

/* What the next block reads first: its rows of A, and its first panel of B if that has to be packed. */
static void fetch_next(const cuts *c, const block *next, size_t paces, tile_ahead ahead[2])
{
    pack_source rows = {0}, first = {0};
    if (next)
        rows = block_rows(c->of, next);
    if (next && packs_b(c, next)) {
        first = block_columns(c->of, next);
        first = source_part(&first, 0, smaller(next->columns, TILE_COLUMNS));
    }
    fetch_during(&rows, &first, paces, ahead);
}

/* `next` is the block behind this one, or NULL. */
static void multiply_block(const cuts *c, const block *o, const block *next)
{
    const kernel_product *p = c->of;
    const pack_source b = block_columns(p, o), nothing = {0};
    size_t all = share(o->columns, FAST_LANES), paces = share(o->rows, TILE_ROWS) * share(o->depth, PACE_STEPS);
    bool pack_b = packs_b(c, o);
    tile_ahead behind[2], beside[2];
    fetch_next(c, next, pack_b ? paces : paces * share(o->columns, TILE_COLUMNS), behind);
    pack_rows(c, o);
    for (size_t first = 0, vectors; first < all; first += vectors) {
        vectors = panel_vectors(all - first);
        size_t column = first * FAST_LANES, columns = smaller(o->columns - column, vectors * FAST_LANES);
        size_t left = o->columns - column - columns;
        const float *after = left   ? p->c + o->row * p->ldc + o->column + column + columns
                             : next ? p->c + next->row * p->ldc + next->column
                                    : NULL;
        panel with = {b.from + column, b.stride, o->column + column, columns, after, behind};
        if (!c->b_in_place) {
            float *packed = c->b + column * o->depth;
            with.b = packed;
            with.b_step = vectors * FAST_LANES;
            if (pack_b) {
                pack_source now = source_part(&b, column, columns);
                pack_panel(&now, packed);
            }
            if (pack_b && left) {
                pack_source right = source_part(&b, column + columns, smaller(left, TILE_COLUMNS));
                fetch_during(&right, &nothing, paces, beside);
                with.next = beside;
            }
        }
        multiply_panel(c, o, &with);
    }
}

/* The largest piece when `length` is cut into equal ones of at most `most`, each a multiple of `unit` but the last. */
static size_t piece_of(size_t length, size_t most, size_t unit)
{
    size_t pieces = share(length, most);
    return round_up(share(length, pieces), unit);
}

static void multiply_part(const kernel_product *p, const part *at, float *scratch)
{
    cuts c = {.of = p,
              .at = *at,
              .wide = piece_of(at->columns, B_COLUMNS, TILE_COLUMNS),
              .high = piece_of(at->rows, A_ROWS, FAST_LANES),
              .a = scratch + B_COLUMNS * KERNEL_K_BLOCK,
              .b = scratch,
              .a_in_place = !p->transpose_a && at->columns < few_columns(),
              .b_in_place = !p->transpose_b && at->rows < FEW_ROWS && at->columns % FAST_LANES == 0};
    block now = block_at(&c, 0, 0, 0), next = now;
    for (bool more = true; more; now = next) {
        more = block_next(&c, &now, &next);
        multiply_block(&c, &now, more ? &next : NULL);
    }
}

/* ---- threads ---- */

/* Rectangles across and down. Rows are shared out by tiles, columns by vectors. */
typedef struct grid {
    size_t down, across;
} grid;

/* The grid with the least work for the busiest thread. Beside the multiplications there are, in cycles for a value of
 * each step as measured: reading A for each block of columns, packing it where it is transposed; packing B. */
static grid choose_grid(const kernel_product *p, size_t threads)
{
    grid best = {1, 1};
    double least = 0, for_a = p->transpose_a ? 0.9 : 0.3, for_b = p->transpose_b ? 0.65 : 0.35;
    if ((double)p->m * (double)p->n * (double)p->k < WORTH_THREADS)
        return best;
    for (size_t down = 1; down <= threads; down++) {
        if (threads % down)
            continue;
        double rows = (double)(share(share(p->m, TILE_ROWS), down) * TILE_ROWS);
        size_t columns = share(share(p->n, FAST_LANES), threads / down) * FAST_LANES;
        double work = rows * (double)columns / FAST_LANES + for_a * rows * (double)share(columns, B_COLUMNS) +
                      for_b * (double)columns;
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
