#include "train/shard_map.h"

#include "base/alloc.h"
#include "base/min_max.h"

static uint64_t blocks_of(const shard_map *map, uint32_t parameter)
{
    const uint64_t values = map->network->parameters[parameter].values;
    return values / SHARD_BLOCK + (values % SHARD_BLOCK > 0);
}

remat_status shard_map_create(const remat_network *network, uint64_t size, shard_map **made)
{
    remat_context *context = network->context;
    shard_map *map = remat_alloc_zeroed(context, 1, sizeof *map);
    *made = NULL;
    if (!map)
        return REMAT_NO_MEMORY;
    *map = (shard_map){.context = context, .network = network, .size = size};
    map->turns = remat_alloc(context, network->parameter_count, sizeof *map->turns);
    if (!map->turns) {
        shard_map_destroy(map);
        return REMAT_NO_MEMORY;
    }
    uint64_t turn = 0;
    for (uint32_t p = 0; p < network->parameter_count; p++) {
        map->turns[p] = turn;
        turn = (turn + blocks_of(map, p) % size) % size;
    }
    *made = map;
    return REMAT_OK;
}

void shard_map_destroy(shard_map *map)
{
    if (!map)
        return;
    if (map->turns)
        remat_release(map->context, map->turns, map->network->parameter_count, sizeof *map->turns);
    remat_release(map->context, map, 1, sizeof *map);
}

shard_part shard_map_part(const shard_map *map, uint32_t parameter, uint64_t rank)
{
    const uint64_t blocks = blocks_of(map, parameter), each = blocks / map->size, more = blocks % map->size;
    const uint64_t values = map->network->parameters[parameter].values;
    const uint64_t place = (rank + map->size - map->turns[parameter]) % map->size;
    const uint64_t first = (place * each + remat_min(place, more)) * SHARD_BLOCK;
    const uint64_t count = (each + (place < more)) * SHARD_BLOCK;
    if (first >= values)
        return (shard_part){values, 0};
    return (shard_part){first, remat_min(count, values - first)};
}

uint64_t shard_map_most(const shard_map *map, uint32_t parameter)
{
    const uint64_t blocks = blocks_of(map, parameter);
    const uint64_t most = (blocks / map->size + (blocks % map->size > 0)) * SHARD_BLOCK;
    return remat_min(most, map->network->parameters[parameter].values);
}
