#include "backend/cpu/fast_math.h"
#include "backend/cpu/normalize_parts.h"

/* Mean and variance in two passes: the row stays in the first cache between them. */
static float row_mean(size_t columns, const float *x)
{
    fast_vector sum = {0};
#define STEP(LOAD, STORE, i, FIRST) sum += LOAD(x + i)
    FAST_EACH(columns, STEP);
#undef STEP
    return fast_sum_lanes(sum) / (float)columns;
}

static float row_variance(size_t columns, const float *x, float mean)
{
    fast_vector sum = {0};
#define STEP(LOAD, STORE, i, FIRST)                         \
    do {                                                    \
        fast_vector difference = FIRST(LOAD(x + i) - mean); \
        sum = fast_fma(difference, difference, sum);        \
    } while (0)
    FAST_EACH(columns, STEP);
#undef STEP
    return fast_sum_lanes(sum) / (float)columns;
}

static void write_row(size_t columns, const float *x, float mean, float scale, const float *gain, const float *shift,
                      float *y)
{
    if (shift) {
#define STEP(LOAD, STORE, i, FIRST) \
    STORE(y + i, fast_fma((LOAD(x + i) - mean) * scale, LOAD(gain + i), LOAD(shift + i)))
        FAST_EACH(columns, STEP);
#undef STEP
    } else {
#define STEP(LOAD, STORE, i, FIRST) STORE(y + i, (LOAD(x + i) - mean) * scale * LOAD(gain + i))
        FAST_EACH(columns, STEP);
#undef STEP
    }
}

static void normalize_rows(const void *args, parallel_range range)
{
    const op_normalize *p = args;
    const float *x = p->x.at, *gain = p->gain.at, *shift = p->shift.at, epsilon = (float)p->epsilon;
    float *y = p->y.at, *means = p->means.at, *scales = p->scales.at;
    const size_t columns = p->columns;
    for (size_t row = range.begin; row < range.end; row++) {
        const float *in = x + row * columns;
        float mean = means ? row_mean(columns, in) : 0.0f;
        float scale = 1.0f / sqrtf(row_variance(columns, in, mean) + epsilon);
        if (y)
            write_row(columns, in, mean, scale, gain, shift, y + row * columns);
        if (means)
            means[row] = mean;
        scales[row] = scale;
    }
}

void FAST(normalize)(const kernel_run *run, const void *args)
{
    const op_normalize *p = args;
    if (p->columns)
        parallel_static(fast_threads(run, p->rows * p->columns), p->rows, normalize_rows, p);
}

/* The averages over a row that dx needs (reference_normalize.c has the formulas). The same pass adds the row to the sums
 * of its part for dgain and dshift. */
typedef struct row_averages {
    float gradient, slope;
} row_averages;

static row_averages read_row(size_t columns, const float *x, const float *gain, float mean, float scale,
                             const float *dy, float *gain_sums, float *shift_sums)
{
    fast_vector gradient = {0}, slope = {0};
#define STEP(LOAD, STORE, i, FIRST)                                          \
    do { /* dy is 0 beyond the end, and so are all the sums */               \
        fast_vector d = LOAD(dy + i), normal = (LOAD(x + i) - mean) * scale; \
        fast_vector g = d * LOAD(gain + i);                                  \
        gradient += g;                                                       \
        slope = fast_fma(g, normal, slope);                                  \
        STORE(gain_sums + i, fast_fma(d, normal, LOAD(gain_sums + i)));      \
        STORE(shift_sums + i, LOAD(shift_sums + i) + d);                     \
    } while (0)
    FAST_EACH(columns, STEP);
#undef STEP
    return (row_averages){fast_sum_lanes(gradient) / (float)columns, fast_sum_lanes(slope) / (float)columns};
}

/* The gradient of the input before it is multiplied by `scale`. */
FAST_INLINE fast_vector input_gradient(fast_vector x, fast_vector gain, fast_vector dy, float mean, float scale,
                                       row_averages averages)
{
    fast_vector normal = (x - mean) * scale;
    return fast_fnma(normal, fast_repeat(averages.slope), fast_fms(dy, gain, fast_repeat(averages.gradient)));
}

static void backward_row(size_t columns, const float *x, const float *gain, float mean, float scale,
                         row_averages averages, const float *dy, float *dx, bool accumulate)
{
#define GRADIENT(LOAD, i) input_gradient(LOAD(x + i), LOAD(gain + i), LOAD(dy + i), mean, scale, averages)
    if (accumulate) {
#define STEP(LOAD, STORE, i, FIRST) STORE(dx + i, fast_fma(GRADIENT(LOAD, i), fast_repeat(scale), LOAD(dx + i)))
        FAST_EACH(columns, STEP);
#undef STEP
    } else {
#define STEP(LOAD, STORE, i, FIRST) STORE(dx + i, GRADIENT(LOAD, i) * scale)
        FAST_EACH(columns, STEP);
#undef STEP
    }
#undef GRADIENT
}

/* sums (+)= the lines of all parts, in order; a part's two lines lie side by side. */
static void add_parts(size_t parts, size_t columns, const float *lines, float *sums, bool accumulate)
{
    if (!accumulate)
        memset(sums, 0, columns * sizeof *sums);
    for (size_t part = 0; part < parts; part++, lines += 2 * columns) {
#define STEP(LOAD, STORE, i, FIRST) STORE(sums + i, LOAD(sums + i) + LOAD(lines + i))
        FAST_EACH(columns, STEP);
#undef STEP
    }
}

static void backward_parts(const void *args, parallel_range range)
{
    const op_normalize_backward *p = args;
    const float *x = p->x.at, *gain = p->gain.at, *means = p->means.at, *scales = p->scales.at, *dy = p->dy.at;
    float *dx = p->dx.at, *workspace = p->workspace.at;
    const size_t rows = p->rows, columns = p->columns, parts = normalize_parts(rows);
    for (size_t part = range.begin; part < range.end; part++) {
        float *gain_sums = workspace + part * 2 * columns, *shift_sums = gain_sums + columns;
        memset(gain_sums, 0, 2 * columns * sizeof *gain_sums);
        for (size_t row = fast_cut(rows, parts, part); row < fast_cut(rows, parts, part + 1); row++) {
            const float *in = x + row * columns, *dout = dy + row * columns;
            float mean = means ? means[row] : 0.0f, scale = scales[row];
            row_averages averages = read_row(columns, in, gain, mean, scale, dout, gain_sums, shift_sums);
            if (!means)
                averages.gradient = 0;
            if (dx)
                backward_row(columns, in, gain, mean, scale, averages, dout, dx + row * columns, p->accumulate);
        }
    }
}

void FAST(normalize_backward)(const kernel_run *run, const void *args)
{
    const op_normalize_backward *p = args;
    const float *workspace = p->workspace.at;
    const size_t columns = p->columns, parts = normalize_parts(p->rows);
    if (!columns)
        return;
    parallel_static(fast_threads(run, p->rows * columns), parts, backward_parts, p);
    if (p->dgain.at)
        add_parts(parts, columns, workspace, p->dgain.at, p->accumulate_parameters);
    if (p->dshift.at)
        add_parts(parts, columns, workspace + columns, p->dshift.at, p->accumulate_parameters);
}
