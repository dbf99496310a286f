/* What the attention kernels share: their arguments, which queries see which keys, and tiles for the tensor cores. */
#ifndef REMAT_BACKEND_CUDA_ATTENTION_TILES_CUH
#define REMAT_BACKEND_CUDA_ATTENTION_TILES_CUH

#include <climits>
#include <cstdint>

#include <cuda_bf16.h>

#include "backend/cuda/attention.h"

namespace attention
{

constexpr float log2_e = 1.44269504088896340736f;
constexpr int stats_rows = 128; /* the statistics of a head are padded to a multiple of so many rows */

/* The arguments of forward and backward in the types that kernels use. */
struct problem {
    const void *q, *k, *v, *dout;
    void *out, *dq, *dk, *dv; /* `out` is an input of the backward pass */
    float *sums;
    float *delta;     /* of each row: the product of out and dout, summed */
    float *log2_sums; /* of each row: sums * log2(e); infinite in rows that only pad */
    float *dq_parts;  /* sums for dq in fp32, in an order of attention_hopper_backward.cu */
    int64_t row, out_row, key_row;
    int batch, heads, steps, size, keys, group;
    int padded; /* rows of delta and log2_sums for each head */
    int window; /* at most so many keys are seen; INT_MAX / 2: all */
    bool causal, add_dq, add_dkv;
    float scale, scale_log2;

