/* A graph: tensors, and the actions that read and write them, in integers only (docs/memory-model.md).
 *
 * A schedule of a graph is a list of actions. An action with `once` runs exactly once, and all of those run in the order
 * of the graph; the others may run any number of times. The order of the graph, each action once, is the schedule that
 * keeps everything:
 *
 *     keeps everything   load F1 F2 F3 | B3 B2 B1        load and B are `once`
 *     recomputes F1, F2  load F1 F2 F3   B3 F1 F2 B2 B1
 *
 * A write makes a new instance of a tensor, a read means the latest instance, and an instance lives from its write to its
 * last read before the tensor is written again. graph_walk.h finds what lives when. */
#ifndef REMAT_GRAPH_GRAPH_OBJECT_H
#define REMAT_GRAPH_GRAPH_OBJECT_H

#include <remat/dtype.h>
#include <remat/graph.h>

#include "base/text_pool.h"

#define GRAPH_NONE REMAT_NO_TENSOR

typedef struct graph_tensor {
    const char *name;  /* may be NULL; borrowed from whoever built the graph */
    uint64_t bytes;    /* exact; where memory is placed, graph_placed_bytes */
    remat_dtype dtype; /* for people: nothing here depends on it */
    bool given;        /* lives from the first position to the last and is never written */
    uint32_t writer;   /* the last action that was found to write it; graph_add_action's own */
} graph_tensor;

/* The tensors of an action are runs of numbers in graph.links: reads, then updates, then writes. */
typedef struct graph_action {
    const char *name; /* may be NULL; borrowed */
    uint32_t first_link;
    uint32_t read_count, update_count, write_count;
    uint32_t in_place_from, in_place_to; /* a read and a write: the write may take the bytes of the read; GRAPH_NONE */
    bool once;
    uint64_t workspace_bytes; /* while it runs; exact */
    uint64_t cost;
} graph_action;

struct remat_graph {
    remat_context *context;
    text_pool texts; /* the names of graphs that were built by public calls or read from a file */
    const char *name, *cost_unit;
    graph_tensor *tensors;
    size_t tensor_count, tensor_capacity;
    graph_action *actions;
    size_t action_count, action_capacity;
    uint32_t *links;
    size_t link_count, link_capacity;
    uint32_t *results; /* their last instances live to the end */
    size_t result_count, result_capacity;
};

remat_status graph_create(remat_context *context, remat_graph **made);
void graph_destroy(remat_graph *graph);

/* Copies a text into the graph's own memory; NULL stays NULL. */
remat_status graph_copy_text(remat_graph *graph, const char *text, const char **copy);

/* Each of these appends; the number of the new one is the old count. REMAT_INVALID where a number is 2^63 or more or
 * names no tensor. */
remat_status graph_add_tensor(remat_graph *graph, const graph_tensor *tensor);
remat_status graph_add_result(remat_graph *graph, uint32_t tensor);

/* `action` says all but the links and their counts. REMAT_INVALID also where an action without `once` updates, a given
 * tensor is written, a tensor is written twice, or `in_place` does not name a read and a write. */
typedef struct graph_links {
    const uint32_t *reads, *updates, *writes;
    size_t read_count, update_count, write_count;
} graph_links;
remat_status graph_add_action(remat_graph *graph, const graph_action *action, const graph_links *links);

/* The same in two steps, for files in which actions may come before their tensors: append first, check later. The check
 * returns what is wrong with an action, written to `text`, or NULL. */
enum { GRAPH_WRONG_TEXT = 160 };
remat_status graph_append_action(remat_graph *graph, const graph_action *action, const graph_links *links);
const char *graph_check_action(remat_graph *graph, uint32_t action, char text[GRAPH_WRONG_TEXT]);

static inline const uint32_t *graph_reads(const remat_graph *graph, const graph_action *action)
{
    return graph->links + action->first_link;
}
static inline const uint32_t *graph_updates(const remat_graph *graph, const graph_action *action)
{
    return graph_reads(graph, action) + action->read_count;
}
static inline const uint32_t *graph_writes(const remat_graph *graph, const graph_action *action)
{
    return graph_updates(graph, action) + action->update_count;
}

/* What must be live for the action: its reads and updates, one after the other from graph_reads on. */
static inline size_t graph_need_count(const graph_action *action)
{
    return (size_t)action->read_count + action->update_count;
}

/* Gives back the room that the lists have beyond their items. REMAT_NO_MEMORY. */
remat_status graph_fit(remat_graph *graph);

/* For messages: the name, or the number as text. */
enum { GRAPH_NAME_TEXT = 24 };
const char *graph_action_name(const remat_graph *graph, uint32_t action, char text[GRAPH_NAME_TEXT]);
const char *graph_tensor_name(const remat_graph *graph, uint32_t tensor, char text[GRAPH_NAME_TEXT]);

/* Memory is placed in units of 64 bytes. */
enum { GRAPH_ALIGNMENT = 64 };
static inline uint64_t graph_placed_bytes(uint64_t bytes)
{
    return (bytes + GRAPH_ALIGNMENT - 1) & ~(uint64_t)(GRAPH_ALIGNMENT - 1);
}

#endif
