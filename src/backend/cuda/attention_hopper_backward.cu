/* The backward pass of attention on Hopper, in bf16, for heads of at most 64 values.
 *
 * A unit of work is a head of keys in a sequence (attention_sharing.cuh). A block goes over its keys in tiles of 128, and
 * for each over the queries that see it, 128 at a time. Two warp groups compute, each for 64 of the keys; one thread of a
 * third group starts copies.
 *
 *     scores' = k q'     gradients' = v dout'        64 keys x 128 queries, in registers
 *     weights' = exp(scores')                        dv += weights' dout
 *     dscores' = weights' (gradients' - delta)       dk += dscores' q
 *     dscores in shared memory, from both groups     dq = dscores k, 64 queries for each group
 *
 * So one kernel makes all gradients with five products. dq needs a sum over all tiles of keys: each thread adds its values to
 * fp32 sums of its own in the workspace, in the order of the tiles. No other thread touches them, so the order is fixed.
 * The last tile that a query sees writes dq itself. */
#include "backend/cuda/attention_hopper.cuh"
#include "backend/cuda/attention_sharing.cuh"

namespace attention
{

constexpr int threads = 3 * 128, stages = 2;
constexpr uint32_t tile_bytes = tile * 64 * 2, stats_bytes = tile * 4;
constexpr size_t shared_bytes = 1024 + (4 + 2 * stages + 4) * tile_bytes + 2 * stages * stats_bytes + 128;

uint64_t hopper_dq_floats(const problem &p)
{
    return p.size > 64 ? 0 : flag_floats + sharing(p).sums_floats;
}

__device__ inline void add_4(float *to, float a, float b, float c, float d)
{
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(a), "f"(b), "f"(c), "f"(d)
                 : "memory");
}

/* A thread's part of 64 rows of dq: it is stored, or added to its sums, or written with them. */
struct query_sums {
    int from, to; /* the tiles of keys that are added */
    int slot; /* where the sums of the unit are; two of `blocks` slots each, the second for the ends of units that are cut */

    __device__ float *sums_at(const problem &p, const sharing &all, int number) const
    {
        return p.dq_parts + flag_floats + number * all.sums;
    }
    __device__ bool is_last(const problem &p, const sharing &all, int key, int query) const
    {
        return p.dq && from == 0 && all.parts == 1 && key == key_range(p, query, from, to).end - 1;
    }
    __device__ int place(const problem &p, int head, int query) const
    {
        return ((head * (p.padded / tile) + query) * 2 + threadIdx.x / 128) * 4096 + threadIdx.x % 128 * 4;
    }
    /* Has the L2 cache fetch the sums for a last tile. */
    __device__ void prefetch(const problem &p, const sharing &all, int head, int query) const
    {
        const float *sums = sums_at(p, all, slot) + place(p, head, query);
#pragma unroll
        for (int i = 0; i < 8; i++)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(sums + i * 512));
    }
    /* All sums for a last tile but its own. */
    __device__ void get(const problem &p, const sharing &all, float (&before)[32], int key, int head, int query) const
    {
        const int at = place(p, head, query);
        const bool is_first = key == key_range(p, query, from, to).first;
        const float *sums = sums_at(p, all, slot) + at;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float4 x = is_first ? make_float4(0, 0, 0, 0) : __ldcg((const float4 *)(sums + i * 512));
            before[i * 4] = x.x, before[i * 4 + 1] = x.y, before[i * 4 + 2] = x.z, before[i * 4 + 3] = x.w;
        }
        if (to < key_range(p, query, from, INT_MAX).end) { /* the next block had the other keys */
            const float *other = sums_at(p, all, all.blocks + slot + 1) + at;
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const float4 x = __ldcg((const float4 *)(other + i * 512));
                before[i * 4] += x.x, before[i * 4 + 1] += x.y, before[i * 4 + 2] += x.z, before[i * 4 + 3] += x.w;
            }
        }
    }
    __device__ void add(const problem &p, const sharing &all, const float (&dq)[32], int key, int head, int query) const
    {
        const key_range seen(p, query, from, to);
        if (!p.dq || key < seen.first || key >= seen.end)
            return;
        float *sums = sums_at(p, all, slot) + place(p, head, query);
        if (key == seen.first) {
#pragma unroll
            for (int i = 0; i < 8; i++)
                __stcg((float4 *)(sums + i * 512), make_float4(dq[i * 4], dq[i * 4 + 1], dq[i * 4 + 2], dq[i * 4 + 3]));
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++)
                add_4(sums + i * 512, dq[i * 4], dq[i * 4 + 1], dq[i * 4 + 2], dq[i * 4 + 3]);
        }
    }
};

