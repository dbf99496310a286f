/* A plain planner to compare with: three choices for each tensor that may be made again (keep it; make it again once, when the
 * backward first needs it, and hold it; make it again for every reader), and annealing over them for some seconds. */
#ifndef BENCH_PLAIN_ANNEALING_H
#define BENCH_PLAIN_ANNEALING_H

#include "graph/graph_walk.h"

/* The cheapest schedule found whose exact peak is within the budget; UINT64_MAX where none was. */
uint64_t plain_annealing(const remat_graph *graph, uint64_t budget, double seconds, uint64_t seed);

/* Plainer still: of what lives at the peak, drop what is cheapest to make again for its bytes, until it fits: made again once, and where
 * all of that is done, for every reader. */
uint64_t plain_greedy(const remat_graph *graph, uint64_t budget);

#endif
