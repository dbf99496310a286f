/* Offsets of tensors in the arena of a tape.
 *
 * The machine (tape_machine.h) walks a schedule several times, always in the same order, and asks the placer for room.
 * The placer's modes:
 *
 *   PLACER_COUNT   counts the bytes that are live at once, in all and of each size;
 *   PLACER_RECORD  records every live range for the arena solver;
 *   PLACER_LIST    gives the n-th request the n-th offset that the solver found;
 *   PLACER_POOL    gives slots of a pool, without memory for each live range. Workspaces have their own room.
 *
 * A live range begins in the tick in which its room is taken and ends before the tick in which it is given back. */
#ifndef REMAT_TAPE_TAPE_PLACER_H
#define REMAT_TAPE_TAPE_PLACER_H

#include "arena/placement.h"
#include "tape/tape_pool.h"

#define PLACE_NOTHING UINT64_MAX /* of no bytes */

enum { TAPE_ALIGNMENT = 64, POOL_MOST_CLASSES = 64 };

typedef enum placer_mode { PLACER_COUNT, PLACER_RECORD, PLACER_LIST, PLACER_POOL } placer_mode;

typedef struct tape_placer {
    remat_context *context;
    placer_mode mode;
    uint64_t arena_bytes;
    /* PLACER_COUNT */
    uint64_t live_bytes, peak_bytes, workspace_bytes, range_count;
    bool pool_fits; /* the pool can be used: there are not too many sizes */
    /* PLACER_RECORD */
    remat_lifetime *ranges;
    size_t recorded, range_capacity;
    /* PLACER_LIST */
    uint64_t *offsets;
    size_t offset_count, next;
    /* PLACER_COUNT and PLACER_POOL */
    tape_pool pool;
} tape_placer;

/* Begins with PLACER_COUNT. */
void placer_begin(tape_placer *placer, remat_context *context);
void placer_clear(tape_placer *placer);

/* Room for `bytes` bytes, a multiple of TAPE_ALIGNMENT, from tick `now` on: *at is the offset or, before there are
 * offsets, the number of the live range. A workspace must be given back before the next one is taken. */
remat_status placer_take(tape_placer *placer, uint64_t bytes, uint64_t now, uint64_t *at);
void placer_give(tape_placer *placer, uint64_t at, uint64_t bytes, uint64_t now);
remat_status placer_take_workspace(tape_placer *placer, uint64_t bytes, uint64_t now, uint64_t *at);
void placer_give_workspace(tape_placer *placer, uint64_t at, uint64_t bytes, uint64_t now);

/* After counting: the size of the arena with the pool. If it equals peak_bytes, it is optimal. */
uint64_t placer_pool_bytes(const tape_placer *placer);
/* Continues with the pool. */
remat_status placer_use_pool(tape_placer *placer);
/* After counting: continues with recording. */
remat_status placer_use_record(tape_placer *placer);
/* After recording: places the live ranges in as few bytes as it can, with more effort if the result is over the budget.
 * Continues with that list, or with the pool if it takes no more bytes. */
remat_status placer_use_list(tape_placer *placer, uint64_t budget);

/* Before the next walk. */
void placer_restart(tape_placer *placer);

#endif
