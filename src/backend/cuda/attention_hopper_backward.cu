/* The backward pass of attention on Hopper, in bf16, for heads of at most 64 values.
 *
 * A block has the keys of one head (or one of a few parts of them) and goes over them in tiles of 128, and for each over the
 * queries that see it, 128 at a time. Two warp groups compute, each for 64 of the keys; one warp of a third group starts copies.
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

namespace attention
{

constexpr int tile = 128, threads = 3 * 128, stages = 2;
constexpr uint32_t tile_bytes = tile * 64 * 2, stats_bytes = tile * 4;
constexpr size_t shared_bytes = 1024 + (4 + 2 * stages + 4) * tile_bytes + 2 * stages * stats_bytes + 128;

static __host__ __device__ int tiles_of(int rows)
{
    return (rows + tile - 1) / tile;
}

/* In how many parts the keys of a head are. Many heads need no parts; with few, parts keep the device busy. */
static int parts_of(const problem &p)
{
    const int units = p.batch * p.key_heads(), tiles = tiles_of(p.keys);
    int parts = 1;
    while (parts < 4 && units * parts < 128 && parts * 4 <= tiles)
        parts *= 2;
    return parts;
}

static uint64_t floats_of_part(const problem &p)
{
    return (uint64_t)p.batch * (uint64_t)p.heads * (uint64_t)p.padded * 64;
}

uint64_t hopper_dq_floats(const problem &p)
{
    return p.size > 64 ? 0 : floats_of_part(p) * (uint64_t)parts_of(p);
}

/* The tiles of queries that see tile `key` of keys: first .. end - 1. */
struct query_range {
    int first, end;
    __device__ query_range(const problem &p, int key)
        : first(p.first_query(key * tile) / tile), end(tiles_of(p.query_end(key * tile, tile)))
    {
        if (first >= end) /* no query sees these keys; a tile with weights of 0 keeps the loops simple */
            first = tiles_of(p.steps) - 1, end = first + 1;
    }
};

/* The tiles of keys that tile `query` of queries sees, among those from `from` to `to` - 1. */
struct key_range {
    int first, end;
    __device__ key_range(const problem &p, int query, int from, int to)
        : first(max(from, p.first_key(query * tile) / tile)), end(min(to, tiles_of(p.key_end(query * tile, tile))))
    {
    }
};

/* Where part `part` of `parts` begins, so that all have about the same number of tiles to compute. */
static __device__ int part_begin(const problem &p, int part, int parts)
{
    const int tiles = tiles_of(p.keys);
    if (part == 0 || part == parts)
        return part == 0 ? 0 : tiles;
    if (!p.causal || p.window < p.steps)
        return part * tiles / parts;
    const int whole = tiles * (tiles + 1) / 2;
    int at = 0;
    for (int done = 0; done * parts < whole * part; at++)
        done += tiles - at;
    return at;
}

/* The steps of a block, one after the other: tile of keys, head, tile of queries. */
struct cursor {
    int key, head, query;
    query_range range;
    __device__ cursor(const problem &p, int first_key, int first_head)
        : key(first_key), head(first_head), query(0), range(p, first_key)
    {
        query = range.first;
    }
    __device__ void next(const problem &p, int first_head)
    {
        if (++query < range.end)
            return;
        if (++head == first_head + p.group) {
            head = first_head;
            key++;
            range = query_range(p, key);
        }
        query = range.first;
    }
    __device__ bool is_last_of_key(const problem &p, int first_head) const
    {
        return query == range.end - 1 && head == first_head + p.group - 1;
    }
};

__device__ inline void add_4(float *to, float a, float b, float c, float d)
{
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(a), "f"(b), "f"(c), "f"(d)
                 : "memory");
}

/* A thread's part of 64 rows: dq is stored, or added to its sums, or written with them. */
struct query_sums {
    const problem &p;
    int sequence, key_begin, key_end;
    float *part; /* of the workspace */
    bool whole;  /* the keys are in one part */

    __device__ void put(const float (&dq)[32], int key, int head, int query) const
    {
        const int lane = threadIdx.x % 32, group = threadIdx.x / 128;
        const key_range seen(p, query, key_begin, key_end);
        float *sums = part + ((((int64_t)sequence * p.heads + head) * (p.padded / tile) + query) * 2 + group) * 4096 +
                      threadIdx.x % 128 * 4;
        const bool is_first = key == seen.first, is_last = whole && key == seen.end - 1;
        if (!p.dq || key < seen.first || key >= seen.end)
            return;
        if (!is_last) {
#pragma unroll
            for (int i = 0; i < 8; i++)
                if (is_first)
                    __stcg((float4 *)(sums + i * 512),
                           make_float4(dq[i * 4], dq[i * 4 + 1], dq[i * 4 + 2], dq[i * 4 + 3]));
                else
                    add_4(sums + i * 512, dq[i * 4], dq[i * 4 + 1], dq[i * 4 + 2], dq[i * 4 + 3]);
            return;
        }
        const int row = query * tile + group * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4;
        auto *to = (__nv_bfloat16 *)p.dq + p.query_at(sequence, head) + row * p.row + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float4 before = is_first ? make_float4(0, 0, 0, 0) : __ldcg((const float4 *)(sums + i * 512));
            if (i * 8 < p.size && row < p.steps)
                put_pair(to + i * 8, (dq[i * 4] + before.x) * p.scale, (dq[i * 4 + 1] + before.y) * p.scale, p.add_dq);
            if (i * 8 < p.size && row + 8 < p.steps)
                put_pair(to + 8 * p.row + i * 8, (dq[i * 4 + 2] + before.z) * p.scale,
                         (dq[i * 4 + 3] + before.w) * p.scale, p.add_dq);
        }
    }
};

