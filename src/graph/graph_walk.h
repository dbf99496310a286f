/* What lives when in a schedule of a graph, and so its peak and its cost: the one routine for it (docs/memory-model.md).
 * `check` judges by it, the planner compares schedules by it, the arena places what it finds, reports draw it. */
#ifndef REMAT_GRAPH_GRAPH_WALK_H
#define REMAT_GRAPH_GRAPH_WALK_H

#include "graph/graph_object.h"

/* A growing list of actions. */
typedef struct graph_sequence {
    uint32_t *actions;
    size_t count, capacity;
} graph_sequence;
remat_status graph_sequence_add(remat_context *context, graph_sequence *sequence, uint32_t action);
void graph_sequence_release(remat_context *context, graph_sequence *sequence);

/* Every action once: nothing is recomputed. The sequence must be empty; it is empty again after a failure. */
remat_status graph_sequence_plain(const remat_graph *graph, graph_sequence *sequence);

/* One instance of a tensor, or one workspace (tensor GRAPH_NONE). It lives at the positions born ... ends-1. */
typedef struct live_range {
    uint64_t bytes;
    uint32_t tensor;
    uint32_t born, ends;
    uint32_t in_place_of; /* the range whose bytes it takes at `born`, where only that one counts; GRAPH_NONE */
    uint32_t buffer;
} live_range;

/* The first position at which its bytes count. */
static inline uint32_t live_range_counts_from(const live_range *range)
{
    return range->born + (range->in_place_of != GRAPH_NONE);
}

/* What must have a place: one live range, or several of the same size that follow each other in place. */
typedef struct graph_buffer {
    uint64_t bytes;
    uint32_t born, ends;
} graph_buffer;

typedef struct graph_liveness {
    live_range *ranges; /* in order of birth; of one position: the writes in their order, then the workspace */
    size_t range_count, range_capacity;
    graph_buffer *buffers;
    size_t buffer_count, buffer_capacity;
    uint64_t *live_bytes; /* at every position */
    size_t position_count, position_capacity;
    uint64_t peak_bytes;    /* the largest of them; 0 without positions */
    uint32_t peak_position; /* the first that reaches it */
    uint64_t cost;          /* of all actions */
} graph_liveness;

/* EXACT: as docs/memory-model.md says. PLACED: sizes are rounded up to 64, and given tensors, which have no place in the
 * arena, do not count. */
typedef enum graph_counting { GRAPH_EXACT, GRAPH_PLACED } graph_counting;

/* Walks a schedule. REMAT_CHECK_FAILED where it is illegal: the message names the position, the action and the tensor.
 * REMAT_INVALID where sums pass 2^63. `found` is empty after a failure. */
remat_status graph_walk(const remat_graph *graph, const graph_sequence *sequence, graph_counting counting,
                        graph_liveness *found);
void graph_liveness_release(remat_context *context, graph_liveness *liveness);
/* The peak alone. */
remat_status graph_walk_peak(const remat_graph *graph, const graph_sequence *sequence, graph_counting counting,
                             uint64_t *bytes);
/* Gives back the room that the lists have beyond their items. */
remat_status graph_liveness_fit(remat_context *context, graph_liveness *liveness);

/* The same for many schedules of one graph, with memory that is allocated once: start, run, finish, and again. */
typedef struct graph_walker {
    const remat_graph *graph;
    graph_counting counting;
    uint64_t *bytes;      /* by tensor: what an instance counts; the caller may change it before a start */
    uint32_t *latest;     /* by tensor: its latest range */
    graph_liveness found; /* without buffers; peak and live_bytes are there after finish */
    uint64_t given_bytes;
    uint32_t next_once; /* the action that has to be the next with `once` */
    struct {
        size_t positions, ranges;
        uint32_t next_once;
        uint64_t cost;
        uint32_t *ends; /* by range */
        size_t capacity;
    } mark;
} graph_walker;
remat_status graph_walker_create(const remat_graph *graph, graph_counting counting, graph_walker *walker);
void graph_walker_release(graph_walker *walker);

/* Nothing has run. */
void graph_walker_start(graph_walker *walker);
/* Runs more actions. */
remat_status graph_walker_run(graph_walker *walker, const uint32_t *actions, size_t count);
/* The end of the schedule: the figures are there, and the ends of all ranges are final. */
remat_status graph_walker_finish(graph_walker *walker);

/* Remembers what has run so far, and goes back to it: schedules that begin alike need not begin anew. Only one point is
 * remembered. */
remat_status graph_walker_mark(graph_walker *walker);
void graph_walker_rewind(graph_walker *walker);

#endif
