/* Remat: graphs.
 *
 * A computation that is not a chain of layers is a graph: tensors, and actions that read and write them. Build it by
 * calls:
 *
 *     remat_graph *graph;
 *     remat_graph_create(ctx, &graph);
 *     remat_graph_tensor h;
 *     remat_graph_tensor_init(&h);
 *     h.bytes = 8192;
 *     remat_graph_add_tensor(graph, &h);
 *
 * or read it from a file (docs/formats.md, "Graph"). A schedule of a graph is a list of actions. What is live at each
 * position of a schedule, its peak and its cost are defined in docs/memory-model.md; remat_graph_replay finds them.
 *
 * The order of the graph, each action once, is the schedule that keeps everything. Every number of bytes and every cost is
 * below 2^63. */
#ifndef REMAT_GRAPH_H
#define REMAT_GRAPH_H

#include <stdbool.h>
#include <stdio.h>

#include <remat/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_graph remat_graph;

/* Makes an empty graph. REMAT_NO_MEMORY. */
remat_status remat_graph_create(remat_context *context, remat_graph **graph);
void remat_graph_destroy(remat_graph *graph);

/* ---- tensors and actions ---- */

/* No tensor, where the number of a tensor is expected. */
#define REMAT_NO_TENSOR UINT32_MAX

typedef struct remat_graph_tensor {
    size_t struct_size;
    const char *name; /* NULL: it has only its number */
    uint64_t bytes;
    bool given; /* it is live during the whole schedule and is never written: weights, for example */
} remat_graph_tensor;
void remat_graph_tensor_init_sized(remat_graph_tensor *tensor, size_t size);
static inline void remat_graph_tensor_init(remat_graph_tensor *tensor)
{
    remat_graph_tensor_init_sized(tensor, sizeof *tensor);
}

/* An action. Tensors are named by their numbers, from 0 in the order in which they were added. */
typedef struct remat_graph_action {
    size_t struct_size;
    const char *name; /* NULL: it has only its number */
    const uint32_t *reads, *updates, *writes;
    size_t read_count, update_count, write_count;
    uint32_t in_place_from; /* the write in_place_to may take the bytes of this read. REMAT_NO_TENSOR: none */
    uint32_t in_place_to;
    bool once;                /* it runs exactly once, after all such actions before it in the graph */
    uint64_t workspace_bytes; /* memory that it needs only while it runs */
    uint64_t cost;            /* in any unit */
} remat_graph_action;
void remat_graph_action_init_sized(remat_graph_action *action, size_t size);
static inline void remat_graph_action_init(remat_graph_action *action)
{
    remat_graph_action_init_sized(action, sizeof *action);
}

/* Each appends a copy. REMAT_INVALID: the message says what is wrong, and the graph is unchanged. REMAT_NO_MEMORY.
 * An action is refused if it names a tensor that does not exist, writes a tensor that is given, writes one twice, updates
 * without `once`, or if in_place does not name one of its reads and one of its writes. */
remat_status remat_graph_add_tensor(remat_graph *graph, const remat_graph_tensor *tensor);
remat_status remat_graph_add_action(remat_graph *graph, const remat_graph_action *action);
/* Adds a result: a tensor whose last instance lives to the end of the schedule. */
remat_status remat_graph_add_result(remat_graph *graph, uint32_t tensor);

/* The name of the graph and the unit of its costs, such as "ns". They are copied; NULL: none. REMAT_NO_MEMORY. */
remat_status remat_graph_set_name(remat_graph *graph, const char *name);
remat_status remat_graph_set_cost_unit(remat_graph *graph, const char *unit);
const char *remat_graph_name(const remat_graph *graph);
const char *remat_graph_cost_unit(const remat_graph *graph);

/* What was added. The lists and names belong to the graph and are valid until the next call that adds something.
 * REMAT_INVALID: there is no such number. */
size_t remat_graph_tensor_count(const remat_graph *graph);
size_t remat_graph_action_count(const remat_graph *graph);
size_t remat_graph_result_count(const remat_graph *graph);
remat_status remat_graph_get_tensor_sized(const remat_graph *graph, size_t number, remat_graph_tensor *tensor,
                                          size_t tensor_size);
static inline remat_status remat_graph_get_tensor(const remat_graph *graph, size_t number, remat_graph_tensor *tensor)
{
    return remat_graph_get_tensor_sized(graph, number, tensor, sizeof *tensor);
}
remat_status remat_graph_get_action_sized(const remat_graph *graph, size_t number, remat_graph_action *action,
                                          size_t action_size);
static inline remat_status remat_graph_get_action(const remat_graph *graph, size_t number, remat_graph_action *action)
{
    return remat_graph_get_action_sized(graph, number, action, sizeof *action);
}
uint32_t remat_graph_result(const remat_graph *graph, size_t position);

/* ---- files ---- */

/* Reads a graph from a file or an open stream. `name` stands for the stream in messages. The caller destroys the graph.
 * REMAT_IO: the file cannot be read. REMAT_BAD_INPUT: the message has the file, the line and the field. Unknown keys
 * give warnings. */
remat_status remat_graph_load(remat_context *context, const char *path, remat_graph **graph);
remat_status remat_graph_read(remat_context *context, FILE *stream, const char *name, remat_graph **graph);

/* Writes a graph as JSON. Reading it again gives the same graph. `save` replaces the file only when everything was
 * written. REMAT_IO. */
remat_status remat_graph_write(const remat_graph *graph, FILE *stream);
remat_status remat_graph_save(const remat_graph *graph, const char *path);

/* ---- schedules ---- */

/* The figures of a schedule. */
typedef struct remat_graph_figures {
    uint64_t actions;       /* how many it has */
    uint64_t peak_bytes;    /* the most that is live at once; given tensors count */
    uint64_t peak_position; /* the first position that reaches it */
    uint64_t total_cost;
    uint64_t arena_bytes; /* what the places in a file need; 0: it has none */
} remat_graph_figures;

/* Replays a schedule. REMAT_CHECK_FAILED: it is not legal; the message has the position, the action and the tensor.
 * REMAT_INVALID: a sum reaches 2^63. REMAT_NO_MEMORY. */
remat_status remat_graph_replay_sized(const remat_graph *graph, const uint32_t *actions, size_t count,
                                      remat_graph_figures *figures, size_t figures_size);
static inline remat_status remat_graph_replay(const remat_graph *graph, const uint32_t *actions, size_t count,
                                              remat_graph_figures *figures)
{
    return remat_graph_replay_sized(graph, actions, count, figures, sizeof *figures);
}

/* Checks a plan file for `graph` (docs/formats.md, "Graph plan"), from any program: replays its schedule and checks the
 * figures and places in it. Gives the figures of the schedule, even if a figure in the file is wrong. Warns where an action
 * runs again behind one that has changed what it reads or writes, which is legal.
 *   REMAT_CHECK_FAILED  the schedule is illegal, a figure is wrong, the peak is over the budget in the file, or two
 *                       instances that are live at the same time share bytes;
 *   REMAT_BAD_INPUT     the file is not a plan of a graph; REMAT_IO, REMAT_NO_MEMORY. */
remat_status remat_graph_plan_check_sized(const remat_graph *graph, FILE *stream, const char *name,
                                          remat_graph_figures *figures, size_t figures_size);
static inline remat_status remat_graph_plan_check(const remat_graph *graph, FILE *stream, const char *name,
                                                  remat_graph_figures *figures)
{
    return remat_graph_plan_check_sized(graph, stream, name, figures, sizeof *figures);
}

#ifdef __cplusplus
}
#endif
#endif
