/* Slots of equal size, which are allocated while a schedule runs.
 *
 * If tensors have only a few sizes, a pool replaces the list of offsets for every live range. A free list for each size
 * needs no memory per step, and with one size it is optimal. The blocks of the disk store's file come from the same
 * kind of pool.
 *
 *   class 0: 4096 bytes     class 1: 64 bytes
 *   |0 |1 |2 |3 |4 |5 |     |6|7|8|            slots, numbered consecutively; `base` is the first one's offset */
#ifndef REMAT_TAPE_TAPE_POOL_H
#define REMAT_TAPE_TAPE_POOL_H

#include <stdbool.h>

#include "base/error.h"

typedef struct pool_class {
    uint64_t bytes;
    uint64_t held, most; /* slots in use, and the most at once: what the pool is built for */
    uint64_t first, base;
    uint64_t fresh; /* slots of this class that were ever used since the reset */
    uint64_t free;  /* the free list, as slot number + 1 */
} pool_class;

typedef struct tape_pool {
    remat_context *context;
    pool_class *classes; /* by bytes, ascending */
    size_t class_count, class_capacity;
    uint32_t *next; /* one a slot: the free list */
    uint64_t slot_count, bytes;
} tape_pool;

void tape_pool_begin(tape_pool *pool, remat_context *context);
void tape_pool_clear(tape_pool *pool);

/* Count how many slots of each size are needed at once. Sizes may come in any order. */
remat_status tape_pool_count_take(tape_pool *pool, uint64_t bytes);
void tape_pool_count_give(tape_pool *pool, uint64_t bytes);

/* Builds the slots for what was counted. */
remat_status tape_pool_build(tape_pool *pool);
/* All slots are free again. */
void tape_pool_reset(tape_pool *pool);
/* Takes a slot of this size. It always finds one, because the same schedule was counted before. */
uint64_t tape_pool_take(tape_pool *pool, uint64_t bytes);
void tape_pool_give(tape_pool *pool, uint64_t slot, uint64_t bytes);
/* Convert between a slot and its offset. */
uint64_t tape_pool_offset(const tape_pool *pool, uint64_t slot, uint64_t bytes);
uint64_t tape_pool_slot(const tape_pool *pool, uint64_t offset, uint64_t bytes);

#endif
