/* A graph as a chain: its pieces are the layers of a profile, whose modes say which tensors of a piece are kept.
 *
 *     graph_pieces *pieces;
 *     graph_pieces_create(graph, &options, &pieces);
 *     remat_plan_create(context, graph_pieces_profile(pieces), ..., &plan);
 *     graph_pieces_expand(pieces, plan, &sequence);
 *
 * The chain is on the safe side: the peak of the sequence (graph_walk.h) is never above the peak of the chain's
 * schedule plus the constant bytes. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_PIECES_H
#define REMAT_PLAN_GRAPH_GRAPH_PIECES_H

#include <remat/plan.h>

#include "graph/graph_walk.h"

typedef struct graph_pieces graph_pieces;

typedef struct graph_pieces_options {
    bool whole;                    /* all in one piece */
    size_t most_modes;             /* of a piece, besides `keep`; 63 at most */
    const struct keep_sets *seeds; /* of `whole`: where a search may begin (graph_piece.h); or NULL */
} graph_pieces_options;

/* The graph must outlive the pieces and stay as it is. REMAT_INVALID where it cannot be run again (graph_cut.h). */
remat_status graph_pieces_create(const remat_graph *graph, const graph_pieces_options *options, graph_pieces **pieces);
void graph_pieces_destroy(graph_pieces *pieces);

/* The chain. Its input is all data that is loaded. */
const remat_profile *graph_pieces_profile(const graph_pieces *pieces);
/* The same chain with only the first `most` modes of a piece, for planners that take long with many; the caller
 * destroys it. The numbers of the modes are the same in both. */
remat_status graph_pieces_lean_profile(const graph_pieces *pieces, size_t most, remat_profile **profile);
/* What lives outside of the chain: gradients that stay while several pieces run. */
uint64_t graph_pieces_constant_bytes(const graph_pieces *pieces);
size_t graph_pieces_count(const graph_pieces *pieces);
/* How many different ones there are. */
size_t graph_pieces_kinds(const graph_pieces *pieces);
/* The piece of an action. */
size_t graph_pieces_of_action(const graph_pieces *pieces, uint32_t action);

/* Turns a schedule of the chain into a list of actions. Only what is read runs again. */
remat_status graph_pieces_expand(const graph_pieces *pieces, const remat_plan *plan, graph_sequence *sequence);

/* The same, step by step: begin, a walk with the step function, end. `end` is to be called even if the walk failed. */
typedef struct graph_expansion {
    const graph_pieces *pieces;
    graph_sequence *sequence;
    uint16_t *modes; /* by piece: how it is saved right now */
    bool *ran;       /* by piece: whether its forward ran already */
} graph_expansion;
remat_status graph_expansion_begin(const graph_pieces *pieces, graph_sequence *sequence, graph_expansion *expansion);
remat_status graph_expansion_step(void *expansion, remat_step step);
remat_status graph_expansion_end(graph_expansion *expansion);

/* A plan that walks the given steps, for reports and files; the caller destroys it, before the pieces. */
remat_status graph_pieces_plan(const graph_pieces *pieces, const char *strategy, const remat_step *steps, size_t count,
                               remat_plan **plan);

/* Leaves out every forward action that runs again although nobody reads what it makes. */
remat_status graph_sequence_prune(const remat_graph *graph, graph_sequence *sequence);

#endif
