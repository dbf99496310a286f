#include "tape/tape_pool.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/search.h"

#include <string.h>

void tape_pool_begin(tape_pool *pool, remat_context *context)
{
    *pool = (tape_pool){.context = context};
}

void tape_pool_clear(tape_pool *pool)
{
    remat_release(pool->context, pool->classes, pool->class_capacity, sizeof *pool->classes);
    remat_release(pool->context, pool->next, pool->slot_count, sizeof *pool->next);
    *pool = (tape_pool){.context = pool->context};
}

/* The first class that is not smaller. */
static size_t find(const tape_pool *pool, uint64_t bytes)
{
    return REMAT_FIRST(i, 0, pool->class_count, pool->classes[i].bytes >= bytes);
}

remat_status tape_pool_count_take(tape_pool *pool, uint64_t bytes)
{
    size_t at = find(pool, bytes);
    if (at == pool->class_count || pool->classes[at].bytes != bytes) {
        REMAT_TRY(remat_grow(pool->context, (void **)&pool->classes, &pool->class_capacity, pool->class_count + 1,
                             sizeof *pool->classes));
        memmove(&pool->classes[at + 1], &pool->classes[at], (pool->class_count - at) * sizeof *pool->classes);
        pool->classes[at] = (pool_class){.bytes = bytes};
        pool->class_count++;
    }
    pool_class *class = &pool->classes[at];
    if (++class->held > class->most)
        class->most = class->held;
    return REMAT_OK;
}

void tape_pool_count_give(tape_pool *pool, uint64_t bytes)
{
    pool->classes[find(pool, bytes)].held--;
}

remat_status tape_pool_build(tape_pool *pool)
{
    uint64_t slots = 0, bytes = 0;
    for (size_t i = 0; i < pool->class_count; i++) {
        pool_class *class = &pool->classes[i];
        uint64_t all;
        class->first = slots;
        class->base = bytes;
        slots += class->most;
        if (!remat_multiply(class->most, class->bytes, &all) || !remat_add(&bytes, all) || slots >= UINT32_MAX)
            return remat_fail(pool->context, REMAT_INVALID, NULL, "the bytes of all tensors together pass 2^63");
    }
    pool->next = remat_alloc(pool->context, slots, sizeof *pool->next);
    if (!pool->next)
        return REMAT_NO_MEMORY;
    pool->slot_count = slots;
    pool->bytes = bytes;
    tape_pool_reset(pool);
    return REMAT_OK;
}

void tape_pool_reset(tape_pool *pool)
{
    for (size_t i = 0; i < pool->class_count; i++)
        pool->classes[i].held = pool->classes[i].fresh = pool->classes[i].free = 0;
}

uint64_t tape_pool_take(tape_pool *pool, uint64_t bytes)
{
    pool_class *class = &pool->classes[find(pool, bytes)];
    uint64_t slot = class->free;
    if (slot == 0)
        return class->first + class->fresh++;
    class->free = pool->next[slot - 1];
    return slot - 1;
}

void tape_pool_give(tape_pool *pool, uint64_t slot, uint64_t bytes)
{
    pool_class *class = &pool->classes[find(pool, bytes)];
    pool->next[slot] = (uint32_t) class->free;
    class->free = slot + 1;
}

uint64_t tape_pool_offset(const tape_pool *pool, uint64_t slot, uint64_t bytes)
{
    const pool_class *class = &pool->classes[find(pool, bytes)];
    return class->base + (slot - class->first) * bytes;
}

uint64_t tape_pool_slot(const tape_pool *pool, uint64_t offset, uint64_t bytes)
{
    const pool_class *class = &pool->classes[find(pool, bytes)];
    return class->first + (offset - class->base) / bytes;
}