/* Adds what is in memory to 64 rows of a gradient. `row` is the first of this thread. */
__device__ inline void add_rows(float (&c)[32], const __nv_bfloat16 *from, int64_t stride, int row, int rows, int size)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (row + half * 8 < rows) {
#pragma unroll
            for (int i = 0; i < 8; i++)
                if (i * 8 < size) {
                    const uint32_t x = *(const uint32_t *)(from + (row + half * 8) * stride + i * 8 + lane % 4 * 2);
                    c[i * 4 + half * 2] += __uint_as_float(x << 16);
                    c[i * 4 + half * 2 + 1] += __uint_as_float(x & 0xffff0000u);
                }
        }
}

/* Puts the 64 rows of a group into shared memory, as bf16, for the copy engine. */
__device__ inline void stage_rows(uint32_t to, const float (&c)[32])
{
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane % 16;
#pragma unroll
    for (int i = 0; i < 4; i++)
        store_matrices(to + swizzled<64>(row, i * 2 + lane / 16), pack_bf16(c[i * 8], c[i * 8 + 1]),
                       pack_bf16(c[i * 8 + 2], c[i * 8 + 3]), pack_bf16(c[i * 8 + 4], c[i * 8 + 5]),
                       pack_bf16(c[i * 8 + 6], c[i * 8 + 7]));
}

