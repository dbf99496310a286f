/* Cuts a graph into a chain of pieces, where a single tensor passes.
 *
 *     forward    | piece 0 |--x_1--| piece 1 |--x_2--| piece 2 |
 *     backward   | piece 0 |--y_1--| piece 1 |--y_2--| piece 2 |
 *
 * Of all that the forward actions of a piece make, only its output is read by later pieces, forward or backward, and no
 * earlier piece reads anything of it. Tensors that are made once are at hand everywhere, and so are results. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_CUT_H
#define REMAT_PLAN_GRAPH_GRAPH_CUT_H

#include "plan/graph/graph_outline.h"

typedef struct piece_begin {
    uint32_t forward;  /* the piece's first forward action */
    uint32_t backward; /* counted from 0: piece i has the backward actions from that of i + 1 up to its own */
    uint32_t input;    /* the tensor that passes from i-1 to i; GRAPH_NONE at both ends */
} piece_begin;

typedef struct graph_cut {
    piece_begin *begins; /* piece_count + 1 */
    size_t piece_count, capacity;
} graph_cut;

/* Bytes of the tensor that passes to a piece; 0 at both ends of the chain. */
static inline uint64_t graph_cut_input_bytes(const graph_cut *cut, const remat_graph *graph, size_t piece)
{
    uint32_t input = cut->begins[piece].input;
    return input == GRAPH_NONE ? 0 : graph_placed_bytes(graph->tensors[input].bytes);
}

/* `whole`: all in one piece. */
remat_status graph_cut_find(const graph_outline *outline, bool whole, graph_cut *cut);
void graph_cut_release(remat_context *context, graph_cut *cut);

#endif
