/* Which actions a schedule needs: those with `once`, those that make results, and those that make what such actions read. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_NEEDED_H
#define REMAT_PLAN_GRAPH_GRAPH_NEEDED_H

#include "graph/graph_object.h"

/* Of a tensor with several writers it cannot be said which one a schedule needs. */
typedef enum shared_writers {
    NEEDS_NONE, /* no schedule does without what is found: for bounds */
    NEEDS_ALL   /* what is found is enough for a schedule: for planning */
} shared_writers;

/* Sets needed[i] for every action. The graph's own order must be legal. REMAT_NO_MEMORY. */
remat_status graph_needed_find(const remat_graph *graph, shared_writers shared, bool *needed);

#endif