__global__ void __launch_bounds__(threads, 1)
    hopper_backward_kernel(const __grid_constant__ CUtensorMap q_map, const __grid_constant__ CUtensorMap k_map,
                           const __grid_constant__ CUtensorMap v_map, const __grid_constant__ CUtensorMap dout_map,
                           const __grid_constant__ CUtensorMap dq_map, const __grid_constant__ CUtensorMap dk_map,
                           const __grid_constant__ CUtensorMap dv_map, const problem p, const sharing all)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ char shared[];
    const uint32_t k_tiles = (shared_address(shared) + 1023) & ~1023u, v_tiles = k_tiles + 2 * tile_bytes,
                   q_tiles = v_tiles + 2 * tile_bytes, dout_tiles = q_tiles + stages * tile_bytes,
                   dscores = dout_tiles + stages * tile_bytes, log2_sums = dscores + 4 * tile_bytes,
                   deltas = log2_sums + stages * stats_bytes, barriers = deltas + stages * stats_bytes;
    /* Two tiles of keys and `stages` tiles of queries each have a barrier for "copied" and one for "used". */
    const uint32_t keys_full = barriers, keys_free = barriers + 16, queries_full = barriers + 32,
                   queries_free = barriers + 64;
    int key_count = 0, step_count = 0, sequence = 0, key_head = 0; /* counts: in this block, so far */

    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; i++) {
            barrier_init(keys_full + i * 8, 1);
            barrier_init(keys_free + i * 8, 2);
        }
        for (int i = 0; i < stages; i++) {
            barrier_init(queries_full + i * 8, 1);
            barrier_init(queries_free + i * 8, 256);
        }
        barriers_are_ready();
    }
    __syncthreads();

    if (threadIdx.x >= 256) { /* copies */
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x != 256)
            return;
        for_all_steps(
            p, all,
            [&](int unit, int, int) {
                sequence = unit / p.key_heads();
                key_head = unit % p.key_heads();
            },
            [&](int key) {
                const int place = key_count % 2;
                const uint32_t full = keys_full + place * 8;
                barrier_wait(keys_free + place * 8, key_count / 2 % 2 ^ 1);
                barrier_expect(full, 2 * tile_bytes);
                load_box(k_tiles + place * tile_bytes, &k_map, key_head, key * tile, sequence, full,
                         pass_through_cache);
                load_box(v_tiles + place * tile_bytes, &v_map, key_head, key * tile, sequence, full,
                         pass_through_cache);
                key_count++;
            },
            [&](int, int head_in_group, int query) {
                const int stage = step_count % stages, head = key_head * p.group + head_in_group;
                const uint32_t full = queries_full + stage * 8;
                const int64_t stats = ((int64_t)sequence * p.heads + head) * p.padded + query * tile;
                barrier_wait(queries_free + stage * 8, step_count / stages % 2 ^ 1);
                barrier_expect(full, 2 * tile_bytes + 2 * stats_bytes);
                load_box(q_tiles + stage * tile_bytes, &q_map, head, query * tile, sequence, full);
                load_bytes(log2_sums + stage * stats_bytes, p.log2_sums + stats, stats_bytes, full);
                load_box(dout_tiles + stage * tile_bytes, &dout_map, head, query * tile, sequence, full);
                load_bytes(deltas + stage * stats_bytes, p.delta + stats, stats_bytes, full);
                step_count++;
            },
            [](int) {}, [] {});
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        const int lane = threadIdx.x % 32, warp = same_in_warp(threadIdx.x / 32 % 4),
                  group = same_in_warp(threadIdx.x / 128);
        const uint32_t group_rows = group * 64 * 128; /* bytes before this group's rows in a tile */
        query_sums sums;
        float dk[32], dv[32];
        bool keys_are_used = false; /* the tile of keys before is free when its gradients are written */

        for_all_steps(
            p, all,
            [&](int unit, int from, int to) {
                const int number = all.parts > 1 ? blockIdx.x : all.blocks - 1 - blockIdx.x;
                sequence = unit / p.key_heads();
                key_head = unit % p.key_heads();
                sums.from = from;
                sums.to = to;
                sums.slot = from > 0 && all.parts == 1 ? all.blocks + number : number;
                if (from == 0 && to < all.tiles && all.parts == 1) {
                    uint32_t is_there;
                    do
                        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                                     : "=r"(is_there)
                                     : "l"(p.dq_parts + number + 1)
                                     : "memory");
                    while (!is_there);
                }
            },
            [&](int) {
                barrier_wait(keys_full + key_count % 2 * 8, key_count / 2 % 2);
#pragma unroll
                for (int i = 0; i < 32; i++)
                    dk[i] = dv[i] = 0;
            },
            [&](int key, int head, int query) {
                const int stage = step_count % stages, place = key_count % 2;
                const uint64_t k_rows = tile_descriptor(k_tiles + place * tile_bytes + group_rows);
                const uint64_t v_rows = tile_descriptor(v_tiles + place * tile_bytes + group_rows);
                const uint64_t q_rows = tile_descriptor(q_tiles + stage * tile_bytes);
                const uint64_t dout_rows = tile_descriptor(dout_tiles + stage * tile_bytes);
                barrier_wait(queries_full + stage * 8, step_count / stages % 2);

                float weight[64], gradient[64], dq[32];
                begin_products();
#pragma unroll
                for (int i = 0; i < 4; i++)
                    multiply_128(weight, k_rows + i * next_16_columns, q_rows + i * next_16_columns, i > 0);
                commit_products();

                begin_products();
#pragma unroll
                for (int i = 0; i < 4; i++)
                    multiply_128(gradient, v_rows + i * next_16_columns, dout_rows + i * next_16_columns, i > 0);
                commit_products();

                const bool is_last = sums.is_last(p, all, key, query);
                if (is_last)
                    sums.prefetch(p, all, head, query);
                wait_products<1>();
                const int first_query = query * tile, first_key = key * tile + group * 64;
                const uint32_t stats = stage * stats_bytes + lane % 4 * 8;
#pragma unroll
                for (int n = 0; n < 16; n++) {
                    float x, y;
                    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                                 : "=f"(x), "=f"(y)
                                 : "r"(log2_sums + stats + n * 32));
#pragma unroll
                    for (int half = 0; half < 2; half++) {
                        weight[n * 4 + half * 2] = exp2_fast(weight[n * 4 + half * 2] * p.scale_log2 - x);
                        weight[n * 4 + half * 2 + 1] = exp2_fast(weight[n * 4 + half * 2 + 1] * p.scale_log2 - y);
                    }
                }
                if (!p.all_seen(first_query, tile, first_key, 64)) {
#pragma unroll
                    for (int half = 0; half < 2; half++) {
                        const int row = first_key + warp * 16 + lane / 4 + half * 8;
                        const int low = (p.causal ? row : 0) - first_query - lane % 4 * 2;
                        const unsigned seen = row >= p.keys ? 0u : p.causal ? (unsigned)p.window : INT_MAX;
#pragma unroll
                        for (int i = 0; i < 32; i++)
                            if ((unsigned)(i / 2 * 8 + i % 2 - low) >= seen)
                                weight[i / 2 * 4 + half * 2 + i % 2] = 0;
                    }
                }
                wait_products<0>();
#pragma unroll
                for (int n = 0; n < 16; n++) {
                    float x, y;
                    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(deltas + stats + n * 32));
