/* The GEMM, C = A B. Each thread computes one rectangle of C, in blocks whose operands stay in its caches:
 *
 *     for the columns of a block
 *         for OPERATION_K_BLOCK steps of k
 *             for the rows of a block
 *                 for every panel of B
 *                     for every tile of A: C (+)= tile, while the next operands are prefetched
 *
 * Operands that have to be transposed, and those that are not in fp32, are packed before they are read. The others are packed by the
 * first tile that reads them. fast_gemm_table.c says how large blocks are. The bits of C do not depend on where it is cut. */
#include "backend/cpu/fast_activations.h"
#include "backend/cpu/fast_gemm_kernel.h"
#include "backend/cpu/fast_gemm_table.h"

/* The operation, with the addresses of its tensors. */
typedef struct gemm_args {
    size_t m, n, k, lda, ldb, ldc;
    bool transpose_a, transpose_b, accumulate;
    remat_dtype type_a, type_b;
    activation_kind activation;
    const void *a, *b;
    const float *bias, *derivative_at;
    float *c, *activated;
    uint16_t *half_c; /* C in bf16, instead of c; k is at most OPERATION_K_BLOCK, and nothing is activated */
} gemm_args;

/* Below this many multiplications a second thread costs more than it brings. */
#define WORTH_THREADS (1 << 18)

/* The activation of a finished tile of C, while the tile is in the cache. */
static void activate_tile(const gemm_args *p, size_t rows, size_t columns, size_t place)
{
    fast_matrix size = {rows, columns, p->ldc};
    const float *c = p->c + place;
    float *to = p->activated + place;
    if (p->derivative_at)
        FAST(activate_matrix_backward)(p->activation, &size, p->derivative_at + place, c, to, false);
    else
        FAST(activate_matrix)(p->activation, &size, c, to);
}

/* The rectangle of C that one thread computes. */
typedef struct part {
    size_t row, rows, column, columns;
} part;

/* Makes the list that prefetches two sources, one behind the other, within so many calls of prefetch_some. */
static void prefetch_during(const pack_source *first, const pack_source *second, size_t calls, prefetch_list lists[2])
{
    size_t all = 0;
    for (int i = 0; i < 2; i++) {
        const pack_source *s = i ? second : first;
        const matrix_rows from = source_rows(s, s->type);
        size_t rows = s->transposed ? s->count : s->depth,
               lines = divide_up(values_bytes(s->type, s->transposed ? s->depth : s->count), LINE_BYTES);
        lists[i] = (prefetch_list){.row = from.at, .stride = from.bytes, .rows = lines ? rows : 0, .lines = lines};
        all += rows * lines;
    }
    lists[0].lines_at_once = lists[1].lines_at_once = divide_up(all, calls ? calls : 1);
    if (lists[0].rows == 0)
        lists[0] = lists[1];
    else if (lists[1].rows > 0)
        lists[0].then = &lists[1];
}

/* How a thread cuts its rectangle, and where its packed blocks are. */
typedef struct cuts {
    const gemm_args *of;
    part at;
    size_t wide, high; /* columns and rows of a block */
    float *a, *b;
    bool pack_a;     /* A is packed before it is read */
    bool b_in_place; /* B is not packed */
} cuts;

/* One block: from this column, step and row on. */
typedef struct block {
    size_t column, columns, step, depth, row, rows;
} block;

