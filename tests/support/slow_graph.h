/* Peak, cost and verdict of a graph's schedule, found by looking at every tensor at every position: the definition in
 * docs/memory-model.md word by word, with none of the library's code. */
#ifndef TESTS_SLOW_GRAPH_H
#define TESTS_SLOW_GRAPH_H

#include "graph/graph_object.h"

typedef struct slow_walk {
    bool legal;
    uint64_t peak, cost; /* where it is legal */
} slow_walk;

/* `unit`: sizes are rounded up to it; 1 is exact. `count_given`: whether given tensors count. */
slow_walk graph_slow_walk(const remat_graph *graph, const uint32_t *actions, size_t count, uint64_t unit,
                          bool count_given);

#endif
