/* Pictures in a terminal: bars of block characters, as wide as it is. */
#ifndef REMAT_CLI_PLOT_H
#define REMAT_CLI_PLOT_H

#include "command.h"

/* Memory over time, stacked by what holds it; the plan must be feasible. */
remat_status plot_memory(const remat_profile *profile, const remat_plan *plan);

/* Memory over the positions of a graph's schedule; the plan must be feasible. */
void plot_graph_memory(const remat_graph *graph, const remat_graph_plan *plan);

/* The cost of the best plan for each amount of memory; `base_cost` is that of keeping everything. */
void plot_curve(const remat_sweep_point *points, size_t count, size_t knee, uint64_t base_cost);

#endif
