/* One piece of a graph on its own: what it holds and what it costs, for any choice of the tensors it keeps.
 *
 * The tensors that the forward actions of a piece make are kept for its backward or made again there: directly before a
 * backward action, everything it needs that is not there is made, and all that needs in turn, and stays until its last
 * read. The input of the piece is at hand at both times. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_PIECE_H
#define REMAT_PLAN_GRAPH_GRAPH_PIECE_H

#include "plan/graph/graph_cut.h"

/* A tensor as the piece sees it; those that live all through (data, the piece's input) are left out. */
typedef struct piece_tensor {
    uint64_t bytes;
    uint32_t number; /* in the graph */
    uint32_t maker;  /* the piece's forward action; GRAPH_NONE: a gradient, or data */
    bool is_output, is_data;
    bool wanted;  /* a backward action reads it, and a forward action made it */
    bool arrives; /* a gradient that is there when the backward of the piece begins */
    bool leaves;  /* one that the next backward reads */
} piece_tensor;

/* Reads and updates, then writes, in piece.links. */
typedef struct piece_action {
    uint32_t first_link, need_count, write_count;
    uint32_t in_place_from, in_place_to;
    uint64_t workspace_bytes, cost;
    bool is_load;
} piece_action;

typedef struct graph_piece {
    remat_context *context;
    uint32_t first_forward, first_backward; /* in the graph */
    size_t forward_count, backward_count;
    uint32_t output; /* the piece's tensor that passes on; GRAPH_NONE */
    piece_tensor *tensors;
    size_t tensor_count, tensor_capacity, inner_count; /* the inner ones, made forward, come first */
    piece_action *actions;                             /* forward, then backward */
    size_t action_count, action_capacity;
    uint32_t *links;
    size_t link_count, link_capacity;
    uint64_t forward_cost, backward_cost;
} graph_piece;

/* What the graph knows about its gradients: which live through several pieces, and which pass from one to the next. */
typedef struct graph_gradients {
    bool *constant;        /* by tensor: held all through, outside of the pieces */
    uint32_t *passing;     /* tensors, those that pass to piece 0 first */
    size_t *passing_begin; /* piece_count + 1 */
    size_t passing_count, passing_capacity, piece_count, tensor_count;
    uint64_t constant_bytes;
} graph_gradients;
remat_status graph_gradients_find(const remat_graph *graph, const graph_cut *cut, const tensor_use *uses,
                                  graph_gradients *gradients);
void graph_gradients_release(remat_context *context, graph_gradients *gradients);
uint64_t graph_gradients_passing_bytes(const remat_graph *graph, const graph_gradients *gradients, size_t to_piece);

remat_status graph_piece_build(const remat_graph *graph, const graph_cut *cut, const tensor_use *uses,
                               const graph_gradients *gradients, size_t number, graph_piece *piece);
void graph_piece_release(graph_piece *piece);

/* Whether two pieces differ in nothing but their numbers in the graph. */
bool graph_piece_same(const graph_piece *a, const graph_piece *b);

/* Sets of tensors worth keeping, to start a search from: `width` flags each, by the tensors' numbers in the graph. */
typedef struct keep_sets {
    uint8_t *flags;
    size_t count, capacity, width;
} keep_sets;

/* What a choice comes to, the piece's input not counted. */
typedef struct piece_figures {
    uint64_t held_bytes; /* from the forward to the backward */
    uint64_t forward_peak, backward_peak;
    uint64_t remake_cost;
    bool holds_output;
} piece_figures;

/* Room for the evaluation of one piece after another. */
typedef struct piece_scratch piece_scratch;
remat_status piece_scratch_create(const graph_piece *piece, piece_scratch **scratch);
void piece_scratch_destroy(piece_scratch *scratch);

/* Whether data that the piece counts is to be left out from now on: to its chain it lives all through, whatever runs
 * again. At first it is not. */
void piece_leave_out_data(piece_scratch *scratch, bool leave_out);

/* Evaluates a choice: `keep` has an entry for every inner tensor. */
void piece_evaluate(piece_scratch *scratch, const uint8_t *keep, piece_figures *figures);
/* The forward on its own, with nothing kept. */
uint64_t piece_forward_peak(piece_scratch *scratch);
/* The actions of the backward evaluated last, as numbers of piece.actions: in all, and from which position on. */
const uint32_t *piece_backward_actions(const piece_scratch *scratch, size_t *count);

#endif
