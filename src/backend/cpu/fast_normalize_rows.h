/* The rows of a normalization whose x, y and their gradients are of type VALUE: float, or uint16_t for bf16. fast_normalize.c includes
 * this once for each; ROWS(name) is the name of the function for the type. */

/* Mean and variance in two passes: the row stays in the first cache between them. */
static float ROWS(row_mean)(size_t columns, const VALUE *x)
{
    fast_vector sum = {0};
#define STEP(LOAD, STORE, i, FIRST) sum += LOAD(x + i)
    FAST_EACH_ANY(columns, STEP);
#undef STEP
    return fast_sum_lanes(sum) / (float)columns;
}

static float ROWS(row_variance)(size_t columns, const VALUE *x, float mean)
{
    fast_vector sum = {0};
#define STEP(LOAD, STORE, i, FIRST)                         \
    do {                                                    \
        fast_vector difference = FIRST(LOAD(x + i) - mean); \
        sum = fast_fma(difference, difference, sum);        \
    } while (0)
    FAST_EACH_ANY(columns, STEP);
#undef STEP
    return fast_sum_lanes(sum) / (float)columns;
}

static void ROWS(write_row)(size_t columns, const VALUE *x, float mean, float scale, const float *gain,
                            const float *shift, VALUE *y)
{
    if (shift) {
#define STEP(LOAD, STORE, i, FIRST) \
    STORE(y + i, fast_fma((LOAD(x + i) - mean) * scale, LOAD(gain + i), LOAD(shift + i)))
        FAST_EACH_ANY(columns, STEP);
#undef STEP
    } else {
#define STEP(LOAD, STORE, i, FIRST) STORE(y + i, (LOAD(x + i) - mean) * scale * LOAD(gain + i))
        FAST_EACH_ANY(columns, STEP);
#undef STEP
    }
}

static void ROWS(normalize_rows)(const void *args, parallel_range range)
{
    const op_normalize *p = args;
    const VALUE *x = p->x.at;
    const float *gain = p->gain.at, *shift = p->shift.at, epsilon = (float)p->epsilon;
    VALUE *y = p->y.at;
    float *means = p->means.at, *scales = p->scales.at;
    const size_t columns = p->columns;
    for (size_t row = range.begin; row < range.end; row++) {
        const VALUE *in = x + row * columns;
        float mean = means ? ROWS(row_mean)(columns, in) : 0.0f;
        float scale = 1.0f / sqrtf(ROWS(row_variance)(columns, in, mean) + epsilon);
        if (y)
            ROWS(write_row)(columns, in, mean, scale, gain, shift, y + row * columns);
        if (means)
            means[row] = mean;
        scales[row] = scale;
    }
}

static row_averages ROWS(read_row)(size_t columns, const VALUE *x, const float *gain, float mean, float scale,
                                   const VALUE *dy, float *gain_sums, float *shift_sums)
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
    FAST_EACH_ANY(columns, STEP);
#undef STEP
    return (row_averages){fast_sum_lanes(gradient) / (float)columns, fast_sum_lanes(slope) / (float)columns};
}

static void ROWS(backward_row)(size_t columns, const VALUE *x, const float *gain, float mean, float scale,
                               row_averages averages, const VALUE *dy, VALUE *dx, bool accumulate)
{
#define GRADIENT(LOAD, i) input_gradient(LOAD(x + i), LOAD(gain + i), LOAD(dy + i), mean, scale, averages)
    if (accumulate) {
#define STEP(LOAD, STORE, i, FIRST) STORE(dx + i, fast_fma(GRADIENT(LOAD, i), fast_repeat(scale), LOAD(dx + i)))
        FAST_EACH_ANY(columns, STEP);
#undef STEP
    } else {
#define STEP(LOAD, STORE, i, FIRST) STORE(dx + i, GRADIENT(LOAD, i) * scale)
        FAST_EACH_ANY(columns, STEP);
#undef STEP
    }
#undef GRADIENT
}

static void ROWS(backward_parts)(const void *args, parallel_range range)
{
    const op_normalize_backward *p = args;
    const VALUE *x = p->x.at, *dy = p->dy.at;
    const float *gain = p->gain.at, *means = p->means.at, *scales = p->scales.at;
    VALUE *dx = p->dx.at;
    float *workspace = p->workspace.at;
    const size_t rows = p->rows, columns = p->columns, parts = normalize_parts(rows);
    for (size_t part = range.begin; part < range.end; part++) {
        float *gain_sums = workspace + part * 2 * columns, *shift_sums = gain_sums + columns;
        memset(gain_sums, 0, 2 * columns * sizeof *gain_sums);
        for (size_t row = fast_cut(rows, parts, part); row < fast_cut(rows, parts, part + 1); row++) {
            const VALUE *in = x + row * columns, *dout = dy + row * columns;
            float mean = means ? means[row] : 0.0f, scale = scales[row];
            row_averages averages = ROWS(read_row)(columns, in, gain, mean, scale, dout, gain_sums, shift_sums);
            if (!means)
                averages.gradient = 0;
            if (dx)
                ROWS(backward_row)(columns, in, gain, mean, scale, averages, dout, dx + row * columns, p->accumulate);
        }
    }
}
