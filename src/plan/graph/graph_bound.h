/* What no legal schedule of a graph can do without: a lower bound of its cost within a budget, and of its peak.
 *
 * Take the first run of an action that every schedule needs. All that depends on it runs behind that position, and what those
 * actions read is live at the position or is made behind it, from what is live there or made behind it in turn. What is live
 * must fit the budget beside the action itself. With a price for a byte, the cheapest choice is a smallest cut; any price gives
 * a bound, and the best price is searched for. What is made again between two positions adds to what is made again behind both. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_BOUND_H
#define REMAT_PLAN_GRAPH_GRAPH_BOUND_H

#include "plan/graph/hold_graph.h"

/* At least what every schedule within `budget` costs. UINT64_MAX: what every schedule costs. REMAT_NO_MEMORY. */
remat_status graph_bound_cost(const hold_graph *g, uint64_t budget, uint64_t *cost);

/* For several budgets at once, and in less time: these bounds may be lower. */
remat_status graph_bound_costs(const hold_graph *g, const uint64_t *budgets, size_t count, uint64_t *costs);

/* At least the peak of every schedule. REMAT_NO_MEMORY. */
remat_status graph_bound_peak(const hold_graph *g, uint64_t *bytes);

/* The same, and the position that needs so much. */
remat_status graph_bound_tightest(const hold_graph *g, uint64_t *bytes, uint32_t *position);

#endif
