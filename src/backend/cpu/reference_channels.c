/* Sums over the channels of images, in double. */
#include "backend/cpu/reference.h"

void REFERENCE(add_to_channels)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_add_to_channels *p = args;
    const real *addend = p->addend.at;
    real *y = p->y.at;
    for (size_t plane = 0; plane < p->batch * p->channels; plane++)
        for (size_t i = 0; i < p->area; i++)
            y[plane * p->area + i] += addend[plane % p->channels];
}

static void sum_channels(const void *args, parallel_range range)
{
    const op_channel_sums *p = args;
    const real *x = p->x.at;
    real *sums = p->sums.at;
    for (size_t c = range.begin; c < range.end; c++) {
        double sum = 0;
        for (size_t image = 0; image < p->batch; image++)
            for (size_t i = 0; i < p->area; i++)
                sum += (double)x[(image * p->channels + c) * p->area + i];
        sums[c] = (real)((p->accumulate ? (double)sums[c] : 0) + sum);
    }
}

void REFERENCE(channel_sums)(const kernel_run *run, const void *args)
{
    const op_channel_sums *p = args;
    parallel_static(run->threads, p->channels, sum_channels, p);
}
