/* The backward pass of attention in bf16 with mma.sync, the statistics that all kernels of the backward pass read, and the
 * choice of kernels.
 *
 * One kernel has 128 keys in a block of threads, goes over the queries and sums up dk and dv. Another has 128 queries, goes
 * over the keys and sums up dq. So every sum is in the registers of one thread, in a fixed order. Both compute the scores.
 * The first computes them transposed: a warp has 16 keys, and the weights are the left factor for dk and dv as they are. */
#include "backend/cuda/attention_tiles.cuh"

namespace attention
{

/* ---- statistics of the rows ---- */

constexpr int stats_threads = 256, rows_at_once = 4, stats_block = stats_threads / 8 * rows_at_once;

/* The product of 8 values, stored as bf16, with 8 others. */
__device__ inline float product_of_8(uint4 x, uint4 y)
{
    const uint32_t xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sum += __uint_as_float(xs[i] << 16) * __uint_as_float(ys[i] << 16);
        sum += __uint_as_float(xs[i] & 0xffff0000u) * __uint_as_float(ys[i] & 0xffff0000u);
    }
    return sum;
}

/* 8 threads have one row of one head, and a few rows at once. A block stays within a sequence. */
template <typename T, bool by_16_bytes>
__global__ void __launch_bounds__(stats_threads) statistics_kernel(const problem p)
{
    const int blocks = p.heads * (p.padded / stats_block), sequence = blockIdx.x / blocks;
    const int first = blockIdx.x % blocks * stats_block + threadIdx.x / 8, part = threadIdx.x % 8;
    if (p.dq_parts && blockIdx.x == 0) /* the flags before the sums */
        p.dq_parts[threadIdx.x] = 0;
    int head[rows_at_once], step[rows_at_once];
    float sum[rows_at_once];
    const T *out[rows_at_once], *dout[rows_at_once];
#pragma unroll
    for (int i = 0; i < rows_at_once; i++) {
        const int row = first + i * (stats_threads / 8);
        head[i] = row % p.heads;
        step[i] = row / p.heads;
        sum[i] = 0;
        const int64_t from = p.out_at(sequence, head[i]) + min(step[i], p.steps - 1) * p.out_row;
        out[i] = (const T *)p.out + from;
        dout[i] = (const T *)p.dout + from;
    }
    if (by_16_bytes) {
        for (int c = part * 8; c < p.size; c += 64) {
            uint4 x[rows_at_once], y[rows_at_once];
#pragma unroll
            for (int i = 0; i < rows_at_once; i++) {
                x[i] = *(const uint4 *)(out[i] + c);
                y[i] = *(const uint4 *)(dout[i] + c);
            }
#pragma unroll
            for (int i = 0; i < rows_at_once; i++)
                sum[i] += product_of_8(x[i], y[i]);
        }
    } else {
        for (int c = part; c < p.size; c += 8)
#pragma unroll
            for (int i = 0; i < rows_at_once; i++)
                sum[i] += to_float(out[i][c]) * to_float(dout[i][c]);
    }
#pragma unroll
    for (int i = 0; i < rows_at_once; i++) {
#pragma unroll
        for (int distance = 1; distance < 8; distance *= 2)
            sum[i] += __shfl_xor_sync(~0u, sum[i], distance);
        if (part == 0) {
            const bool is_there = step[i] < p.steps;
            const int64_t head_at = (int64_t)sequence * p.heads + head[i], to = head_at * p.padded + step[i];
            p.delta[to] = is_there ? sum[i] : 0;
            p.log2_sums[to] = is_there ? p.sums[head_at * p.steps + step[i]] * log2_e : INFINITY;
        }
    }
}

static cudaError_t make_statistics(const cuda_run *run, const problem &p, bool is_bf16, bool by_16_bytes)
{
    static_assert(stats_rows % stats_block == 0, "blocks stay within a sequence");
    const dim3 grid((unsigned)(p.batch * p.heads * (p.padded / stats_block)));
    if (by_16_bytes)
        return launch(run, statistics_kernel<__nv_bfloat16, true>, grid, stats_threads, 0, p);
    if (is_bf16)
        return launch(run, statistics_kernel<__nv_bfloat16, false>, grid, stats_threads, 0, p);
    return launch(run, statistics_kernel<float, false>, grid, stats_threads, 0, p);
}

/* ---- gradients ---- */

constexpr int warps = 8, threads = warps * 32, block_rows = warps * 16;

