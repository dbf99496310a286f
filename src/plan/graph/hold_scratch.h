/* What hold_state.c, hold_cascade.c and hold_bytes.c share while a change settles. */
#ifndef REMAT_PLAN_GRAPH_HOLD_SCRATCH_H
#define REMAT_PLAN_GRAPH_HOLD_SCRATCH_H

#include "plan/graph/hold_state.h"

/* An action that waits for what it needs: the next of its reads to look at. */
typedef struct waiting_maker {
    uint32_t action, read;
} waiting_maker;

/* What a change replaced: the decision and the begin of a gap, the begin and the end of a tensor's tail, whether a position's own action
 * runs, its bytes, its cascade (the actions are in a list of their own). */
typedef enum hold_undo_kind {
    UNDO_FROM,
    UNDO_HELD_FROM,
    UNDO_TAIL,
    UNDO_RUNS,
    UNDO_EXTRA,
    UNDO_CASCADE
} hold_undo_kind;
typedef struct hold_undo_entry {
    uint64_t value;
    uint32_t index;
    hold_undo_kind kind;
} hold_undo_entry;

/* Filled while there is a mark; the last entry is taken back first. */
typedef struct hold_undo {
    size_t depth; /* marks within marks */
    hold_undo_entry *entries;
    size_t count, capacity;
    uint32_t *actions;
    size_t action_count, action_capacity;
    remat_status status; /* of growing */
} hold_undo;

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
    hold_undo undo;
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

/* Put back what was there before. */
void hold_restore_held_from(hold_state *s, uint32_t gap, uint32_t position);
void hold_restore_tail(hold_state *s, uint32_t tensor, uint32_t from, uint32_t to);
void hold_restore_cascade(hold_state *s, uint32_t position, const uint32_t *actions, uint32_t count);

/* ---- hold_undo.c ---- */

/* Before something is replaced. */
void hold_undo_note(hold_state *s, hold_undo_kind kind, uint32_t index, uint64_t value);
void hold_undo_note_cascade(hold_state *s, uint32_t position);

/* ---- hold_bytes.c ---- */

/* Counts extra_bytes of a position again. */
void hold_count_bytes(hold_state *s, uint32_t position);

#endif
