/* The forward pass of attention on Hopper, in bf16, for heads of at most 64 values.
 *
 * A block has 128 queries, each of its two warp groups 64 of them. Keys and values come in tiles of 128 rows, two of them at a
 * time. The warp that is the last to use a tile starts the copy of the one after the next into its place. Two blocks are on a
 * multiprocessor: while some of its four warp groups compute weights, others multiply. */
#include "backend/cuda/attention_hopper.cuh"

namespace attention
{

bool use_hopper = true;

constexpr int groups = 2, threads = groups * 128, tile = 128;
constexpr uint32_t tile_bytes = tile * 64 * 2;
constexpr size_t shared_bytes = 1024 + 5 * tile_bytes + 128;

bool is_hopper()
{
    int device, major = 0, minor = 0;
    return use_hopper && !cudaGetDevice(&device) &&
           !cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) &&
           !cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) && major == 9 && minor == 0;
}

cudaError_t make_tensor_map(CUtensorMap *map, const void *at, int size, int heads, int rows, int batch, int64_t stride,
                            int box_rows)
{
    /* The driver is asked at run time, so that programs start where there is none. */
    typedef CUresult encoder(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                             const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                             CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
    void *encode = NULL;
    cudaDriverEntryPointQueryResult found;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found);
    if (error)
        return error;
    const cuuint64_t extents[4] = {(cuuint64_t)size, (cuuint64_t)heads, (cuuint64_t)rows, (cuuint64_t)batch};
    const cuuint64_t strides[3] = {(cuuint64_t)size * 2, (cuuint64_t)stride * 2, (cuuint64_t)(rows * stride) * 2};
    const cuuint32_t box[4] = {64, 1, (cuuint32_t)box_rows, 1}, steps[4] = {1, 1, 1, 1};
    if (!encode || ((encoder *)encode)(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, (void *)at, extents, strides, box,
                                       steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                       CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
        return cudaErrorNotSupported;
    return cudaSuccess;
}

/* Block `index` in the order in which blocks start. Heads come in sections whose keys and values stay in the L2 cache; within a
 * section, the longest rows come first. */
struct place {
    int block, head, sequence;
    __device__ place(int index, int blocks, int heads, int all_heads, int section)
    {
        const int from = index / (section * blocks) * section, count = min(section, all_heads - from);
        const int rest = index - from * blocks, of_all = from + rest % count;
        block = blocks - 1 - rest / count;
        head = of_all % heads;
        sequence = of_all / heads;
    }
};

__device__ inline uint32_t count_one(uint32_t at)
{
    uint32_t before;
    asm volatile("atom.acq_rel.cta.shared::cta.add.u32 %0, [%1], 1;" : "=r"(before) : "r"(at) : "memory");
    return before;
}

__global__ void __launch_bounds__(threads, 2)
    hopper_forward_kernel(const __grid_constant__ CUtensorMap q_map, const __grid_constant__ CUtensorMap k_map,
                          const __grid_constant__ CUtensorMap v_map, const __grid_constant__ CUtensorMap out_map,
                          const problem p, const int section)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ char shared[];
    const uint32_t q_tile = (shared_address(shared) + 1023) & ~1023u, k_tiles = q_tile + tile_bytes,
                   v_tiles = k_tiles + 2 * tile_bytes, barriers = v_tiles + 2 * tile_bytes;
    /* Barriers: q, k of both stages, v of both stages. Counters: k and v of both stages. */
    const uint32_t q_full = barriers, k_full = barriers + 8, v_full = barriers + 24, k_used = barriers + 64,
                   v_used = barriers + 72;
    const place at(blockIdx.x, (p.steps + tile - 1) / tile, p.heads, p.heads * p.batch, section);
    const int head = at.head, sequence = at.sequence, first = at.block * tile, key_head = head / p.group;
    const int lane = threadIdx.x % 32, warp = same_in_warp(threadIdx.x / 32 % 4),
              group = same_in_warp(threadIdx.x / 128);
    const int row = first + group * 64 + warp * 16 + lane / 4; /* this thread has this row and row + 8 */
    const int begin = p.first_key(first) / tile, count = (p.key_end(first, tile) + tile - 1) / tile - begin;

    auto load = [&](const CUtensorMap *map, uint32_t tiles, uint32_t full, int n) {
        barrier_expect(full + n % 2 * 8, tile_bytes);
        load_box(tiles + n % 2 * tile_bytes, map, key_head, (begin + n) * tile, sequence, full + n % 2 * 8);
    };
    /* This warp has used tile n. */
    auto release = [&](const CUtensorMap *map, uint32_t tiles, uint32_t full, uint32_t used, int n) {
        if (n + 2 < count && lane == 0 &&
            count_one(used + n % 2 * 4) == (uint32_t)(n / 2 * groups * 4 + groups * 4 - 1))
            load(map, tiles, full, n + 2);
    };

    if (threadIdx.x == 0) {
        for (int i = 0; i < 5; i++)
            barrier_init(barriers + i * 8, 1);
        for (int i = 0; i < 4; i++)
            asm volatile("st.shared.u32 [%0], 0;" ::"r"(k_used + i * 4) : "memory");
        barriers_are_ready();
        barrier_expect(q_full, tile_bytes);
        load_box(q_tile, &q_map, head, first, sequence, q_full);
        for (int n = 0; n < min(count, 2); n++) {
            load(&k_map, k_tiles, k_full, n);
            load(&v_map, v_tiles, v_full, n);
        }
    }
    __syncthreads();

    float output[32], largest[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < 32; i++)
        output[i] = 0;
    const uint64_t q_rows = tile_descriptor(q_tile + group * 64 * 128);
    barrier_wait(q_full, 0);
    for (int n = 0; n < count; n++) {
        const int stage = n % 2, key = (begin + n) * tile;
        const uint64_t k_rows = tile_descriptor(k_tiles + stage * tile_bytes);
        float score[64];
        barrier_wait(k_full + stage * 8, n / 2 % 2);
        begin_products();
#pragma unroll
        for (int part = 0; part < 4; part++)
            multiply_128(score, q_rows + part * next_16_columns, k_rows + part * next_16_columns, part > 0);
        commit_products();
        wait_products<0>();
        release(&k_map, k_tiles, k_full, k_used, n);

        if (!p.all_seen(first + group * 64, 64, key, tile)) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int low = p.first_key(row + half * 8) - key - lane % 4 * 2;
                const unsigned seen = (unsigned)(p.key_end(row + half * 8, 1) - key - lane % 4 * 2 - low);
#pragma unroll
                for (int i = 0; i < 32; i++)
                    if ((unsigned)(i / 2 * 8 + i % 2 - low) >= seen)
                        score[i / 2 * 4 + half * 2 + i % 2] = -INFINITY;
            }
        }
        uint32_t weights[32];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float most = largest[half];
#pragma unroll
            for (int i = 0; i < 16; i++)
                most = fmaxf(most, fmaxf(score[i * 4 + half * 2], score[i * 4 + half * 2 + 1]));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
            const float base = most == -INFINITY ? 0 : most * p.scale_log2; /* no key is seen yet */
            const float shrink = exp2_fast(largest[half] * p.scale_log2 - base);
            largest[half] = most;
            sum[half] *= shrink;
#pragma unroll
            for (int i = 0; i < 16; i++) {
                const float x = exp2_fast(score[i * 4 + half * 2] * p.scale_log2 - base);
                const float y = exp2_fast(score[i * 4 + half * 2 + 1] * p.scale_log2 - base);
                sum[half] += x + y;
                weights[i * 2 + half] = pack_bf16(x, y);
            }
#pragma unroll
            for (int i = 0; i < 8; i++) {
                output[i * 4 + half * 2] *= shrink;
                output[i * 4 + half * 2 + 1] *= shrink;
            }
        }

        const uint64_t v_rows = tile_descriptor(v_tiles + stage * tile_bytes);
        barrier_wait(v_full + stage * 8, n / 2 % 2);
        begin_products();
