/* Adafactor: the root mean squares of weights and updates are needed before the first weight changes, so the values are passed
 * over several times. A unit is a row, or a piece of a long one. Sums go over units in their order, cut into parts. */
#include "backend/cpu/fast_moments.h"

enum { COLUMN_PANEL = 64 };

typedef struct factored {
    const op_adafactor *p;
    size_t pieces;     /* units of a row */
    size_t parts;      /* of all units */
    float scale, mean; /* of the gradient; of the row squares */
    float shrink, rate;
    double *weights, *updates; /* sums of squares, by part */
    atomic_bool *finite;
} factored;

/* The values of a unit. */
typedef struct unit_values {
    size_t row, from, count; /* `from` is its first column */
    size_t at;               /* its first value */
} unit_values;

static unit_values unit_at(const factored *f, size_t unit)
{
    const size_t row = unit / f->pieces, from = unit % f->pieces * FAST_BLOCK;
    return (unit_values){row, from, smaller(f->p->columns - from, FAST_BLOCK), row * f->p->columns + from};
}

static size_t first_unit(const factored *f, size_t part)
{
    return fast_cut(f->p->rows * f->pieces, f->parts, part);
}

static void check_parts(const void *args, parallel_range range)
{
    const factored *f = args;
    const float *gradient = f->p->gradient.at;
    float room[MOMENT_BLOCK];
    for (size_t part = range.begin; part < range.end; part++) {
        f->weights[part] = 0;
        for (size_t unit = first_unit(f, part); unit < first_unit(f, part + 1); unit++) {
            const unit_values v = unit_at(f, unit);
            fast_vector sum = {0};
            if (!fast_all_finite(v.count, gradient + v.at, 1))
                *f->finite = false;
            for (size_t from = 0; from < v.count; from += MOMENT_BLOCK) {
                const size_t count = smaller(v.count - from, MOMENT_BLOCK);
                const float *w = weight_open(f->p->weight, v.at + from, count, room);
#define STEP(LOAD, STORE, i, FIRST) sum = fast_fma(LOAD(w + i), LOAD(w + i), sum)
                FAST_EACH(count, STEP);
#undef STEP
            }
            f->weights[part] += (double)fast_sum_lanes(sum);
        }
    }
}

/* Means of squares over rows. */
static void update_rows(const void *args, parallel_range range)
{
    const factored *f = args;
    const op_adafactor *p = f->p;
    const step_block *block = p->step.at;
    float *of_rows = p->row_squares.at;
    for (size_t row = range.begin; row < range.end; row++) {
        double squares = 0;
        for (size_t from = 0; from < p->columns; from += FAST_BLOCK) {
            const float *g = (const float *)p->gradient.at + row * p->columns + from;
            fast_vector sum = {0};
#define STEP(LOAD, STORE, i, FIRST)             \
    do {                                        \
        fast_vector x = f->scale * LOAD(g + i); \
        sum = fast_fma(x, x, sum);              \
    } while (0)
            FAST_EACH(fast_block_length(p->columns, from), STEP);
#undef STEP
            squares += (double)fast_sum_lanes(sum);
        }
        const double now = squares / (double)p->columns, before = (double)of_rows[row];
        of_rows[row] = (float)(before + block->correction1 * (now - before));
    }
}

/* Means of squares over columns, a panel of columns a pass; of a vector: its squares. */
static void update_columns(const void *args, parallel_range range)
{
    const factored *f = args;
    const op_adafactor *p = f->p;
    const step_block *block = p->step.at;
    float *of_columns = p->column_squares.at ? p->column_squares.at : p->row_squares.at;
    for (size_t panel = range.begin; panel < range.end; panel++) {
        const size_t from = panel * COLUMN_PANEL, count = smaller(p->columns - from, COLUMN_PANEL);
        double sums[COLUMN_PANEL] = {0};
        for (size_t row = 0; row < p->rows; row++) {
            const float *g = (const float *)p->gradient.at + row * p->columns + from;
            for (size_t c = 0; c < count; c++) {
                const double x = (double)(f->scale * g[c]);
                sums[c] += x * x;
            }
        }
        for (size_t c = 0; c < count; c++) {
            const double now = sums[c] / (double)p->rows, before = (double)of_columns[from + c];
            of_columns[from + c] = (float)(before + block->correction1 * (now - before));
        }
    }
}

/* The gradient, divided by the root of its mean square, which is `row` * `square`. */
FAST_INLINE fast_vector update_of(const factored *f, float row, fast_vector gradient, fast_vector square)
{
    const float least = (float)(OPERATION_ADAFACTOR_EPSILON * OPERATION_ADAFACTOR_EPSILON);
    return f->scale * gradient / fast_sqrt(fast_max(row * square, fast_repeat(least)));
}

