/* Walking a plan without allocating memory.
 *
 * Most plans hold their schedule. `revolve` and `online` generate theirs during the walk, with a stack whose size
 * depends on the slots only. A run must allocate nothing but the arena, so the tape gives these plans their own
 * context, whose memory is a buffer that was allocated before. */
#ifndef REMAT_TAPE_TAPE_WALKER_H
#define REMAT_TAPE_TAPE_WALKER_H

#include "plan/chain/plan_object.h"

typedef struct tape_walker {
    const remat_plan *plan;
    bool online;            /* if `context` is not NULL: online, else revolve */
    remat_context *context; /* of the walk; NULL if the plan holds its schedule */
    remat_context *owner;   /* where the buffer comes from */
    unsigned char *buffer;
    size_t bytes, used, last; /* its size, the bytes in use, and where the last block begins */
} tape_walker;

/* The plan must outlive the walker, which must not move. */
remat_status walker_create(tape_walker *walker, remat_context *owner, const remat_plan *plan);
/* Without a plan: makes only the context, with enough memory for an online schedule with this many slots. */
remat_status walker_reserve(tape_walker *walker, remat_context *owner, uint64_t slots);
void walker_clear(tape_walker *walker);

/* As remat_plan_walk. */
remat_status walker_walk(tape_walker *walker, remat_step_fn visit, void *user);

#endif
