#include "train/poison.h"

#ifdef REMAT_POISON

#include <sanitizer/asan_interface.h>

#include "base/alloc.h"
#include "base/error.h"

/* Buffers listed by the position at which they are born. */
struct poison_map {
    remat_context *context;
    const graph_liveness *liveness;
    const uint64_t *offsets;
    char *arena;
    uint64_t arena_bytes;
    size_t next; /* the first buffer not yet born in this run; buffers stand in order of birth */
};

remat_status poison_map_create(remat_context *context, const graph_liveness *liveness, const uint64_t *offsets,
                               char *arena, uint64_t arena_bytes, poison_map **made)
{
    poison_map *map = remat_alloc_zeroed(context, 1, sizeof *map);
    if (!map)
        return REMAT_NO_MEMORY;
    *map = (poison_map){context, liveness, offsets, arena, arena_bytes, 0};
    *made = map;
    return REMAT_OK;
}

void poison_map_destroy(poison_map *map)
{
    if (map)
        remat_release(map->context, map, 1, sizeof *map);
}

static void allow(const poison_map *map, size_t buffer)
{
    __asan_unpoison_memory_region(map->arena + map->offsets[buffer], map->liveness->buffers[buffer].bytes);
}

void poison_map_enter(poison_map *map, size_t position, size_t until)
{
    if (!map)
        return;
    const graph_liveness *liveness = map->liveness;
    if (position == 0) {
        /* Data was loaded between the runs: poisoning keeps the bytes. */
        __asan_poison_memory_region(map->arena, map->arena_bytes);
        map->next = 0;
    }
    for (; map->next < liveness->buffer_count && liveness->buffers[map->next].born <= position; map->next++)
        allow(map, map->next);
    /* They are not born yet: what ends before them may have the same bytes, and poisons these when it is left. */
    for (size_t b = map->next; b < liveness->buffer_count && liveness->buffers[b].born <= until; b++)
        allow(map, b);
}

void poison_map_resume(poison_map *map, size_t position)
{
    if (!map)
        return;
    const graph_liveness *liveness = map->liveness;
    __asan_poison_memory_region(map->arena, map->arena_bytes);
    for (map->next = 0; map->next < liveness->buffer_count && liveness->buffers[map->next].born < position; map->next++)
        if (liveness->buffers[map->next].ends > position)
            allow(map, map->next);
}

void poison_map_leave(poison_map *map, size_t position)
{
    if (!map)
        return;
    /* Quadratic in bad cases, which is fine for tests: only buffers born so far are looked at. */
    for (size_t b = 0; b < map->next; b++)
        if (map->liveness->buffers[b].ends == position + 1)
            __asan_poison_memory_region(map->arena + map->offsets[b], map->liveness->buffers[b].bytes);
}

void poison_map_open(poison_map *map)
{
    if (map)
        __asan_unpoison_memory_region(map->arena, map->arena_bytes);
}

#endif
