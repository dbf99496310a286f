/* Which actions of a graph are alike: those with the same cost and workspace whose tensors have as many bytes and gaps. A net of many
 * blocks consists of them. */
#ifndef REMAT_PLAN_GRAPH_HOLD_TWINS_H
#define REMAT_PLAN_GRAPH_HOLD_TWINS_H

#include "plan/graph/hold_graph.h"

/* The actions that may run again and write something, kind by kind, and in order within a kind. */
typedef struct hold_twins {
    uint32_t *actions;
    uint32_t *kinds;  /* by action; GRAPH_NONE for all others */
    uint32_t *firsts; /* by kind: its first place in `actions`; one more behind the last kind */
    uint32_t count, kind_count;
} hold_twins;

remat_status hold_twins_create(const hold_graph *g, hold_twins *made);
void hold_twins_release(const hold_graph *g, hold_twins *twins);

#endif