static block block_at(const cuts *c, size_t column, size_t step, size_t row)
{
    const part *at = &c->at;
    return (block){
        at->column + column, smaller(at->columns - column, c->wide), step, smaller(c->of->k - step, OPERATION_K_BLOCK),
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

static pack_source block_rows(const gemm_args *p, const block *o)
{
    const pack_source whole = {p->a, p->lda, o->depth, o->rows, !p->transpose_a, p->type_a, 0};
    return source_from(&whole, o->step, o->row);
}

static pack_source block_columns(const gemm_args *p, const block *o)
{
    const pack_source whole = {p->b, p->ldb, o->depth, o->columns, p->transpose_b, p->type_b, 0};
    return source_from(&whole, o->step, o->column);
}

/* The rows of A for a tile from `row` of the block on. `first`: no tile of this block has read these rows yet. */
static tile_operands tile_rows(const cuts *c, const block *o, size_t row, size_t rows, bool first)
{
    const gemm_args *p = c->of;
    tile_operands packed = {.depth = o->depth, .a = c->a + row * o->depth, .a_row = 1, .a_step = TILE_ROWS};
    if (c->pack_a || (p->transpose_a && rows == TILE_ROWS && !first))
        return packed;
    tile_operands in_place = {.depth = o->depth, .a_row = p->transpose_a ? 1 : p->lda};
    in_place.a_step = p->transpose_a ? p->lda : 1;
    in_place.a = (const float *)p->a + (o->row + row) * in_place.a_row + o->step * in_place.a_step;
    if (p->transpose_a && rows == TILE_ROWS)
        in_place.packed_a = c->a + row * o->depth;
    return in_place;
}

/* A panel of B, packed or not, and the columns of C that it contributes to. Where `packed` is not NULL, the first tile
 * packs the panel to it and the others read it there. `after` is the tile of C that follows the panel's last one, or
 * NULL. */
typedef struct panel {
    const float *b;
    size_t b_step;
    float *packed;
    bool first; /* of its block */
    size_t column, columns;
    const float *after;
    prefetch_list *prefetch;
} panel;

/* Tiles that pack what they read: A, B or both. */
#define TILE_PACKERS(name, by_row, pack_a, pack_b)                \
    TILE_FUNCTION(name##_1, TILE_ROWS, 1, by_row, pack_a, pack_b) \
    TILE_FUNCTION(name##_2, TILE_ROWS, 2, by_row, pack_a, pack_b) \
    TILE_FUNCTION(name##_3, TILE_ROWS, 3, by_row, pack_a, pack_b) \
    static tile_function *const name[] = {name##_1, name##_2, name##_3};
TILE_PACKERS(tile_pack_a, false, true, false)
TILE_PACKERS(tile_pack_b, false, false, true)
TILE_PACKERS(tile_pack_both, false, true, true)
TILE_PACKERS(tile_by_row_pack_b, true, false, true)

static void tile_make_packing(size_t columns, const tile_operands *of, bool add, const float *bias, float *c,
                              size_t ldc)
{
    tile_function *const *functions = of->a_row != 1  ? tile_by_row_pack_b
                                      : !of->packed_a ? tile_pack_b
                                      : !of->packed_b ? tile_pack_a
                                                      : tile_pack_both;
    functions[(columns - 1) / FAST_LANES](of, add, bias, c, ldc, columns % FAST_LANES);
}

/* A tile of C in bf16 is computed in fp32, in memory of its own. */
typedef float tile_memory[TILE_ROWS * TILE_COLUMNS];

static void tile_load_halves(const uint16_t *from, size_t ldc, size_t rows, size_t columns, tile_memory tile)
{
    for (size_t row = 0; row < rows; row++)
        for (size_t at = 0; at < columns; at += FAST_LANES)
            fast_store(tile + row * TILE_COLUMNS + at,
                       halves_load(from + row * ldc + at, smaller(columns - at, FAST_LANES)));
}

static void tile_store_halves(const tile_memory tile, size_t rows, size_t columns, uint16_t *to, size_t ldc)
{
    for (size_t row = 0; row < rows; row++)
        for (size_t at = 0; at < columns; at += FAST_LANES)
            halves_store(to + row * ldc + at, fast_load(tile + row * TILE_COLUMNS + at),
                         smaller(columns - at, FAST_LANES));
}

static void multiply_panel(const cuts *c, const block *o, const panel *with)
{
    const gemm_args *p = c->of;
    bool add = p->accumulate || o->step > 0, last = o->step + o->depth == p->k, activate = last && p->activated;
    const float *bias = last && p->bias ? p->bias + with->column : NULL;
    size_t calls = divide_up(o->depth, PREFETCH_STEPS);
    tile_memory tile;
    for (size_t row = 0; row < o->rows; row += TILE_ROWS) {
        size_t rows = smaller(o->rows - row, TILE_ROWS), place = (o->row + row) * p->ldc + with->column;
        tile_operands operands = tile_rows(c, o, row, rows, with->first);
        bool is_packed = with->packed && row > 0;
        operands.b = is_packed ? with->packed : with->b;
        operands.b_step = is_packed ? round_up(with->columns, FAST_LANES) : with->b_step;
        operands.packed_b = is_packed ? NULL : with->packed;
        operands.prefetch = with->prefetch;
        if (!p->half_c)
            operands.prefetch_tiles[0] = row + rows < o->rows ? p->c + place + rows * p->ldc : with->after;
        if (activate) {
            operands.prefetch_tiles[1] = p->activated + place;
            operands.prefetch_tiles[2] = p->derivative_at ? p->derivative_at + place : NULL;
        }
        operands.c_row = p->ldc;
        operands.prefetch_tile_rows = calls ? divide_up(TILE_ROWS, calls) : 0;
        float *to = p->half_c ? tile : p->c + place;
        const size_t ldc = p->half_c ? TILE_COLUMNS : p->ldc;
        if (p->half_c && add)
            tile_load_halves(p->half_c + place, p->ldc, rows, with->columns, tile);
        if (operands.packed_a || operands.packed_b)
            tile_make_packing(with->columns, &operands, add, bias, to, ldc);
        else
            tile_make(rows, with->columns, &operands, add, bias, to, ldc);
        if (p->half_c)
            tile_store_halves(tile, rows, with->columns, p->half_c + place, p->ldc);
        if (activate)
            activate_tile(p, rows, with->columns, place);
    }
}

/* Prefetches what the next block reads first: its rows of A, and its first panel of B if that has to be packed. */
static void prefetch_block(const cuts *c, const block *next, size_t calls, prefetch_list lists[2])
{
    pack_source rows = {0}, first = {0};
    if (next)
        rows = block_rows(c->of, next);
    if (next && packs_b(c, next)) {
        first = block_columns(c->of, next);
        first = source_part(&first, 0, smaller(next->columns, TILE_COLUMNS));
    }
    prefetch_during(&rows, &first, calls, lists);
}

/* `next` is the block that follows, or NULL. */
static void multiply_block(const cuts *c, const block *o, const block *next)
{
    const gemm_args *p = c->of;
    const pack_source b = block_columns(p, o), nothing = {0};
    size_t all = divide_up(o->columns, FAST_LANES),
           calls = divide_up(o->rows, TILE_ROWS) * divide_up(o->depth, PREFETCH_STEPS);
    bool pack_b = packs_b(c, o);
    prefetch_list for_block[2], for_panel[2];
    prefetch_block(c, next, pack_b ? calls : calls * divide_up(o->columns, TILE_COLUMNS), for_block);
    if (c->pack_a) {
        pack_source rows = block_rows(p, o);
        pack_tiles(&rows, c->a);
    }
    for (size_t first = 0, vectors; first < all; first += vectors) {
        vectors = panel_vectors(all - first);
        size_t column = first * FAST_LANES, columns = smaller(o->columns - column, vectors * FAST_LANES);
        size_t left = o->columns - column - columns;
        const float *after = p->half_c ? NULL
                             : left    ? p->c + o->row * p->ldc + o->column + column + columns
                             : next    ? p->c + next->row * p->ldc + next->column
                                       : NULL;
        pack_source now = source_part(&b, column, columns);
        panel with = {(const float *)(const void *)source_rows(&now, now.type).at,
                      b.stride,
                      NULL,
                      first == 0,
                      o->column + column,
                      columns,
                      after,
                      for_block};
        float *packed = c->b + column * o->depth;
        if (pack_b && !b.transposed && b.type == REMAT_FP32 && o->rows >= TILE_ROWS && columns % FAST_LANES == 0) {
            with.packed = packed;
        } else if (!c->b_in_place) {
            if (pack_b)
                pack_panel(&now, packed);
            with.b = packed;
            with.b_step = vectors * FAST_LANES;
        }
        if (pack_b && left) {
            pack_source right = source_part(&b, column + columns, smaller(left, TILE_COLUMNS));
            prefetch_during(&right, &nothing, calls, for_panel);
            with.prefetch = for_panel;
        }
        multiply_panel(c, o, &with);
    }
}

/* The largest piece when `length` is cut into equal ones of at most `most`, each a multiple of `unit` but the last. */
static size_t piece_of(size_t length, size_t most, size_t unit)
{
    size_t pieces = divide_up(length, most);
    return round_up(divide_up(length, pieces), unit);
}

/* A part of few rows reads B once: then packing does not pay. */
static void multiply_part(const gemm_args *p, const gemm_blocks *blocks, const part *at, float *scratch)
{
    cuts c = {.of = p,
              .at = *at,
              .wide = piece_of(at->columns, blocks->columns, TILE_COLUMNS),
              .high = piece_of(at->rows, blocks->rows, FAST_LANES),
              .a = scratch + blocks->columns * OPERATION_K_BLOCK,
              .b = scratch,
              .pack_a = p->type_a != REMAT_FP32 || (!p->transpose_a && blocks->pack_a),
              .b_in_place =
                  !p->transpose_b && p->type_b == REMAT_FP32 && at->rows <= TILE_ROWS && at->columns % FAST_LANES == 0};
    block now = block_at(&c, 0, 0, 0), next = now;
    for (bool more = true; more; now = next) {
        more = block_next(&c, &now, &next);
        multiply_block(&c, &now, more ? &next : NULL);
    }
}

/* ---- threads ---- */

/* Rectangles down and across. Rows are shared out by tiles, columns by vectors. */
typedef struct grid {
    size_t down, across;
} grid;

/* The grid with the least work for the busiest thread. Beside the multiply-adds a thread reads A once for each block of
 * columns, and packs B; `for_a` and `for_b` are the cycles that this takes for a value, as measured. */
static grid choose_grid(const gemm_args *p, const gemm_blocks *blocks, size_t threads)
{
    grid best = {1, 1};
    double least = 0, for_a = 0.3, for_b = p->transpose_b ? 0.65 : 0.35;
    if ((double)p->m * (double)p->n * (double)p->k < WORTH_THREADS)
        return best;
    for (size_t down = 1; down <= threads; down++) {
        if (threads % down)
            continue;
        double rows = (double)smaller(divide_up(divide_up(p->m, TILE_ROWS), down) * TILE_ROWS, p->m);
        size_t columns = divide_up(divide_up(p->n, FAST_LANES), threads / down) * FAST_LANES;
        double work = rows * (double)columns / FAST_LANES + for_a * rows * (double)divide_up(columns, blocks->columns) +
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
    size_t units = divide_up(length, unit);
    *first = smaller(units * i / parts * unit, length);
    return smaller(units * (i + 1) / parts * unit, length) - *first;
}

typedef struct gemm_loop {
    const kernel_run *run;
    const gemm_args *args;
    const gemm_blocks *blocks;
    grid parts;
} gemm_loop;

/* A pass of the loop is a rectangle of the grid. */
static void multiply_parts(const void *args, parallel_range range)
{
    const gemm_loop *loop = args;
    const gemm_args *p = loop->args;
    for (size_t i = range.begin; i < range.end; i++) {
        part at;
        at.rows = cut(p->m, TILE_ROWS, loop->parts.down, i / loop->parts.across, &at.row);
        at.columns = cut(p->n, FAST_LANES, loop->parts.across, i % loop->parts.across, &at.column);
        if (at.rows && at.columns)
            multiply_part(p, loop->blocks, &at, fast_scratch(loop->run, range.thread));
    }
}

void FAST(gemm_in_blocks)(const kernel_run *run, const op_gemm *of, const gemm_blocks *blocks)
{
    const gemm_args p = {.m = of->m,
                         .n = of->n,
                         .k = of->k,
                         .lda = of->lda,
                         .ldb = of->ldb,
                         .ldc = of->ldc,
                         .transpose_a = of->transpose_a,
                         .transpose_b = of->transpose_b,
                         .accumulate = of->accumulate,
                         .type_a = of->a.type,
                         .type_b = of->b.type,
                         .activation = of->activation,
                         .a = of->a.at,
                         .b = of->b.at,
                         .bias = of->bias.at,
                         .derivative_at = of->derivative_at.at,
                         .c = of->c.type == REMAT_BF16 ? NULL : of->c.at,
                         .half_c = of->c.type == REMAT_BF16 ? of->c.at : NULL,
                         .activated = of->activated.at};
    if (p.m == 0 || p.n == 0)
        return;
    const gemm_loop loop = {run, &p, blocks, choose_grid(&p, blocks, (size_t)run->threads)};
    size_t count = loop.parts.down * loop.parts.across;
    parallel_static((int)count, count, multiply_parts, &loop);
}

void FAST(gemm)(const kernel_run *run, const void *args)
{
    gemm_blocks blocks = FAST(gemm_blocks_for)(args);
    FAST(gemm_in_blocks)(run, args, &blocks);
}
