/* Attention with fp32 products, for fp32 and for what the tensor cores' kernels do not take: heads of more than 128 values, rows
 * that are not aligned. A block has 256 threads, 16 x 16. Tiles are in shared memory in fp32, heads padded to `width` values.
 *
 *   scores   thread (y, x) has rows y + 16 i, columns x + 16 j
 *   sums     thread (y, x) has rows y + 16 i, columns 4 x + 64 j and the three after them */
#include "backend/cuda/attention_tiles.cuh"

namespace attention
{

constexpr int threads = 256;

/* Rows are padded by 16 bytes so that neighbours start in other banks. */
__host__ __device__ constexpr int stride_of(int width)
{
    return width + 4;
}

template <int rows, int width, typename T>
__device__ inline void load_plain(float *tile, const T *from, int64_t stride, int there, int size)
{
    for (int at = threadIdx.x; at < rows * width; at += threads) {
        const int r = at / width, c = at % width;
        tile[r * stride_of(width) + c] = r < there && c < size ? to_float(from[r * stride + c]) : 0;
    }
}

/* c[i][j] = the product of row y + 16 i of a and row x + 16 j of b. */
template <int a_rows, int b_rows, int width>
__device__ inline void row_products(float (&c)[a_rows / 16][b_rows / 16], const float *a, const float *b)
{
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
    for (int i = 0; i < a_rows / 16; i++)
        for (int j = 0; j < b_rows / 16; j++)
            c[i][j] = 0;
#pragma unroll 4
    for (int d = 0; d < width; d += 4) {
        float4 u[a_rows / 16], v[b_rows / 16];
#pragma unroll
        for (int i = 0; i < a_rows / 16; i++)
            u[i] = *(const float4 *)(a + (y + 16 * i) * stride_of(width) + d);
#pragma unroll
        for (int j = 0; j < b_rows / 16; j++)
            v[j] = *(const float4 *)(b + (x + 16 * j) * stride_of(width) + d);
#pragma unroll
        for (int i = 0; i < a_rows / 16; i++)
#pragma unroll
            for (int j = 0; j < b_rows / 16; j++)
                c[i][j] += u[i].x * v[j].x + u[i].y * v[j].y + u[i].z * v[j].z + u[i].w * v[j].w;
    }
}

template <int rows, int columns>
__device__ inline void store_scores(float *to, const float (&c)[rows / 16][columns / 16])
{
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
#pragma unroll
    for (int i = 0; i < rows / 16; i++)
#pragma unroll
        for (int j = 0; j < columns / 16; j++)
            to[(y + 16 * i) * stride_of(columns) + x + 16 * j] = c[i][j];
}

/* sum[i][j] += weights times tile, over the `terms` rows of the tile. Weights are rows x terms; transposed: terms x rows. */
template <int rows, int terms, int width, bool transposed>
__device__ inline void add_weighted(float4 (&sum)[rows / 16][width / 64], const float *weights, const float *tile)
{
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
#pragma unroll 4
    for (int k = 0; k < terms; k++) {
        float w[rows / 16];
#pragma unroll
        for (int i = 0; i < rows / 16; i++)
            w[i] =
                transposed ? weights[k * stride_of(rows) + y + 16 * i] : weights[(y + 16 * i) * stride_of(terms) + k];
#pragma unroll
        for (int j = 0; j < width / 64; j++) {
            const float4 v = *(const float4 *)(tile + k * stride_of(width) + 4 * x + 64 * j);
#pragma unroll
            for (int i = 0; i < rows / 16; i++) {
                sum[i][j].x += w[i] * v.x;
                sum[i][j].y += w[i] * v.y;
                sum[i][j].z += w[i] * v.z;
                sum[i][j].w += w[i] * v.w;
            }
        }
    }
}

template <int rows, int columns> __device__ inline void clear_sums(float4 (&sum)[rows][columns])
{
#pragma unroll
    for (int i = 0; i < rows; i++)
#pragma unroll
        for (int j = 0; j < columns; j++)
            sum[i][j] = make_float4(0, 0, 0, 0);
}

/* Writes `there` rows, each multiplied by a factor of its own, or adds them. */
template <int rows, int width, typename T>
__device__ inline void store_sums(const float4 (&sum)[rows / 16][width / 64], const float (&factor)[rows / 16], T *to,
                                  int64_t stride, int there, int size, bool add)
{
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
#pragma unroll
    for (int i = 0; i < rows / 16; i++)
        if (y + 16 * i < there) {
#pragma unroll
            for (int j = 0; j < width / 64; j++) {
                const float values[4] = {sum[i][j].x, sum[i][j].y, sum[i][j].z, sum[i][j].w};
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int c = 4 * x + 64 * j + e;
                    T *at = to + (y + 16 * i) * stride + c;
                    if (c < size)
                        from_float(values[e] * factor[i] + (add ? to_float(*at) : 0), at);
                }
            }
        }
}

