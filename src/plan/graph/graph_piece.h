/* One piece of a graph on its own: what it holds and what it costs, for any choice of the tensors it keeps.
 *
 * The tensors that the forward actions of a piece make are kept for its backward or made again there: directly before a
 * backward action, everything it needs that is not there is made, and all that needs in turn, and stays until its last
 * read. The input of the piece is at hand at both times. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_PIECE_H
#define REMAT_PLAN_GRAPH_GRAPH_PIECE_H

#include "graph/graph_walk.h"
#include "plan/graph/graph_cut.h"

/* Which pieces a gradient lives through: those from `from`, which makes it, down to `to`, the last that needs it. */
typedef struct gradient_span {
    uint32_t from, to;
    bool constant; /* held all through, outside of the pieces */
} gradient_span;

typedef struct graph_gradients {
    gradient_span *spans;    /* by tensor */
    uint64_t *passing_bytes; /* by piece: of the gradients that pass to it */
    size_t tensor_count, piece_count;
    uint64_t constant_bytes;
} graph_gradients;
remat_status graph_gradients_find(const graph_outline *outline, const graph_cut *cut, graph_gradients *gradients);
void graph_gradients_release(remat_context *context, graph_gradients *gradients);

typedef struct piece_tensor {
    uint32_t number; /* in the whole graph */
    uint32_t maker;  /* the piece's forward action; GRAPH_NONE: a gradient, or data */
    uint32_t write;  /* which of its maker's writes it is */
    bool wanted;     /* a backward action reads it, and a forward action made it */
} piece_tensor;

/* The piece as a graph of its own. Left out are tensors that live all through, such as the piece's input. Its actions
 * are the forward ones, one that stands for the turn from forward to backward, and the backward ones. The turn reads the
 * output and makes the gradients that arrive; gradients that leave are results. */
typedef struct graph_piece {
    remat_graph *graph;
    piece_tensor *tensors; /* the inner ones, which may be made again, come first */
    size_t tensor_capacity;
    uint32_t inner_count, forward_count, backward_count;
    uint32_t output; /* the inner tensor that passes on; GRAPH_NONE */
    uint64_t forward_cost, backward_cost;
} graph_piece;

/* `room` is for graph_piece_room numbers, of which the first, one for each tensor of the graph, are GRAPH_NONE before and
 * after. */
static inline size_t graph_piece_room(const remat_graph *graph)
{
    return 2 * graph->tensor_count + graph->link_count;
}
remat_status graph_piece_build(const graph_outline *outline, const graph_cut *cut, const graph_gradients *gradients,
                               uint32_t number, uint32_t *room, graph_piece *piece);
void graph_piece_release(graph_piece *piece);

/* Whether two pieces differ in nothing but their numbers in the graph. */
bool graph_piece_same(const graph_piece *a, const graph_piece *b);

/* What a choice comes to, the piece's input not counted. */
typedef struct piece_figures {
    uint64_t held_bytes; /* from the forward to the backward */
    uint64_t forward_peak, backward_peak;
    uint64_t recompute_cost;
    bool holds_output;
} piece_figures;

/* Evaluates choices of one piece, without allocating memory for each. */
typedef struct piece_evaluator piece_evaluator;
remat_status piece_evaluator_create(const graph_piece *piece, piece_evaluator **made);
void piece_evaluator_destroy(piece_evaluator *evaluator);

/* Evaluates a choice: `keep` has an entry for every inner tensor. */
remat_status piece_evaluate(piece_evaluator *evaluator, const uint8_t *keep, piece_figures *figures);
/* The backward of the choice evaluated last, with what it recomputes, as numbers of the piece's actions. */
const uint32_t *piece_backward_actions(const piece_evaluator *evaluator, size_t *count);

#endif
