/* The schedules a graph can choose from, and their arenas. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_SEARCH_H
#define REMAT_PLAN_GRAPH_GRAPH_SEARCH_H

#include "plan/graph/graph_place.h"
#include "plan/graph/graph_plan.h"
#include "plan/graph/graph_curve.h"
#include "plan/graph/hold_graph.h"

typedef struct graph_search {
    graph_outline outline;
    graph_pieces *pieces[2]; /* cut where a tensor passes; and in one, where the graph is small: else NULL */
    graph_curve curve;
    bool is_exact;        /* no legal schedule beats the curve in peak and cost */
    graph_counting binds; /* what a budget limits: arenas, or exact peaks */
    graph_flight flight;
    uint64_t base_arena_bytes, base_peak_bytes, base_cost; /* everything kept */
    uint64_t base_run_peak_bytes;                          /* of one run alone */
} graph_search;

/* The chain of pieces; `with_curve` also all schedules. `g` counts what options->binds says. The search must not move. */
remat_status graph_search_begin(const hold_graph *g, const graph_plan_options *options, bool with_curve,
                                graph_search *search);
void graph_search_release(graph_search *search);
/* Releases all that the plan of the chain does not need: it needs the profile of its pieces. */
void graph_search_forget(graph_search *search);

/* Places a point of the curve. */
remat_status graph_search_place(graph_search *search, size_t point, placed_graph *placed);

/* The first point that fits a budget, which is no less than the smallest. */
remat_status graph_search_fit(graph_search *search, uint64_t budget, const graph_point **point, placed_graph *placed);

/* The smallest budget that any point fits, and the action that makes its peak. */
remat_status graph_search_smallest(graph_search *search, uint64_t *bytes, uint32_t *action);

#endif
