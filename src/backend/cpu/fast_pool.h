/* What both kinds of pooling share. In a row of outputs, those whose windows no side of the image cuts are a strip, which is
 * computed in vectors. The few at the sides of the image are computed one by one. */
#ifndef REMAT_BACKEND_CPU_FAST_POOL_H
#define REMAT_BACKEND_CPU_FAST_POOL_H

#include "backend/cpu/fast_math.h"

/* Every second value of two vectors, where the second vector begins FAST_LANES - 1 values behind the first. */
#if FAST_LANES == 16
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31
#elif FAST_LANES == 8
#define EVEN 0, 2, 4, 6, 9, 11, 13, 15
#else
#define EVEN 0, 2, 5, 7
#endif

/* ---- memory: the first `count` lanes of a vector. The test vanishes where count is the constant FAST_LANES. ---- */

FAST_INLINE fast_vector load_some(const float *from, size_t count)
{
    return count >= FAST_LANES ? fast_load(from) : count ? fast_load_part(from, count) : (fast_vector){0};
}

FAST_INLINE void store_some(float *to, fast_vector x, size_t count)
{
    if (count >= FAST_LANES)
        fast_store(to, x);
    else if (count)
        fast_store_part(to, x, count);
}

/* Values `stride` apart; nothing beyond the last of them is read. */
FAST_INLINE fast_vector load_apart(const float *from, size_t stride, size_t count)
{
    if (stride == 1)
        return load_some(from, count);
    if (stride == 2) {
        size_t values = 2 * count - 1, rest = values < FAST_LANES ? 0 : values - (FAST_LANES - 1);
        fast_vector a = load_some(from, values), b = load_some(from + (FAST_LANES - 1), rest);
        return FAST_SHUFFLE(a, b, EVEN);
    }
    fast_vector x = {0};
    for (size_t i = 0; i < count; i++)
        x[i] = from[i * stride];
    return x;
}

/* ---- windows ---- */

/* One axis of a window, cut to the image: `count` taps of an output lie inside, from place `at` on. */
typedef struct cut {
    size_t at, count;
} cut;

static inline cut cut_to_image(size_t out, size_t stride, size_t kernel, size_t pad, size_t size)
{
    size_t begin = out * stride, end = begin + kernel;
    begin = begin > pad ? begin - pad : 0;
    end = end > pad ? end - pad : 0;
    end = end < size ? end : size;
    return (cut){begin, end > begin ? end - begin : 0};
}

static inline cut cut_high(const operation_window *w, size_t row)
{
    return cut_to_image(row, w->stride_h, w->kernel_h, w->pad_h, w->in_h);
}

static inline cut cut_wide(const operation_window *w, size_t column)
{
    return cut_to_image(column, w->stride_w, w->kernel_w, w->pad_w, w->in_w);
}

/* The outputs begin .. end - 1 of a row, whose windows no side of the image cuts. The first tap of the first one is in
 * column `at` of the image. */
typedef struct strip {
    size_t begin, end, at, columns, stride, width;
} strip;

static inline strip strip_of(const operation_window *w)
{
    strip s = {.columns = w->kernel_w, .stride = w->stride_w, .width = w->in_w};
    if (w->in_w + w->pad_w < w->kernel_w)
        return s;
    s.begin = (w->pad_w + w->stride_w - 1) / w->stride_w;
    s.end = (w->in_w + w->pad_w - w->kernel_w) / w->stride_w + 1;
    s.end = s.end < w->out_w ? s.end : w->out_w;
    if (s.begin >= s.end)
        s.begin = s.end = 0;
    else
        s.at = s.begin * w->stride_w - w->pad_w;
    return s;
}

/* DO(rows, columns, stride), with constants for the usual shapes. */
#define BY_SHAPE(s, rows, DO)                                    \
    do {                                                         \
        if (s->stride == 2 && rows == 2 && s->columns == 2)      \
            DO(2, 2, 2);                                         \
        else if (s->stride == 2 && rows == 3 && s->columns == 3) \
            DO(3, 3, 2);                                         \
        else if (s->stride == 2)                                 \
            DO(rows, s->columns, 2);                             \
        else if (s->stride == 1)                                 \
            DO(rows, s->columns, 1);                             \
        else                                                     \
            DO(rows, s->columns, s->stride);                     \
    } while (0)

/* STEP(i, count) over all outputs: vectors of FAST_LANES of them, then what is left. */
#define EACH_VECTOR(outputs, STEP)                          \
    do {                                                    \
        size_t i = 0, outputs_ = (outputs);                 \
        for (; i + FAST_LANES <= outputs_; i += FAST_LANES) \
            STEP(i, FAST_LANES);                            \
        if (i < outputs_)                                   \
            STEP(i, outputs_ - i);                          \
    } while (0)

/* Whether one window covers the whole plane, as at the end of many networks. */
static inline bool takes_whole_plane(const operation_window *w)
{
    return w->out_h * w->out_w == 1 && w->in_h > 0 && w->in_w > 0 && w->kernel_h == w->in_h && w->kernel_w == w->in_w &&
           !w->pad_h && !w->pad_w;
}

/* The loop over the planes of all images. */
static inline void pool_each_plane(const kernel_run *run, const operation_window *w, parallel_part *part,
                                   const void *args)
{
    size_t planes = w->batch * w->in_channels;
    parallel_static(fast_threads(run, planes * w->in_h * w->in_w), planes, part, args);
}

#endif
