/* The GEMM of pairs. Each thread computes one rectangle of C:
 *
 *     for the columns of a block
 *         for the rows of a block
 *             for the steps of a block: pack B
 *                 for every 32 rows: pack A, or read it where it is
 *                     for every 32 columns: multiply
 *
 * A C in fp32 has the sums between two blocks of steps, and its block of rows is all of them: B is packed once. A C in bf16 is
 * rounded once, at the end: if k is longer than a block, sums are kept in scratch memory. While a tile is multiplied, what is
 * needed next comes into the caches: lines of C, and those of A for the next rows. */
#include "backend/cpu/fast_activations.h"
#include "backend/cpu/pairs_pack.h"

/* In scratch memory are the rows of A, and behind them the panels of B and the sums, which stay in the second cache. Tiles are loaded as
 * fast from the second cache as from the first, so with them A may be longer than the first. A source with the rows of A side by side
 * is packed for two panels at once: memory is twice as fast for two lines side by side as for one. */
#ifdef PAIRS_TILES
enum { MOST_STEPS = 1536, MOST_SUM_STEPS = 1024 };
#else
enum { MOST_STEPS = 512, MOST_SUM_STEPS = 512 };
#endif
enum { SUM_ROWS = 512, A_ROWS = 2 * PAIRS_PANEL };
#define A_BYTES ((size_t)(MOST_STEPS + PAIRS_STEP) * A_ROWS * sizeof(uint16_t))
#define B_BYTES ((size_t)800 << 10) /* with the sums */
_Static_assert(A_BYTES + B_BYTES <= FAST_SCRATCH_BYTES, "all fit");

/* Values of rows that are all in the same sets of the first cache: 4 KiB. */
enum { SAME_SETS = 2048 };

/* Fewer multiplications than this are not worth a second thread. */
#define WORTH_THREADS (1 << 20)

typedef struct part {
    size_t row, rows, column, columns;
} part;

/* How a thread cuts its rectangle, and where it packs to. */
typedef struct cuts {
    const op_gemm *of;
    part at;
    size_t wide, high, deep; /* of a block */
    bool direct;             /* A is read from where it is */
    uint16_t *a;
    uint32_t *b;
    float *sums; /* NULL: C has them. Rows are `wide` values apart */
} cuts;

/* The first places are those in C, `step` is that along k. */
typedef struct block {
    size_t column, columns, row, rows, step, depth;
} block;

static bool is_half(tensor_ref tensor)
{
    return tensor.type == REMAT_BF16;
}

/* Between packed rows of A. Rows a multiple of 1 KiB apart would share sets of the first cache. */
static size_t row_of_a(size_t depth)
{
    return round_up(depth, PAIRS_STEP) + PAIRS_STEP;
}

/* ---- a tile of C ---- */

/* Up to PAIRS_PANEL x PAIRS_PANEL values of C at `place`. */
typedef struct tile {
    size_t rows, columns, place;
} tile;

/* What is prefetched while a tile is multiplied: at most so many lines. */
enum { MOST_AHEAD = 384 };
typedef struct ahead_list {
    size_t count;
    const char *lines[MOST_AHEAD + 64]; /* room to fill it up to the same number for every step */
} ahead_list;

static void add_tile(ahead_list *list, const op_gemm *p, const tile *t)
{
    const size_t bytes = is_half(p->c) ? sizeof(uint16_t) : sizeof(float);
    const char *line = (const char *)p->c.at + t->place * bytes;
    for (size_t row = 0; row < t->rows; row++, line += p->ldc * bytes)
        for (size_t at = 0; at < t->columns * bytes; at += LINE_BYTES)
            list->lines[list->count++] = line + at;
}

/* How many are prefetched with each of `steps` steps. */
static size_t divide_ahead(ahead_list *list, size_t steps)
{
    if (list->count == 0 || steps == 0)
        return 0;
    const size_t each = smaller(divide_up(list->count, steps), (MOST_AHEAD + 64) / steps);
    while (list->count < each * steps) {
        list->lines[list->count] = list->lines[list->count - 1];
        list->count++;
    }
    return each;
}

static void tile_load(const op_gemm *p, const tile *t, float *to, size_t stride)
{
    for (size_t row = 0; row < t->rows; row++, to += stride)
        for (size_t at = 0, count; at < t->columns; at += count) {
            const size_t place = t->place + row * p->ldc + at;
            count = smaller(t->columns - at, FAST_LANES);
            if (is_half(p->c))
                fast_store(to + at, halves_load((const uint16_t *)p->c.at + place, count));
            else if (count < FAST_LANES)
                fast_store(to + at, fast_load_part((const float *)p->c.at + place, count));
            else
                fast_store(to + at, fast_load((const float *)p->c.at + place));
        }
}

