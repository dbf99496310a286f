/* Cuts a graph into a chain of pieces, where a single tensor passes.
 *
 *     forward    | piece 0 |--x_1--| piece 1 |--x_2--| piece 2 |
 *     backward   | piece 0 |--y_1--| piece 1 |--y_2--| piece 2 |
 *
 * Of all that the forward actions of a piece make, only its output is read by later pieces, forward or backward, and no
 * earlier piece reads anything of it. Data that is loaded is at hand everywhere, and so are results once they are
 * made. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_CUT_H
#define REMAT_PLAN_GRAPH_GRAPH_CUT_H

#include <stdbool.h>

#include "graph/graph.h"

/* Who makes and reads a tensor that a forward action makes; positions, and GRAPH_NONE for nobody. */
typedef struct tensor_use {
    uint32_t maker;                 /* the forward action */
    uint32_t last_forward;          /* that reads it */
    uint32_t first_back, last_back; /* backward actions that read or update it, counted from 0 */
    bool loaded, updated;
    bool finished; /* a result: it stays until the end */
} tensor_use;

/* Made once and there from then on. */
static inline bool tensor_stays(const tensor_use *use)
{
    return use->loaded || use->finished;
}

/* REMAT_INVALID where a graph is not one that can be run again: a forward action that updates, a tensor with two makers
 * in the forward pass or one in each pass, figures whose sums reach 2^61. `uses` has one entry a tensor. */
remat_status graph_find_uses(const remat_graph *graph, tensor_use *uses);

typedef struct graph_cut {
    size_t piece_count;
    uint32_t *forward_begin;  /* piece_count + 1: the forward actions of a piece */
    uint32_t *backward_begin; /* piece_count + 1, counted from 0: piece i has those from [i + 1] up to [i] */
    uint32_t *input;          /* piece_count + 1: the tensor that passes from i-1 to i; GRAPH_NONE at both ends */
    size_t capacity;
} graph_cut;

/* `whole`: all in one piece. */
remat_status graph_cut_find(const remat_graph *graph, const tensor_use *uses, bool whole, graph_cut *cut);
void graph_cut_release(remat_context *context, graph_cut *cut);

#endif
