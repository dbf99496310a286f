/* The best schedules of a small graph, over all that are legal: shortest paths over the sets of tensors that are there.
 *
 * A state is how many of the fixed actions have run, and which of the tensors are live that may be made again, or that are
 * needed to make them. An action leads to the next state, for its cost; dropping a tensor costs nothing. */
#ifndef REMAT_PLAN_GRAPH_EXACT_SEARCH_H
#define REMAT_PLAN_GRAPH_EXACT_SEARCH_H

#include "plan/graph/hold_search.h"

/* Whether the graph is small enough. */
remat_status exact_search_fits(const hold_graph *g, bool *fits);

/* Calls `found` with a schedule for every point of the curve: from the cheapest to the one with the lowest peak. */
remat_status exact_search_run(const hold_graph *g, hold_found *found, void *user);

#endif