/* The first `count` values, rounded to bf16. */
FAST_INLINE void round_values(uint16_t *to, fast_vector values, size_t count)
{
#if defined(__AVX512BF16__)
    const __m256i halves = (__m256i)_mm512_cvtneps_pbh((__m512)values);
    if (count == FAST_LANES)
        memcpy(to, &halves, sizeof halves);
    else
        memcpy(to, &halves, count * sizeof *to);
#else
    halves_store(to, values, count);
#endif
}

/* C = sums + bias; the sums may be in C. */
static void tile_store(const op_gemm *p, const tile *t, const float *bias, const float *from, size_t stride)
{
    for (size_t row = 0; row < t->rows; row++, from += stride)
        for (size_t at = 0, count; at < t->columns; at += count) {
            const size_t place = t->place + row * p->ldc + at;
            count = smaller(t->columns - at, FAST_LANES);
            const bool whole = count == FAST_LANES;
            fast_vector sum = whole ? fast_load(from + at) : fast_load_part(from + at, count);
            if (bias)
                sum += whole ? fast_load(bias + at) : fast_load_part(bias + at, count);
            if (is_half(p->c))
                round_values((uint16_t *)p->c.at + place, sum, count);
            else if (whole)
                fast_store((float *)p->c.at + place, sum);
            else
                fast_store_part((float *)p->c.at + place, sum, count);
        }
}

/* The same for a whole tile of a C in bf16. */
static void tile_store_whole(const op_gemm *p, const tile *t, const float *bias, const float *from, size_t stride)
{
    fast_vector more[PAIRS_PANEL / FAST_LANES] = {{0}};
    uint16_t *to = (uint16_t *)p->c.at + t->place;
    if (bias)
        UNROLLED (i, PAIRS_PANEL / FAST_LANES)
            more[i] = fast_load(bias + i * FAST_LANES);
    for (size_t row = 0; row < PAIRS_PANEL; row++, from += stride, to += p->ldc)
        UNROLLED (i, PAIRS_PANEL / FAST_LANES)
            round_values(to + i * FAST_LANES, fast_load(from + i * FAST_LANES) + more[i], FAST_LANES);
}

static void tile_activate(const op_gemm *p, const tile *t)
{
    const fast_matrix size = {t->rows, t->columns, p->ldc};
    const float *c = (const float *)p->c.at + t->place;
    float *to = (float *)p->activated.at + t->place;
    if (p->derivative_at.at)
        FAST(activate_matrix_backward)
    (p->activation, &size, (const float *)p->derivative_at.at + t->place, c, to, false);
    else FAST(activate_matrix)(p->activation, &size, c, to);
}

/* The tile at this row and column of the block. */
static tile tile_at(const op_gemm *p, const block *o, size_t row, size_t column)
{
    return (tile){smaller(o->rows - row, PAIRS_PANEL), smaller(o->columns - column, PAIRS_PANEL),
                  (o->row + row) * p->ldc + o->column + column};
}

/* Rows of A where tiles are loaded from. */
typedef struct rows_of_a {
    const uint16_t *at;
    size_t row; /* values between two */
} rows_of_a;

static void multiply_tile(const cuts *c, const block *o, size_t row, size_t column, const rows_of_a *a,
                          lines_ahead *ahead)
{
    const op_gemm *p = c->of;
    _Alignas(64) float own[PAIRS_PANEL * PAIRS_PANEL];
    ahead_list list;
    const tile t = tile_at(p, o, row, column);
    const size_t down = divide_up(t.rows, PAIRS_TILE), across = divide_up(t.columns, PAIRS_TILE),
                 steps = divide_up(o->depth, PAIRS_STEP);
    const bool last = o->step + o->depth == p->k, first = o->step == 0,
               in_place = !c->sums && !is_half(p->c) && t.rows == down * PAIRS_TILE && t.columns == across * PAIRS_TILE;
    float *to = in_place ? (float *)p->c.at + t.place : c->sums ? c->sums + row * c->wide + column : own;
    const size_t stride = in_place ? p->ldc : c->sums ? c->wide : PAIRS_PANEL;
    if (!in_place && (first ? p->accumulate : !c->sums))
        tile_load(p, &t, to, stride);
    list.count = 0;
    if (last || !c->sums) {
        const bool more = column + PAIRS_PANEL < o->columns;
        const tile next = tile_at(p, o, row, more ? column + PAIRS_PANEL : column);
        add_tile(&list, p, &next);
    }
    const float *bias = last && p->bias.at ? (const float *)p->bias.at + o->column + column : NULL;
    /* Dot products have the sums in registers: they are rounded there. */
    const bool rounded =
        HAS_DOTS && last && is_half(p->c) && t.rows == down * PAIRS_TILE && t.columns == across * PAIRS_TILE;
    const pairs_operands operands = {.steps = steps,
                                     .a = a->at,
                                     .a_row = a->row,
                                     .b = c->b + round_up(o->depth, PAIRS_STEP) / 2 * column,
                                     .c = to,
                                     .ldc = stride,
                                     .add = !first || p->accumulate,
                                     .down = down,
                                     .across = across,
                                     .ahead = list.lines,
                                     .ahead_step = divide_ahead(&list, steps),
                                     .later = ahead,
                                     .rounded = rounded ? (uint16_t *)p->c.at + t.place : NULL,
                                     .rounded_row = p->ldc,
                                     .bias = bias};
    pairs_multiply(&operands);
    if (in_place ? bias != NULL : !rounded && (last || !c->sums)) {
        if (is_half(p->c) && t.rows == PAIRS_PANEL && t.columns == PAIRS_PANEL)
            tile_store_whole(p, &t, bias, to, stride);
        else
            tile_store(p, &t, bias, to, stride);
    }
    if (last && p->activated.at)
        tile_activate(p, &t);
}

