/* A model as the planner sees it: tensors and the actions that make and read them, in integers only.
 *
 * The actions stand in the order of a plain training step. First the forward ones, each of which may run again later;
 * behind them the backward ones, each of which runs exactly once and in this order. A schedule of a graph is a list of
 * actions: all backward ones in their order, with forward ones before and between them as often as the plan wants.
 *
 *     plain         F0 F1 F2 F3 | B3 B2 B1 B0
 *     F1, F2 again  F0 F1 F2 F3   B3 F1 F2 B2 B1 B0
 *
 * Nothing else needs to be said, because lifetimes follow: a write makes a new instance of a tensor, a read means the
 * latest instance, and an instance lives from its write to its last read before the tensor is written again. What is not
 * read again is never held (graph_walk.h). */
#ifndef REMAT_GRAPH_GRAPH_H
#define REMAT_GRAPH_GRAPH_H

#include <remat/profile.h>

#define GRAPH_NONE UINT32_MAX

typedef struct graph_tensor {
    const char *name; /* borrowed from whoever built the graph */
    uint64_t bytes;   /* a multiple of 64 */
} graph_tensor;

typedef enum graph_kind {
    GRAPH_LOAD,       /* data comes in: a forward action that runs once */
    GRAPH_FORWARD,    /* may run again */
    GRAPH_GRADIENT,   /* of the layer's parameters */
    GRAPH_DERIVATIVE, /* of the layer's inputs */
    GRAPH_APPLY,      /* the optimizer's step on the layer's parameters */
    GRAPH_FINISH,     /* results are read: once, at the end */
} graph_kind;

/* The lists of an action are runs of tensor numbers in graph.links: reads, then writes, then updates. */
typedef struct graph_action {
    graph_kind kind;
    uint32_t layer; /* whose action this is */
    uint32_t first_link;
    uint16_t read_count;                 /* instances that must live */
    uint16_t write_count;                /* new instances */
    uint16_t update_count;               /* instances that must live and are changed: sums of gradients */
    uint32_t in_place_from, in_place_to; /* a write may take the place of as large a read that ends here; GRAPH_NONE */
    uint64_t workspace_bytes;            /* while it runs; a multiple of 64 */
    uint64_t cost;
} graph_action;

typedef struct graph_layer {
    const char *name; /* borrowed */
    remat_layer_type type;
    uint64_t flops; /* of its forward */
} graph_layer;

typedef struct remat_graph {
    remat_context *context;
    graph_tensor *tensors;
    size_t tensor_count, tensor_capacity;
    graph_layer *layers;
    size_t layer_count, layer_capacity;
    graph_action *actions;
    size_t action_count, action_capacity;
    size_t backward_begin; /* number of forward actions */
    uint32_t *links;
    size_t link_count, link_capacity;
} remat_graph;

remat_status graph_create(remat_context *context, remat_graph **made);
void graph_destroy(remat_graph *graph);

/* Appends; the number of the new one is the old count. Bytes are rounded up to 64. REMAT_INVALID where they pass 2^63. */
remat_status graph_add_tensor(remat_graph *graph, const char *name, uint64_t bytes);
remat_status graph_add_layer(remat_graph *graph, const graph_layer *layer);

/* Appends an action; forward ones before backward ones. `action` says all but the links and their counts. A tensor stands
 * at most once in each list. */
typedef struct graph_links {
    const uint32_t *reads, *writes, *updates;
    size_t read_count, write_count, update_count;
} graph_links;
remat_status graph_add_action(remat_graph *graph, const graph_action *action, const graph_links *links);

static inline const uint32_t *graph_reads(const remat_graph *graph, const graph_action *action)
{
    return graph->links + action->first_link;
}
static inline const uint32_t *graph_writes(const remat_graph *graph, const graph_action *action)
{
    return graph_reads(graph, action) + action->read_count;
}
static inline const uint32_t *graph_updates(const remat_graph *graph, const graph_action *action)
{
    return graph_writes(graph, action) + action->write_count;
}

#endif
