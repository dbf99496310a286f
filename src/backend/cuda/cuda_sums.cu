/* Sums over columns, channels and whole tensors. Each is a sum of partial sums; how many there are follows from the sizes alone. */
#include "backend/cuda/cuda_device.cuh"

/* ---- columns ---- */

enum { COLUMN_LANES = 32, COLUMN_ROWS = 8 };
static const size_t MOST_PARTS = 128, ROWS_OF_PART = 64;

static size_t column_parts(const cuda_run *run, size_t rows, size_t columns)
{
    size_t parts = (rows + ROWS_OF_PART - 1) / ROWS_OF_PART;
    const size_t room = run->scratch_bytes / sizeof(float) / columns;
    parts = parts < MOST_PARTS ? parts : MOST_PARTS;
    return parts < room ? parts : room ? room : 1;
}

/* A block sums 8 * 32 columns of the rows of a part: each thread takes eight columns of every eighth row. */
__global__ void sum_column_parts(op_column_sums p, size_t parts, float *partial, bool eights)
{
    __shared__ float sums[COLUMN_ROWS][8 * COLUMN_LANES + 8];
    const size_t each = (p.rows + parts - 1) / parts, first = blockIdx.y * each;
    const size_t end = first + each < p.rows ? first + each : p.rows;
    const size_t column = ((size_t)blockIdx.x * COLUMN_LANES + threadIdx.x) * 8;
    float sum[8] = {0};
    if (eights) {
        if (column < p.columns)
            for (size_t row = first + threadIdx.y; row < end; row += COLUMN_ROWS) {
                const eight x = get8(p.x, row * p.columns + column);
#pragma unroll
                for (int j = 0; j < 8; j++)
                    sum[j] += x.of[j];
            }
    } else {
        for (size_t row = first + threadIdx.y; row < end; row += COLUMN_ROWS)
            for (int j = 0; j < 8; j++)
                if (column + j < p.columns)
                    sum[j] += get(p.x, row * p.columns + column + j);
    }
#pragma unroll
    for (int j = 0; j < 8; j++)
        sums[threadIdx.y][8 * threadIdx.x + j] = sum[j];
    __syncthreads();
    const size_t mine = threadIdx.y * COLUMN_LANES + threadIdx.x, to = (size_t)blockIdx.x * 8 * COLUMN_LANES + mine;
    float total = 0;
#pragma unroll
    for (int r = 0; r < COLUMN_ROWS; r++)
        total += sums[r][mine];
    if (to < p.columns)
        partial[blockIdx.y * p.columns + to] = total;
}

__global__ void add_column_parts(const float *partial, size_t parts, size_t columns, tensor_ref sums, bool accumulate)
{
    const size_t column = (size_t)blockIdx.x * PART_COLUMNS + threadIdx.x;
    const float total = sum_parts(partial, parts, columns, column);
    if (column < columns && threadIdx.y == 0)
        put(sums, column, accumulate ? get(sums, column) + total : total);
}

cudaError_t cuda_column_sums(const cuda_run *run, const op_column_sums *p)
{
    if (p->columns == 0)
        return cudaSuccess;
    if (p->columns * sizeof(float) > run->scratch_bytes)
        return cudaErrorInvalidValue;
    const size_t parts = p->rows ? column_parts(run, p->rows, p->columns) : 0;
    const bool eights = p->columns % 8 == 0 && by_eights(p->x);
    float *partial = (float *)run->scratch;
    if (parts) {
        const dim3 grid(blocks_for(p->columns, 8 * COLUMN_LANES), (unsigned)parts);
        sum_column_parts<<<grid, dim3(COLUMN_LANES, COLUMN_ROWS), 0, run->stream>>>(*p, parts, partial, eights);
    }
    add_column_parts<<<blocks_for(p->columns, PART_COLUMNS), dim3(PART_COLUMNS, PART_LANES), 0, run->stream>>>(
        partial, parts, p->columns, p->sums, p->accumulate);
    return cudaGetLastError();
}