/* ---- blocks ---- */

static void pack_columns(const cuts *c, const block *o)
{
    const op_gemm *p = c->of;
    const pack_source whole = {p->b.at, p->ldb, o->depth, o->columns, p->transpose_b, p->b.type, 0};
    const pack_source all = source_from(&whole, o->step, o->column);
    for (size_t column = 0; column < o->columns; column += PAIRS_PANEL) {
        const pack_source panel = source_part(&all, column, smaller(o->columns - column, PAIRS_PANEL));
        const size_t after = column + panel.count;
        const pack_source next = source_part(&all, after, smaller(o->columns - after, PAIRS_PANEL));
        pairs_pack_b(&panel, &next, c->b + round_up(o->depth, PAIRS_STEP) / 2 * column);
    }
}

/* Rows of A that are packed together, or read where they are. */
static size_t rows_at_once(const op_gemm *p)
{
    return p->transpose_a ? A_ROWS : PAIRS_PANEL;
}

static void multiply_block(const cuts *c, const block *o)
{
    const op_gemm *p = c->of;
    const pack_source whole = {p->a.at, p->lda, o->depth, o->rows, !p->transpose_a, p->a.type, 0};
    const pack_source all = source_from(&whole, o->step, o->row);
    for (size_t row = 0; row < o->rows; row += rows_at_once(p)) {
        const pack_source group = source_part(&all, row, smaller(o->rows - row, rows_at_once(p)));
        const size_t after = row + group.count;
        const pack_source next = source_part(&all, after, smaller(o->rows - after, rows_at_once(p)));
        lines_ahead ahead = lines_of(&next, divide_up(group.count, PAIRS_PANEL) * divide_up(o->columns, PAIRS_PANEL));
        rows_of_a a = {c->a, row_of_a(o->depth)};
        if (c->direct && group.count % PAIRS_TILE == 0)
            a = (rows_of_a){(const uint16_t *)p->a.at + group.first, p->lda};
        else
            pairs_pack_a(&group, c->a, a.row);
        for (size_t panel = row; panel < after; panel += PAIRS_PANEL, a.at += PAIRS_PANEL * a.row)
            for (size_t column = 0; column < o->columns; column += PAIRS_PANEL)
                multiply_tile(c, o, panel, column, &a, &ahead);
    }
}

/* The largest piece when `length` is cut into equal ones of at most `most`, each a multiple of `unit` but the last. */
static size_t piece_of(size_t length, size_t most, size_t unit)
{
    const size_t pieces = divide_up(length, most);
    return pieces ? round_up(divide_up(length, pieces), unit) : unit;
}

static bool keeps_sums(const op_gemm *p)
{
    return is_half(p->c) && p->k > MOST_STEPS;
}

static size_t deep_of(const op_gemm *p)
{
    return piece_of(p->k, keeps_sums(p) ? MOST_SUM_STEPS : MOST_STEPS, PAIRS_STEP);
}

/* The rows of a block, of so many. */
static size_t high_of(const op_gemm *p, size_t rows)
{
    return keeps_sums(p) ? piece_of(rows, SUM_ROWS, PAIRS_PANEL) : rows;
}

/* The most columns of a block: panels of B and, where they are kept, sums for all rows of a block. */
static size_t wide_of(const op_gemm *p, size_t rows)
{
    const size_t sums = keeps_sums(p) ? high_of(p, rows) * sizeof(float) : 0;
    return B_BYTES / (deep_of(p) * sizeof(uint16_t) + sums) / PAIRS_PANEL * PAIRS_PANEL;
}