#pragma unroll
        for (int part = 0; part < 8; part++)
            multiply_held_64(output, weights + part * 4, v_rows + part * next_16_rows, 1);
        commit_products();
        wait_products<0>();
        release(&v_map, v_tiles, v_full, v_used, n);
    }

    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        sum[half] += __shfl_xor_sync(~0u, sum[half], 1);
        sum[half] += __shfl_xor_sync(~0u, sum[half], 2);
        factor[half] = 1 / sum[half];
        if (lane % 4 == 0 && row + half * 8 < p.steps)
            p.sums[((int64_t)sequence * p.heads + head) * p.steps + row + half * 8] =
                largest[half] * p.scale + logf(sum[half]);
    }
    /* The output goes out by way of this group's part of the tile of queries. */
    const int out_row = group * 64 + warp * 16 + lane % 16;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float *c = output + i * 8;
        store_matrices(q_tile + swizzled<64>(out_row, i * 2 + lane / 16), pack_bf16(c[0] * factor[0], c[1] * factor[0]),
                       pack_bf16(c[2] * factor[1], c[3] * factor[1]), pack_bf16(c[4] * factor[0], c[5] * factor[0]),
                       pack_bf16(c[6] * factor[1], c[7] * factor[1]));
    }
    fence_for_async();
    named_barrier(1 + group, 128);
    if (threadIdx.x % 128 == 0) {
        store_box(&out_map, q_tile + group * 64 * 128, head, first + group * 64, sequence);
        wait_stores();
    }
#endif
}

cudaError_t hopper_forward(const cuda_run *run, const problem &p)
{
    if (p.size > 64 || !is_hopper())
        return cudaErrorNotSupported;
    CUtensorMap q, k, v, out;
    cudaError_t error = make_tensor_map(&q, p.q, p.size, p.heads, p.steps, p.batch, p.row, tile);
    if (!error)
        error = make_tensor_map(&k, p.k, p.size, p.key_heads(), p.keys, p.batch, p.key_row, tile);
    if (!error)
        error = make_tensor_map(&v, p.v, p.size, p.key_heads(), p.keys, p.batch, p.key_row, tile);
    if (!error)
        error = make_tensor_map(&out, p.out, p.size, p.heads, p.steps, p.batch, p.out_row, 64);
    if (error)
        return error;
    const int blocks = (p.steps + tile - 1) / tile, heads = p.heads * p.batch;
    /* Sections of equal size with at most 32 MiB of keys and values. */
    const int64_t all_bytes = (int64_t)p.keys * p.size * 4 * heads,
                  sections = (all_bytes + (32 << 20) - 1) / (32 << 20);
    const int section = sections < heads ? (int)((heads + sections - 1) / sections) : 1;
    return launch(run, hopper_forward_kernel, dim3((unsigned)(blocks * heads)), threads, shared_bytes, q, k, v, out, p,
                  section);
}

} /* namespace attention */