/* ---- channels: a block for each ---- */

enum { SUM_THREADS = 256 };

__global__ void sum_channels(op_channel_sums p)
{
    const size_t channel = blockIdx.x;
    double sum = 0;
    for (size_t i = threadIdx.x; i < p.batch * p.area; i += SUM_THREADS)
        sum += get(p.x, (i / p.area * p.channels + channel) * p.area + i % p.area);
    sum = block_sum<SUM_THREADS>(sum);
    if (threadIdx.x == 0)
        put(p.sums, channel, (float)((p.accumulate ? (double)get(p.sums, channel) : 0) + sum));
}

cudaError_t cuda_channel_sums(const cuda_run *run, const op_channel_sums *p)
{
    if (p->channels)
        sum_channels<<<(unsigned)p->channels, SUM_THREADS, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

/* ---- squares and checks ---- */

static const size_t SQUARE_PARTS = 1024, SQUARE_VALUES = 8192;

static unsigned square_parts(size_t count)
{
    const size_t parts = (count + SQUARE_VALUES - 1) / SQUARE_VALUES;
    return (unsigned)(parts < SQUARE_PARTS ? parts : SQUARE_PARTS);
}

/* The squares of many tensors at once. Each block belongs to one of them. */
enum { MOST_SQUARED = 512 };

struct squared_tensors {
    const void *at[MOST_SQUARED];
    size_t counts[MOST_SQUARED];
    unsigned first[MOST_SQUARED + 1]; /* block of each tensor; the last one is the number of blocks */
    uint8_t is_half[MOST_SQUARED];
    unsigned tensors;
};

/* Which tensor a block belongs to. */
template <class T> static __device__ __forceinline__ unsigned tensor_of_block(const T &all, unsigned block)
{
    unsigned low = 0, high = all.tensors; /* first[low] <= block < first[high] */
    while (high - low > 1) {
        const unsigned middle = (low + high) / 2;
        if (all.first[middle] <= block)
            low = middle;
        else
            high = middle;
    }
    return low;
}

__global__ void sum_squares(const __grid_constant__ squared_tensors all, double *partial)
{
    const unsigned t = tensor_of_block(all, blockIdx.x), blocks = all.first[t + 1] - all.first[t];
    const size_t count = all.counts[t], step = (size_t)blocks * SUM_THREADS;
    const size_t mine = (size_t)(blockIdx.x - all.first[t]) * SUM_THREADS + threadIdx.x;
    const tensor_ref x = {(void *)all.at[t], all.is_half[t] ? REMAT_BF16 : REMAT_FP32};
    double sum = 0;
    if (count % 8 == 0 && (uintptr_t)x.at % 16 == 0)
        for (size_t e = mine; 8 * e < count; e += step) {
            const eight v = get8(x, 8 * e);
#pragma unroll
            for (int j = 0; j < 8; j++)
                sum += (double)v.of[j] * v.of[j];
        }
    else
        for (size_t i = mine; i < count; i += step)
            sum += (double)get(x, i) * get(x, i);
    sum = block_sum<SUM_THREADS>(sum);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sum;
}

/* A tensor after the other: each warp sums up the parts of some, and one thread adds these sums in their order. */
__global__ void add_squared(const __grid_constant__ squared_tensors all, const double *partial, double *to)
{
    __shared__ double sums[MOST_SQUARED];
    for (unsigned t = threadIdx.x / WARP; t < all.tensors; t += SUM_THREADS / WARP) {
        double sum = 0;
        for (unsigned i = all.first[t] + threadIdx.x % WARP; i < all.first[t + 1]; i += WARP)
            sum += partial[i];
        sum = warp_sum(sum);
        if (threadIdx.x % WARP == 0)
            sums[t] = sum;
    }
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    double total = *to;
    for (unsigned t = 0; t < all.tensors; t++)
        total += sums[t];
    *to = total;
}

cudaError_t cuda_add_many_squares(const cuda_run *run, const void *const *calls, size_t count)
{
    squared_tensors all;
    for (size_t done = 0; done < count;) {
        step_block *block = (step_block *)((const op_add_squares *)calls[done])->step.at;
        all.tensors = 0;
        all.first[0] = 0;
        for (; done < count && all.tensors < MOST_SQUARED; done++) {
            const op_add_squares *p = (const op_add_squares *)calls[done];
            const unsigned parts = square_parts(p->count), t = all.tensors;
            if ((all.first[t] + parts) * sizeof(double) > run->scratch_bytes)
                break;
            all.at[t] = p->x.at;
            all.counts[t] = p->count;
            all.is_half[t] = p->x.type == REMAT_BF16;
            all.first[t + 1] = all.first[t] + parts;
            all.tensors++;
        }
        if (all.first[all.tensors] > 0) {
            sum_squares<<<all.first[all.tensors], SUM_THREADS, 0, run->stream>>>(all, (double *)run->scratch);
            add_squared<<<1, SUM_THREADS, 0, run->stream>>>(all, (const double *)run->scratch, &block->squares);
        }
    }
    return cudaGetLastError();
}

cudaError_t cuda_add_squares(const cuda_run *run, const op_add_squares *p)
{
    const void *const calls[] = {p};
    return cuda_add_many_squares(run, calls, 1);
}

__global__ void sum_square_blocks(op_block_squares p)
{
    const size_t from = (size_t)blockIdx.x * OPERATION_SQUARES_BLOCK;
    const size_t end = p.count - from < OPERATION_SQUARES_BLOCK ? p.count : from + OPERATION_SQUARES_BLOCK;
    double sum = 0;
    for (size_t i = from + threadIdx.x; i < end; i += SUM_THREADS)
        sum += (double)get(p.x, i) * get(p.x, i);
    sum = block_sum<SUM_THREADS>(sum);
    if (threadIdx.x == 0)
        ((double *)p.sums.at)[blockIdx.x] = sum;
}

cudaError_t cuda_block_squares(const cuda_run *run, const op_block_squares *p)
{
    if (p->count)
        sum_square_blocks<<<blocks_for(p->count, OPERATION_SQUARES_BLOCK), SUM_THREADS, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

/* Any thread may be the one that writes: all write the same. Checks run one after the other, so that `before` is settled. */
__global__ void check_values(op_check_finite p)
{
    step_block *block = (step_block *)p.step.at;
    const size_t step = (size_t)gridDim.x * blockDim.x;
    bool finite = true;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count; i += step)
        finite &= isfinite(get(p.x, i)) != 0;
    if (!finite && block->broken == 0)
        block->broken = 1 + p.number;
}

cudaError_t cuda_check_finite(const cuda_run *run, const op_check_finite *p)
{
    if (p->count)
        check_values<<<square_parts(p->count), SUM_THREADS, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

/* ---- the step block ---- */

__global__ void clip_norm(op_clip p)
{
    step_block *block = (step_block *)p.step.at;
    const double scale = p.clip_norm / (sqrt(block->squares) + 1e-6);
    block->scale = scale < 1 ? scale : 1;
}

cudaError_t cuda_clip(const cuda_run *run, const op_clip *p)
{
    clip_norm<<<1, 1, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

__global__ void end_loss(op_finish_loss p)
{
    step_block *block = (step_block *)p.step.at;
    block->loss += block->loss_sum / (p.divisor * (p.by_labels && block->labels ? (double)block->labels : 1));
    block->loss_sum = 0;
}

cudaError_t cuda_finish_loss(const cuda_run *run, const op_finish_loss *p)
{
    end_loss<<<1, 1, 0, run->stream>>>(*p);
    return cudaGetLastError();
}