/* A fragment with 16 rows is written, or added to what is there. */
template <int width>
__device__ inline void store_rows(const float (&c)[width / 8][4], float factor, __nv_bfloat16 *to, int64_t stride,
                                  int row, int there, int size, bool add)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (row + half * 8 < there) {
            __nv_bfloat16 *at = to + (row + half * 8) * stride + lane % 4 * 2;
#pragma unroll
            for (int n = 0; n < width / 8; n++)
                if (n * 8 < size)
                    put_pair(at + n * 8, c[n][2 * half] * factor, c[n][2 * half + 1] * factor, add);
        }
}

template <int width, int tile> __global__ void __launch_bounds__(threads, 1) key_gradient_kernel(const problem p)
{
    extern __shared__ __align__(128) char shared[];
    constexpr uint32_t tile_bytes = tile * width * 2, block_bytes = block_rows * width * 2;
    const uint32_t k_tile = shared_address(shared), v_tile = k_tile + block_bytes, q_tiles = v_tile + block_bytes,
                   dout_tiles = q_tiles + 2 * tile_bytes;
    const int blocks = (p.keys + block_rows - 1) / block_rows, key_heads = p.key_heads();
    const int first = (int)(blockIdx.x % blocks) * block_rows; /* with a causal mask, the longest first */
    const int key_head = blockIdx.x / blocks % key_heads, sequence = blockIdx.x / blocks / key_heads;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = first + warp * 16 + lane / 4; /* this thread has this key and row + 8 */

    const int64_t key_at = p.key_at(sequence, key_head) + first * p.key_row;
    const int begin = p.first_query(first) / tile * tile, end = p.query_end(first, block_rows);
    const int tiles = end > begin ? (end - begin + tile - 1) / tile : 0, steps = tiles * p.group;
    auto load_queries = [&](int step) {
        const int head = key_head * p.group + step / tiles, query = begin + step % tiles * tile, stage = step % 2;
        const auto *q = (const __nv_bfloat16 *)p.q + p.query_at(sequence, head) + query * p.row;
        const auto *dout = (const __nv_bfloat16 *)p.dout + p.out_at(sequence, head) + query * p.out_row;
        load_tile<tile, width, threads>(q_tiles + stage * tile_bytes, q, p.row, p.steps - query, p.size);
        load_tile<tile, width, threads>(dout_tiles + stage * tile_bytes, dout, p.out_row, p.steps - query, p.size);
    };

    load_tile<block_rows, width, threads>(k_tile, (const __nv_bfloat16 *)p.k + key_at, p.key_row, p.keys - first,
                                          p.size);
    load_tile<block_rows, width, threads>(v_tile, (const __nv_bfloat16 *)p.v + key_at, p.key_row, p.keys - first,
                                          p.size);
    if (steps)
        load_queries(0);
    commit_copies();

    float dk[width / 8][4], dv[width / 8][4];
    clear(dk);
    clear(dv);
    for (int step = 0; step < steps; step++) {
        wait_copies<0>();
        __syncthreads();
        if (step + 1 < steps)
            load_queries(step + 1);
        commit_copies();

        const int head = key_head * p.group + step / tiles, query = begin + step % tiles * tile;
        const uint32_t q_tile = q_tiles + step % 2 * tile_bytes, dout_tile = dout_tiles + step % 2 * tile_bytes;
        const int64_t stats = ((int64_t)sequence * p.heads + head) * p.padded + query + lane % 4 * 2;
        const bool all_seen = p.all_seen(query, tile, first, block_rows);
        float weight[tile / 8][4], gradient[tile / 8][4];
        clear(weight);
        multiply_rows<width, tile>(weight, k_tile, warp * 16, q_tile);
#pragma unroll
        for (int n = 0; n < tile / 8; n++) {
            const float2 log2_sum = *(const float2 *)(p.log2_sums + stats + n * 8);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const float x = exp2_fast(weight[n][e] * p.scale_log2 - (e % 2 ? log2_sum.y : log2_sum.x));
                weight[n][e] = all_seen || p.sees(query + n * 8 + lane % 4 * 2 + e % 2, row + e / 2 * 8) ? x : 0;
            }
        }
        multiply_weights<width, tile>(dv, weight, dout_tile);
        clear(gradient);
        multiply_rows<width, tile>(gradient, v_tile, warp * 16, dout_tile);
#pragma unroll
        for (int n = 0; n < tile / 8; n++) {
            const float2 delta = *(const float2 *)(p.delta + stats + n * 8);
#pragma unroll
            for (int e = 0; e < 4; e++)
                gradient[n][e] = weight[n][e] * (gradient[n][e] - (e % 2 ? delta.y : delta.x));
        }
        multiply_weights<width, tile>(dk, gradient, q_tile);
    }

    const int64_t to = p.key_at(sequence, key_head);
    if (p.dk)
        store_rows<width>(dk, p.scale, (__nv_bfloat16 *)p.dk + to, p.key_row, row, p.keys, p.size, p.add_dkv);
    if (p.dv)
        store_rows<width>(dv, 1, (__nv_bfloat16 *)p.dv + to, p.key_row, row, p.keys, p.size, p.add_dkv);
}

