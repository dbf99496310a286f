/* Attention with heads of more values than the tiles of the other kernels take, to several segments of a row, and to
 * a cache: plain loops, a block for each query and for each key. */
#include "backend/cuda/attention_wide.h"
#include "backend/cuda/cuda_device.cuh"

enum { WIDE_THREADS = 256 };

/* The keys that a query sees: first to end - 1. */
struct seen {
    size_t first, end;
};

/* The first row of a query's segment, in its sequence. */
template <class P> static __device__ size_t segment_begin(const P &p, size_t sequence, size_t query)
{
    const int32_t *positions = (const int32_t *)p.positions.at + sequence * p.steps;
    while (query > 0 && positions[query] != 0)
        query--;
    return query;
}

template <class P> static __device__ seen keys_of(const P &p, size_t sequence, size_t query)
{
    seen s = {0, p.keys};
    if (p.causal) {
        s.end = query + 1 < p.keys ? query + 1 : p.keys;
        s.first = p.window && query + 1 > p.window ? query + 1 - p.window : 0;
    }
    if (p.positions.at) {
        const size_t begins = segment_begin(p, sequence, query);
        s.first = begins > s.first ? begins : s.first;
    }
    return s;
}

/* Where the sum of a query is: heads x steps of each sequence, or heads x rows of each segment, one segment after the other. */
template <class P> static __device__ size_t sum_of(const P &p, size_t sequence, size_t head, size_t query)
{
    const int32_t *positions = (const int32_t *)p.positions.at;
    size_t begins = 0, end = p.steps;
    if (positions) {
        positions += sequence * p.steps;
        begins = segment_begin(p, sequence, query);
        for (end = query + 1; end < p.steps && positions[end] != 0;)
            end++;
    }
    return sequence * p.heads * p.steps + p.heads * begins + head * (end - begins) + query - begins;
}

static __device__ float dot(const float *a, tensor_ref b, size_t from, size_t count)
{
    float sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * get(b, from + i);
    return sum;
}

static __device__ float dot_of(tensor_ref a, size_t from_a, tensor_ref b, size_t from_b, size_t count)
{
    float sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += get(a, from_a + i) * get(b, from_b + i);
    return sum;
}

/* Where a head begins in the rows of a query, an output and a key. */
struct places {
    size_t q, out, key, head, group;
};

template <class P> static __device__ places places_of(const P &p, size_t sequence, size_t head, size_t query)
{
    places at;
    at.group = p.group > 1 ? p.group : 1;
    at.head = head;
    at.q = (sequence * p.steps + query) * p.row + head * p.size;
    at.out = (sequence * p.steps + query) * p.out_row + head * p.size;
    at.key = sequence * p.keys * p.key_row + head / at.group * p.size;
    return at;
}

__global__ void attend_wide(op_attention p, float scale)
{
    extern __shared__ float shared[];
    float *q = shared, *out = shared + p.size, *chances = shared + 2 * p.size;
    const size_t query = blockIdx.x % p.steps, head = blockIdx.x / p.steps % p.heads,
                 sequence = blockIdx.x / p.steps / p.heads;
    const places at = places_of(p, sequence, head, query);
    const seen keys = keys_of(p, sequence, query);
    for (size_t i = threadIdx.x; i < p.size; i += WIDE_THREADS)
        q[i] = get(p.q, at.q + i), out[i] = 0;
    __syncthreads();
    float largest = -INFINITY, sum = 0;
    for (size_t first = keys.first; first < keys.end; first += WIDE_THREADS) {
        const size_t key = first + threadIdx.x,
                     count = keys.end - first < WIDE_THREADS ? keys.end - first : WIDE_THREADS;
        const float score = key < keys.end ? scale * dot(q, p.k, at.key + key * p.key_row, p.size) : -INFINITY;
        const float top = fmaxf(largest, block_max<WIDE_THREADS>(score));
        const float chance = key < keys.end ? expf(score - top) : 0, shrink = expf(largest - top);
        chances[threadIdx.x] = chance;
        sum = sum * shrink + block_sum<WIDE_THREADS>(chance);
        largest = top;
        __syncthreads();
        for (size_t i = threadIdx.x; i < p.size; i += WIDE_THREADS) {
            float value = out[i] * shrink;
            for (size_t k = 0; k < count; k++)
                value += chances[k] * get(p.v, at.key + (first + k) * p.key_row + i);
            out[i] = value;
        }
        __syncthreads();
    }
    for (size_t i = threadIdx.x; i < p.size; i += WIDE_THREADS)
        put(p.out, at.out + i, out[i] / sum);
    if (threadIdx.x == 0)
        put(p.sums, sum_of(p, sequence, head, query), largest + logf(sum));
}