/* 64 rows of dk or dv. */
__device__ inline void put_rows(const problem &p, const float (&c)[32], float factor, void *gradient, int64_t at,
                                int row)
{
    const int lane = threadIdx.x % 32;
    auto *to = (__nv_bfloat16 *)gradient + at + row * p.key_row + lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (row + half * 8 < p.keys) {
#pragma unroll
            for (int i = 0; i < 8; i++)
                if (i * 8 < p.size)
                    put_pair(to + half * 8 * p.key_row + i * 8, c[i * 4 + half * 2] * factor,
                             c[i * 4 + half * 2 + 1] * factor, p.add_dkv);
        }
}

__global__ void __launch_bounds__(threads, 1)
    hopper_backward_kernel(const __grid_constant__ CUtensorMap q_map, const __grid_constant__ CUtensorMap k_map,
                           const __grid_constant__ CUtensorMap v_map, const __grid_constant__ CUtensorMap dout_map,
                           const problem p, const int parts, const uint64_t part_floats)
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
    const int part = blockIdx.x % parts, unit = blockIdx.x / parts;
    const int key_head = unit % p.key_heads(), sequence = unit / p.key_heads(), first_head = key_head * p.group;
    const int begin = part_begin(p, part, parts), end = part_begin(p, part + 1, parts);

    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; i++) {
            barrier_init(keys_full + i * 8, 1);
            barrier_init(keys_free + i * 8, 8);
        }
        for (int i = 0; i < stages; i++) {
            barrier_init(queries_full + i * 8, 1);
            barrier_init(queries_free + i * 8, 8);
        }
        barriers_are_ready();
    }
    __syncthreads();

    if (threadIdx.x >= 256) { /* copies */
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 256) {
            int step = 0;
            for (cursor at(p, begin, first_head); at.key < end; at.next(p, first_head), step++) {
                const int stage = step % stages;
                if (at.query == at.range.first && at.head == first_head) {
                    const int number = at.key - begin, place = number % 2;
                    const uint32_t full = keys_full + place * 8;
                    barrier_wait(keys_free + place * 8, number / 2 % 2 ^ 1);
                    barrier_expect(full, 2 * tile_bytes);
                    load_box(k_tiles + place * tile_bytes, &k_map, key_head, at.key * tile, sequence, full);
                    load_box(v_tiles + place * tile_bytes, &v_map, key_head, at.key * tile, sequence, full);
                }
                const uint32_t full = queries_full + stage * 8;
                const int64_t stats = ((int64_t)sequence * p.heads + at.head) * p.padded + at.query * tile;
                barrier_wait(queries_free + stage * 8, step / stages % 2 ^ 1);
                barrier_expect(full, 2 * tile_bytes + 2 * stats_bytes);
                load_box(q_tiles + stage * tile_bytes, &q_map, at.head, at.query * tile, sequence, full);
                load_bytes(log2_sums + stage * stats_bytes, p.log2_sums + stats, stats_bytes, full);
                load_box(dout_tiles + stage * tile_bytes, &dout_map, at.head, at.query * tile, sequence, full);
                load_bytes(deltas + stage * stats_bytes, p.delta + stats, stats_bytes, full);
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, group = threadIdx.x / 128;
        const query_sums sums = {p, sequence, begin, end, p.dq_parts + part * part_floats, parts == 1};
        const uint32_t group_rows = group * 64 * 128; /* bytes before this group's rows in a tile */
        float dk[32], dv[32], dq[32];
#pragma unroll
        for (int i = 0; i < 32; i++)
            dk[i] = dv[i] = dq[i] = 0;

        cursor at(p, begin, first_head);
        int step = 0;
        for (; at.key < end; at.next(p, first_head), step++) {
            const int stage = step % stages, place = (at.key - begin) % 2;
            const uint64_t k_rows = tile_descriptor(k_tiles + place * tile_bytes + group_rows);
            const uint64_t v_rows = tile_descriptor(v_tiles + place * tile_bytes + group_rows);
            const uint64_t q_rows = tile_descriptor(q_tiles + stage * tile_bytes);
            const uint64_t dout_rows = tile_descriptor(dout_tiles + stage * tile_bytes);
            if (at.query == at.range.first && at.head == first_head)
                barrier_wait(keys_full + place * 8, (at.key - begin) / 2 % 2);
            barrier_wait(queries_full + stage * 8, step / stages % 2);

            float weight[64], gradient[64];
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

            wait_products<1>();
            const int query = at.query * tile, key = at.key * tile + group * 64 + warp * 16 + lane / 4;
            const uint32_t stats = stage * stats_bytes + lane % 4 * 8;
#pragma unroll
            for (int n = 0; n < 16; n++) {
                float x, y;
                asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(log2_sums + stats + n * 32));
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    weight[n * 4 + half * 2] = exp2_fast(weight[n * 4 + half * 2] * p.scale_log2 - x);
                    weight[n * 4 + half * 2 + 1] = exp2_fast(weight[n * 4 + half * 2 + 1] * p.scale_log2 - y);
                }
            }
            if (!p.all_seen(query, tile, at.key * tile + group * 64, 64)) {
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const int row = key + half * 8, low = (p.causal ? row : 0) - query - lane % 4 * 2;
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
            const uint32_t dscore = dscores + step % 2 * 2 * tile_bytes;
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
            named_barrier(1, 256);
            const uint64_t dscore_rows = tile_descriptor(dscore + group * tile_bytes);
            const uint64_t all_k_rows = tile_descriptor(k_tiles + place * tile_bytes);
            begin_products();
#pragma unroll
            for (int i = 0; i < 8; i++)
                multiply_transposed_64(dq, dscore_rows + i * next_16_rows, all_k_rows + i * next_16_rows, i > 0);
            commit_products();
            wait_products<1>(); /* dk and dv are up to date */
            wait_products<0>();
            if (lane == 0)
                barrier_arrive(queries_free + stage * 8);
            sums.put(dq, at.key, at.head, at.query);

            if (at.is_last_of_key(p, first_head)) {
                const int64_t rows = p.key_at(sequence, key_head);
                if (p.dk)
                    put_rows(p, dk, p.scale, p.dk, rows, key);
                if (p.dv)
                    put_rows(p, dv, 1, p.dv, rows, key);
#pragma unroll
                for (int i = 0; i < 32; i++)
                    dk[i] = dv[i] = 0;
                wait_products<0>(); /* dq has read the keys */
                if (lane == 0)
                    barrier_arrive(keys_free + place * 8);
            }
        }
    }
