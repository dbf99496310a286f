/* Placing what a schedule of a graph holds. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_PLACE_H
#define REMAT_PLAN_GRAPH_GRAPH_PLACE_H

#include "graph/graph_walk.h"

/* A schedule with its live ranges and the offsets of their buffers. */
typedef struct placed_graph {
    remat_context *context;
    graph_sequence sequence;
    graph_liveness liveness;
    uint64_t *offsets;
    uint64_t arena_bytes;
} placed_graph;

/* Walks the sequence, which becomes part of the result, and places its buffers. The same sequence always gets the same
 * arena. On failure `placed` is empty and the sequence released. */
remat_status graph_place(const remat_graph *graph, graph_sequence *sequence, placed_graph *placed);
void placed_graph_release(placed_graph *placed);
/* For one that stays: its lists get exactly the room that they need. */
remat_status placed_graph_fit(placed_graph *placed);

/* The action that makes the peak; GRAPH_NONE for an empty schedule. */
uint32_t placed_graph_peak_action(const placed_graph *placed);

#endif
