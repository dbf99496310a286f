/* Average pooling: the planes of the channels are spread over threads. */
#include "backend/cpu/fast_pool.h"
#include "backend/cpu/window.h"

/* A row of outputs: its windows from top to bottom, how many of their rows count in the mean, and the outputs that no side
 * of the image cuts. */
typedef struct window_row {
    const operation_window *w;
    const strip *inside;
    cut high;
    size_t counted_h; /* of this row */
    size_t counted_w; /* of the image with the padding that counts; 0: none */
} window_row;

static inline float share(size_t rows, size_t columns)
{
    size_t count = rows * columns;
    return count ? 1.0f / (float)count : 0.0f;
}

FAST_INLINE fast_vector sum_vector(const float *x, size_t width, size_t rows, size_t columns, size_t stride,
                                   size_t count)
{
    fast_vector sum = {0};
    for (size_t ky = 0; ky < rows; ky++)
        for (size_t kx = 0; kx < columns; kx++)
            sum += load_apart(x + ky * width + kx, stride, count);
    return sum;
}

static window_row row_of(const operation_window *w, const strip *inside, size_t row, size_t counted_h, size_t counted_w)
{
    cut high = cut_high(w, row);
    return (window_row){w, inside, high, window_counted(row, w->stride_h, w->kernel_h, counted_h, high.count),
                        counted_w};
}

/* The share of a place in the mean of output `o`, which has `columns` inside the image. */
static float share_of(const window_row *r, size_t o, size_t columns)
{
    return share(r->counted_h, window_counted(o, r->w->stride_w, r->w->kernel_w, r->counted_w, columns));
}

FAST_INLINE void average_shape(const float *x, size_t width, size_t rows, size_t columns, size_t stride, float factor,
                               size_t outputs, float *y)
{
#define STEP(i, count) \
    store_some(y + i, sum_vector(x + i * stride, width, rows, columns, stride, count) * factor, count)
    EACH_VECTOR(outputs, STEP);
#undef STEP
}

FAST_NOINLINE void average_strip(const window_row *r, const float *x, float *y)
{
    const strip *s = r->inside;
    float factor = share(r->counted_h, s->columns);
    x += r->high.at * s->width + s->at;
#define DO(rows, columns, stride) \
    average_shape(x, s->width, rows, columns, stride, factor, s->end - s->begin, y + s->begin)
    BY_SHAPE(s, r->high.count, DO);
#undef DO
}

static void average_one(const window_row *r, size_t o, const float *x, float *y)
{
    cut high = r->high, wide = cut_wide(r->w, o);
    float sum = 0;
    for (size_t ky = 0; ky < high.count; ky++)
        for (size_t kx = 0; kx < wide.count; kx++)
            sum += x[(high.at + ky) * r->w->in_w + wide.at + kx];
    y[o] = sum * share_of(r, o, wide.count);
}

static void average_row(const window_row *r, const float *x, float *y)
{
    size_t begin = r->high.count ? r->inside->begin : 0, end = r->high.count ? r->inside->end : 0;
    for (size_t o = 0; o < begin; o++)
        average_one(r, o, x, y);
    if (begin < end)
        average_strip(r, x, y);
    for (size_t o = end; o < r->w->out_w; o++)
        average_one(r, o, x, y);
}

static float whole_average(const float *x, size_t count)
{
    fast_vector sum = {0};
    size_t i = 0;
    for (; i + FAST_LANES <= count; i += FAST_LANES)
        sum += fast_load(x + i);
    if (i < count)
        sum += fast_load_part(x + i, count - i);
    return fast_sum_lanes(sum) / (float)count;
}

static void average_planes(const void *args, parallel_range range)
{
    const op_pool_average *p = args;
    const operation_window *w = &p->window;
    const float *x = p->x.at;
    float *y = p->y.at;
    size_t in = w->in_h * w->in_w, out = w->out_h * w->out_w;
    bool whole = takes_whole_plane(w);
    strip inside = strip_of(w);
    for (size_t plane = range.begin; plane < range.end; plane++)
        if (whole)
            y[plane] = whole_average(x + plane * in, in);
        else
            for (size_t row = 0; row < w->out_h; row++) {
                window_row r = row_of(w, &inside, row, p->counted_h, p->counted_w);
                average_row(&r, x + plane * in, y + plane * out + row * w->out_w);
            }
}

void FAST(pool_average)(const kernel_run *run, const void *args)
{
    const op_pool_average *p = args;
    pool_each_plane(run, &p->window, average_planes, p);
}

/* The values of two vectors, alternating. */
#if FAST_LANES == 16
#define LOW  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif FAST_LANES == 8
#define LOW  0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define LOW  0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#endif

/* Adding -0 leaves the bits of every value. */
#define NOTHING fast_repeat(-0.0f)

/* 2 * count values: to += a0, b0, a1, b1, .... */
FAST_INLINE void add_alternating(float *to, fast_vector a, fast_vector b, size_t count)
{
    size_t rest = 2 * count < FAST_LANES ? 0 : 2 * count - FAST_LANES;
    store_some(to, load_some(to, 2 * count) + FAST_SHUFFLE(a, b, LOW), 2 * count);
    store_some(to + FAST_LANES, load_some(to + FAST_LANES, rest) + FAST_SHUFFLE(a, b, HIGH), rest);
}