__device__ inline float sum_of_16(float x)
{
#pragma unroll
    for (int distance = 1; distance < 16; distance *= 2)
        x += __shfl_xor_sync(~0u, x, distance);
    return x;
}

template <typename T, int width, int queries, int tile>
__global__ void __launch_bounds__(threads) plain_forward_kernel(const problem p)
{
    extern __shared__ __align__(128) float plain_shared[];
    float *q_tile = plain_shared, *key_tile = q_tile + queries * stride_of(width),
          *weights = key_tile + tile * stride_of(width);
    const int blocks = (p.steps + queries - 1) / queries;
    const int first = (blocks - 1 - (int)(blockIdx.x % blocks)) * queries;
    const int head = blockIdx.x / blocks % p.heads, sequence = blockIdx.x / blocks / p.heads;
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
    constexpr int rows = queries / 16, columns = tile / 16;
    const T *k = (const T *)p.k + p.key_at(sequence, head / p.group),
            *v = (const T *)p.v + p.key_at(sequence, head / p.group);

    load_plain<queries, width>(q_tile, (const T *)p.q + p.query_at(sequence, head) + first * p.row, p.row,
                               p.steps - first, p.size);
    float4 output[rows][width / 64];
    float largest[rows], sum[rows], factor[rows];
    clear_sums(output);
#pragma unroll
    for (int i = 0; i < rows; i++) {
        largest[i] = -INFINITY;
        sum[i] = 0;
    }
    const int end = p.key_end(first, queries);
    for (int key = p.first_key(first) / tile * tile; key < end; key += tile) {
        __syncthreads(); /* the tile before is no longer read */
        load_plain<tile, width>(key_tile, k + key * p.key_row, p.key_row, p.keys - key, p.size);
        __syncthreads();
        float score[rows][columns];
        row_products<queries, tile, width>(score, q_tile, key_tile);
#pragma unroll
        for (int i = 0; i < rows; i++) {
            float most = largest[i];
#pragma unroll
            for (int j = 0; j < columns; j++) {
                score[i][j] = p.sees(first + y + 16 * i, key + x + 16 * j) ? score[i][j] * p.scale : -INFINITY;
                most = fmaxf(most, score[i][j]);
            }
#pragma unroll
            for (int distance = 1; distance < 16; distance *= 2)
                most = fmaxf(most, __shfl_xor_sync(~0u, most, distance));
            const float base = most == -INFINITY ? 0 : most, shrink = expf(largest[i] - base);
            largest[i] = most;
            sum[i] *= shrink;
#pragma unroll
            for (int j = 0; j < columns; j++) {
                score[i][j] = expf(score[i][j] - base);
                sum[i] += score[i][j];
            }
#pragma unroll
            for (int j = 0; j < width / 64; j++) {
                output[i][j].x *= shrink;
                output[i][j].y *= shrink;
                output[i][j].z *= shrink;
                output[i][j].w *= shrink;
            }
        }
        store_scores<queries, tile>(weights, score);
        __syncthreads(); /* all have read the keys */
        load_plain<tile, width>(key_tile, v + key * p.key_row, p.key_row, p.keys - key, p.size);
        __syncthreads();
        add_weighted<queries, tile, width, false>(output, weights, key_tile);
    }
#pragma unroll
    for (int i = 0; i < rows; i++) {
        const float whole = sum_of_16(sum[i]);
        const int at = first + y + 16 * i;
        factor[i] = 1 / whole;
        if (x == 0 && at < p.steps)
            p.sums[((int64_t)sequence * p.heads + head) * p.steps + at] = largest[i] + logf(whole);
    }
    store_sums<queries, width>(output, factor, (T *)p.out + p.out_at(sequence, head) + first * p.out_row, p.out_row,
                               p.steps - first, p.size, false);
}

/* What backward kernels make of a tile: `weight` has scores and gets weights, `gradient` has the gradients of the weights and
 * gets those of the scores. */
