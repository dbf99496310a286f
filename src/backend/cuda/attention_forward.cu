/* The forward pass of attention in bf16 with mma.sync, and the choice of kernels for it.
 *
 * A block of threads has 128 queries, each warp 16 of them. It goes over the keys in tiles; while one tile is used, the next
 * one is copied. Scores, the largest score of a row so far, the sum of its weights and its output are in registers. */
#include "backend/cuda/attention_tiles.cuh"

namespace attention
{

constexpr int warps = 8, threads = warps * 32, queries = warps * 16;

template <int width, int tile>
__global__ void __launch_bounds__(threads, width == 64 ? 2 : 1) forward_kernel(const problem p)
{
    extern __shared__ __align__(128) char shared[];
    constexpr uint32_t tile_bytes = tile * width * 2;
    const uint32_t q_tile = shared_address(shared), k_tiles = q_tile + queries * width * 2,
                   v_tiles = k_tiles + 2 * tile_bytes;
    const int blocks = (p.steps + queries - 1) / queries;
    const int first = (blocks - 1 - (int)(blockIdx.x % blocks)) * queries; /* the longest rows first */
    const int head = blockIdx.x / blocks % p.heads, sequence = blockIdx.x / blocks / p.heads;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = first + warp * 16 + lane / 4; /* this thread has this row and row + 8 */

    const auto *q = (const __nv_bfloat16 *)p.q + p.query_at(sequence, head) + first * p.row;
    const auto *k = (const __nv_bfloat16 *)p.k + p.key_at(sequence, head / p.group);
    const auto *v = (const __nv_bfloat16 *)p.v + p.key_at(sequence, head / p.group);
    const int begin = p.first_key(first) / tile * tile, end = p.key_end(first, queries);
    auto load_keys = [&](int key, int stage) {
        load_tile<tile, width, threads>(k_tiles + stage * tile_bytes, k + key * p.key_row, p.key_row, p.keys - key,
                                        p.size);
        load_tile<tile, width, threads>(v_tiles + stage * tile_bytes, v + key * p.key_row, p.key_row, p.keys - key,
                                        p.size);
    };

    load_tile<queries, width, threads>(q_tile, q, p.row, p.steps - first, p.size);
    load_keys(begin, 0);
    commit_copies();

    float output[width / 8][4], largest[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    clear(output);
    for (int key = begin, stage = 0; key < end; key += tile, stage ^= 1) {
        wait_copies<0>();
        __syncthreads(); /* this tile is there for all, and nobody reads the one before */
        if (key + tile < end)
            load_keys(key + tile, stage ^ 1);
        commit_copies();

        float score[tile / 8][4];
        clear(score);
        multiply_rows<width, tile>(score, q_tile, warp * 16, k_tiles + stage * tile_bytes);
        if (!p.all_seen(first, queries, key, tile)) {
#pragma unroll
            for (int n = 0; n < tile / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    if (!p.sees(row + e / 2 * 8, key + n * 8 + lane % 4 * 2 + e % 2))
                        score[n][e] = -INFINITY;
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float most = largest[half];
#pragma unroll
            for (int n = 0; n < tile / 8; n++)
                most = fmaxf(most, fmaxf(score[n][2 * half], score[n][2 * half + 1]));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
            const float base = most == -INFINITY ? 0 : most * p.scale_log2; /* no key is seen yet */
            const float shrink = exp2_fast(largest[half] * p.scale_log2 - base);
            largest[half] = most;
            float added = 0;
#pragma unroll
            for (int n = 0; n < tile / 8; n++)
#pragma unroll
                for (int e = 2 * half; e < 2 * half + 2; e++) {
                    score[n][e] = exp2_fast(score[n][e] * p.scale_log2 - base);
                    added += score[n][e];
                }
            sum[half] = sum[half] * shrink + added;
#pragma unroll
            for (int n = 0; n < width / 8; n++)
#pragma unroll
                for (int e = 2 * half; e < 2 * half + 2; e++)
                    output[n][e] *= shrink;
        }
        multiply_weights<width, tile>(output, score, v_tiles + stage * tile_bytes);
    }

#pragma unroll
    for (int half = 0; half < 2; half++) {
        sum[half] += __shfl_xor_sync(~0u, sum[half], 1);
        sum[half] += __shfl_xor_sync(~0u, sum[half], 2);
        const int at = row + half * 8;
        if (at >= p.steps)
            continue;
        if (lane % 4 == 0)
            p.sums[((int64_t)sequence * p.heads + head) * p.steps + at] = largest[half] * p.scale + logf(sum[half]);
        const float factor = 1 / sum[half];
        auto *out = (__nv_bfloat16 *)p.out + p.out_at(sequence, head) + at * p.out_row;
#pragma unroll
        for (int n = 0; n < width / 8; n++)
            if (n * 8 < p.size)
                put_pair(out + n * 8 + lane % 4 * 2, output[n][2 * half] * factor, output[n][2 * half + 1] * factor,
                         false);
    }
}

template <int width, int tile> static cudaError_t run_forward(const cuda_run *run, const problem &p)
{
    const unsigned blocks = (unsigned)((p.steps + queries - 1) / queries) * (unsigned)(p.heads * p.batch);
    return launch(run, forward_kernel<width, tile>, dim3(blocks), threads, (queries + 4 * tile) * width * 2, p);
}

static cudaError_t tensor_forward(const cuda_run *run, const problem &p)
{
    if (p.size <= 64)
        return run_forward<64, 64>(run, p);
    return p.size <= 96 ? run_forward<96, 64>(run, p) : run_forward<128, 64>(run, p);
}

static bool is_aligned(const void *at)
{
    return (uintptr_t)at % 16 == 0;
}

} /* namespace attention */

using namespace attention;

cudaError_t cuda_attention(const cuda_run *run, const op_attention *args)
{
    const bool is_bf16 = args->q.type == REMAT_BF16;
    if (args->size > 256 || args->k.type != args->q.type || args->v.type != args->q.type ||
        args->out.type != args->q.type)
        return cudaErrorInvalidValue;
    if (args->batch == 0 || args->heads == 0 || args->steps == 0 || args->size == 0)
        return cudaSuccess;
    problem p = {};
    p.q = args->q.at;
    p.k = args->k.at;
    p.v = args->v.at;
    p.out = args->out.at;
    p.sums = (float *)args->sums.at;
    p.row = (int64_t)args->row;
    p.out_row = (int64_t)args->out_row;
    p.key_row = (int64_t)args->key_row;
    set_sizes(p, args->batch, args->heads, args->steps, args->size, args->keys, args->group, args->window,
              args->causal);
    const bool by_tensor_cores = is_bf16 && p.size <= 128 && p.size % 8 == 0 && p.row % 8 == 0 && p.key_row % 8 == 0 &&
                                 p.out_row % 8 == 0 && is_aligned(p.q) && is_aligned(p.k) && is_aligned(p.v) &&
                                 is_aligned(p.out);
    if (!by_tensor_cores)
        return plain_forward(run, p, is_bf16);
    const cudaError_t error = hopper_forward(run, p);
    return error == cudaErrorNotSupported ? tensor_forward(run, p) : error;
}
