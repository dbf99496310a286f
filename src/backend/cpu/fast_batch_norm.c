/* Batch normalisation: channels are spread over threads, and each is computed in blocks of values in a fixed order. A block
 * is small enough to be read twice from the nearest cache: first for its mean, then for the squares around the mean,
 * which loses no digits. The statistics of blocks are joined in double.
 *
 * Where the area is shorter than a vector, as it is behind a dense layer, panels of channels are spread instead. */
#include "backend/cpu/fast_batch_panel.h"

#define BLOCK 4096

static float block_sum(const float *x, size_t count)
{
    fast_vector a = {0}, b = {0}, c = {0}, d = {0};
    size_t i = 0;
    for (; i + 4 * FAST_LANES <= count; i += 4 * FAST_LANES) {
        a += fast_load(x + i);
        b += fast_load(x + i + FAST_LANES);
        c += fast_load(x + i + 2 * FAST_LANES);
        d += fast_load(x + i + 3 * FAST_LANES);
    }
    for (; i + FAST_LANES <= count; i += FAST_LANES)
        a += fast_load(x + i);
    if (i < count)
        b += fast_load_part(x + i, count - i);
    return fast_sum_lanes((a + b) + (c + d));
}

static float block_squares(const float *x, size_t count, float mean)
{
    fast_vector a = {0}, b = {0}, centre = fast_repeat(mean), off;
    size_t i = 0;
    for (; i + 2 * FAST_LANES <= count; i += 2 * FAST_LANES) {
        off = fast_load(x + i) - centre;
        a = fast_fma(off, off, a);
        off = fast_load(x + i + FAST_LANES) - centre;
        b = fast_fma(off, off, b);
    }
    for (; i + FAST_LANES <= count; i += FAST_LANES) {
        off = fast_load(x + i) - centre;
        a = fast_fma(off, off, a);
    }
    if (i < count) {
        off = fast_first(fast_load_part(x + i, count - i) - centre, count - i);
        b = fast_fma(off, off, b);
    }
    return fast_sum_lanes(a + b);
}

/* Of some values: how many, their mean, the sum of squares around it. */
typedef struct moments {
    double count, mean, squares;
} moments;

static moments join(moments a, moments b)
{
    double count = a.count + b.count, apart = b.mean - a.mean;
    return (moments){count, fast_fma_double(apart, b.count / count, a.mean),
                     fast_fma_double(apart * apart, a.count * b.count / count, a.squares + b.squares)};
}

static moments channel_moments(size_t batch, size_t area, size_t distance, const float *x)
{
    moments all = {0, 0, 0};
    for (size_t b = 0; b < batch; b++)
        for (size_t i = 0; i < area; i += BLOCK) {
            const float *from = x + b * distance + i;
            size_t count = smaller(area - i, BLOCK);
            float mean = block_sum(from, count) / (float)count;
            moments block = {(double)count, mean, block_squares(from, count, mean)};
            all = join(all, block);
        }
    return all;
}

static void panel_moments(const panel *p, const float *x, moments *all)
{
    double sums[PANEL], means[PANEL], count = (double)p->batch * (double)p->area;
    panel_sums(p, x, sums);
    for (size_t c = 0; c < p->channels; c++) {
        all[c] = (moments){count, panel_channel_sum(p, c, sums) / count, 0};
        for (size_t i = 0; i < p->area; i++)
            means[c * p->area + i] = all[c].mean;
    }
    panel_squares(p, x, means, sums);
    for (size_t c = 0; c < p->channels; c++)
        all[c].squares = panel_channel_sum(p, c, sums);
}

typedef struct statistics {
    float epsilon, *means, *scales, momentum, *running_mean, *running_variance;
} statistics;

static void statistics_set(const statistics *to, size_t c, moments all)
{
    to->means[c] = (float)all.mean;
    to->scales[c] = (float)(1 / sqrt(all.squares / all.count + (double)to->epsilon));
    double unbiased = all.count > 1 ? all.squares / (all.count - 1) : 0;
    if (to->running_mean && to->running_variance && isfinite((float)unbiased)) { /* then the mean is finite too */
        float mean = to->running_mean[c], variance = to->running_variance[c];
        to->running_mean[c] = fast_fma_float(to->momentum, (float)all.mean - mean, mean);
        to->running_variance[c] = fast_fma_float(to->momentum, (float)unbiased - variance, variance);
    }
}

