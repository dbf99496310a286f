/* Batch normalisation, straight from its definition. */
#include "backend/cpu/reference.h"

#include <tgmath.h>

void REFERENCE(batch_statistics)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_batch_statistics *p = args;
    const size_t channels = p->channels, area = p->area;
    const real epsilon = (real)p->epsilon, momentum = (real)p->momentum, *x = p->x.at;
    real *means = p->means.at, *scales = p->scales.at;
    real *running_mean = p->running_mean.at, *running_variance = p->running_variance.at;
    double count = (double)p->batch * (double)area;
    if (count == 0)
        return;
    for (size_t c = 0; c < channels; c++) {
        double sum = 0, squares = 0;
        for (size_t b = 0; b < p->batch; b++)
            for (size_t i = 0; i < area; i++)
                sum += x[(b * channels + c) * area + i];
        double mean = sum / count;
        for (size_t b = 0; b < p->batch; b++)
            for (size_t i = 0; i < area; i++) {
                double off = x[(b * channels + c) * area + i] - mean;
                squares += off * off;
            }
        means[c] = (real)mean;
        scales[c] = (real)(1 / sqrt(squares / count + epsilon));
        double unbiased = count > 1 ? squares / (count - 1) : 0;
        if (!running_mean || !running_variance || !isfinite((real)unbiased))
            continue;
        running_mean[c] += momentum * ((real)mean - running_mean[c]);
        running_variance[c] += momentum * ((real)unbiased - running_variance[c]);
    }
}

void REFERENCE(batch_scales)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_batch_scales *p = args;
    const real *variance = p->variance.at;
    real *scales = p->scales.at;
    for (size_t c = 0; c < p->channels; c++)
        scales[c] = 1 / sqrt(variance[c] + (real)p->epsilon);
}

void REFERENCE(batch_normalize)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_batch_normalize *p = args;
    const real *x = p->x.at, *means = p->means.at, *scales = p->scales.at, *gain = p->gain.at, *shift = p->shift.at;
    real *y = p->y.at;
    for (size_t b = 0; b < p->batch; b++)
        for (size_t c = 0; c < p->channels; c++)
            for (size_t i = 0; i < p->area; i++) {
                size_t at = (b * p->channels + c) * p->area + i;
                y[at] = (x[at] - means[c]) * scales[c] * gain[c] + shift[c];
            }
}

void REFERENCE(batch_normalize_backward)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_batch_normalize_backward *p = args;
    const size_t channels = p->channels, area = p->area;
    const real *x = p->x.at, *means = p->means.at, *scales = p->scales.at, *gain = p->gain.at, *dy = p->dy.at;
    real *dx = p->dx.at, *dgain = p->dgain.at, *dshift = p->dshift.at;
    double count = (double)p->batch * (double)area;
    if (count == 0)
        return;
    for (size_t c = 0; c < channels; c++) {
        double sum = 0, along = 0; /* of dy, and of dy times the normalised x */
        for (size_t b = 0; b < p->batch; b++)
            for (size_t i = 0; i < area; i++) {
                size_t at = (b * channels + c) * area + i;
                sum += dy[at];
                along += (double)dy[at] * ((double)x[at] - means[c]) * scales[c];
            }
        for (size_t b = 0; b < (dx ? p->batch : 0); b++)
            for (size_t i = 0; i < area; i++) {
                size_t at = (b * channels + c) * area + i;
                real normal = (x[at] - means[c]) * scales[c];
                real d = gain[c] * scales[c] * (dy[at] - (real)(sum / count) - normal * (real)(along / count));
                dx[at] = p->accumulate ? dx[at] + d : d;
            }
        dgain[c] = (p->accumulate_parameters ? dgain[c] : 0) + (real)along;
        dshift[c] = (p->accumulate_parameters ? dshift[c] : 0) + (real)sum;
    }
}
