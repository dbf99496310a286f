/* Placing what a schedule of a graph holds. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_PLACE_H
#define REMAT_PLAN_GRAPH_GRAPH_PLACE_H

#include "graph/graph_walk.h"

/* Several runs of one schedule that are under way at the same time: each stops after the action `turn`, which runs once, and the
 * oldest goes on. Only one of them runs at a time. What a run keeps over the turn has a place for each of them, and all other
 * tensors share one:
 *
 *     | kept by run 0 | kept by run 1 | ... | what lives only before the turn, or only behind it |
 */
typedef struct graph_flight {
    uint64_t count; /* of runs; 0 and 1: there is only one, and `turn` does not matter */
    uint32_t turn;
} graph_flight;

/* What the other runs keep where each keeps so much. */
static inline uint64_t graph_flight_others(graph_flight flight, uint64_t kept)
{
    uint64_t bytes = 0;
    if (flight.count > 1 && __builtin_mul_overflow(kept, flight.count - 1, &bytes))
        return UINT64_MAX / 4;
    return bytes < UINT64_MAX / 4 ? bytes : UINT64_MAX / 4;
}

/* Bytes of the ranges that live over the turn, which runs at a position of the schedule; 0 where it is not there. */
uint64_t graph_flight_kept(const graph_liveness *liveness, const graph_sequence *sequence, uint32_t turn);

/* A schedule with its live ranges and the offsets of their buffers. */
typedef struct placed_graph {
    remat_context *context;
    graph_sequence sequence;
    graph_liveness liveness;
    uint64_t *offsets;
    uint64_t arena_bytes;
    /* Of each of several runs; 0 with one. The offsets are those of run 0: run i adds i * kept_bytes to the offsets below kept_bytes. */
    uint64_t kept_bytes;
} placed_graph;

/* Walks the sequence, which becomes part of the result, and places its buffers. The same sequence always gets the same
 * arena. On failure `placed` is empty and the sequence released. */
remat_status graph_place(const remat_graph *graph, graph_sequence *sequence, placed_graph *placed);
remat_status graph_place_flight(const remat_graph *graph, graph_sequence *sequence, graph_flight flight,
                                placed_graph *placed);
/* The same schedule once more, with workspaces that begin earlier, because they are filled while other actions run: that of position p
 * lives from begins[p] <= p on. One that begins earlier stands behind the ranges that are born at begins[p]. */
remat_status graph_place_early(const placed_graph *from, const uint32_t *begins, placed_graph *placed);
void placed_graph_release(placed_graph *placed);
/* For one that stays: its lists get exactly the room that they need. */
remat_status placed_graph_fit(placed_graph *placed);

/* The action that makes the peak; GRAPH_NONE for an empty schedule. */
uint32_t placed_graph_peak_action(const placed_graph *placed);

#endif