#pragma unroll
                    for (int half = 0; half < 2; half++) {
                        gradient[n * 4 + half * 2] = weight[n * 4 + half * 2] * (gradient[n * 4 + half * 2] - x);
                        gradient[n * 4 + half * 2 + 1] =
                            weight[n * 4 + half * 2 + 1] * (gradient[n * 4 + half * 2 + 1] - y);
                    }
                }
                uint32_t packed[32], packed_gradient[32];
#pragma unroll
                for (int i = 0; i < 32; i++) {
                    packed[i] = pack_bf16(weight[i * 2], weight[i * 2 + 1]);
                    packed_gradient[i] = pack_bf16(gradient[i * 2], gradient[i * 2 + 1]);
                }
                begin_products();
#pragma unroll
                for (int i = 0; i < 8; i++)
                    multiply_held_64(dv, packed + i * 4, dout_rows + i * next_16_rows, 1);
                commit_products();
                /* Rows are keys, columns queries; the first 64 queries are in one tile, the others in the next. Two pairs of
                 * tiles take turns, because the other group may still read the pair before. */
                const uint32_t dscore = dscores + step_count % 2 * 2 * tile_bytes;
                const int dscore_row = group * 64 + warp * 16 + lane % 16;
#pragma unroll
                for (int i = 0; i < 8; i++)
                    store_matrices(dscore + i / 4 * tile_bytes + swizzled<64>(dscore_row, i % 4 * 2 + lane / 16),
                                   packed_gradient[i * 4], packed_gradient[i * 4 + 1], packed_gradient[i * 4 + 2],
                                   packed_gradient[i * 4 + 3]);
                fence_for_async();
                begin_products();
#pragma unroll
                for (int i = 0; i < 8; i++)
                    multiply_held_64(dk, packed_gradient + i * 4, q_rows + i * next_16_rows, 1);
                commit_products();
                if (threadIdx.x % 128 == 0) {
                    wait_stores();
                    if (keys_are_used)
                        barrier_arrive(keys_free + (key_count + 1) % 2 * 8);
                }
                keys_are_used = false;
                named_barrier(1, 256);
                const uint64_t dscore_rows = tile_descriptor(dscore + group * tile_bytes);
                const uint64_t all_k_rows = tile_descriptor(k_tiles + place * tile_bytes);
                begin_products();
#pragma unroll
                for (int i = 0; i < 8; i++)
                    multiply_transposed_64(dq, dscore_rows + i * next_16_rows, all_k_rows + i * next_16_rows, i > 0);
                commit_products();
                wait_products<0>();
                barrier_arrive(queries_free + stage * 8);
                if (is_last) {
                    const int all_head = key_head * p.group + head, row = query * tile + group * 64;
                    float before[32];
                    sums.get(p, all, before, key, head, query);
#pragma unroll
                    for (int i = 0; i < 32; i++)
                        dq[i] = (dq[i] + before[i]) * p.scale;
                    if (p.add_dq)
                        add_rows(dq, (const __nv_bfloat16 *)p.dq + p.query_at(sequence, all_head), p.row,
                                 row + warp * 16 + lane / 4, p.steps, p.size);
                    /* Only this group has read its half of the gradients of the scores. */
                    named_barrier(2 + group, 128);
                    stage_rows(dscore + group * tile_bytes, dq);
                    fence_for_async();
                    named_barrier(2 + group, 128);
                    if (threadIdx.x % 128 == 0)
                        store_box(&dq_map, dscore + group * tile_bytes, all_head, row, sequence, pass_through_cache);
                } else {
                    sums.add(p, all, dq, key, head, query);
                }
                step_count++;
            },
            [&](int key) {
                const int64_t at = p.key_at(sequence, key_head);
                const int first_row = key * tile + group * 64, row = first_row + warp * 16 + lane / 4;
                const uint32_t dk_place = dscores + ((step_count + 1) % 2 * 2 + group) * tile_bytes + tile_bytes / 2,
                               dv_place = v_tiles + key_count % 2 * tile_bytes + group_rows;
#pragma unroll
                for (int i = 0; i < 32; i++)
                    dk[i] *= p.scale;
                if (p.dk && p.add_dkv)
                    add_rows(dk, (const __nv_bfloat16 *)p.dk + at, p.key_row, row, p.keys, p.size);
                if (p.dv && p.add_dkv)
                    add_rows(dv, (const __nv_bfloat16 *)p.dv + at, p.key_row, row, p.keys, p.size);
                named_barrier(2 + group, 128);
                stage_rows(dk_place, dk);
                stage_rows(dv_place, dv);
                fence_for_async();
                named_barrier(2 + group, 128);
                if (threadIdx.x % 128 == 0) {
                    if (p.dk)
                        store_box(&dk_map, dk_place, key_head, first_row, sequence, pass_through_cache);
                    if (p.dv)
                        store_box(&dv_map, dv_place, key_head, first_row, sequence, pass_through_cache);
                }
                keys_are_used = true;
                key_count++;
            },
            [&] {
                if (sums.from > 0 && all.parts == 1) { /* the sums are there for the block that has the first part */
                    __threadfence();
                    named_barrier(1, 256);
                    if (threadIdx.x == 0)
                        asm volatile(
                            "st.release.gpu.global.u32 [%0], 1;" ::"l"(p.dq_parts + all.blocks - 1 - blockIdx.x)
                            : "memory");
                }
            });
        if (threadIdx.x % 128 == 0)
            wait_stores();
    }