/* Whether A is read from where it is: rows are whole steps. Tiles want whole lines; for dot products, eight rows must not share sets of
 * the first cache. */
static bool reads_directly(const op_gemm *p)
{
    const bool fits = HAS_TILES ? p->lda % PAIRS_STEP == 0 && (uintptr_t)p->a.at % LINE_BYTES == 0
                                : HAS_DOTS && p->lda % SAME_SETS != 0;
    return fits && is_half(p->a) && !p->transpose_a && p->k % PAIRS_STEP == 0;
}

static void multiply_part(const op_gemm *p, const part *at, void *scratch)
{
    cuts c = {.of = p,
              .at = *at,
              .wide = piece_of(at->columns, wide_of(p, at->rows), PAIRS_PANEL),
              .high = high_of(p, at->rows),
              .deep = deep_of(p),
              .direct = reads_directly(p),
              .a = scratch,
              .b = (uint32_t *)(void *)((char *)scratch + A_BYTES)};
    if (keeps_sums(p))
        c.sums = (float *)(void *)(c.b + c.wide * c.deep / 2);
    block o;
    for (size_t column = 0; column < at->columns; column += c.wide)
        for (size_t row = 0; row < at->rows; row += c.high)
            for (size_t step = 0; step == 0 || step < p->k; step += c.deep) {
                o = (block){at->column + column,
                            smaller(at->columns - column, c.wide),
                            at->row + row,
                            smaller(at->rows - row, c.high),
                            step,
                            smaller(p->k - step, c.deep)};
                pack_columns(&c, &o);
                multiply_block(&c, &o);
            }
}

/* ---- threads ---- */

/* Rectangles down and across. */
typedef struct grid {
    size_t down, across;
} grid;

/* The grid with the least work for the busiest thread: multiplications, and what packing takes, counted in the multiplications
 * that tiles could do meanwhile, as measured. */
static grid choose_grid(const op_gemm *p, size_t threads)
{
    grid best = {1, 1};
    double least = 0, for_a = p->transpose_a ? 110 : 60, for_b = p->transpose_b ? 100 : 80;
    if ((double)p->m * (double)p->n * (double)p->k < WORTH_THREADS)
        return best;
    for (size_t down = 1; down <= threads; down++) {
        if (threads % down)
            continue;
        const size_t rows = divide_up(divide_up(p->m, PAIRS_PANEL), down) * PAIRS_PANEL,
                     columns = divide_up(divide_up(p->n, PAIRS_PANEL), threads / down) * PAIRS_PANEL;
        const double work = (double)rows * (double)columns +
                            for_a * (double)(rows * divide_up(columns, wide_of(p, rows))) + for_b * (double)columns;
        if (least == 0 || work < least) {
            least = work;
            best = (grid){down, threads / down};
        }
    }
    return best;
}

/* Cuts 0 .. length into `parts`, as even as whole panels allow; part `i` is from *first on. */
static size_t cut(size_t length, size_t parts, size_t i, size_t *first)
{
    const size_t units = divide_up(length, PAIRS_PANEL);
    *first = smaller(units * i / parts * PAIRS_PANEL, length);
    return smaller(units * (i + 1) / parts * PAIRS_PANEL, length) - *first;
}

typedef struct gemm_loop {
    const kernel_run *run;
    const op_gemm *args;
    grid parts;
} gemm_loop;

/* A pass of the loop is a rectangle of the grid. */
static void multiply_parts(const void *args, parallel_range range)
{
    const gemm_loop *loop = args;
    pairs_begin();
    for (size_t i = range.begin; i < range.end; i++) {
        part at;
        at.rows = cut(loop->args->m, loop->parts.down, i / loop->parts.across, &at.row);
        at.columns = cut(loop->args->n, loop->parts.across, i % loop->parts.across, &at.column);
        if (at.rows && at.columns)
            multiply_part(loop->args, &at, fast_scratch(loop->run, range.thread));
    }
    pairs_end();
}

void PAIRS(gemm)(const kernel_run *run, const void *args)
{
    const op_gemm *p = args;
    if (!is_half(p->a) && !is_half(p->c) && !p->half_result && !(p->transpose_a && is_half(p->b))) {
        FAST(gemm)(run, args);
        return;
    }
    if (p->m == 0 || p->n == 0)
        return;
    const gemm_loop loop = {run, p, choose_grid(p, (size_t)run->threads)};
    const size_t count = loop.parts.down * loop.parts.across;
    parallel_static((int)count, count, multiply_parts, &loop);
}
