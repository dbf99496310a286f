/* The schedules a graph can choose from, and their arenas. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_SEARCH_H
#define REMAT_PLAN_GRAPH_GRAPH_SEARCH_H

#include "plan/graph/graph_place.h"
#include "plan/graph/graph_plan.h"
#include "plan/graph/graph_curve.h"

typedef struct graph_search {
    const remat_graph *graph;
    graph_pieces *pieces[2]; /* cut as finely as it goes; and in one, where that is small: else NULL */
    graph_curve curve;
    size_t arena_count; /* placements so far */
} graph_search;

/* Only the chain of pieces; `with_curve` also all schedules. */
remat_status graph_search_begin(const remat_graph *graph, const graph_plan_options *options, bool with_curve,
                                graph_search *search);
void graph_search_release(graph_search *search);

/* Places a point of the curve. */
remat_status graph_search_place(graph_search *search, size_t point, bool hard, placed_graph *placed);

/* The first point whose arena fits: *point is the curve's count where none does. */
remat_status graph_search_fit(graph_search *search, uint64_t budget, size_t *point, placed_graph *placed);

/* The smallest arena of any point, and the layer whose action makes its peak. */
remat_status graph_search_smallest(graph_search *search, uint64_t *arena_bytes, uint32_t *layer);

/* The layer whose action makes the peak; GRAPH_NONE for an empty schedule. */
uint32_t placed_graph_peak_layer(const remat_graph *graph, const placed_graph *placed);

#endif
