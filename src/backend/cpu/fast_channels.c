/* Channels of images: a bias, and its gradient. */
#include "backend/cpu/fast_math.h"

static void add_planes(const void *args, parallel_range range)
{
    const op_add_to_channels *p = args;
    const float *addend = p->addend.at;
    const size_t area = p->area;
    for (size_t plane = range.begin; plane < range.end; plane++) {
        float *y = (float *)p->y.at + plane * area;
        fast_vector by = fast_repeat(addend[plane % p->channels]);
#define STEP(LOAD, STORE, i, FIRST) STORE(y + i, LOAD(y + i) + by)
        FAST_EACH(area, STEP);
#undef STEP
    }
}

void FAST(add_to_channels)(const kernel_run *run, const void *args)
{
    const op_add_to_channels *p = args;
    size_t planes = p->batch * p->channels;
    parallel_static(fast_threads(run, planes * p->area), planes, add_planes, p);
}

/* The planes of a channel are added in the order of the images. */
static void sum_channels(const void *args, parallel_range range)
{
    const op_channel_sums *p = args;
    const float *x = p->x.at;
    float *sums = p->sums.at;
    const size_t area = p->area;
    for (size_t c = range.begin; c < range.end; c++) {
        double sum = 0;
        for (size_t image = 0; image < p->batch; image++) {
            const float *from = x + (image * p->channels + c) * area;
            fast_vector lanes = {0};
#define STEP(LOAD, STORE, i, FIRST) lanes += LOAD(from + i)
            FAST_EACH(area, STEP);
#undef STEP
            sum += (double)fast_sum_lanes(lanes);
        }
        sums[c] = (p->accumulate ? sums[c] : 0) + (float)sum;
    }
}

void FAST(channel_sums)(const kernel_run *run, const void *args)
{
    const op_channel_sums *p = args;
    parallel_static(fast_threads(run, p->batch * p->channels * p->area), p->channels, sum_channels, p);
}
