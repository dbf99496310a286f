/* What no schedule within a budget can do without: a lower bound of its cost, and of the peak of any schedule.
 *
 * Take the position of one `once` action. Everything that later `once` actions read, and that may be made again, is live there
 * or is made after it, from what is live there or made after it in turn. What is live must fit the budget beside all that
 * cannot be made again. With a price for a byte, the cheapest choice is a smallest cut; any price gives a bound, and the
 * best price is searched for. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_BOUND_H
#define REMAT_PLAN_GRAPH_GRAPH_BOUND_H

#include "graph/graph_walk.h"

/* At least what every schedule within `budget` costs; `least_cost` is a bound that holds without a budget. */
remat_status graph_bound_cost(const remat_graph *graph, graph_counting counting, uint64_t budget, uint64_t least_cost,
                              uint64_t *bound);

/* At least what is live at some position of every schedule. */
remat_status graph_bound_peak(const remat_graph *graph, graph_counting counting, uint64_t *bound);

#endif