template <int width, int tile> __global__ void __launch_bounds__(threads, 1) query_gradient_kernel(const problem p)
{
    extern __shared__ __align__(128) char shared[];
    constexpr uint32_t tile_bytes = tile * width * 2, block_bytes = block_rows * width * 2;
    const uint32_t q_tile = shared_address(shared), dout_tile = q_tile + block_bytes, k_tiles = dout_tile + block_bytes,
                   v_tiles = k_tiles + 2 * tile_bytes;
    const int blocks = (p.steps + block_rows - 1) / block_rows;
    const int first = (blocks - 1 - (int)(blockIdx.x % blocks)) * block_rows;
    const int head = blockIdx.x / blocks % p.heads, sequence = blockIdx.x / blocks / p.heads;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = first + warp * 16 + lane / 4;

    const auto *q = (const __nv_bfloat16 *)p.q + p.query_at(sequence, head) + first * p.row;
    const auto *dout = (const __nv_bfloat16 *)p.dout + p.out_at(sequence, head) + first * p.out_row;
    const auto *k = (const __nv_bfloat16 *)p.k + p.key_at(sequence, head / p.group);
    const auto *v = (const __nv_bfloat16 *)p.v + p.key_at(sequence, head / p.group);
    const int begin = p.first_key(first) / tile * tile, end = p.key_end(first, block_rows);
    auto load_keys = [&](int key, int stage) {
        load_tile<tile, width, threads>(k_tiles + stage * tile_bytes, k + key * p.key_row, p.key_row, p.keys - key,
                                        p.size);
        load_tile<tile, width, threads>(v_tiles + stage * tile_bytes, v + key * p.key_row, p.key_row, p.keys - key,
                                        p.size);
    };

    load_tile<block_rows, width, threads>(q_tile, q, p.row, p.steps - first, p.size);
    load_tile<block_rows, width, threads>(dout_tile, dout, p.out_row, p.steps - first, p.size);
    load_keys(begin, 0);
    commit_copies();

    const int64_t stats = ((int64_t)sequence * p.heads + head) * p.padded + row;
    const float log2_sums[2] = {p.log2_sums[stats], p.log2_sums[stats + 8]};
    const float deltas[2] = {p.delta[stats], p.delta[stats + 8]};
    float dq[width / 8][4];
    clear(dq);
    for (int key = begin, stage = 0; key < end; key += tile, stage ^= 1) {
        wait_copies<0>();
        __syncthreads();
        if (key + tile < end)
            load_keys(key + tile, stage ^ 1);
        commit_copies();

        const bool all_seen = p.all_seen(first, block_rows, key, tile);
        float weight[tile / 8][4], gradient[tile / 8][4];
        clear(weight);
        multiply_rows<width, tile>(weight, q_tile, warp * 16, k_tiles + stage * tile_bytes);
        clear(gradient);
        multiply_rows<width, tile>(gradient, dout_tile, warp * 16, v_tiles + stage * tile_bytes);
#pragma unroll
        for (int n = 0; n < tile / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const float x =
                    exp2_fast(weight[n][e] * p.scale_log2 - log2_sums[e / 2]) * (gradient[n][e] - deltas[e / 2]);
                gradient[n][e] = all_seen || p.sees(row + e / 2 * 8, key + n * 8 + lane % 4 * 2 + e % 2) ? x : 0;
            }
        multiply_weights<width, tile>(dq, gradient, k_tiles + stage * tile_bytes);
    }
    store_rows<width>(dq, p.scale, (__nv_bfloat16 *)p.dq + p.query_at(sequence, head), p.row, row, p.steps, p.size,
                      p.add_dq);
}