__global__ void derive_wide_queries(op_attention_backward p, float scale, bool adds)
{
    extern __shared__ float shared[];
    float *q = shared, *dout = shared + p.size, *dq = shared + 2 * p.size, *slopes = shared + 3 * p.size;
    const size_t query = blockIdx.x % p.steps, head = blockIdx.x / p.steps % p.heads,
                 sequence = blockIdx.x / p.steps / p.heads;
    const places at = places_of(p, sequence, head, query);
    const seen keys = keys_of(p, sequence, query);
    float along = 0;
    for (size_t i = threadIdx.x; i < p.size; i += WIDE_THREADS) {
        q[i] = get(p.q, at.q + i), dout[i] = get(p.dout, at.out + i), dq[i] = 0;
        along += dout[i] * get(p.out, at.out + i);
    }
    along = block_sum<WIDE_THREADS>(along);
    const float log_sum = get(p.sums, sum_of(p, sequence, head, query));
    for (size_t first = keys.first; first < keys.end; first += WIDE_THREADS) {
        const size_t key = first + threadIdx.x,
                     count = keys.end - first < WIDE_THREADS ? keys.end - first : WIDE_THREADS;
        if (key < keys.end) {
            const float chance = expf(scale * dot(q, p.k, at.key + key * p.key_row, p.size) - log_sum);
            slopes[threadIdx.x] = scale * chance * (dot(dout, p.v, at.key + key * p.key_row, p.size) - along);
        }
        __syncthreads();
        for (size_t i = threadIdx.x; i < p.size; i += WIDE_THREADS) {
            float value = dq[i];
            for (size_t k = 0; k < count; k++)
                value += slopes[k] * get(p.k, at.key + (first + k) * p.key_row + i);
            dq[i] = value;
        }
        __syncthreads();
    }
    for (size_t i = threadIdx.x; i < p.size; i += WIDE_THREADS)
        put(p.dq, at.q + i, adds ? get(p.dq, at.q + i) + dq[i] : dq[i]);
}

__global__ void derive_wide_keys(op_attention_backward p, float scale, bool adds)
{
    extern __shared__ float shared[];
    float *dk = shared, *dv = shared + p.size, *slopes = shared + 2 * p.size, *chances = slopes + WIDE_THREADS;
    const size_t group = p.group > 1 ? p.group : 1, key_heads = p.heads / group;
    const size_t key = blockIdx.x % p.keys, key_head = blockIdx.x / p.keys % key_heads,
                 sequence = blockIdx.x / p.keys / key_heads;
    const size_t own = (sequence * p.keys + key) * p.key_row + key_head * p.size;
    for (size_t i = threadIdx.x; i < p.size; i += WIDE_THREADS)
        dk[i] = 0, dv[i] = 0;
    for (size_t member = 0; member < group; member++) {
        const size_t head = key_head * group + member;
        for (size_t first = 0; first < p.steps; first += WIDE_THREADS) {
            const size_t query = first + threadIdx.x,
                         count = p.steps - first < WIDE_THREADS ? p.steps - first : WIDE_THREADS;
            float chance = 0, slope = 0;
            if (query < p.steps) {
                const places at = places_of(p, sequence, head, query);
                const seen keys = keys_of(p, sequence, query);
                if (key >= keys.first && key < keys.end) {
                    const float log_sum = get(p.sums, sum_of(p, sequence, head, query));
                    chance = expf(scale * dot_of(p.q, at.q, p.k, own, p.size) - log_sum);
                    slope = scale * chance *
                            (dot_of(p.dout, at.out, p.v, own, p.size) - dot_of(p.dout, at.out, p.out, at.out, p.size));
                }
            }
            __syncthreads();
            chances[threadIdx.x] = chance, slopes[threadIdx.x] = slope;
            __syncthreads();
            for (size_t i = threadIdx.x; i < p.size; i += WIDE_THREADS) {
                float to_k = dk[i], to_v = dv[i];
                for (size_t n = 0; n < count; n++) {
                    const places at = places_of(p, sequence, head, first + n);
                    to_k += slopes[n] * get(p.q, at.q + i);
                    to_v += chances[n] * get(p.dout, at.out + i);
                }
                dk[i] = to_k, dv[i] = to_v;
            }
        }
    }
    for (size_t i = threadIdx.x; i < p.size; i += WIDE_THREADS) {
        if (p.dk.at)
            put(p.dk, own + i, adds ? get(p.dk, own + i) + dk[i] : dk[i]);
        if (p.dv.at)
            put(p.dv, own + i, adds ? get(p.dv, own + i) + dv[i] : dv[i]);
    }
}

