/* What hold_state.c, hold_cascade.c and hold_bytes.c share while a change settles. */
#ifndef REMAT_PLAN_GRAPH_HOLD_SCRATCH_H
#define REMAT_PLAN_GRAPH_HOLD_SCRATCH_H

#include "plan/graph/hold_state.h"

/* An action that waits for what it needs: the next of its reads to look at. */
typedef struct waiting_maker {
    uint32_t action, read;
} waiting_maker;

/* Room that is needed while a change settles. A stamp is the number of the pass that set it. */
typedef struct hold_scratch {
    uint64_t *dirty;     /* a bit for each position whose cascade must be found again */
    uint32_t *unsettled; /* positions whose bytes must be counted again */
    uint32_t unsettled_count;
    uint8_t *is_unsettled;
    uint32_t lowest_dirty, highest_dirty;
    uint64_t *made, *seen; /* by tensor: stamps */
    uint64_t stamp, made_stamp;
    uint32_t *last; /* by tensor: where in the position's actions it is touched last */
    uint8_t *alive; /* by tensor */
    waiting_maker *stack;
    uint32_t *listed; /* the new cascade */
} hold_scratch;

/* Whether a tensor is there before a position's cascade. */
static inline bool hold_is_available(const hold_state *s, uint32_t tensor, uint32_t position)
{
    if (s->g->tensors[tensor].maker == GRAPH_NONE)
        return true;
    uint32_t gap = hold_gap_before(s->g, tensor, position);
    return gap != GRAPH_NONE && s->held_from[gap] < position;
}

/* ---- hold_cascade.c ---- */

/* The position's cascade must be found again. */
void hold_mark_dirty(hold_state *s, uint32_t position);
/* Those that touch a tensor behind `after`, up to `to`. */
void hold_mark_touches(hold_state *s, uint32_t tensor, uint32_t after, uint32_t to);
/* A gap is held from another position on. */
void hold_set_held_from(hold_state *s, uint32_t gap, uint32_t position);
/* Finds a position's cascade again, and marks what that changes elsewhere. */
remat_status hold_find_cascade(hold_state *s, uint32_t position);

/* ---- hold_bytes.c ---- */

/* Counts extra_bytes of a position again. */
void hold_count_bytes(hold_state *s, uint32_t position);

#endif