static statistics statistics_of(const op_batch_statistics *p)
{
    return (statistics){(float)p->epsilon,  p->means.at,        p->scales.at,
                        (float)p->momentum, p->running_mean.at, p->running_variance.at};
}

static void panel_statistics(const void *args, parallel_range range)
{
    const op_batch_statistics *p = args;
    const statistics to = statistics_of(p);
    const float *x = p->x.at;
    for (size_t i = range.begin; i < range.end; i++) {
        size_t first = i * panel_channels(p->area);
        panel of = panel_of(first, p->batch, p->channels, p->area);
        moments all[PANEL];
        panel_moments(&of, x + first * p->area, all);
        for (size_t c = 0; c < of.channels; c++)
            statistics_set(&to, first + c, all[c]);
    }
}

static void channel_statistics(const void *args, parallel_range range)
{
    const op_batch_statistics *p = args;
    const statistics to = statistics_of(p);
    const float *x = p->x.at;
    for (size_t c = range.begin; c < range.end; c++)
        statistics_set(&to, c, channel_moments(p->batch, p->area, p->channels * p->area, x + c * p->area));
}

void FAST(batch_statistics)(const kernel_run *run, const void *args)
{
    const op_batch_statistics *p = args;
    if (p->batch == 0 || p->area == 0)
        return;
    int threads = fast_threads(run, p->batch * p->channels * p->area);
    if (p->area < FAST_LANES)
        parallel_static(threads, panel_count(p->channels, p->area), panel_statistics, p);
    else
        parallel_static(threads, p->channels, channel_statistics, p);
}

void FAST(batch_scales)(const kernel_run *run, const void *args)
{
    (void)run; /* channels are few */
    const op_batch_scales *p = args;
    const float *variance = p->variance.at, epsilon = (float)p->epsilon;
    float *scales = p->scales.at;
#define STEP(LOAD, STORE, i, FIRST) STORE(scales + i, 1.0f / fast_sqrt(LOAD(variance + i) + epsilon))
    FAST_EACH(p->channels, STEP);
#undef STEP
}

/* y = (x - mean) * factor + shift. */
static void panel_normalize(const panel *p, const float *x, const float *means, const float *scales, const float *gain,
                            const float *shift, float *y)
{
    float mean[PANEL], factor[PANEL], add[PANEL];
    for (size_t i = 0; i < p->columns; i++) {
        size_t c = p->first + i / p->area;
        mean[i] = means[c];
        factor[i] = scales[c] * gain[c];
        add[i] = shift[c];
    }
    for (size_t b = 0; b < p->batch; b++, x += p->distance, y += p->distance) {
#define STEP(LOAD, STORE, i, first) \
    STORE(y + i, fast_fma(LOAD(x + i) - LOAD(mean + i), LOAD(factor + i), LOAD(add + i)))
        FAST_EACH(p->columns, STEP);
#undef STEP
    }
}

/* A pass of the loop is a panel of some rows. */
static void normalize_panels(const void *args, parallel_range range)
{
    const op_batch_normalize *p = args;
    const float *x = p->x.at;
    float *y = p->y.at;
    const size_t area = p->area, panels = panel_count(p->channels, area);
    for (size_t i = range.begin; i < range.end; i++) {
        size_t b = i / panels * PANEL_ROWS, first = i % panels * panel_channels(area);
        size_t rows = smaller(p->batch - b, PANEL_ROWS), at = (b * p->channels + first) * area;
        panel of = panel_of(first, rows, p->channels, area);
        panel_normalize(&of, x + at, p->means.at, p->scales.at, p->gain.at, p->shift.at, y + at);
    }
}