cudaError_t cuda_attention_wide(const cuda_run *run, const op_attention *p)
{
    const size_t bytes = (2 * p->size + WIDE_THREADS) * sizeof(float), blocks = p->batch * p->heads * p->steps;
    if (bytes > 48 << 10)
        return cudaErrorInvalidValue;
    if (blocks)
        attend_wide<<<(unsigned)blocks, WIDE_THREADS, bytes, run->stream>>>(*p, 1 / sqrtf((float)p->size));
    return cudaGetLastError();
}

cudaError_t cuda_attention_wide_backward(const cuda_run *run, const op_attention_backward *p)
{
    const size_t bytes = (3 * p->size + 2 * WIDE_THREADS) * sizeof(float),
                 key_heads = attention_key_heads(p->heads, p->group);
    const float scale = 1 / sqrtf((float)p->size);
    if (bytes > 48 << 10)
        return cudaErrorInvalidValue;
    if (!p->batch || !p->heads || !p->steps)
        return cudaSuccess;
    if (p->dq.at)
        derive_wide_queries<<<(unsigned)(p->batch * p->heads * p->steps), WIDE_THREADS, bytes, run->stream>>>(
            *p, scale, p->accumulate || p->add_dq);
    if (p->dk.at || p->dv.at)
        derive_wide_keys<<<(unsigned)(p->batch * key_heads * p->keys), WIDE_THREADS, bytes, run->stream>>>(
            *p, scale, p->accumulate || p->add_dkv);
    return cudaGetLastError();
}

/* ---- a cache ---- */

__global__ void attend_to_cache(op_attention_cached p, float scale)
{
    extern __shared__ float shared[];
    float *q = shared, *out = shared + p.size, *chances = shared + 2 * p.size;
    const size_t row = blockIdx.x / p.heads, head = blockIdx.x % p.heads, group = p.group > 1 ? p.group : 1;
    const size_t from = row * p.row + head * p.size, to = row * p.out_row + head * p.size, key = head / group * p.size;
    const int32_t position = ((const int32_t *)p.positions.at)[row];
    const size_t all = position < 0 ? 0 : (size_t)position + 1, end = all < p.keys ? all : p.keys;
    const size_t begin = p.window && end > p.window ? end - p.window : 0;
    for (size_t i = threadIdx.x; i < p.size; i += WIDE_THREADS)
        q[i] = get(p.q, from + i), out[i] = 0;
    __syncthreads();
    float largest = -INFINITY, sum = 0;
    for (size_t first = begin; first < end; first += WIDE_THREADS) {
        const size_t mine = first + threadIdx.x, count = end - first < WIDE_THREADS ? end - first : WIDE_THREADS;
        const float score = mine < end ? scale * dot(q, p.k, key + mine * p.key_row, p.size) : -INFINITY;
        const float top = fmaxf(largest, block_max<WIDE_THREADS>(score));
        const float chance = mine < end ? expf(score - top) : 0, shrink = expf(largest - top);
        chances[threadIdx.x] = chance;
        sum = sum * shrink + block_sum<WIDE_THREADS>(chance);
        largest = top;
        __syncthreads();
        for (size_t i = threadIdx.x; i < p.size; i += WIDE_THREADS) {
            float value = out[i] * shrink;
            for (size_t k = 0; k < count; k++)
                value += chances[k] * get(p.v, key + (first + k) * p.key_row + i);
            out[i] = value;
        }
        __syncthreads();
    }
    for (size_t i = threadIdx.x; i < p.size; i += WIDE_THREADS)
        put(p.out, to + i, sum > 0 ? out[i] / sum : 0);
}

cudaError_t cuda_attention_cached(const cuda_run *run, const op_attention_cached *p)
{
    const size_t bytes = (2 * p->size + WIDE_THREADS) * sizeof(float);
    if (bytes > 48 << 10)
        return cudaErrorInvalidValue;
    if (p->rows && p->heads)
        attend_to_cache<<<(unsigned)(p->rows * p->heads), WIDE_THREADS, bytes, run->stream>>>(
            *p, 1 / sqrtf((float)p->size));
    return cudaGetLastError();
}
