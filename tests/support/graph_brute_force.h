/* All that a small graph can do by keeping or not keeping tensors, tried one by one, with none of the library's
 * code. */
#ifndef TESTS_GRAPH_BRUTE_FORCE_H
#define TESTS_GRAPH_BRUTE_FORCE_H

#include "support/slow_graph.h"

/* For every set of the tensors that forward actions make: those are kept, the others are made again when the backward
 * needs them. Points with falling peaks and rising costs; the caller frees. At most 16 tensors. */
typedef struct brute_curve {
    slow_walk *points;
    size_t count;
} brute_curve;
brute_curve graph_brute_force(const remat_graph *graph);
/* UINT64_MAX where nothing fits. */
uint64_t brute_cost(const brute_curve *curve, uint64_t budget);
size_t graph_made_count(const remat_graph *graph);

#endif
