/* Batch normalisation: channels spread over threads, each in blocks of values in a fixed order. A block is small enough
 * to be read twice from the nearest cache: its mean first, then the squares around it, which loses no digits. Blocks
 * are put together in double. */
#include "kernels/fast_math.h"

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
        a += off * off;
        off = fast_load(x + i + FAST_LANES) - centre;
        b += off * off;
    }
    for (; i + FAST_LANES <= count; i += FAST_LANES) {
        off = fast_load(x + i) - centre;
        a += off * off;
    }
    if (i < count) {
        off = fast_first(fast_load_part(x + i, count - i) - centre, count - i);
        b += off * off;
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
    return (moments){count, a.mean + apart * (b.count / count),
                     a.squares + b.squares + apart * apart * (a.count * b.count / count)};
}

static moments channel_moments(size_t batch, size_t area, size_t distance, const float *x)
{
    moments all = {0, 0, 0};
    for (size_t b = 0; b < batch; b++)
        for (size_t i = 0; i < area; i += BLOCK) {
            const float *from = x + b * distance + i;
            size_t count = area - i < BLOCK ? area - i : BLOCK;
            float mean = block_sum(from, count) / (float)count;
            moments block = {(double)count, mean, block_squares(from, count, mean)};
            all = join(all, block);
        }
    return all;
}

/* With few values of a channel side by side: plain sums in double. */
static moments scattered_moments(size_t batch, size_t area, size_t distance, const float *x)
{
    moments all = {(double)batch * (double)area, 0, 0};
    for (size_t b = 0; b < batch; b++)
        for (size_t i = 0; i < area; i++)
            all.mean += x[b * distance + i];
    all.mean /= all.count;
    for (size_t b = 0; b < batch; b++)
        for (size_t i = 0; i < area; i++) {
            double off = x[b * distance + i] - all.mean;
            all.squares += off * off;
        }
    return all;
}

void FAST(batch_statistics)(const kernel_run *run, size_t batch, size_t channels, size_t area, float epsilon,
                            const float *x, float *means, float *scales, float momentum, float *running_mean,
                            float *running_variance)
{
    if (batch == 0 || area == 0)
        return;
    int threads = fast_threads(run, batch * channels * area);
#pragma omp parallel for num_threads(threads)
    for (size_t c = 0; c < channels; c++) {
        size_t distance = channels * area;
        moments all = area < FAST_LANES ? scattered_moments(batch, area, distance, x + c * area)
                                        : channel_moments(batch, area, distance, x + c * area);
        means[c] = (float)all.mean;
        scales[c] = (float)(1 / sqrt(all.squares / all.count + (double)epsilon));
        if (running_mean && running_variance) {
            double unbiased = all.count > 1 ? all.squares / (all.count - 1) : 0;
            running_mean[c] += momentum * ((float)all.mean - running_mean[c]);
            running_variance[c] += momentum * ((float)unbiased - running_variance[c]);
        }
    }
}

void FAST(batch_normalize)(const kernel_run *run, size_t batch, size_t channels, size_t area, const float *x,
                           const float *means, const float *scales, const float *gain, const float *shift, float *y)
{
    int threads = fast_threads(run, batch * channels * area);
#pragma omp parallel for num_threads(threads)
    for (size_t plane = 0; plane < batch * channels; plane++) {
        size_t c = plane % channels;
        const float *from = x + plane * area;
        float *to = y + plane * area, mean = means[c], factor = scales[c] * gain[c], add = shift[c];
#define STEP(LOAD, STORE, i, first) STORE(to + i, (LOAD(from + i) - mean) * factor + add)
        FAST_EACH(area, STEP);
#undef STEP
    }
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
            size_t count = area - begin < BLOCK ? area - begin : BLOCK, i = 0;
            fast_vector sum_a = {0}, sum_b = {0}, along_a = {0}, along_b = {0}, d;
            for (; i + 2 * FAST_LANES <= count; i += 2 * FAST_LANES) {
                d = fast_load(by + i);
                sum_a += d;
                along_a += d * (fast_load(from + i) - mean);
                d = fast_load(by + i + FAST_LANES);
                sum_b += d;
                along_b += d * (fast_load(from + i + FAST_LANES) - mean);
            }
            for (; i + FAST_LANES <= count; i += FAST_LANES) {
                d = fast_load(by + i);
                sum_a += d;
                along_a += d * (fast_load(from + i) - mean);
            }
            if (i < count) {
                d = fast_load_part(by + i, count - i);
                sum_b += d;
                along_b += d * (fast_load_part(from + i, count - i) - mean);
            }
            all.sum += (double)fast_sum_lanes(sum_a + sum_b);
            all.along += (double)fast_sum_lanes(along_a + along_b);
        }
    return all;
}

static slopes scattered_slopes(size_t batch, size_t area, size_t distance, const float *x, const float *dy, float mean)
{
    slopes all = {0, 0};
    for (size_t b = 0; b < batch; b++)
        for (size_t i = 0; i < area; i++) {
            all.sum += dy[b * distance + i];
            all.along += (double)dy[b * distance + i] * (double)(x[b * distance + i] - mean);
        }
    return all;
}

/* dx (+)= factor * dy + slope * (x - mean) + constant, for one channel. */
static void channel_gradient(size_t batch, size_t area, size_t distance, const float *x, const float *dy, float mean,
                             float factor, float slope, float constant, float *dx, bool accumulate)
{
    for (size_t b = 0; b < batch; b++) {
        const float *from = x + b * distance, *by = dy + b * distance;
        float *to = dx + b * distance;
#define VALUE(LOAD, i)             (LOAD(by + i) * factor + ((LOAD(from + i) - mean) * slope + constant))
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

void FAST(batch_normalize_backward)(const kernel_run *run, size_t batch, size_t channels, size_t area, const float *x,
                                    const float *means, const float *scales, const float *gain, const float *dy,
                                    float *dx, bool accumulate, float *dgain, float *dshift, bool accumulate_parameters)
{
    if (batch == 0 || area == 0)
        return;
    int threads = fast_threads(run, batch * channels * area);
#pragma omp parallel for num_threads(threads)
    for (size_t c = 0; c < channels; c++) {
        size_t distance = channels * area, at = c * area;
        slopes all = area < FAST_LANES ? scattered_slopes(batch, area, distance, x + at, dy + at, means[c])
                                       : channel_slopes(batch, area, distance, x + at, dy + at, means[c]);
        double count = (double)batch * (double)area, scale = (double)scales[c], factor = (double)gain[c] * scale;
        if (dx)
            channel_gradient(batch, area, distance, x + at, dy + at, means[c], (float)factor,
                             (float)(-factor * scale * scale * all.along / count), (float)(-factor * all.sum / count),
                             dx + at, accumulate);
        dgain[c] = (accumulate_parameters ? dgain[c] : 0) + (float)(all.along * scale);
        dshift[c] = (accumulate_parameters ? dshift[c] : 0) + (float)all.sum;
    }
}
