/* Group normalisation. A pass of the loops is a group of channels of one image; its values lie one behind the other.
 * reference_group_norm.c has the formulas. */
#include "backend/cpu/fast_math.h"

static void normalize_groups(const void *args, parallel_range range)
{
    const op_group_normalize *p = args;
    const size_t channels = p->channels / p->groups, area = p->area, count = channels * area;
    const float *gain = p->gain.at, *shift = p->shift.at;
    float *means = p->means.at, *scales = p->scales.at;
    for (size_t row = range.begin; row < range.end; row++) {
        const float *x = (const float *)p->x.at + row * count;
        fast_vector sum = {0}, squares = {0};
#define STEP(LOAD, STORE, i, FIRST) sum += LOAD(x + i)
        FAST_EACH(count, STEP);
#undef STEP
        float mean = fast_sum_lanes(sum) / (float)count;
#define STEP(LOAD, STORE, i, FIRST)                          \
    do {                                                     \
        fast_vector difference = FIRST(LOAD(x + i) - mean);  \
        squares = fast_fma(difference, difference, squares); \
    } while (0)
        FAST_EACH(count, STEP);
#undef STEP
        float scale = 1.0f / sqrtf(fast_sum_lanes(squares) / (float)count + (float)p->epsilon);
        means[row] = mean;
        scales[row] = scale;
        for (size_t k = 0; p->y.at && k < channels; k++) {
            size_t c = row % p->groups * channels + k;
            const float *from = x + k * area;
            float *to = (float *)p->y.at + row * count + k * area;
            fast_vector by = fast_repeat(gain ? gain[c] * scale : scale), add = fast_repeat(shift ? shift[c] : 0);
#define STEP(LOAD, STORE, i, FIRST) STORE(to + i, fast_fma(LOAD(from + i) - mean, by, add))
            FAST_EACH(area, STEP);
#undef STEP
        }
    }
}

void FAST(group_normalize)(const kernel_run *run, const void *args)
{
    const op_group_normalize *p = args;
    size_t values = p->channels * p->area;
    if (values)
        parallel_static(fast_threads(run, p->batch * values), p->batch * p->groups, normalize_groups, p);
}

/* The sums of dy, and of dy times the normalised x, over one plane. */
typedef struct plane_sums {
    float plain, along;
} plane_sums;

static plane_sums sum_plane(size_t area, const float *x, const float *dy, float mean, float scale)
{
    fast_vector plain = {0}, along = {0};
#define STEP(LOAD, STORE, i, FIRST)                               \
    do { /* dy is 0 beyond the end */                             \
        fast_vector d = LOAD(dy + i);                             \
        plain += d;                                               \
        along = fast_fma(d, (LOAD(x + i) - mean) * scale, along); \
    } while (0)
    FAST_EACH(area, STEP);
#undef STEP
    return (plane_sums){fast_sum_lanes(plain), fast_sum_lanes(along)};
}

static void write_plane(const op_group_normalize_backward *p, size_t at, float gain, float mean, float scale,
                        float average, float slope)
{
    const float *x = (const float *)p->x.at + at, *dy = (const float *)p->dy.at + at;
    float *dx = (float *)p->dx.at + at;
#define GRADIENT(LOAD, i) \
    (fast_fnma((LOAD(x + i) - mean) * scale, fast_repeat(slope), LOAD(dy + i) * gain - average) * scale)
    if (p->accumulate) {
#define STEP(LOAD, STORE, i, FIRST) STORE(dx + i, LOAD(dx + i) + GRADIENT(LOAD, i))
        FAST_EACH(p->area, STEP);
#undef STEP
    } else {
#define STEP(LOAD, STORE, i, FIRST) STORE(dx + i, GRADIENT(LOAD, i))
        FAST_EACH(p->area, STEP);
#undef STEP
    }
#undef GRADIENT
}

static void backward_groups(const void *args, parallel_range range)
{
    const op_group_normalize_backward *p = args;
    const size_t channels = p->channels / p->groups, area = p->area;
    const float *gain = p->gain.at, *means = p->means.at, *scales = p->scales.at;
    for (size_t row = range.begin; row < range.end; row++) {
        plane_sums *sums = (plane_sums *)p->workspace.at + row * channels;
        const size_t first = row % p->groups * channels;
        float average = 0, slope = 0, count = (float)(channels * area);
        for (size_t k = 0; k < channels; k++) {
            size_t at = (row * channels + k) * area;
            sums[k] =
                sum_plane(area, (const float *)p->x.at + at, (const float *)p->dy.at + at, means[row], scales[row]);
            average += (gain ? gain[first + k] : 1) * sums[k].plain;
            slope += (gain ? gain[first + k] : 1) * sums[k].along;
        }
        for (size_t k = 0; p->dx.at && k < channels; k++)
            write_plane(p, (row * channels + k) * area, gain ? gain[first + k] : 1, means[row], scales[row],
                        average / count, slope / count);
    }
}

/* The sums of the planes of a channel, in the order of the images. */
static void add_parameter_gradients(const op_group_normalize_backward *p)
{
    const plane_sums *sums = p->workspace.at;
    float *dgain = p->dgain.at, *dshift = p->dshift.at;
    for (size_t c = 0; c < p->channels; c++) {
        double along = 0, plain = 0;
        for (size_t image = 0; image < p->batch; image++) {
            along += (double)sums[image * p->channels + c].along;
            plain += (double)sums[image * p->channels + c].plain;
        }
        dgain[c] = (p->accumulate_parameters ? dgain[c] : 0) + (float)along;
        dshift[c] = (p->accumulate_parameters ? dshift[c] : 0) + (float)plain;
    }
}

void FAST(group_normalize_backward)(const kernel_run *run, const void *args)
{
    const op_group_normalize_backward *p = args;
    size_t values = p->channels * p->area;
    if (!values)
        return;
    parallel_static(fast_threads(run, p->batch * values), p->batch * p->groups, backward_groups, p);
    if (p->dgain.at)
        add_parameter_gradients(p);
}
