/* Searches for good schedules of a graph at all budgets at once, by changing what is held (hold_state.h).
 *
 * Two annealers begin differently. Each goes through many limits of the peak, down and up again, and anneals at each of them.
 * What it meets on its way is kept in bins by its peak. Nothing depends on a budget, on the time or on the number of threads. */
#ifndef REMAT_PLAN_GRAPH_HOLD_SEARCH_H
#define REMAT_PLAN_GRAPH_HOLD_SEARCH_H

#include "plan/graph/hold_state.h"

typedef struct hold_search_options {
    const graph_sequence *seeds; /* schedules to begin with, besides keeping everything; legal ones */
    size_t seed_count;
    bool has_good_seeds; /* at every limit: where the cost rises most, there is little to gain */
    uint64_t effort;     /* about how many positions may be looked at, over all changes */
    uint64_t most_runs;  /* longer schedules are of no use */
    unsigned threads;
} hold_search_options;

/* The effort that a graph is worth, so that planning it takes a few seconds at most. */
uint64_t hold_search_effort(const hold_graph *g);

/* Calls `found` with every schedule that no other one found beats in both peak and cost. */
typedef remat_status hold_found(void *user, const graph_sequence *sequence);
remat_status hold_search_run(const hold_graph *g, const hold_search_options *options, hold_found *found, void *user);

#endif