#endif
}

/* Adds up the parts of all units. Each thread has 4 sums of the layout in which hopper_backward_kernel left them. */
static __global__ void add_parts_kernel(const problem p, const sharing all)
{
    const uint64_t index = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, of_unit = all.sums / 4;
    const int unit = (int)(index / of_unit), in_unit = (int)(index % of_unit), tiles = p.padded / tile;
    if (unit >= all.units)
        return;
    const int thread = in_unit % 128, column = in_unit / 128 % 8 * 8, group = in_unit / 1024 % 2, lane = thread % 32;
    const int query = in_unit / 2048 % tiles, head = unit % p.key_heads() * p.group + in_unit / 2048 / tiles;
    const float4 *from = (const float4 *)(p.dq_parts + flag_floats);
    float4 sum = make_float4(0, 0, 0, 0);
    for (int part = 0; part < all.parts; part++) {
        const key_range seen(p, query, part_begin(p, part, all.parts), part_begin(p, part + 1, all.parts));
        if (seen.first >= seen.end)
            continue;
        const float4 x = from[((uint64_t)unit * all.parts + part) * of_unit + in_unit];
        sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
    }
    const int row = query * tile + group * 64 + thread / 32 * 16 + lane / 4;
    auto *to = (__nv_bfloat16 *)p.dq + p.query_at(unit / p.key_heads(), head) + row * p.row + column + lane % 4 * 2;
    if (column < p.size && row < p.steps)
        put_pair(to, sum.x * p.scale, sum.y * p.scale, p.add_dq);
    if (column < p.size && row + 8 < p.steps)
        put_pair(to + 8 * p.row, sum.z * p.scale, sum.w * p.scale, p.add_dq);
}

cudaError_t hopper_backward(const cuda_run *run, const problem &p)
{
    if (p.size > 64 || !is_hopper())
        return cudaErrorNotSupported;
    CUtensorMap q, k, v, dout, dq, dk, dv;
    cudaError_t error = make_tensor_map(&q, p.q, p.size, p.heads, p.steps, p.batch, p.row, tile);
    if (!error)
        error = make_tensor_map(&k, p.k, p.size, p.key_heads(), p.keys, p.batch, p.key_row, tile);
    if (!error)
        error = make_tensor_map(&v, p.v, p.size, p.key_heads(), p.keys, p.batch, p.key_row, tile);
    if (!error)
        error = make_tensor_map(&dout, p.dout, p.size, p.heads, p.steps, p.batch, p.out_row, tile);
    /* Gradients that are not asked for have maps that are not used. */
    if (!error)
        error = make_tensor_map(&dq, p.dq ? p.dq : p.q, p.size, p.heads, p.steps, p.batch, p.row, 64);
    if (!error)
        error = make_tensor_map(&dk, p.dk ? p.dk : p.k, p.size, p.key_heads(), p.keys, p.batch, p.key_row, 64);
    if (!error)
        error = make_tensor_map(&dv, p.dv ? p.dv : p.v, p.size, p.key_heads(), p.keys, p.batch, p.key_row, 64);
    if (error)
        return error;
    const sharing all(p);
    error = launch(run, hopper_backward_kernel, dim3((unsigned)all.blocks), threads, shared_bytes, q, k, v, dout, dq,
                   dk, dv, p, all);
    if (!error && p.dq && all.parts > 1) {
        const uint64_t count = all.sums / 4 * (uint64_t)all.units;
        error = launch(run, add_parts_kernel, dim3((unsigned)((count + 255) / 256)), 256, 0, p, all);
    }
    return error;
}

} /* namespace attention */
