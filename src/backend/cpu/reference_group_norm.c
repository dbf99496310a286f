/* Group normalisation, straight from its definition. */
#include "backend/cpu/reference.h"

#include <tgmath.h>

/* The values of a group of channels of one image lie one behind the other. */
static void normalize_groups(const void *args, parallel_range range)
{
    const op_group_normalize *p = args;
    const size_t channels = p->channels / p->groups, count = channels * p->area;
    const real *gain = p->gain.at, *shift = p->shift.at;
    real *means = p->means.at, *scales = p->scales.at;
    for (size_t row = range.begin; row < range.end; row++) {
        const real *x = (const real *)p->x.at + row * count;
        double mean = 0, variance = 0;
        for (size_t i = 0; i < count; i++)
            mean += (double)x[i];
        mean /= (double)count;
        for (size_t i = 0; i < count; i++)
            variance += ((double)x[i] - mean) * ((double)x[i] - mean);
        real scale = (real)(1 / sqrt(variance / (double)count + p->epsilon));
        for (size_t i = 0; p->y.at && i < count; i++) {
            size_t c = row % p->groups * channels + i / p->area;
            ((real *)p->y.at)[row * count + i] =
                (x[i] - (real)mean) * scale * (gain ? gain[c] : 1) + (shift ? shift[c] : 0);
        }
        means[row] = (real)mean;
        scales[row] = scale;
    }
}

void REFERENCE(group_normalize)(const kernel_run *run, const void *args)
{
    const op_group_normalize *p = args;
    if (p->channels && p->area)
        parallel_static(run->threads, p->batch * p->groups, normalize_groups, p);
}

/* With the normalised n = (x - mean) * scale and g = dy * gain:
 *     dx = scale * (g - average(g) - n * average(g * n)),  dgain = sum of dy * n,  dshift = sum of dy. */
static void parameter_gradients(const op_group_normalize_backward *p)
{
    const size_t channels = p->channels / p->groups;
    const real *means = p->means.at, *scales = p->scales.at;
    real *dgain = p->dgain.at, *dshift = p->dshift.at;
    for (size_t c = 0; c < p->channels; c++) {
        double along = 0, sum = 0;
        for (size_t image = 0; image < p->batch; image++) {
            size_t row = image * p->groups + c / channels, from = (image * p->channels + c) * p->area;
            const real *x = (const real *)p->x.at + from, *dy = (const real *)p->dy.at + from;
            for (size_t i = 0; i < p->area; i++) {
                along += (double)dy[i] * ((double)x[i] - (double)means[row]) * (double)scales[row];
                sum += (double)dy[i];
            }
        }
        dgain[c] = (real)((p->accumulate_parameters ? (double)dgain[c] : 0) + along);
        dshift[c] = (real)((p->accumulate_parameters ? (double)dshift[c] : 0) + sum);
    }
}

static void input_gradients(const void *args, parallel_range range)
{
    const op_group_normalize_backward *p = args;
    const size_t channels = p->channels / p->groups, count = channels * p->area;
    const real *gain = p->gain.at;
    for (size_t row = range.begin; row < range.end; row++) {
        const real *x = (const real *)p->x.at + row * count, *dy = (const real *)p->dy.at + row * count;
        real *dx = (real *)p->dx.at + row * count;
        const double mean = (double)((const real *)p->means.at)[row], scale = (double)((const real *)p->scales.at)[row];
        double average = 0, slope = 0;
        for (int pass = 0; pass < 2; pass++)
            for (size_t i = 0; i < count; i++) {
                size_t c = row % p->groups * channels + i / p->area;
                double g = (double)dy[i] * (gain ? (double)gain[c] : 1), n = ((double)x[i] - mean) * scale;
                if (pass == 0) {
                    average += g / (double)count;
                    slope += g * n / (double)count;
                } else {
                    dx[i] = (real)((p->accumulate ? (double)dx[i] : 0) + scale * (g - average - n * slope));
                }
            }
    }
}

void REFERENCE(group_normalize_backward)(const kernel_run *run, const void *args)
{
    const op_group_normalize_backward *p = args;
    if (!p->channels || !p->area)
        return;
    if (p->dgain.at)
        parameter_gradients(p); /* first, because dx may overlap dy */
    if (p->dx.at)
        parallel_static(run->threads, p->batch * p->groups, input_gradients, p);
}
