/* A schedule of a graph as decisions on what is held, with its peak and its cost. One decision is changed at a time, and
 * only what depends on it is computed again.
 *
 * For every gap (hold_graph.h) a position `from` is decided. Where it is the gap's begin, the tensor is held through the gap.
 * Else it is dropped at the begin; cascades before `from` make it for themselves alone, and the first cascade from there on
 * that makes it holds it to the gap's end. A tail that is held ends with the last cascade that reads the tensor.
 *
 * The state is a function of the decisions alone. A change can be taken back, which takes less than changing it back:
 *
 *     hold_state_mark(&state, &mark);
 *     hold_state_note(&state, gap, from);
 *     hold_state_settle(&state);
 *     if (is good)
 *         hold_state_accept(&state);
 *     else
 *         hold_state_revert(&state, &mark); */
#ifndef REMAT_PLAN_GRAPH_HOLD_STATE_H
#define REMAT_PLAN_GRAPH_HOLD_STATE_H

#include <pthread.h>

#include "plan/graph/hold_graph.h"

typedef struct hold_cascade {
    uint32_t *actions; /* they run before the position's own action */
    uint32_t count, capacity;
    bool runs; /* whether the position's own action runs */
} hold_cascade;

/* The cascades that read or make a tensor, by position. */
typedef struct touch_list {
    uint32_t *positions;
    uint32_t count, capacity;
} touch_list;

typedef struct hold_state {
    const hold_graph *g;
    pthread_mutex_t *lock;         /* for the context, where several states of it change at the same time; or NULL */
    uint32_t *from;                /* by gap: the decision */
    uint32_t *held_from;           /* by gap: the position from which it is held; its end where it is not */
    hold_cascade *cascades;        /* by position */
    uint64_t *held_bytes;          /* by position: what lives before its cascade and is needed there or later */
    int64_t *extra_bytes;          /* by position: the most that its actions have above that, once they are counted */
    touch_list *touches;           /* by tensor */
    uint32_t *tail_from, *tail_to; /* by tensor: held behind its last use into positions tail_from + 1 .. tail_to */
    unsigned __int128 cost;
    uint64_t run_count; /* actions in the schedule */
    uint64_t work;      /* about how many tensors and positions were looked at so far */
    struct hold_scratch *scratch;
} hold_state;

/* Everything is held. The graph must outlive the state. */
remat_status hold_state_create(const hold_graph *g, hold_state *state);
void hold_state_release(hold_state *state);

/* Makes room in a list, with the context locked. */
remat_status hold_state_grow(hold_state *state, void **items, size_t *capacity, size_t needed, size_t size);

/* Decides for a gap, or takes several decisions together: note, note, then settle. On failure (REMAT_NO_MEMORY) the state
 * can only be released. */
void hold_state_note(hold_state *state, uint32_t gap, uint32_t from);
remat_status hold_state_settle(hold_state *state);

/* Counts bytes where something changed. hold_state_peak does that too. */
void hold_state_count(hold_state *state);

/* Begins a change that may be taken back, within another one or not; ends it, and all decisions since the mark stay, or none. */
typedef struct hold_mark {
    size_t entries, actions;
    unsigned __int128 cost;
    uint64_t run_count;
} hold_mark;
void hold_state_mark(hold_state *state, hold_mark *mark);
void hold_state_accept(hold_state *state);
void hold_state_revert(hold_state *state, const hold_mark *mark);

/* The most bytes that live at once. `over`: the sum over all positions of what is above the limit, shifted right. */
uint64_t hold_state_peak(hold_state *state, uint64_t limit, unsigned shift, uint64_t *over, uint32_t *position);

/* The schedule. The sequence must be empty. */
remat_status hold_state_sequence(const hold_state *state, graph_sequence *sequence);

/* Decisions that come as near as can be to a schedule that somebody made. */
remat_status hold_state_decide_like(const hold_graph *g, const uint32_t *actions, size_t count, uint32_t *from);

#endif