    __host__ __device__ int key_heads() const
    {
        return heads / group;
    }
    __device__ int64_t query_at(int sequence, int head) const
    {
        return sequence * (int64_t)steps * row + (int64_t)head * size;
    }
    __device__ int64_t out_at(int sequence, int head) const
    {
        return sequence * (int64_t)steps * out_row + (int64_t)head * size;
    }
    __device__ int64_t key_at(int sequence, int key_head) const
    {
        return sequence * (int64_t)keys * key_row + (int64_t)key_head * size;
    }
    __device__ bool sees(int query, int key) const
    {
        return key < keys && (!causal || (key <= query && key + window > query));
    }
    /* The queries from `first` on, `count` of them, see the keys first_key .. key_end - 1 and no others. */
    __device__ int first_key(int first) const
    {
        return causal && first >= window ? first + 1 - window : 0;
    }
    __device__ int key_end(int first, int count) const
    {
        return causal ? min(first + count, keys) : keys;
    }
    /* All of those queries see all of these keys. */
    __device__ bool all_seen(int query, int queries, int key, int key_count) const
    {
        return key + key_count <= keys &&
               (!causal || (key + key_count - 1 <= query && key + window > query + queries - 1));
    }
    /* The keys from `first` on, `count` of them, are seen by the queries first_query .. query_end - 1 and no others. */
    __device__ int first_query(int first) const
    {
        return causal ? first : 0;
    }
    __device__ int query_end(int first, int count) const
    {
        return causal ? min(steps, first + count - 1 + window) : steps;
    }
};

inline void set_sizes(problem &p, size_t batch, size_t heads, size_t steps, size_t size, size_t keys, size_t group,
                      size_t window, bool causal)
{
    p.batch = (int)batch;
    p.heads = (int)heads;
    p.steps = (int)steps;
    p.size = (int)size;
    p.keys = (int)keys;
    p.group = group ? (int)group : 1;
    p.padded = (p.steps + stats_rows - 1) / stats_rows * stats_rows;
    p.window = causal && window && window < steps ? (int)window : INT_MAX / 2;
    p.causal = causal;
    p.scale = (float)(1 / sqrt((double)size));
    p.scale_log2 = (float)(1.44269504088896340736 / sqrt((double)size));
}

/* ---- launchers of the other files ---- */

cudaError_t plain_forward(const cuda_run *run, const problem &p, bool is_bf16);
cudaError_t plain_backward(const cuda_run *run, const problem &p, bool is_bf16);

extern bool use_hopper; /* false: as on other devices, for tests and comparisons */

/* cudaErrorNotSupported: not on this device, or not with these sizes. */
cudaError_t hopper_forward(const cuda_run *run, const problem &p);
cudaError_t hopper_backward(const cuda_run *run, const problem &p);
uint64_t hopper_dq_floats(const problem &p);

/* Lets a kernel use so much shared memory, and starts it. */
template <typename... Kernel, typename... Args>
inline cudaError_t launch(const cuda_run *run, void (*kernel)(Kernel...), dim3 grid, int threads, size_t shared,
                          const Args &...args)
{
    cudaError_t error =
        cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    if (error)
        return error;
    kernel<<<grid, threads, shared, run->stream>>>(args...);
    return cudaGetLastError();
}

/* ---- numbers ---- */

/* Tells the compiler that all threads of a warp have the same number, so that it is in a uniform register. */
__device__ inline int same_in_warp(int x)
{
    return __shfl_sync(~0u, x, 0);
}

__device__ inline float to_float(float x)
{
    return x;
}
__device__ inline float to_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
__device__ inline void from_float(float x, float *to)
{
    *to = x;
}
__device__ inline void from_float(float x, __nv_bfloat16 *to)
{
    *to = __float2bfloat16(x);
}
__device__ inline uint32_t pack_bf16(float low, float high)
{
    __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<uint32_t *>(&both);
}
__device__ inline float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Two neighbours of a row are stored, or added to what is there. */
__device__ inline void put_pair(__nv_bfloat16 *at, float low, float high, bool add)
{
    uint32_t *to = reinterpret_cast<uint32_t *>(at);
    if (add) {
        const uint32_t before = *to;
        low += __uint_as_float(before << 16);
        high += __uint_as_float(before & 0xffff0000u);
    }
    *to = pack_bf16(low, high);
}

/* ---- tiles in shared memory, for mma.sync ---- */

__device__ inline uint32_t shared_address(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

__device__ inline void copy_16_async(uint32_t to, const void *from, bool is_there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(is_there ? 16 : 0));
}
__device__ inline void commit_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int left> __device__ inline void wait_copies()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

/* Where 16 bytes of a tile with rows of `width` bf16 values are, in bytes. They are swapped within a row so that 8 rows at
 * the same column are in different banks. */
template <int width> __device__ inline uint32_t swizzled(int row, int chunk)
{
    static_assert(width % 32 == 0, "swizzles are of 64 or 128 bytes");
    const int moved = width % 64 == 0 ? chunk ^ (row & 7) : chunk ^ ((row >> 1) & 3);
    return (uint32_t)(row * width * 2 + moved * 16);
}

/* Copies `rows` rows of `size` values to a tile of `width` values a row. Rows beyond `there` and columns beyond `size` are 0. */
template <int rows, int width, int threads>
__device__ inline void load_tile(uint32_t tile, const __nv_bfloat16 *from, int64_t stride, int there, int size)
{
    constexpr int chunks = width / 8;
#pragma unroll 2 /* fully unrolled, the addresses would take too many registers */
    for (int at = threadIdx.x; at < rows * chunks; at += threads) {
        const int r = at / chunks, c = at % chunks;
        const bool is_there = r < there && c * 8 < size;
        copy_16_async(tile + swizzled<width>(r, c), is_there ? from + r * stride + c * 8 : from, is_there);
    }
}

__device__ inline void load_matrices(uint32_t (&r)[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}
__device__ inline void load_matrices_transposed(uint32_t (&r)[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

/* c += a b for 16 x 8 sums over 16 terms. A thread holds, with g = lane / 4 and t = lane % 4, the values of c in row g at
 * columns 2t and 2t + 1, then the same of row g + 8. */
__device__ inline void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* 16 rows of a tile, columns 16 * part on, as the left factor. */
template <int width> __device__ inline void load_left(uint32_t (&a)[4], uint32_t tile, int first_row, int part)
{
    const int lane = threadIdx.x % 32;
    load_matrices(a, tile + swizzled<width>(first_row + lane % 16, part * 2 + lane / 16));
}

/* c[n] += (16 rows of `left`) times (rows 8n .. 8n + 7 of `right`), over all columns of both. */
template <int width, int columns>
__device__ inline void multiply_rows(float (&c)[columns / 8][4], uint32_t left, int first_row, uint32_t right)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int part = 0; part < width / 16; part++) {
        uint32_t a[4];
        load_left<width>(a, left, first_row, part);
#pragma unroll
        for (int n = 0; n < columns / 16; n++) {
            uint32_t b[4];
            load_matrices(b, right + swizzled<width>(n * 16 + lane % 8 + lane / 16 * 8, part * 2 + lane / 8 % 2));
            multiply(c[2 * n], a, b[0], b[1]);
            multiply(c[2 * n + 1], a, b[2], b[3]);
        }
    }
}

/* c[n] += weights times columns 8n .. 8n + 7 of `right`, over all rows of `right`. `weights` are 16 rows in the layout of c. */
template <int width, int rows>
__device__ inline void multiply_weights(float (&c)[width / 8][4], const float (&weights)[rows / 8][4], uint32_t right)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int part = 0; part < rows / 16; part++) {
        const uint32_t a[4] = {pack_bf16(weights[2 * part][0], weights[2 * part][1]),
                               pack_bf16(weights[2 * part][2], weights[2 * part][3]),
                               pack_bf16(weights[2 * part + 1][0], weights[2 * part + 1][1]),
                               pack_bf16(weights[2 * part + 1][2], weights[2 * part + 1][3])};
#pragma unroll
        for (int n = 0; n < width / 16; n++) {
            uint32_t b[4];
            load_matrices_transposed(b, right + swizzled<width>(part * 16 + lane % 16, n * 2 + lane / 16));
            multiply(c[2 * n], a, b[0], b[1]);
            multiply(c[2 * n + 1], a, b[2], b[3]);
        }
    }
}

template <int count> __device__ inline void clear(float (&c)[count][4])
{
#pragma unroll
    for (int n = 0; n < count; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            c[n][e] = 0;
}

} /* namespace attention */

#endif
