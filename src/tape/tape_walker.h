/* Walking a plan without allocating memory.
 *
 * Most plans hold their schedule. `revolve` and `online` make theirs while they are walked, however long it is, with a
 * stack as large as their slots. So that a run allocates nothing but the arena, the tape gives them a context of their
 * own, whose memory is a buffer made beforehand. */
#ifndef REMAT_TAPE_TAPE_WALKER_H
#define REMAT_TAPE_TAPE_WALKER_H

#include "plan/chain/plan_object.h"

typedef struct tape_walker {
    const remat_plan *plan;
    bool online;            /* which of the two; where `context` is not NULL */
    remat_context *context; /* of the walk; NULL where the plan holds its schedule */
    remat_context *owner;   /* where the buffer comes from */
    unsigned char *buffer;
    size_t bytes, used, last; /* all of it, what is taken, and where its last block begins */
} tape_walker;

/* The plan must outlive the walker, which must not move. */
remat_status walker_create(tape_walker *walker, remat_context *owner, const remat_plan *plan);
/* Without a plan: only a context, with memory enough for an online schedule with so many slots. */
remat_status walker_reserve(tape_walker *walker, remat_context *owner, uint64_t slots);
void walker_clear(tape_walker *walker);

/* As remat_plan_walk. */
remat_status walker_walk(tape_walker *walker, remat_step_fn visit, void *user);

#endif
