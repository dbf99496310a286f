/* Pooling: planes of channels spread over threads. */
#include "kernels/fast_math.h"

/* One axis of a window, cut to the image: taps begin .. end - 1 of an output lie inside, from place `at` on. */
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

/* The usual window, 2 x 2 without padding: simple enough that the compiler makes vectors of it. */
static void max_by_2(const float *restrict upper, const float *restrict lower, size_t count, int32_t first,
                     int32_t width, float *restrict y, int32_t *restrict chosen)
{
    for (size_t i = 0; i < count; i++) {
        float best = upper[2 * i], value;
        int32_t where = 0, take;
        value = upper[2 * i + 1];
        take = (value > best) | ((value != value) & (best == best));
        best = take ? value : best;
        where = take ? 1 : where;
        value = lower[2 * i];
        take = (value > best) | ((value != value) & (best == best));
        best = take ? value : best;
        where = take ? width : where;
        value = lower[2 * i + 1];
        take = (value > best) | ((value != value) & (best == best));
        best = take ? value : best;
        where = take ? width + 1 : where;
        y[i] = best;
        chosen[i] = first + 2 * (int32_t)i + where;
    }
}

static void max_row(const kernel_window *w, size_t row, const float *x, float *y, int32_t *chosen)
{
    cut high = cut_to_image(row, w->stride_h, w->kernel_h, w->pad_h, w->in_h);
    if (w->kernel_h == 2 && w->kernel_w == 2 && w->stride_w == 2 && w->pad_w == 0 && high.count == 2 &&
        2 * w->out_w <= w->in_w) {
        const float *upper = x + high.at * w->in_w;
        max_by_2(upper, upper + w->in_w, w->out_w, (int32_t)(high.at * w->in_w), (int32_t)w->in_w, y, chosen);
        return;
    }
    for (size_t o = 0; o < w->out_w; o++) {
        cut wide = cut_to_image(o, w->stride_w, w->kernel_w, w->pad_w, w->in_w);
        size_t first = high.at * w->in_w + wide.at, where = first;
        bool any = high.count && wide.count;
        float best = any ? x[first] : 0;
        for (size_t ky = 0; ky < high.count; ky++)
            for (size_t kx = 0; kx < wide.count; kx++) {
                float value = x[first + ky * w->in_w + kx];
                bool take = value > best || (value != value && best == best);
                best = take ? value : best;
                where = take ? first + ky * w->in_w + kx : where;
            }
        y[o] = best;
        chosen[o] = any ? (int32_t)where : -1;
    }
}

void FAST(pool_max)(const kernel_run *run, const kernel_window *w, const float *x, float *y, int32_t *chosen)
{
    size_t in = w->in_h * w->in_w, out = w->out_h * w->out_w, planes = w->batch * w->in_channels;
    int threads = fast_threads(run, planes * in);
#pragma omp parallel for num_threads(threads)
    for (size_t plane = 0; plane < planes; plane++)
        for (size_t row = 0; row < w->out_h; row++)
            max_row(w, row, x + plane * in, y + plane * out + row * w->out_w, chosen + plane * out + row * w->out_w);
}

void FAST(pool_max_backward)(const kernel_run *run, const kernel_window *w, const int32_t *chosen, const float *dy,
                             float *dx, bool accumulate)
{
    size_t in = w->in_h * w->in_w, out = w->out_h * w->out_w, planes = w->batch * w->in_channels;
    int threads = fast_threads(run, planes * in);
#pragma omp parallel for num_threads(threads)
    for (size_t plane = 0; plane < planes; plane++) {
        const int32_t *where = chosen + plane * out;
        const float *from = dy + plane * out;
        float *to = dx + plane * in;
        if (!accumulate)
            memset(to, 0, in * sizeof *to);
        for (size_t o = 0; o < out; o++)
            if (where[o] >= 0)
                to[where[o]] += from[o];
    }
}

static inline float share(cut high, cut wide)
{
    size_t count = high.count * wide.count;
    return count ? 1.0f / (float)count : 0.0f;
}

/* All of a plane in one window: the usual end of a net. */
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

void FAST(pool_average)(const kernel_run *run, const kernel_window *w, const float *x, float *y)
{
    size_t in = w->in_h * w->in_w, out = w->out_h * w->out_w, planes = w->batch * w->in_channels;
    bool whole = out == 1 && in && w->kernel_h == w->in_h && w->kernel_w == w->in_w && !w->pad_h && !w->pad_w;
    int threads = fast_threads(run, planes * in);
#pragma omp parallel for num_threads(threads)
    for (size_t plane = 0; plane < planes; plane++) {
        const float *from = x + plane * in;
        if (whole) {
            y[plane] = whole_average(from, in);
            continue;
        }
        for (size_t o = 0; o < out; o++) {
            cut high = cut_to_image(o / w->out_w, w->stride_h, w->kernel_h, w->pad_h, w->in_h);
            cut wide = cut_to_image(o % w->out_w, w->stride_w, w->kernel_w, w->pad_w, w->in_w);
            float sum = 0;
            for (size_t ky = 0; ky < high.count; ky++)
                for (size_t kx = 0; kx < wide.count; kx++)
                    sum += from[(high.at + ky) * w->in_w + wide.at + kx];
            y[plane * out + o] = sum * share(high, wide);
        }
    }
}

void FAST(pool_average_backward)(const kernel_run *run, const kernel_window *w, const float *dy, float *dx,
                                 bool accumulate)
{
    size_t in = w->in_h * w->in_w, out = w->out_h * w->out_w, planes = w->batch * w->in_channels;
    int threads = fast_threads(run, planes * in);
#pragma omp parallel for num_threads(threads)
    for (size_t plane = 0; plane < planes; plane++) {
        float *to = dx + plane * in;
        if (!accumulate)
            memset(to, 0, in * sizeof *to);
        for (size_t o = 0; o < out; o++) {
            cut high = cut_to_image(o / w->out_w, w->stride_h, w->kernel_h, w->pad_h, w->in_h);
            cut wide = cut_to_image(o % w->out_w, w->stride_w, w->kernel_w, w->pad_w, w->in_w);
            float value = dy[plane * out + o] * share(high, wide);
            for (size_t ky = 0; ky < high.count; ky++)
                for (size_t kx = 0; kx < wide.count; kx++)
                    to[(high.at + ky) * w->in_w + wide.at + kx] += value;
        }
    }
}
