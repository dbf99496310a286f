/* Batch normalisation, straight from its definition. */
#include "backend/cpu/reference.h"

#include <math.h>

void reference_batch_statistics(const kernel_run *run, size_t batch, size_t channels, size_t area, real epsilon,
                                const real *x, real *means, real *scales, real momentum, real *running_mean,
                                real *running_variance)
{
    (void)run;
    double count = (double)batch * (double)area;
    if (count == 0)
        return;
    for (size_t c = 0; c < channels; c++) {
        double sum = 0, squares = 0;
        for (size_t b = 0; b < batch; b++)
            for (size_t i = 0; i < area; i++)
                sum += x[(b * channels + c) * area + i];
        double mean = sum / count;
        for (size_t b = 0; b < batch; b++)
            for (size_t i = 0; i < area; i++) {
                double off = x[(b * channels + c) * area + i] - mean;
                squares += off * off;
            }
        means[c] = (real)mean;
        scales[c] = (real)(1 / sqrt(squares / count + epsilon));
        if (!running_mean || !running_variance)
            continue;
        double unbiased = count > 1 ? squares / (count - 1) : 0;
        running_mean[c] += momentum * ((real)mean - running_mean[c]);
        running_variance[c] += momentum * ((real)unbiased - running_variance[c]);
    }
}

void reference_batch_normalize(const kernel_run *run, size_t batch, size_t channels, size_t area, const real *x,
                               const real *means, const real *scales, const real *gain, const real *shift, real *y)
{
    (void)run;
    for (size_t b = 0; b < batch; b++)
        for (size_t c = 0; c < channels; c++)
            for (size_t i = 0; i < area; i++) {
                size_t at = (b * channels + c) * area + i;
                y[at] = (x[at] - means[c]) * scales[c] * gain[c] + shift[c];
            }
}

void reference_batch_normalize_backward(const kernel_run *run, size_t batch, size_t channels, size_t area,
                                        const real *x, const real *means, const real *scales, const real *gain,
                                        const real *dy, real *dx, bool accumulate, real *dgain, real *dshift,
                                        bool accumulate_parameters)
{
    (void)run;
    double count = (double)batch * (double)area;
    if (count == 0)
        return;
    for (size_t c = 0; c < channels; c++) {
        double sum = 0, along = 0; /* of dy, and of dy times the normalised x */
        for (size_t b = 0; b < batch; b++)
            for (size_t i = 0; i < area; i++) {
                size_t at = (b * channels + c) * area + i;
                sum += dy[at];
                along += (double)dy[at] * ((double)x[at] - means[c]) * scales[c];
            }
        for (size_t b = 0; b < (dx ? batch : 0); b++)
            for (size_t i = 0; i < area; i++) {
                size_t at = (b * channels + c) * area + i;
                real normal = (x[at] - means[c]) * scales[c];
                real d = gain[c] * scales[c] * (dy[at] - (real)(sum / count) - normal * (real)(along / count));
                dx[at] = accumulate ? dx[at] + d : d;
            }
        dgain[c] = (accumulate_parameters ? dgain[c] : 0) + (real)along;
        dshift[c] = (accumulate_parameters ? dshift[c] : 0) + (real)sum;
    }
}
