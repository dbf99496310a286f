#include "backend/cpu/fast_block.h"

/* Column sums: the rows are cut into parts, each summed row after row into a line of the scratch; then the lines are
 * added in order. A task takes a panel of columns. The scratch has room for the lines of a stripe of columns. */
enum { SUM_PARTS = 32, SUM_PANEL = 2048, SUM_STRIPE = 8192 };
_Static_assert(sizeof(float) * SUM_PARTS * SUM_STRIPE <= FAST_SCRATCH_BYTES, "the lines of all parts fit");

#define ADD_ROWS add_rows
#define VALUE    float
#include "backend/cpu/fast_sums_rows.h"
#undef ADD_ROWS
#undef VALUE
#define ADD_ROWS add_half_rows
#define VALUE    uint16_t
#include "backend/cpu/fast_sums_rows.h"
#undef ADD_ROWS
#undef VALUE

/* sums (+)= lines[0] + lines[1] + .... */
static void add_lines(size_t parts, size_t distance, size_t columns, const float *lines, float *sums, bool accumulate)
{
    if (!accumulate)
        memset(sums, 0, columns * sizeof *sums);
    for (size_t part = 0; part < parts; part++) {
        const float *line = lines + part * distance;
#define STEP(LOAD, STORE, i, FIRST) STORE(sums + i, LOAD(sums + i) + LOAD(line + i))
        FAST_EACH(columns, STEP);
#undef STEP
    }
}

typedef struct stripe {
    size_t rows, distance, columns, parts;
    tensor_ref x; /* fp32 or bf16 */
    float *lines, *sums;
    bool accumulate;
} stripe;

/* A pass of the loop is a panel of a part. */
static void sum_panels(const void *args, parallel_range range)
{
    const stripe *of = args;
    const size_t panels = divide_up(of->columns, SUM_PANEL);
    for (size_t i = range.begin; i < range.end; i++) {
        size_t part = i / panels, from = i % panels * SUM_PANEL, width = smaller(of->columns - from, SUM_PANEL);
        size_t first = fast_cut(of->rows, of->parts, part), last = fast_cut(of->rows, of->parts, part + 1);
        const tensor_ref x = tensor_from(of->x, first * of->distance + from);
        float *line = of->lines + part * of->columns + from;
        if (x.type == REMAT_BF16)
            add_half_rows(last - first, of->distance, width, x.at, line);
        else
            add_rows(last - first, of->distance, width, x.at, line);
    }
}

static void sum_lines(const void *args, parallel_range range)
{
    const stripe *of = args;
    for (size_t panel = range.begin; panel < range.end; panel++) {
        size_t from = panel * SUM_PANEL, width = smaller(of->columns - from, SUM_PANEL);
        add_lines(of->parts, of->columns, width, of->lines + from, of->sums + from, of->accumulate);
    }
}

static void sum_stripe(const kernel_run *run, const stripe *of)
{
    const size_t panels = divide_up(of->columns, SUM_PANEL);
    parallel_static(fast_threads(run, of->rows * of->columns), of->parts * panels, sum_panels, of);
    parallel_static(fast_threads(run, of->parts * of->columns), panels, sum_lines, of);
}

void FAST(column_sums)(const kernel_run *run, const void *args)
{
    const op_column_sums *p = args;
    float *sums = p->sums.at;
    const size_t columns = p->columns;
    for (size_t from = 0; from < columns; from += SUM_STRIPE) {
        const stripe of = {.rows = p->rows,
                           .distance = columns,
                           .columns = smaller(columns - from, SUM_STRIPE),
                           .parts = smaller(p->rows, SUM_PARTS),
                           .x = tensor_from(p->x, from),
                           .lines = fast_scratch(run, 0),
                           .sums = sums + from,
                           .accumulate = p->accumulate};
        sum_stripe(run, &of);
    }
}

/* Sixteen sums side by side whatever the instruction set, so that this sum has the same bits in all of them. */
static double squares(size_t count, const float *x)
{
    enum { SUMS = 16 };
    double sums[SUMS] = {0};
    size_t i = 0;
    for (; i + SUMS <= count; i += SUMS)
        for (size_t k = 0; k < SUMS; k++)
            sums[k] = fast_fma_double((double)x[i + k], (double)x[i + k], sums[k]);
    for (size_t k = 0; i < count; i++, k++)
        sums[k] = fast_fma_double((double)x[i], (double)x[i], sums[k]);
    double sum = 0;
    for (size_t k = 0; k < SUMS; k++)
        sum += sums[k];
    return sum;
}

_Static_assert(FAST_BLOCK == OPERATION_SQUARES_BLOCK, "a pass of the loop is a block");
enum { SQUARES_ROUND = 4096 }; /* blocks whose sums are in the scratch at a time */
_Static_assert(SQUARES_ROUND * sizeof(double) <= FAST_SCRATCH_BYTES, "they fit");

typedef struct squares_loop {
    const float *x;
    size_t count;
    double *sums;
} squares_loop;

static void square_blocks(const void *args, parallel_range range)
{
    const squares_loop *loop = args;
    for (size_t block = range.begin; block < range.end; block++) {
        const size_t from = block * FAST_BLOCK;
        loop->sums[block] = squares(fast_block_length(loop->count, from), loop->x + from);
    }
}

static void make_squares(const kernel_run *run, const float *x, size_t count, double *sums)
{
    const squares_loop loop = {x, count, sums};
    parallel_static(fast_threads(run, count), fast_blocks(count), square_blocks, &loop);
}

void FAST(add_squares)(const kernel_run *run, const void *args)
{
    const op_add_squares *p = args;
    step_block *block = p->step.at;
    double *sums = run->scratch;
    for (size_t from = 0; from < p->count; from += SQUARES_ROUND * FAST_BLOCK) {
        const size_t count = smaller(p->count - from, SQUARES_ROUND * FAST_BLOCK);
        make_squares(run, (const float *)p->x.at + from, count, sums);
        for (size_t i = 0; i < fast_blocks(count); i++)
            block->squares += sums[i];
    }
}

void FAST(block_squares)(const kernel_run *run, const void *args)
{
    const op_block_squares *p = args;
    make_squares(run, p->x.at, p->count, p->sums.at);
}

static void check_blocks(const void *args, parallel_range range)
{
    const finite_loop *loop = args;
    const op_check_finite *p = loop->args;
    const float *x = p->x.at;
    for (size_t block = range.begin; block < range.end; block++) {
        size_t from = block * FAST_BLOCK;
        if (!fast_all_finite(fast_block_length(p->count, from), x + from, 1))
            *loop->finite = false;
    }
}

void FAST(check_finite)(const kernel_run *run, const void *args)
{
    const op_check_finite *p = args;
    step_block *block = p->step.at;
    atomic_bool finite = true;
    parallel_static(fast_threads(run, p->count), fast_blocks(p->count), check_blocks, &(finite_loop){p, &finite});
    if (!finite && block->broken == 0)
        block->broken = 1 + p->number;
}
