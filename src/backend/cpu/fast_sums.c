#include "backend/cpu/fast_math.h"

/* Column sums: the rows are cut into parts, each summed row after row into a line of the scratch; then the lines are
 * added in order. A task takes a panel of columns. The scratch has room for the lines of a stripe of columns. */
enum { SUM_PARTS = 32, SUM_PANEL = 2048, SUM_STRIPE = 8192 };
_Static_assert(sizeof(float) * SUM_PARTS * SUM_STRIPE <= FAST_SCRATCH_BYTES, "the lines of all parts fit");

static void add_rows(size_t rows, size_t distance, size_t columns, const float *x, float *sums)
{
    memset(sums, 0, columns * sizeof *sums);
    size_t row = 0;
    for (; row + 4 <= rows;
         row += 4, x += 4 * distance) { /* four at a time: the sums are loaded and stored less often */
#define STEP(LOAD, STORE, i, FIRST)                                                                            \
    STORE(sums + i, (((LOAD(sums + i) + LOAD(x + i)) + LOAD(x + distance + i)) + LOAD(x + 2 * distance + i)) + \
                        LOAD(x + 3 * distance + i))
        FAST_EACH(columns, STEP);
#undef STEP
    }
    for (; row < rows; row++, x += distance) {
#define STEP(LOAD, STORE, i, FIRST) STORE(sums + i, LOAD(sums + i) + LOAD(x + i))
        FAST_EACH(columns, STEP);
#undef STEP
    }
}

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

static void sum_stripe(const kernel_run *run, size_t rows, size_t distance, size_t columns, const float *x, float *sums,
                       bool accumulate)
{
    float *lines = fast_scratch(run, 0);
    size_t parts = smaller(rows, SUM_PARTS);
    int threads = fast_threads(run, rows * columns);
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
    for (size_t part = 0; part < parts; part++)
        for (size_t from = 0; from < columns; from += SUM_PANEL) {
            size_t first = fast_cut(rows, parts, part), last = fast_cut(rows, parts, part + 1);
            size_t width = smaller(columns - from, SUM_PANEL);
            add_rows(last - first, distance, width, x + first * distance + from, lines + part * columns + from);
        }
#pragma omp parallel for num_threads(fast_threads(run, parts *columns)) schedule(static)
    for (size_t from = 0; from < columns; from += SUM_PANEL) {
        size_t width = smaller(columns - from, SUM_PANEL);
        add_lines(parts, columns, width, lines + from, sums + from, accumulate);
    }
}

void FAST(column_sums)(const kernel_run *run, const void *args)
{
    const op_column_sums *p = args;
    const float *x = p->x.at;
    float *sums = p->sums.at;
    const size_t columns = p->columns;
    for (size_t from = 0; from < columns; from += SUM_STRIPE) {
        size_t width = smaller(columns - from, SUM_STRIPE);
        sum_stripe(run, p->rows, columns, width, x + from, sums + from, p->accumulate);
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

void FAST(add_squares)(const kernel_run *run, const void *args)
{
    const op_add_squares *p = args;
    const float *x = p->x.at;
    step_block *block = p->step.at;
    double *sums = (double *)run->scratch, sum = 0;
    const size_t count = p->count, parts = fast_parts(count, FAST_BLOCK);
#pragma omp parallel for num_threads(fast_threads(run, count)) schedule(static)
    for (size_t part = 0; part < parts; part++) {
        size_t first = fast_cut(count, parts, part), last = fast_cut(count, parts, part + 1);
        sums[part] = squares(last - first, x + first);
    }
    for (size_t part = 0; part < parts; part++)
        sum += sums[part];
    block->squares += sum;
}

void FAST(check_finite)(const kernel_run *run, const void *args)
{
    const op_check_finite *p = args;
    const float *x = p->x.at;
    step_block *block = p->step.at;
    const size_t count = p->count;
    bool finite = true;
#pragma omp parallel for num_threads(fast_threads(run, count)) schedule(static) reduction(&& : finite)
    for (size_t from = 0; from < count; from += FAST_BLOCK)
        finite = fast_all_finite(fast_block_length(count, from), x + from, 1) && finite;
    if (!finite && block->broken == 0)
        block->broken = 1 + p->number;
}
