/* Batch and group normalisation: a block for each channel, or for each group of an image. Sums are in double. */
#include "backend/cuda/cuda_device.cuh"

enum { STAT_THREADS = 512 };

/* Where value i of a channel is; i runs over the batch. */
static __device__ __forceinline__ size_t place_of(size_t i, size_t channel, size_t channels, size_t area)
{
    return (i / area * channels + channel) * area + i % area;
}

__global__ void find_statistics(op_batch_statistics p)
{
    const size_t c = blockIdx.x, count = p.batch * p.area;
    double sum = 0, squares = 0;
    for (size_t i = threadIdx.x; i < count; i += STAT_THREADS)
        sum += get(p.x, place_of(i, c, p.channels, p.area));
    const double mean = block_sum<STAT_THREADS>(sum) / (double)count;
    for (size_t i = threadIdx.x; i < count; i += STAT_THREADS) {
        const double off = get(p.x, place_of(i, c, p.channels, p.area)) - mean;
        squares += off * off;
    }
    squares = block_sum<STAT_THREADS>(squares);
    if (threadIdx.x != 0)
        return;
    put(p.means, c, (float)mean);
    put(p.scales, c, (float)(1 / sqrt(squares / (double)count + p.epsilon)));
    const float unbiased = (float)(count > 1 ? squares / (double)(count - 1) : 0), momentum = (float)p.momentum;
    if (!p.running_mean.at || !p.running_variance.at || !isfinite(unbiased))
        return;
    const float old_mean = get(p.running_mean, c), old_variance = get(p.running_variance, c);
    put(p.running_mean, c, __fadd_rn(old_mean, __fmul_rn(momentum, (float)mean - old_mean)));
    put(p.running_variance, c, __fadd_rn(old_variance, __fmul_rn(momentum, unbiased - old_variance)));
}

