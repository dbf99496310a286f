/* All legal schedules of a small graph, by shortest paths over sets of live tensors, with none of the library's code but the
 * graph itself. At most 60 tensors. */
#ifndef TESTS_SLOW_SCHEDULES_H
#define TESTS_SLOW_SCHEDULES_H

#include "graph/graph_object.h"

/* The lowest cost of a schedule whose exact peak is within the limit; UINT64_MAX where there is none. */
uint64_t slow_cheapest(const remat_graph *graph, uint64_t limit);

/* The lowest peak of any schedule. */
uint64_t slow_lowest_peak(const remat_graph *graph);

#endif