static void normalize_planes(const void *args, parallel_range range)
{
    const op_batch_normalize *p = args;
    const float *x = p->x.at, *means = p->means.at, *scales = p->scales.at, *gain = p->gain.at, *shift = p->shift.at;
    float *y = p->y.at;
    const size_t area = p->area;
    for (size_t plane = range.begin; plane < range.end; plane++) {
        size_t c = plane % p->channels;
        const float *from = x + plane * area;
        float *to = y + plane * area, mean = means[c];
        fast_vector factor = fast_repeat(scales[c] * gain[c]), add = fast_repeat(shift[c]);
#define STEP(LOAD, STORE, i, first) STORE(to + i, fast_fma(LOAD(from + i) - mean, factor, add))
        FAST_EACH(area, STEP);
#undef STEP
    }
}

void FAST(batch_normalize)(const kernel_run *run, const void *args)
{
    const op_batch_normalize *p = args;
    if (p->area == 0)
        return;
    int threads = fast_threads(run, p->batch * p->channels * p->area);
    if (p->area < FAST_LANES)
        parallel_static(threads, divide_up(p->batch, PANEL_ROWS) * panel_count(p->channels, p->area), normalize_panels,
                        p);
    else
        parallel_static(threads, p->batch * p->channels, normalize_planes, p);
}

/* The sums of dy, and of dy times x around its mean. */
typedef struct slopes {
    double sum, along;
} slopes;

static slopes channel_slopes(size_t batch, size_t area, size_t distance, const float *x, const float *dy, float mean)
{
    slopes all = {0, 0};
    for (size_t b = 0; b < batch; b++)
        for (size_t begin = 0; begin < area; begin += BLOCK) {
            const float *from = x + b * distance + begin, *by = dy + b * distance + begin;
            size_t count = smaller(area - begin, BLOCK), i = 0;
            fast_vector sum_a = {0}, sum_b = {0}, along_a = {0}, along_b = {0}, d;
            for (; i + 2 * FAST_LANES <= count; i += 2 * FAST_LANES) {
                d = fast_load(by + i);
                sum_a += d;
                along_a = fast_fma(d, fast_load(from + i) - mean, along_a);
                d = fast_load(by + i + FAST_LANES);
                sum_b += d;
                along_b = fast_fma(d, fast_load(from + i + FAST_LANES) - mean, along_b);
            }
            for (; i + FAST_LANES <= count; i += FAST_LANES) {
                d = fast_load(by + i);
                sum_a += d;
                along_a = fast_fma(d, fast_load(from + i) - mean, along_a);
            }
            if (i < count) {
                d = fast_load_part(by + i, count - i);
                sum_b += d;
                along_b = fast_fma(d, fast_load_part(from + i, count - i) - mean, along_b);
            }
            all.sum += (double)fast_sum_lanes(sum_a + sum_b);
            all.along += (double)fast_sum_lanes(along_a + along_b);
        }
    return all;
}

/* What a channel's gradient is made of: dx (+)= factor * dy + slope * (x - mean) + constant. */
typedef struct gradient {
    float mean, factor, slope, constant;
} gradient;

static void channel_gradient(size_t batch, size_t area, size_t distance, const float *x, const float *dy, gradient g,
                             float *dx, bool accumulate)
{
    const fast_vector factor = fast_repeat(g.factor), slope = fast_repeat(g.slope), constant = fast_repeat(g.constant);
    for (size_t b = 0; b < batch; b++) {
        const float *from = x + b * distance, *by = dy + b * distance;
        float *to = dx + b * distance;
#define VALUE(LOAD, i)             fast_fma(LOAD(by + i), factor, fast_fma(LOAD(from + i) - g.mean, slope, constant))
#define SET(LOAD, STORE, i, first) STORE(to + i, VALUE(LOAD, i))
#define ADD(LOAD, STORE, i, first) STORE(to + i, LOAD(to + i) + VALUE(LOAD, i))
        if (accumulate)
            FAST_EACH(area, ADD);
        else
            FAST_EACH(area, SET);
#undef VALUE
#undef SET
#undef ADD
    }
}

