/* Pooling. Forward, a thread for each output; backward, a thread for each input, which looks at the outputs whose windows hold it. */
#include "backend/cuda/cuda_device.cuh"

/* The row or column of the image under a tap; negative or too large in the padding. */
static __device__ __forceinline__ long under(size_t out, size_t stride, size_t tap, size_t pad)
{
    return (long)(out * stride + tap) - (long)pad;
}

/* The outputs whose windows hold place `at`, along one axis: first to last - 1. */
struct span {
    size_t first, end;
};

static __device__ __forceinline__ span outputs_over(size_t at, size_t stride, size_t kernel, size_t pad, size_t outs)
{
    const size_t place = at + pad;
    span s;
    s.first = place < kernel ? 0 : (place - kernel) / stride + 1;
    s.end = place / stride + 1 < outs ? place / stride + 1 : outs;
    return s;
}

/* ---- the largest ---- */

__global__ void choose_largest(op_pool_max p, size_t count)
{
    const operation_window &w = p.window;
    const size_t o = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (o >= count)
        return;
    const size_t column = o % w.out_w, row = o / w.out_w % w.out_h, plane = o / w.out_w / w.out_h;
    const size_t from = plane * w.in_h * w.in_w;
    long best = -1;
    float largest = 0;
    for (size_t ky = 0; ky < w.kernel_h; ky++)
        for (size_t kx = 0; kx < w.kernel_w; kx++) {
            const long y = under(row, w.stride_h, ky, w.pad_h), x = under(column, w.stride_w, kx, w.pad_w);
            if (y < 0 || x < 0 || y >= (long)w.in_h || x >= (long)w.in_w)
                continue;
            const long i = y * (long)w.in_w + x;
            const float value = get(p.x, from + (size_t)i);
            if (best < 0 || value > largest || (isnan(value) && !isnan(largest)))
                best = i, largest = value;
        }
    if (p.y.at)
        put(p.y, o, best < 0 ? 0 : largest);
    if (p.chosen.at)
        ((int32_t *)p.chosen.at)[o] = (int32_t)best;
}

/* As choose_largest, but a thread makes the outputs of one byte of choices. */
__global__ void choose_packed(op_pool_max p, unsigned bits, size_t row_bytes, size_t count)
{
    const operation_window &w = p.window;
    const size_t n = (size_t)blockIdx.x * blockDim.x + threadIdx.x, each = 8 / bits;
    if (n >= count)
        return;
    const size_t line = n / row_bytes, row = line % w.out_h, from = line / w.out_h * w.in_h * w.in_w;
    unsigned byte = 0;
    for (size_t j = 0; j < each; j++) {
        const size_t column = n % row_bytes * each + j;
        if (column >= w.out_w)
            break;
        bool found = false;
        size_t best_tap = 0;
        float largest = 0;
        for (size_t ky = 0; ky < w.kernel_h; ky++)
            for (size_t kx = 0; kx < w.kernel_w; kx++) {
                const long y = under(row, w.stride_h, ky, w.pad_h), x = under(column, w.stride_w, kx, w.pad_w);
                if (y < 0 || x < 0 || y >= (long)w.in_h || x >= (long)w.in_w)
                    continue;
                const float value = get(p.x, from + (size_t)(y * (long)w.in_w + x));
                if (!found || value > largest || (isnan(value) && !isnan(largest)))
                    found = true, largest = value, best_tap = ky * w.kernel_w + kx;
            }
        if (p.y.at)
            put(p.y, line * w.out_w + column, found ? largest : 0);
        byte |= (unsigned)best_tap << j * bits;
    }
    ((uint8_t *)p.chosen.at)[n] = (uint8_t)byte;
}

cudaError_t cuda_pool_max(const cuda_run *run, const op_pool_max *p)
{
    const operation_window *w = &p->window;
    const size_t lines = w->batch * w->in_channels * w->out_h, outputs = lines * w->out_w;
    if (!outputs)
        return cudaSuccess;
    if (p->chosen.type == REMAT_INT32 || !p->chosen.at) {
        choose_largest<<<blocks_for(outputs, 256), 256, 0, run->stream>>>(*p, outputs);
    } else {
        const size_t row_bytes = operation_chosen_row(w), count = lines * row_bytes;
        choose_packed<<<blocks_for(count, 256), 256, 0, run->stream>>>(*p, operation_chosen_bits(w), row_bytes, count);
    }
    return cudaGetLastError();
}