/* What the squares of a unit are multiplied by, and where they are. */
static float row_factor(const factored *f, const unit_values *v, const float **squares)
{
    const float *of_rows = f->p->row_squares.at, *of_columns = f->p->column_squares.at;
    *squares = (of_columns ? of_columns : of_rows) + v->from;
    return of_columns ? of_rows[v->row] / f->mean : 1;
}

static void measure_updates(const void *args, parallel_range range)
{
    const factored *f = args;
    for (size_t part = range.begin; part < range.end; part++) {
        f->updates[part] = 0;
        for (size_t unit = first_unit(f, part); unit < first_unit(f, part + 1); unit++) {
            const unit_values v = unit_at(f, unit);
            const float *g = (const float *)f->p->gradient.at + v.at, *squares;
            const float row = row_factor(f, &v, &squares);
            fast_vector sum = {0};
#define STEP(LOAD, STORE, i, FIRST)                                        \
    do {                                                                   \
        fast_vector u = update_of(f, row, LOAD(g + i), LOAD(squares + i)); \
        sum = fast_fma(u, u, sum);                                         \
    } while (0)
            FAST_EACH(v.count, STEP);
#undef STEP
            f->updates[part] += (double)fast_sum_lanes(sum);
        }
    }
}

static void move_weights(const void *args, parallel_range range)
{
    const factored *f = args;
    const fast_vector shrink = fast_repeat(f->shrink);
    float room[MOMENT_BLOCK];
    for (size_t part = range.begin; part < range.end; part++)
        for (size_t unit = first_unit(f, part); unit < first_unit(f, part + 1); unit++) {
            const unit_values v = unit_at(f, unit);
            const float *of_gradient = (const float *)f->p->gradient.at + v.at, *of_squares;
            const float row = row_factor(f, &v, &of_squares);
            for (size_t from = 0; from < v.count; from += MOMENT_BLOCK) {
                const size_t count = smaller(v.count - from, MOMENT_BLOCK);
                const float *g = of_gradient + from, *squares = of_squares + from;
                float *w = weight_open(f->p->weight, v.at + from, count, room);
#define STEP(LOAD, STORE, i, FIRST) \
    STORE(w + i, fast_fms(LOAD(w + i), shrink, f->rate * update_of(f, row, LOAD(g + i), LOAD(squares + i))))
                FAST_EACH(count, STEP);
#undef STEP
                weight_close(f->p->weight, f->p->step.at, f->p->number, 0, v.at + from, count, w);
            }
        }
}

static double sum_of(const double *parts, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += parts[i];
    return sum;
}

/* The mean of the row squares; not used for a vector. */
static float mean_square(const op_adafactor *p)
{
    const float *of_rows = p->row_squares.at;
    double sum = 0;
    for (size_t row = 0; row < p->rows && p->column_squares.at; row++)
        sum += (double)of_rows[row];
    return (float)fmax(sum / (double)p->rows, OPERATION_ADAFACTOR_EPSILON);
}

void FAST(adafactor)(const kernel_run *run, const void *args)
{
    const op_adafactor *p = args;
    step_block *block = p->step.at;
    const size_t count = p->rows * p->columns;
    const int threads = fast_threads(run, count);
    double weights[FAST_MOST_PARTS], updates[FAST_MOST_PARTS];
    atomic_bool finite = true;
    if (!step_is_finite(block) || count == 0)
        return;
    factored f = {.p = p,
                  .pieces = divide_up(p->columns, FAST_BLOCK),
                  .scale = (float)block->scale,
                  .shrink = (float)(1 - block->rate * p->decay),
                  .weights = weights,
                  .updates = updates,
                  .finite = &finite};
    f.parts = fast_parts(p->rows * f.pieces, 1);
    parallel_static(threads, f.parts, check_parts, &f);
    if (!finite) {
        block->broken = 1 + p->number;
        return;
    }
    if (p->column_squares.at)
        parallel_static(threads, p->rows, update_rows, &f);
    parallel_static(threads, divide_up(p->columns, COLUMN_PANEL), update_columns, &f);
    f.mean = mean_square(p);
    parallel_static(threads, f.parts, measure_updates, &f);
    const double size = sqrt(sum_of(weights, f.parts) / (double)count);
    const double length = sqrt(sum_of(updates, f.parts) / (double)count) / p->threshold;
    f.rate = (float)(fmax(size, p->least_scale) * block->correction2 / fmax(length, 1));
    parallel_static(threads, f.parts, move_weights, &f);
}
