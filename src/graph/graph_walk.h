/* From a list of actions to the lives of all tensors: who holds which bytes from when to when. The arena places what this
 * finds, the executor runs it, the report draws it. */
#ifndef REMAT_GRAPH_GRAPH_WALK_H
#define REMAT_GRAPH_GRAPH_WALK_H

#include "graph/graph.h"

/* A growing list of actions. */
typedef struct graph_sequence {
    uint32_t *actions;
    size_t count, capacity;
} graph_sequence;
remat_status graph_sequence_add(remat_context *context, graph_sequence *sequence, uint32_t action);
void graph_sequence_release(remat_context *context, graph_sequence *sequence);

/* Every action once: nothing is recomputed. The sequence must be empty; it is empty again after a failure. */
remat_status graph_sequence_plain(const remat_graph *graph, graph_sequence *sequence);

/* One instance of a tensor, or one workspace (tensor GRAPH_NONE). It lives while the actions at the positions born ..
 * ends-1 of the sequence run. Instances that follow each other in place share one buffer. */
typedef struct graph_life {
    uint32_t tensor;
    uint32_t buffer;
    uint64_t born, ends;
} graph_life;

/* What must have a place: a buffer lives from its first life's birth to its last life's end. */
typedef struct graph_buffer {
    uint64_t bytes, born, ends;
} graph_buffer;

typedef struct graph_lives {
    graph_life *lives; /* in order of birth; of one action: its writes in their order, then its workspace */
    size_t life_count, life_capacity;
    graph_buffer *buffers;
    size_t buffer_count, buffer_capacity;
    uint64_t peak_bytes;    /* the most that lives at once */
    uint64_t peak_position; /* the first position that reaches it */
    uint64_t cost;          /* of all actions */
} graph_lives;

/* Walks the sequence. REMAT_CHECK_FAILED names the position and action where a read or update finds no instance, where a
 * backward action is missing, twice or out of order, or where a load runs twice. */
remat_status graph_walk(const remat_graph *graph, const graph_sequence *sequence, graph_lives *lives);
void graph_lives_release(remat_context *context, graph_lives *lives);

#endif