__global__ void spread_largest(op_pool_max_backward p, unsigned bits, size_t row_bytes, size_t count)
{
    const operation_window &w = p.window;
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const size_t place = i % (w.in_h * w.in_w), plane = i / (w.in_h * w.in_w);
    const size_t y = place / w.in_w, x = place % w.in_w;
    const span rows = outputs_over(y, w.stride_h, w.kernel_h, w.pad_h, w.out_h);
    const span columns = outputs_over(x, w.stride_w, w.kernel_w, w.pad_w, w.out_w);
    float sum = p.accumulate ? get(p.dx, i) : 0;
    for (size_t row = rows.first; row < rows.end; row++)
        for (size_t column = columns.first; column < columns.end; column++) {
            const size_t line = plane * w.out_h + row, o = line * w.out_w + column;
            bool mine;
            if (p.chosen.type == REMAT_INT32) {
                mine = ((const int32_t *)p.chosen.at)[o] == (int32_t)place;
            } else {
                const size_t tap = (y + w.pad_h - row * w.stride_h) * w.kernel_w + (x + w.pad_w - column * w.stride_w);
                const size_t at = column * bits;
                const unsigned byte = ((const uint8_t *)p.chosen.at)[line * row_bytes + at / 8];
                mine = (byte >> at % 8 & ((1u << bits) - 1)) == tap;
            }
            if (mine)
                sum += get(p.dy, o);
        }
    put(p.dx, i, sum);
}

cudaError_t cuda_pool_max_backward(const cuda_run *run, const op_pool_max_backward *p)
{
    const operation_window *w = &p->window;
    const size_t count = w->batch * w->in_channels * w->in_h * w->in_w;
    const bool packed = p->chosen.type != REMAT_INT32;
    if (count)
        spread_largest<<<blocks_for(count, 256), 256, 0, run->stream>>>(*p, packed ? operation_chosen_bits(w) : 0,
                                                                        packed ? operation_chosen_row(w) : 0, count);
    return cudaGetLastError();
}

/* ---- the mean ---- */

/* How many taps of an output count, along one axis; see op_pool_average. */
static __device__ __forceinline__ size_t counted_taps(size_t out, size_t stride, size_t kernel, size_t pad, size_t size,
                                                      size_t counted)
{
    const size_t begin = out * stride, end = begin + kernel, last = counted ? counted : size + pad,
                 first = counted ? 0 : pad;
    const size_t from = begin > first ? begin : first, to = end < last ? end : last;
    return to > from ? to - from : 0;
}

static __device__ __forceinline__ float share_of(const operation_window &w, size_t row, size_t column, size_t counted_h,
                                                 size_t counted_w)
{
    const size_t count = counted_taps(row, w.stride_h, w.kernel_h, w.pad_h, w.in_h, counted_h) *
                         counted_taps(column, w.stride_w, w.kernel_w, w.pad_w, w.in_w, counted_w);
    return count ? 1.0f / (float)count : 0;
}

__global__ void average_windows(op_pool_average p, size_t count)
{
    const operation_window &w = p.window;
    const size_t o = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (o >= count)
        return;
    const size_t column = o % w.out_w, row = o / w.out_w % w.out_h, from = o / w.out_w / w.out_h * w.in_h * w.in_w;
    float sum = 0;
    for (size_t ky = 0; ky < w.kernel_h; ky++)
        for (size_t kx = 0; kx < w.kernel_w; kx++) {
            const long y = under(row, w.stride_h, ky, w.pad_h), x = under(column, w.stride_w, kx, w.pad_w);
            if (y >= 0 && x >= 0 && y < (long)w.in_h && x < (long)w.in_w)
                sum += get(p.x, from + (size_t)(y * (long)w.in_w + x));
        }
    put(p.y, o, sum * share_of(w, row, column, p.counted_h, p.counted_w));
}

cudaError_t cuda_pool_average(const cuda_run *run, const op_pool_average *p)
{
    const operation_window *w = &p->window;
    const size_t count = w->batch * w->in_channels * w->out_h * w->out_w;
    if (count)
        average_windows<<<blocks_for(count, 256), 256, 0, run->stream>>>(*p, count);
    return cudaGetLastError();
}

__global__ void spread_average(op_pool_average_backward p, size_t count)
{
    const operation_window &w = p.window;
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const size_t place = i % (w.in_h * w.in_w), plane = i / (w.in_h * w.in_w);
    const span rows = outputs_over(place / w.in_w, w.stride_h, w.kernel_h, w.pad_h, w.out_h);
    const span columns = outputs_over(place % w.in_w, w.stride_w, w.kernel_w, w.pad_w, w.out_w);
    float sum = p.accumulate ? get(p.dx, i) : 0;
    for (size_t row = rows.first; row < rows.end; row++)
        for (size_t column = columns.first; column < columns.end; column++)
            sum += get(p.dy, (plane * w.out_h + row) * w.out_w + column) *
                   share_of(w, row, column, p.counted_h, p.counted_w);
    put(p.dx, i, sum);
}

cudaError_t cuda_pool_average_backward(const cuda_run *run, const op_pool_average_backward *p)
{
    const operation_window *w = &p->window;
    const size_t count = w->batch * w->in_channels * w->in_h * w->in_w;
    if (count)
        spread_average<<<blocks_for(count, 256), 256, 0, run->stream>>>(*p, count);
    return cudaGetLastError();
}
