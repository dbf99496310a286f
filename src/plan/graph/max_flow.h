/* The largest flow through a network, and with it the smallest cut (Dinic's algorithm). */
#ifndef REMAT_PLAN_GRAPH_MAX_FLOW_H
#define REMAT_PLAN_GRAPH_MAX_FLOW_H

#include <stdbool.h>

#include <remat/context.h>

typedef struct flow_edge {
    uint32_t to, next; /* the next edge of the same node; the edge back has the number ^ 1 */
    uint64_t left;     /* how much more may flow */
} flow_edge;

typedef struct flow_network {
    remat_context *context;
    uint32_t node_count;
    uint32_t *first, *level, *at; /* by node */
    uint32_t *list;               /* of nodes: a queue, then a path of edges */
    flow_edge *edges;
    size_t edge_count, edge_capacity;
} flow_network;

/* Enough for "as much as you like": sums of real capacities must stay below it. */
#define FLOW_UNLIMITED ((uint64_t)1 << 62)

remat_status flow_network_create(remat_context *context, uint32_t nodes, flow_network *network);
void flow_network_release(flow_network *network);
/* Removes all edges. */
void flow_network_clear(flow_network *network);
remat_status flow_network_add(flow_network *network, uint32_t from, uint32_t to, uint64_t capacity);

/* The flow from `source` to `sink`, which must be below FLOW_UNLIMITED. */
uint64_t flow_network_solve(flow_network *network, uint32_t source, uint32_t sink);
/* After it: whether a node is on the source's side of a smallest cut. */
bool flow_network_on_source_side(const flow_network *network, uint32_t node);

#endif