cudaError_t cuda_batch_statistics(const cuda_run *run, const op_batch_statistics *p)
{
    if (p->channels && p->batch && p->area)
        find_statistics<<<(unsigned)p->channels, STAT_THREADS, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

__global__ void find_scales(op_batch_scales p)
{
    const size_t c = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (c < p.channels)
        put(p.scales, c, 1 / sqrtf(get(p.variance, c) + (float)p.epsilon));
}

cudaError_t cuda_batch_scales(const cuda_run *run, const op_batch_scales *p)
{
    if (p->channels)
        find_scales<<<blocks_for(p->channels, 256), 256, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

__global__ void normalize_channels(op_batch_normalize p, size_t count)
{
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const size_t c = i / p.area % p.channels;
        put(p.y, i, (get(p.x, i) - get(p.means, c)) * get(p.scales, c) * get(p.gain, c) + get(p.shift, c));
    }
}

cudaError_t cuda_batch_normalize(const cuda_run *run, const op_batch_normalize *p)
{
    const size_t count = p->batch * p->channels * p->area;
    if (count)
        normalize_channels<<<blocks_for(count, 256), 256, 0, run->stream>>>(*p, count);
    return cudaGetLastError();
}

__global__ void derive_channels(op_batch_normalize_backward p)
{
    const size_t c = blockIdx.x, count = p.batch * p.area;
    const float mean = get(p.means, c), scale = get(p.scales, c), gain = get(p.gain, c);
    double sum = 0, along = 0;
    for (size_t i = threadIdx.x; i < count; i += STAT_THREADS) {
        const size_t at = place_of(i, c, p.channels, p.area);
        const double dy = get(p.dy, at);
        sum += dy;
        along += dy * ((double)get(p.x, at) - mean) * scale;
    }
    sum = block_sum<STAT_THREADS>(sum);
    along = block_sum<STAT_THREADS>(along);
    const float average = (float)(sum / (double)count), slope = (float)(along / (double)count);
    if (p.dx.at)
        for (size_t i = threadIdx.x; i < count; i += STAT_THREADS) {
            const size_t at = place_of(i, c, p.channels, p.area);
            const float n = (get(p.x, at) - mean) * scale, value = gain * scale * (get(p.dy, at) - average - n * slope);
            put(p.dx, at, p.accumulate ? get(p.dx, at) + value : value);
        }
    if (threadIdx.x != 0)
        return;
    if (p.dgain.at)
        put(p.dgain, c, (p.accumulate_parameters ? get(p.dgain, c) : 0) + (float)along);
    if (p.dshift.at)
        put(p.dshift, c, (p.accumulate_parameters ? get(p.dshift, c) : 0) + (float)sum);
}

cudaError_t cuda_batch_normalize_backward(const cuda_run *run, const op_batch_normalize_backward *p)
{
    if (p->channels && p->batch && p->area)
        derive_channels<<<(unsigned)p->channels, STAT_THREADS, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

/* ---- groups: their values follow each other ---- */

__global__ void normalize_groups(op_group_normalize p)
{
    const size_t row = blockIdx.x, channels = p.channels / p.groups, count = channels * p.area, from = row * count;
    double sum = 0, squares = 0;
    for (size_t i = threadIdx.x; i < count; i += STAT_THREADS)
        sum += get(p.x, from + i);
    const double mean = block_sum<STAT_THREADS>(sum) / (double)count;
    for (size_t i = threadIdx.x; i < count; i += STAT_THREADS) {
        const double off = get(p.x, from + i) - mean;
        squares += off * off;
    }
    const float scale = (float)(1 / sqrt(block_sum<STAT_THREADS>(squares) / (double)count + p.epsilon));
    if (p.y.at)
        for (size_t i = threadIdx.x; i < count; i += STAT_THREADS) {
            const size_t c = row % p.groups * channels + i / p.area;
            put(p.y, from + i,
                (get(p.x, from + i) - (float)mean) * scale * (p.gain.at ? get(p.gain, c) : 1) +
                    (p.shift.at ? get(p.shift, c) : 0));
        }
    if (threadIdx.x != 0)
        return;
    put(p.means, row, (float)mean);
    put(p.scales, row, scale);
}

cudaError_t cuda_group_normalize(const cuda_run *run, const op_group_normalize *p)
{
    if (p->channels && p->area && p->batch)
        normalize_groups<<<(unsigned)(p->batch * p->groups), STAT_THREADS, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

/* Two sums for each plane: of dy times the normalised x, and of dy. */
uint64_t cuda_group_normalize_backward_workspace(const op_group_normalize_backward *p)
{
    return 2 * p->batch * p->channels * sizeof(float);
}

enum { PLANE_THREADS = 128 };

__global__ void sum_planes(op_group_normalize_backward p)
{
    const size_t plane = blockIdx.x, channels = p.channels / p.groups, from = plane * p.area;
    const size_t row = plane / p.channels * p.groups + plane % p.channels / channels;
    const double mean = get(p.means, row), scale = get(p.scales, row);
    double along = 0, sum = 0;
    for (size_t i = threadIdx.x; i < p.area; i += PLANE_THREADS) {
        const double dy = get(p.dy, from + i);
        along += dy * ((double)get(p.x, from + i) - mean) * scale;
        sum += dy;
    }
    along = block_sum<PLANE_THREADS>(along);
    sum = block_sum<PLANE_THREADS>(sum);
    float *sums = (float *)p.workspace.at + 2 * plane;
    if (threadIdx.x == 0)
        sums[0] = (float)along, sums[1] = (float)sum;
}

__global__ void derive_groups(op_group_normalize_backward p)
{
    const size_t row = blockIdx.x, channels = p.channels / p.groups, count = channels * p.area, from = row * count;
    const float *sums = (const float *)p.workspace.at + 2 * row * channels;
    const float mean = get(p.means, row), scale = get(p.scales, row);
    double average = 0, slope = 0;
    for (size_t k = 0; k < channels; k++) { /* few: every thread adds them in the same order */
        const float gain = p.gain.at ? get(p.gain, row % p.groups * channels + k) : 1;
        slope += (double)gain * sums[2 * k];
        average += (double)gain * sums[2 * k + 1];
    }
    const float by_average = (float)(average / (double)count), by_slope = (float)(slope / (double)count);
    for (size_t i = threadIdx.x; i < count; i += STAT_THREADS) {
        const float gain = p.gain.at ? get(p.gain, row % p.groups * channels + i / p.area) : 1;
        const float n = (get(p.x, from + i) - mean) * scale;
        const float value = scale * (get(p.dy, from + i) * gain - by_average - n * by_slope);
        put(p.dx, from + i, p.accumulate ? get(p.dx, from + i) + value : value);
    }
}

__global__ void add_planes(op_group_normalize_backward p)
{
    const size_t c = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const float *sums = (const float *)p.workspace.at;
    if (c >= p.channels)
        return;
    double along = 0, sum = 0;
    for (size_t image = 0; image < p.batch; image++) {
        along += sums[2 * (image * p.channels + c)];
        sum += sums[2 * (image * p.channels + c) + 1];
    }
    put(p.dgain, c, (float)((p.accumulate_parameters ? (double)get(p.dgain, c) : 0) + along));
    put(p.dshift, c, (float)((p.accumulate_parameters ? (double)get(p.dshift, c) : 0) + sum));
}

cudaError_t cuda_group_normalize_backward(const cuda_run *run, const op_group_normalize_backward *p)
{
    if (!p->channels || !p->area)
        return cudaSuccess;
    if (p->batch)
        sum_planes<<<(unsigned)(p->batch * p->channels), PLANE_THREADS, 0, run->stream>>>(*p);
    if (p->dgain.at)
        add_planes<<<blocks_for(p->channels, 256), 256, 0, run->stream>>>(*p);
    if (p->dx.at && p->batch)
        derive_groups<<<(unsigned)(p->batch * p->groups), STAT_THREADS, 0, run->stream>>>(*p);
    return cudaGetLastError();
}