template <int rows, int columns>
__device__ inline void differentiate(const problem &p, int64_t stats, int query, int key,
                                     float (&weight)[rows / 16][columns / 16],
                                     float (&gradient)[rows / 16][columns / 16])
{
    const int x = threadIdx.x % 16, y = threadIdx.x / 16;
#pragma unroll
    for (int i = 0; i < rows / 16; i++) {
        const int at = query + y + 16 * i;
        const float log2_sum = p.log2_sums[stats + at], delta = p.delta[stats + at];
#pragma unroll
        for (int j = 0; j < columns / 16; j++) {
            weight[i][j] = p.sees(at, key + x + 16 * j) ? exp2f(weight[i][j] * p.scale_log2 - log2_sum) : 0;
            gradient[i][j] = weight[i][j] * (gradient[i][j] - delta);
        }
    }
}

template <typename T, int width, int queries, int tile>
__global__ void __launch_bounds__(threads) plain_query_gradient_kernel(const problem p)
{
    extern __shared__ __align__(128) float plain_shared[];
    float *q_tile = plain_shared, *dout_tile = q_tile + queries * stride_of(width),
          *key_tile = dout_tile + queries * stride_of(width), *weights = key_tile + tile * stride_of(width);
    const int blocks = (p.steps + queries - 1) / queries;
    const int first = (blocks - 1 - (int)(blockIdx.x % blocks)) * queries;
    const int head = blockIdx.x / blocks % p.heads, sequence = blockIdx.x / blocks / p.heads;
    const T *k = (const T *)p.k + p.key_at(sequence, head / p.group),
            *v = (const T *)p.v + p.key_at(sequence, head / p.group);
    const int64_t stats = ((int64_t)sequence * p.heads + head) * p.padded,
                  at = p.query_at(sequence, head) + first * p.row;

    load_plain<queries, width>(q_tile, (const T *)p.q + at, p.row, p.steps - first, p.size);
    load_plain<queries, width>(dout_tile, (const T *)p.dout + p.out_at(sequence, head) + first * p.out_row, p.out_row,
                               p.steps - first, p.size);
    float4 dq[queries / 16][width / 64];
    float factor[queries / 16];
    clear_sums(dq);
    const int end = p.key_end(first, queries);
    for (int key = p.first_key(first) / tile * tile; key < end; key += tile) {
        float weight[queries / 16][tile / 16], gradient[queries / 16][tile / 16];
        __syncthreads();
        load_plain<tile, width>(key_tile, v + key * p.key_row, p.key_row, p.keys - key, p.size);
        __syncthreads();
        row_products<queries, tile, width>(gradient, dout_tile, key_tile);
        __syncthreads();
        load_plain<tile, width>(key_tile, k + key * p.key_row, p.key_row, p.keys - key, p.size);
        __syncthreads();
        row_products<queries, tile, width>(weight, q_tile, key_tile);
        differentiate<queries, tile>(p, stats, first, key, weight, gradient);
        store_scores<queries, tile>(weights, gradient);
        __syncthreads();
        add_weighted<queries, tile, width, false>(dq, weights, key_tile);
    }
#pragma unroll
    for (int i = 0; i < queries / 16; i++)
        factor[i] = p.scale;
    store_sums<queries, width>(dq, factor, (T *)p.dq + at, p.row, p.steps - first, p.size, p.add_dq);
}