static void panel_gradient(const panel *p, const float *x, const float *dy, const gradient *of_channels, float *dx,
                           bool accumulate)
{
    float mean[PANEL], factor[PANEL], slope[PANEL], constant[PANEL];
    for (size_t i = 0; i < p->columns; i++) {
        gradient g = of_channels[i / p->area];
        mean[i] = g.mean;
        factor[i] = g.factor;
        slope[i] = g.slope;
        constant[i] = g.constant;
    }
    for (size_t b = 0; b < p->batch; b++, x += p->distance, dy += p->distance, dx += p->distance) {
#define VALUE(LOAD, i)                       \
    fast_fma(LOAD(dy + i), LOAD(factor + i), \
             fast_fma(LOAD(x + i) - LOAD(mean + i), LOAD(slope + i), LOAD(constant + i)))
#define SET(LOAD, STORE, i, first) STORE(dx + i, VALUE(LOAD, i))
#define ADD(LOAD, STORE, i, first) STORE(dx + i, LOAD(dx + i) + VALUE(LOAD, i))
        if (accumulate)
            FAST_EACH(p->columns, ADD);
        else
            FAST_EACH(p->columns, SET);
#undef VALUE
#undef SET
#undef ADD
    }
}

typedef struct parameters {
    const float *means, *scales, *gain;
    float *dgain, *dshift;
    bool accumulate;
} parameters;

static gradient parameters_set(const parameters *of, size_t c, slopes all, double count)
{
    double scale = (double)of->scales[c], factor = (double)of->gain[c] * scale;
    of->dgain[c] = (of->accumulate ? of->dgain[c] : 0) + (float)(all.along * scale);
    of->dshift[c] = (of->accumulate ? of->dshift[c] : 0) + (float)all.sum;
    return (gradient){of->means[c], (float)factor, (float)(-factor * scale * scale * all.along / count),
                      (float)(-factor * all.sum / count)};
}

static void panel_backward(const panel *p, const parameters *of, const float *x, const float *dy, float *dx,
                           bool accumulate)
{
    double sums[PANEL], alongs[PANEL], count = (double)p->batch * (double)p->area;
    float mean[PANEL];
    gradient all[PANEL];
    for (size_t i = 0; i < p->columns; i++)
        mean[i] = of->means[p->first + i / p->area];
    panel_slopes(p, x, dy, mean, sums, alongs);
    for (size_t c = 0; c < p->channels; c++) {
        slopes both = {panel_channel_sum(p, c, sums), panel_channel_sum(p, c, alongs)};
        all[c] = parameters_set(of, p->first + c, both, count);
    }
    if (dx)
        panel_gradient(p, x, dy, all, dx, accumulate);
}

static parameters parameters_of(const op_batch_normalize_backward *p)
{
    return (parameters){p->means.at, p->scales.at, p->gain.at, p->dgain.at, p->dshift.at, p->accumulate_parameters};
}

static void backward_panels(const void *args, parallel_range range)
{
    const op_batch_normalize_backward *p = args;
    const parameters parameter = parameters_of(p);
    const float *x = p->x.at, *dy = p->dy.at;
    float *dx = p->dx.at;
    for (size_t i = range.begin; i < range.end; i++) {
        size_t first = i * panel_channels(p->area), at = first * p->area;
        panel of = panel_of(first, p->batch, p->channels, p->area);
        panel_backward(&of, &parameter, x + at, dy + at, dx ? dx + at : dx, p->accumulate);
    }
}

static void backward_channels(const void *args, parallel_range range)
{
    const op_batch_normalize_backward *p = args;
    const parameters parameter = parameters_of(p);
    const float *x = p->x.at, *dy = p->dy.at;
    float *dx = p->dx.at;
    const size_t batch = p->batch, area = p->area, distance = p->channels * area;
    for (size_t c = range.begin; c < range.end; c++) {
        size_t at = c * area;
        slopes all = channel_slopes(batch, area, distance, x + at, dy + at, parameter.means[c]);
        gradient g = parameters_set(&parameter, c, all, (double)batch * (double)area);
        if (dx)
            channel_gradient(batch, area, distance, x + at, dy + at, g, dx + at, p->accumulate);
    }
}

void FAST(batch_normalize_backward)(const kernel_run *run, const void *args)
{
    const op_batch_normalize_backward *p = args;
    if (p->batch == 0 || p->area == 0)
        return;
    int threads = fast_threads(run, p->batch * p->channels * p->area);
    if (p->area < FAST_LANES)
        parallel_static(threads, panel_count(p->channels, p->area), backward_panels, p);
    else
        parallel_static(threads, p->channels, backward_channels, p);
}