#endif
}

/* Adds up the parts. Each thread has 4 sums of the layout in which hopper_backward_kernel left them. */
static __global__ void add_parts_kernel(const problem p, const int parts, const uint64_t part_floats)
{
    const uint64_t index = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (index * 4 >= part_floats)
        return;
    const int thread = index % 128, column = index / 128 % 8 * 8, group = index / 1024 % 2;
    const int query = (int)(index / 2048 % (p.padded / tile)), lane = thread % 32;
    const int64_t of_all = index / 2048 / (p.padded / tile);
    float4 sum = make_float4(0, 0, 0, 0);
    for (int part = 0; part < parts; part++) {
        const key_range seen(p, query, part_begin(p, part, parts), part_begin(p, part + 1, parts));
        if (seen.first >= seen.end)
            continue;
        const float4 x = ((const float4 *)(p.dq_parts + part * part_floats))[index];
        sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
    }
    const int row = query * tile + group * 64 + thread / 32 * 16 + lane / 4;
    auto *to = (__nv_bfloat16 *)p.dq + p.query_at((int)(of_all / p.heads), (int)(of_all % p.heads)) + row * p.row +
               column + lane % 4 * 2;
    if (column < p.size && row < p.steps)
        put_pair(to, sum.x * p.scale, sum.y * p.scale, p.add_dq);
    if (column < p.size && row + 8 < p.steps)
        put_pair(to + 8 * p.row, sum.z * p.scale, sum.w * p.scale, p.add_dq);
}

cudaError_t hopper_backward(const cuda_run *run, const problem &p)
{
    if (p.size > 64 || !is_hopper())
        return cudaErrorNotSupported;
    CUtensorMap q, k, v, dout;
    cudaError_t error = make_tensor_map(&q, p.q, p.size, p.heads, p.steps, p.batch, p.row, tile);
    if (!error)
        error = make_tensor_map(&k, p.k, p.size, p.key_heads(), p.keys, p.batch, p.key_row, tile);
    if (!error)
        error = make_tensor_map(&v, p.v, p.size, p.key_heads(), p.keys, p.batch, p.key_row, tile);
    if (!error)
        error = make_tensor_map(&dout, p.dout, p.size, p.heads, p.steps, p.batch, p.out_row, tile);
    if (error)
        return error;
    const int parts = parts_of(p);
    const uint64_t part_floats = floats_of_part(p);
    error = launch(run, hopper_backward_kernel, dim3((unsigned)(p.batch * p.key_heads() * parts)), threads,
                   shared_bytes, q, k, v, dout, p, parts, part_floats);
    if (!error && p.dq && parts > 1)
        error = launch(run, add_parts_kernel, dim3((unsigned)((part_floats / 4 + 255) / 256)), 256, 0, p, parts,
                       part_floats);
    return error;
}

} /* namespace attention */
