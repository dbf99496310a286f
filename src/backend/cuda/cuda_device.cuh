/* What the kernels share: values of tensors in fp32 or bf16, sums in a fixed order, random numbers.
 *
 * Kernels compute in fp32. The type of a tensor is looked at when a value is read or written; it is the same for all threads, so
 * that one kernel serves all mixtures of types. */
#ifndef REMAT_BACKEND_CUDA_CUDA_DEVICE_CUH
#define REMAT_BACKEND_CUDA_CUDA_DEVICE_CUH

#include "backend/cuda/cuda_run.h"

#include <cuda_bf16.h>

#define WARP      32
#define ALL_LANES 0xffffffffu

/* ---- values ---- */

__device__ __forceinline__ float get(tensor_ref t, size_t i)
{
    return t.type == REMAT_BF16 ? __bfloat162float(((const __nv_bfloat16 *)t.at)[i]) : ((const float *)t.at)[i];
}

__device__ __forceinline__ void put(tensor_ref t, size_t i, float value)
{
    if (t.type == REMAT_BF16)
        ((__nv_bfloat16 *)t.at)[i] = __float2bfloat16_rn(value);
    else
        ((float *)t.at)[i] = value;
}

/* Eight values that follow each other, aligned to 16 bytes: one access for bf16, two for fp32. */
struct eight {
    float of[8];
};

__device__ __forceinline__ eight eight_of(uint4 bits)
{
    eight v;
    const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
    for (int j = 0; j < 4; j++) {
        v.of[2 * j] = __uint_as_float(words[j] << 16);
        v.of[2 * j + 1] = __uint_as_float(words[j] & 0xffff0000u);
    }
    return v;
}

__device__ __forceinline__ eight get8(tensor_ref t, size_t i)
{
    eight v;
    if (t.type == REMAT_BF16) {
        v = eight_of(*(const uint4 *)((const __nv_bfloat16 *)t.at + i));
    } else {
        const float4 a = ((const float4 *)((const float *)t.at + i))[0],
                     b = ((const float4 *)((const float *)t.at + i))[1];
        v.of[0] = a.x, v.of[1] = a.y, v.of[2] = a.z, v.of[3] = a.w;
        v.of[4] = b.x, v.of[5] = b.y, v.of[6] = b.z, v.of[7] = b.w;
    }
    return v;
}

__device__ __forceinline__ void put8(tensor_ref t, size_t i, const eight &v)
{
    if (t.type == REMAT_BF16) {
        uint32_t words[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const __nv_bfloat162 pair = __floats2bfloat162_rn(v.of[2 * j], v.of[2 * j + 1]);
            words[j] = *(const uint32_t *)&pair;
        }
        *(uint4 *)((__nv_bfloat16 *)t.at + i) = make_uint4(words[0], words[1], words[2], words[3]);
    } else {
        ((float4 *)((float *)t.at + i))[0] = make_float4(v.of[0], v.of[1], v.of[2], v.of[3]);
        ((float4 *)((float *)t.at + i))[1] = make_float4(v.of[4], v.of[5], v.of[6], v.of[7]);
    }
}

/* Whether a tensor may be accessed by eights; also true for none. */
static inline bool by_eights(tensor_ref t)
{
    return (uintptr_t)t.at % 16 == 0;
}

/* ---- sums in a fixed order ---- */

template <class T> __device__ __forceinline__ T warp_sum(T value)
{
#pragma unroll
    for (int apart = WARP / 2; apart > 0; apart /= 2)
        value += __shfl_xor_sync(ALL_LANES, value, apart);
    return value;
}

__device__ __forceinline__ float warp_max(float value)
{
#pragma unroll
    for (int apart = WARP / 2; apart > 0; apart /= 2)
        value = fmaxf(value, __shfl_xor_sync(ALL_LANES, value, apart));
    return value;
}

/* The sum over all threads of a block, for every thread. THREADS is the size of the block, a multiple of WARP. */
template <int THREADS, class T> __device__ __forceinline__ T block_sum(T value)
{
    if (THREADS == WARP)
        return warp_sum(value);
    __shared__ T sums[THREADS / WARP];
    value = warp_sum(value);
    __syncthreads(); /* the one before has been read */
    if (threadIdx.x % WARP == 0)
        sums[threadIdx.x / WARP] = value;
    __syncthreads();
    T total = 0;
#pragma unroll
    for (int w = 0; w < THREADS / WARP; w++)
        total += sums[w];
    return total;
}

template <int THREADS> __device__ __forceinline__ float block_max(float value)
{
    if (THREADS == WARP)
        return warp_max(value);
    __shared__ float largest[THREADS / WARP];
    value = warp_max(value);
    __syncthreads();
    if (threadIdx.x % WARP == 0)
        largest[threadIdx.x / WARP] = value;
    __syncthreads();
    float total = largest[0];
#pragma unroll
    for (int w = 1; w < THREADS / WARP; w++)
        total = fmaxf(total, largest[w]);
    return total;
}

/* Sums of `parts` rows of `columns` partial sums, in blocks of PART_COLUMNS x PART_LANES threads. The sum of column `i` of the block is
 * found by its threads together, and returned to those of lane 0. */
enum { PART_COLUMNS = 32, PART_LANES = 16 };

__device__ __forceinline__ float sum_parts(const float *partial, size_t parts, size_t columns, size_t column)
{
    __shared__ float sums[PART_LANES][PART_COLUMNS];
    float sum = 0;
    if (column < columns) {
#pragma unroll 8
        for (size_t part = threadIdx.y; part < parts; part += PART_LANES)
            sum += partial[part * columns + column];
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    float total = 0;
#pragma unroll
    for (int lane = 0; lane < PART_LANES; lane++)
        total += sums[lane][threadIdx.x];
    return total;
}

/* ---- random numbers: as remat_random_block ---- */

struct stream {
    uint32_t key[2], high[2];
};

__device__ __forceinline__ stream stream_of(const step_block *block, uint32_t layer)
{
    stream s = {{(uint32_t)block->seed, (uint32_t)(block->seed >> 32)}, {layer, block->step}};
    return s;
}

__device__ __forceinline__ uint4 draw(const stream &from, uint64_t number)
{
    uint32_t c0 = (uint32_t)number, c1 = (uint32_t)(number >> 32), c2 = from.high[0], c3 = from.high[1];
    uint32_t k0 = from.key[0], k1 = from.key[1];
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const uint32_t high_a = __umulhi(0xD2511F53u, c0), low_a = 0xD2511F53u * c0;
        const uint32_t high_b = __umulhi(0xCD9E8D57u, c2), low_b = 0xCD9E8D57u * c2;
        const uint32_t next0 = high_b ^ c1 ^ k0, next2 = high_a ^ c3 ^ k1;
        c0 = next0, c1 = low_b, c2 = next2, c3 = low_a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return make_uint4(c0, c1, c2, c3);
}

/* ---- launching ---- */

/* Blocks for `count` items of `each` threads; at least one, and no more than a grid may have. Kernels step over the rest. */
static inline unsigned blocks_for(size_t count, size_t each)
{
    const size_t blocks = (count + each - 1) / each;
    return (unsigned)(blocks < 1 ? 1 : blocks > 0x3fffffff ? 0x3fffffff : blocks);
}

#endif
