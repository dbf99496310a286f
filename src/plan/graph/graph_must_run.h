/* What every schedule of a graph contains, and so what none can do without: lower bounds that need no search. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_MUST_RUN_H
#define REMAT_PLAN_GRAPH_GRAPH_MUST_RUN_H

#include "graph/graph_walk.h"

typedef struct graph_least {
    uint64_t cost;       /* of all actions that every schedule runs */
    uint64_t peak_bytes; /* the largest of what one of them needs while it runs, and of what is live at the end */
} graph_least;

/* REMAT_INVALID: a sum reaches 2^63. REMAT_NO_MEMORY. */
remat_status graph_least_find(const remat_graph *graph, graph_counting counting, graph_least *least);

#endif