template <int width, int tile> static cudaError_t run_backward(const cuda_run *run, const problem &p)
{
    const size_t shared = (2 * block_rows + 4 * tile) * width * 2;
    const unsigned key_blocks =
        (unsigned)((p.keys + block_rows - 1) / block_rows) * (unsigned)(p.key_heads() * p.batch);
    const unsigned query_blocks = (unsigned)((p.steps + block_rows - 1) / block_rows) * (unsigned)(p.heads * p.batch);
    cudaError_t error = cudaSuccess;
    if (p.dk || p.dv)
        error = launch(run, key_gradient_kernel<width, tile>, dim3(key_blocks), threads, shared, p);
    if (!error && p.dq)
        error = launch(run, query_gradient_kernel<width, tile>, dim3(query_blocks), threads, shared, p);
    return error;
}

static cudaError_t tensor_backward(const cuda_run *run, const problem &p)
{
    if (p.size <= 64)
        return run_backward<64, 64>(run, p);
    return p.size <= 96 ? run_backward<96, 32>(run, p) : run_backward<128, 32>(run, p);
}

static problem problem_of(const op_attention_backward *args)
{
    problem p = {};
    p.q = args->q.at;
    p.k = args->k.at;
    p.v = args->v.at;
    p.out = args->out.at;
    p.dout = args->dout.at;
    p.sums = (float *)args->sums.at;
    p.dq = args->dq.at;
    p.dk = args->dk.at;
    p.dv = args->dv.at;
    p.row = (int64_t)args->row;
    p.out_row = (int64_t)args->out_row;
    p.key_row = (int64_t)args->key_row;
    p.add_dq = args->add_dq || args->accumulate;
    p.add_dkv = args->add_dkv || args->accumulate;
    set_sizes(p, args->batch, args->heads, args->steps, args->size, args->keys, args->group, args->window,
              args->causal);
    return p;
}

static bool is_aligned(const void *at)
{
    return (uintptr_t)at % 16 == 0;
}

static uint64_t rows_bytes(const problem &p)
{
    return ((uint64_t)p.batch * (uint64_t)p.heads * (uint64_t)p.padded * sizeof(float) + 255) / 256 * 256;
}

static uint64_t sums_for_dq(const op_attention_backward *args, const problem &p)
{
    return args->q.type == REMAT_BF16 ? hopper_dq_floats(p) : 0;
}

} /* namespace attention */

using namespace attention;

uint64_t cuda_attention_backward_workspace(const op_attention_backward *args)
{
    const problem p = problem_of(args);
    return 2 * rows_bytes(p) + sums_for_dq(args, p) * sizeof(float);
}

cudaError_t cuda_attention_backward(const cuda_run *run, const op_attention_backward *args)
{
    const bool is_bf16 = args->q.type == REMAT_BF16;
    if (args->size > 256 || args->k.type != args->q.type || args->v.type != args->q.type ||
        args->out.type != args->q.type || args->dout.type != args->q.type ||
        (args->dq.at && args->dq.type != args->q.type) || (args->dk.at && args->dk.type != args->q.type) ||
        (args->dv.at && args->dv.type != args->q.type))
        return cudaErrorInvalidValue;
    problem p = problem_of(args);
    if (p.batch == 0 || p.heads == 0 || p.size == 0 || !(p.dq || p.dk || p.dv))
        return cudaSuccess;
    p.delta = (float *)args->workspace.at;
    p.log2_sums = (float *)((char *)args->workspace.at + rows_bytes(p));
    p.dq_parts = sums_for_dq(args, p) ? (float *)((char *)args->workspace.at + 2 * rows_bytes(p)) : NULL;
    const bool aligned = is_bf16 && p.size % 8 == 0 && p.out_row % 8 == 0 && is_aligned(p.out) && is_aligned(p.dout);
    const bool by_tensor_cores = aligned && p.size <= 128 && p.row % 8 == 0 && p.key_row % 8 == 0 && is_aligned(p.q) &&
                                 is_aligned(p.k) && is_aligned(p.v) && is_aligned(p.dq) && is_aligned(p.dk) &&
                                 is_aligned(p.dv);
    cudaError_t error = p.steps ? make_statistics(run, p, is_bf16, aligned) : cudaSuccess;
    if (error || p.steps == 0)
        return error;
    if (!by_tensor_cores)
        return plain_backward(run, p, is_bf16);
    error = hopper_backward(run, p);
    return error == cudaErrorNotSupported ? tensor_backward(run, p) : error;
}
