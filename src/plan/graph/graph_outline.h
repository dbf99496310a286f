/* What the planner knows of a graph before it cuts it, all of it from reads and writes alone: where the backward pass
 * begins, and who makes and needs each tensor.
 *
 * Forward are the actions up to the last one that may run again. The backward ones behind it all run once. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_OUTLINE_H
#define REMAT_PLAN_GRAPH_GRAPH_OUTLINE_H

#include <remat/profile.h>

#include "graph/graph_walk.h"

/* What a planner may be told of an action besides its graph. It goes into the profile of the chain of pieces, for people
 * and for strategies that go by type; no other part of a plan depends on it. */
typedef struct graph_hint {
    remat_layer_type type;
    uint64_t flops;
} graph_hint;

/* Of one tensor; actions, or GRAPH_NONE. Backward actions are counted from 0. */
typedef struct tensor_use {
    uint32_t maker;                 /* the forward action that writes it */
    uint32_t last_forward;          /* that reads it */
    uint32_t first_back, last_back; /* backward actions that need it */
    bool made_once;                 /* its maker runs once: data that is loaded, for example */
    bool overwritten;               /* a backward action updates it, or may write something else in its place */
    bool is_result;
} tensor_use;

/* Made forward and there from then on. */
static inline bool tensor_stays(const tensor_use *use)
{
    return use->made_once || use->is_result;
}

typedef struct graph_outline {
    const remat_graph *graph;
    uint32_t forward_count, backward_count;
    tensor_use *uses; /* by tensor */
} graph_outline;

/* REMAT_BAD_INPUT where recomputing could change what a tensor holds: one that several actions write, or one that a
 * forward action updates. REMAT_INVALID where the sums of all bytes or costs reach 2^61. */
remat_status graph_outline_create(const remat_graph *graph, graph_outline *outline);
void graph_outline_release(graph_outline *outline);
void graph_outline_forget(graph_outline *outline); /* releases the uses; the graph is still known */

/* graph_blocks.c: blocks of actions that are recomputed together, declared by the user.
 *
 * Forward once; when the backward reaches a block, those of its forward actions run again whose results the block's
 * backward needs, directly or through one another. What others read of a block is kept and serves the block as well.
 * `blocks`: a block's number for each action, counted from 0; GRAPH_NONE for none. */
remat_status graph_blocks_sequence(const graph_outline *outline, const uint32_t *blocks, graph_sequence *sequence);

#endif