FAST_INLINE void add_twice(float *to, fast_vector x, size_t count)
{
    add_alternating(to, x, x, count);
}

/* Tap by tap for a row of windows, the last tap first: then a place gets its values in the order of the outputs. */

static inline void back_by_1(size_t columns, size_t outputs, const float *dy, float factor, float *dx)
{
    for (size_t kx = columns; kx-- > 0;) {
        float *to = dx + kx;
#define STEP(LOAD, STORE, i, FIRST) STORE(to + i, fast_fma(LOAD(dy + i), fast_repeat(factor), LOAD(to + i)))
        FAST_EACH(outputs, STEP);
#undef STEP
    }
}

/* Two taps at a time. Of an odd number the first tap is left, and its neighbour gets -0. */
FAST_INLINE void back_by_2(size_t columns, size_t outputs, const float *dy, float factor, float *dx)
{
#define STEP(i, count) add_twice(to + 2 * i, load_some(dy + i, count) * factor, count)
    for (size_t kx = columns; kx >= 2; kx -= 2) {
        float *to = dx + kx - 2;
        EACH_VECTOR(outputs, STEP);
    }
#undef STEP
#define STEP(i, count) add_alternating(dx + 2 * i, load_some(dy + i, count) * factor, NOTHING, count)
    if (columns % 2 && columns > 1)
        EACH_VECTOR(outputs, STEP);
#undef STEP
    for (size_t i = 0; columns == 1 && i < outputs; i++)
        dx[2 * i] = fast_fma_float(dy[i], factor, dx[2 * i]);
}

static inline void back_by_more(size_t columns, size_t stride, size_t outputs, const float *dy, float factor, float *dx)
{
    /* Whole groups of taps add the rounded product, the taps behind them use multiply-adds. */
    enum { GROUP = FAST_LANES / 2 };
    size_t whole = columns / GROUP * GROUP;
    for (size_t i = 0; i < outputs; i++) {
        float *to = dx + i * stride, value = dy[i] * factor;
        for (size_t kx = 0; kx < whole; kx++)
            to[kx] += value;
        for (size_t kx = whole; kx < columns; kx++)
            to[kx] = fast_fma_float(dy[i], factor, to[kx]);
    }
}

FAST_NOINLINE void average_back_strip(const window_row *r, const float *dy, float *dx)
{
    const strip *s = r->inside;
    size_t outputs = s->end - s->begin;
    float factor = share(r->counted_h, s->columns);
    dy += s->begin;
    for (size_t ky = 0; ky < r->high.count; ky++) {
        float *to = dx + (r->high.at + ky) * s->width + s->at;
        if (s->stride == 1)
            back_by_1(s->columns, outputs, dy, factor, to);
        else if (s->stride == 2 && s->columns == 2)
            back_by_2(2, outputs, dy, factor, to);
        else if (s->stride == 2)
            back_by_2(s->columns, outputs, dy, factor, to);
        else
            back_by_more(s->columns, s->stride, outputs, dy, factor, to);
    }
}

static void average_back_one(const window_row *r, size_t o, const float *dy, float *dx)
{
    cut high = r->high, wide = cut_wide(r->w, o);
    float value = dy[o] * share_of(r, o, wide.count);
    for (size_t ky = 0; ky < high.count; ky++)
        for (size_t kx = 0; kx < wide.count; kx++)
            dx[(high.at + ky) * r->w->in_w + wide.at + kx] += value;
}

static void average_back_row(const window_row *r, const float *dy, float *dx)
{
    size_t begin = r->high.count ? r->inside->begin : 0, end = r->high.count ? r->inside->end : 0;
    for (size_t o = 0; o < begin; o++)
        average_back_one(r, o, dy, dx);
    if (begin < end)
        average_back_strip(r, dy, dx);
    for (size_t o = end; o < r->w->out_w; o++)
        average_back_one(r, o, dy, dx);
}

static void whole_average_back(float value, size_t count, float *dx, bool accumulate)
{
#define SET(LOAD, STORE, i, FIRST) STORE(dx + i, fast_repeat(value))
#define ADD(LOAD, STORE, i, FIRST) STORE(dx + i, LOAD(dx + i) + value)
    if (accumulate)
        FAST_EACH(count, ADD);
    else
        FAST_EACH(count, SET);
#undef SET
#undef ADD
}

static void average_planes_back(const void *args, parallel_range range)
{
    const op_pool_average_backward *p = args;
    const operation_window *w = &p->window;
    const float *dy = p->dy.at;
    float *dx = p->dx.at;
    size_t in = w->in_h * w->in_w, out = w->out_h * w->out_w;
    bool whole = takes_whole_plane(w);
    strip inside = strip_of(w);
    for (size_t plane = range.begin; plane < range.end; plane++) {
        float *to = dx + plane * in;
        if (whole) {
            whole_average_back(dy[plane] * share(w->kernel_h, w->kernel_w), in, to, p->accumulate);
            continue;
        }
        if (!p->accumulate)
            memset(to, 0, in * sizeof *to);
        for (size_t row = 0; row < w->out_h; row++) {
            window_row r = row_of(w, &inside, row, p->counted_h, p->counted_w);
            average_back_row(&r, dy + plane * out + row * w->out_w, to);
        }
    }
}

void FAST(pool_average_backward)(const kernel_run *run, const void *args)
{
    const op_pool_average_backward *p = args;
    pool_each_plane(run, &p->window, average_planes_back, p);
}