template <typename T, int width, int keys, int tile>
__global__ void __launch_bounds__(threads) plain_key_gradient_kernel(const problem p)
{
    extern __shared__ __align__(128) float plain_shared[];
    float *k_tile = plain_shared, *v_tile = k_tile + keys * stride_of(width),
          *q_tile = v_tile + keys * stride_of(width), *dout_tile = q_tile + tile * stride_of(width),
          *weights = dout_tile + tile * stride_of(width), *gradients = weights + tile * stride_of(keys);
    const int blocks = (p.keys + keys - 1) / keys, key_heads = p.key_heads();
    const int first = (int)(blockIdx.x % blocks) * keys;
    const int key_head = blockIdx.x / blocks % key_heads, sequence = blockIdx.x / blocks / key_heads;
    const int64_t at = p.key_at(sequence, key_head) + first * p.key_row;

    load_plain<keys, width>(k_tile, (const T *)p.k + at, p.key_row, p.keys - first, p.size);
    load_plain<keys, width>(v_tile, (const T *)p.v + at, p.key_row, p.keys - first, p.size);
    float4 dk[keys / 16][width / 64], dv[keys / 16][width / 64];
    float factor[keys / 16];
    clear_sums(dk);
    clear_sums(dv);
    const int end = p.query_end(first, keys);
    for (int head = key_head * p.group; head < (key_head + 1) * p.group; head++) {
        const T *q = (const T *)p.q + p.query_at(sequence, head), *dout = (const T *)p.dout + p.out_at(sequence, head);
        const int64_t stats = ((int64_t)sequence * p.heads + head) * p.padded;
        for (int query = p.first_query(first) / tile * tile; query < end; query += tile) {
            float weight[tile / 16][keys / 16], gradient[tile / 16][keys / 16];
            __syncthreads();
            load_plain<tile, width>(q_tile, q + query * p.row, p.row, p.steps - query, p.size);
            load_plain<tile, width>(dout_tile, dout + query * p.out_row, p.out_row, p.steps - query, p.size);
            __syncthreads();
            row_products<tile, keys, width>(weight, q_tile, k_tile);
            row_products<tile, keys, width>(gradient, dout_tile, v_tile);
            differentiate<tile, keys>(p, stats, query, first, weight, gradient);
            store_scores<tile, keys>(weights, weight);
            store_scores<tile, keys>(gradients, gradient);
            __syncthreads();
            add_weighted<keys, tile, width, true>(dv, weights, dout_tile);
            add_weighted<keys, tile, width, true>(dk, gradients, q_tile);
        }
    }
#pragma unroll
    for (int i = 0; i < keys / 16; i++)
        factor[i] = p.scale;
    if (p.dk)
        store_sums<keys, width>(dk, factor, (T *)p.dk + at, p.key_row, p.keys - first, p.size, p.add_dkv);
#pragma unroll
    for (int i = 0; i < keys / 16; i++)
        factor[i] = 1;
    if (p.dv)
        store_sums<keys, width>(dv, factor, (T *)p.dv + at, p.key_row, p.keys - first, p.size, p.add_dkv);
}

static unsigned blocks_of(int rows, int block_rows, int heads, int batch)
{
    return (unsigned)((rows + block_rows - 1) / block_rows) * (unsigned)(heads * batch);
}

template <typename T, int width, int queries, int tile>
static cudaError_t run_forward(const cuda_run *run, const problem &p)
{
    const size_t floats = (queries + tile) * stride_of(width) + queries * stride_of(tile);
    return launch(run, plain_forward_kernel<T, width, queries, tile>,
                  dim3(blocks_of(p.steps, queries, p.heads, p.batch)), threads, floats * sizeof(float), p);
}

/* dq: `queries` in a block, `query_tile` keys in a tile. dk and dv: `keys` in a block, `key_tile` queries in a tile. */
template <typename T, int width, int queries, int query_tile, int keys, int key_tile>
static cudaError_t run_backward(const cuda_run *run, const problem &p)
{
    const size_t query_floats = (2 * queries + query_tile) * stride_of(width) + queries * stride_of(query_tile);
    const size_t key_floats = 2 * (keys + key_tile) * stride_of(width) + 2 * key_tile * stride_of(keys);
    cudaError_t error = cudaSuccess;
    if (p.dq)
        error = launch(run, plain_query_gradient_kernel<T, width, queries, query_tile>,
                       dim3(blocks_of(p.steps, queries, p.heads, p.batch)), threads, query_floats * sizeof(float), p);
    if (!error && (p.dk || p.dv))
        error = launch(run, plain_key_gradient_kernel<T, width, keys, key_tile>,
                       dim3(blocks_of(p.keys, keys, p.key_heads(), p.batch)), threads, key_floats * sizeof(float), p);
    return error;
}

/* Tiles are small enough for the 99 KiB of shared memory that the smallest devices have. */
template <typename T> static cudaError_t forward_of(const cuda_run *run, const problem &p)
{
    if (p.size <= 64)
        return run_forward<T, 64, 64, 64>(run, p);
    return p.size <= 128 ? run_forward<T, 128, 64, 64>(run, p) : run_forward<T, 256, 32, 32>(run, p);
}

template <typename T> static cudaError_t backward_of(const cuda_run *run, const problem &p)
{
    if (p.size <= 64)
        return run_backward<T, 64, 64, 64, 64, 32>(run, p);
    return p.size <= 128 ? run_backward<T, 128, 64, 32, 32, 32>(run, p) : run_backward<T, 256, 32, 16, 16, 16>(run, p);
}

cudaError_t plain_forward(const cuda_run *run, const problem &p, bool is_bf16)
{
    return is_bf16 ? forward_of<__nv_bfloat16>(run, p) : forward_of<float>(run, p);
}

cudaError_t plain_backward(const cuda_run *run, const problem &p, bool is_bf16)
{
    return is_bf16 ? backward_of<__nv_bfloat16>(run, p) : backward_of<float>(run, p);
}

} /* namespace attention */
