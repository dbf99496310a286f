/* How attention_hopper_backward.cu shares out its work.
 *
 * A unit of work is a head of keys in a sequence. With many units, `workers` blocks share them. Where that leaves many of
 * them idle at the end, the work is cut into equal shares: a block may begin in the middle of a unit and end in the middle
 * of another. The first part of a unit that is cut is the last thing that its block does; it adds the sums that the other
 * block left when it began. With few units, each is in parts of its own, and a second kernel adds them up. All of this
 * depends on sizes alone. */
#ifndef REMAT_BACKEND_CUDA_ATTENTION_SHARING_CUH
#define REMAT_BACKEND_CUDA_ATTENTION_SHARING_CUH

#include "backend/cuda/attention_tiles.cuh"

namespace attention
{

constexpr int tile = 128; /* keys or queries */

static __host__ __device__ int tiles_of(int rows)
{
    return (rows + tile - 1) / tile;
}

constexpr int workers = 132; /* as many as an H200 has multiprocessors. On other devices it only costs time */
constexpr int flag_floats = 256;

/* How the units are shared out. */
struct sharing {
    int units, tiles;  /* tiles of keys in a unit */
    int unit_steps;    /* pairs of tiles in a head */
    int blocks, parts; /* parts: of each unit, if there are fewer units than workers */
    bool cuts;
    uint64_t sums;        /* floats for the sums of a unit */
    uint64_t sums_floats; /* of all */

    sharing(const problem &p) : units(p.batch * p.key_heads()), tiles(tiles_of(p.keys)), parts(1)
    {
        const bool windowed = p.causal && p.window < p.steps;
        unit_steps = p.causal ? tiles * (tiles + 1) / 2 : tiles * tiles_of(p.steps);
        while (parts < 4 && units * parts * 2 <= workers && parts * 4 <= tiles)
            parts *= 2;
        cuts = units > workers && !windowed && (units + workers - 1) / workers * workers > units + units / 16;
        blocks = units * parts < workers ? units * parts : workers;
        sums = (uint64_t)p.group * (uint64_t)p.padded * 64;
        sums_floats = sums * (uint64_t)blocks * (cuts ? 2 : 1);
    }
};

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

/* What a block does: from a tile of keys of a unit up to, and without, another. */
struct share {
    int unit, key, last_unit, last_key;

    __device__ share(const problem &p, const sharing &all)
    {
        if (all.parts > 1) {
            unit = last_unit = blockIdx.x / all.parts;
            key = part_begin(p, blockIdx.x % all.parts, all.parts);
            last_key = part_begin(p, blockIdx.x % all.parts + 1, all.parts);
        } else {
            /* In reverse, so that a block whose sums another one awaits has started before. */
            const int number = all.blocks - 1 - blockIdx.x;
            place(p, all, number, &unit, &key);
            place(p, all, number + 1, &last_unit, &last_key);
        }
    }
    static __device__ void place(const problem &p, const sharing &all, int number, int *unit, int *key)
    {
        if (!all.cuts) {
            *unit = (int)((int64_t)all.units * number / all.blocks);
            *key = 0;
            return;
        }
        const int64_t at = (int64_t)all.units * all.unit_steps * number / all.blocks;
        const int rest = (int)(at % all.unit_steps);
        *unit = (int)(at / all.unit_steps);
        *key = 0;
        for (int steps = 0; steps < rest; ++*key)
            steps += p.causal ? all.tiles - *key : tiles_of(p.steps);
        if (*key == all.tiles)
            ++*unit, *key = 0;
    }
};

/* Calls begin_unit(unit, from, to), for each tile of keys begin_key(key), then step(key, head, query) for all heads and
 * tiles of queries, then end_key(key), at last end_unit(). Every other tile of keys takes the queries backwards: the L2
 * cache still has those that were used last. */
template <typename BeginUnit, typename BeginKey, typename Step, typename EndKey, typename EndUnit>
__device__ inline void for_all_steps(const problem &p, const sharing &all, BeginUnit begin_unit, BeginKey begin_key,
                                     Step step, EndKey end_key, EndUnit end_unit)
{
    const share own(p, all);
    for (int unit = own.unit; unit <= own.last_unit; unit++) {
        const int from = unit == own.unit ? own.key : 0, to = unit == own.last_unit ? own.last_key : all.tiles;
        if (from >= to)
            continue;
        begin_unit(unit, from, to);
        for (int key = from; key < to; key++) {
            const query_range range(p, key);
            const bool backwards = key % 2 == 1;
            begin_key(key);
            for (int head = 0; head < p.group; head++)
                for (int n = 0; n < range.end - range.first; n++)
                    step(key, head, backwards ? range.end - 1 - n : range.first + n);
            end_key(key);
        }
        end_unit();
    }
}

} /* namespace attention */

#endif
