/* Where the bytes of a run lie in the arena.
 *
 * The machine (tape_machine.h) walks a schedule several times, always in the same way, and asks the placer for room:
 *
 *   PLACER_COUNT   how much is live at once, in all and of each size;
 *   PLACER_RECORD  every life is written down, for the arena solver;
 *   PLACER_LIST    the n-th room that is asked for lies at the n-th offset that the solver found;
 *   PLACER_POOL    rooms are slots of a pool: no memory per life. Workspaces have a room of their own.
 *
 * A life lasts from the tick in which its room was taken up to the tick in which it was given back. */
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
    uint64_t live_bytes, peak_bytes, workspace_bytes, life_count;
    bool pool_fits; /* the pool can be used: there are not too many sizes */
    /* PLACER_RECORD */
    remat_lifetime *lives;
    size_t recorded, lives_capacity;
    /* PLACER_LIST */
    uint64_t *offsets;
    size_t offset_count, next;
    /* PLACER_COUNT and PLACER_POOL */
    tape_pool pool;
} tape_placer;

/* A placer that counts. */
void placer_begin(tape_placer *placer, remat_context *context);
void placer_clear(tape_placer *placer);

/* Room for `bytes` bytes, a multiple of TAPE_ALIGNMENT, from tick `now` on: *at is the offset, or stands for the life
 * while there are no offsets yet. A workspace is given back before the next one is taken. */
remat_status placer_take(tape_placer *placer, uint64_t bytes, uint64_t now, uint64_t *at);
void placer_give(tape_placer *placer, uint64_t at, uint64_t bytes, uint64_t now);
remat_status placer_take_workspace(tape_placer *placer, uint64_t bytes, uint64_t now, uint64_t *at);
void placer_give_workspace(tape_placer *placer, uint64_t at, uint64_t bytes, uint64_t now);

/* After counting: what the arena would take with the pool. Where that is peak_bytes nothing can be better. */
uint64_t placer_pool_bytes(const tape_placer *placer);
/* Goes on with the pool. */
remat_status placer_use_pool(tape_placer *placer);
/* After counting: goes on with recording. */
remat_status placer_use_record(tape_placer *placer);
/* After recording: places the lives in as few bytes as it can, trying harder where that is over the budget, and goes on
 * with that list; or with the pool, where that takes no more. */
remat_status placer_use_list(tape_placer *placer, uint64_t budget);

/* Before the next walk. */
void placer_restart(tape_placer *placer);

#endif
