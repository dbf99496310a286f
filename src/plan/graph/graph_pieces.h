/* A graph as a chain: its pieces are the layers of a profile, whose modes say which tensors of a piece are kept.
 *
 *     graph_outline_create(graph, &outline);
 *     graph_pieces_create(&outline, &options, &pieces);
 *     remat_plan_create(context, graph_pieces_profile(pieces), ..., &plan);
 *     graph_pieces_expand(pieces, plan, &sequence);
 *
 * The chain is on the safe side: the peak of the sequence (graph_walk.h, GRAPH_PLACED) is never above the peak of the
 * chain's schedule plus the constant bytes. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_PIECES_H
#define REMAT_PLAN_GRAPH_GRAPH_PIECES_H

#include <remat/plan.h>

#include "graph/graph_walk.h"
#include "plan/graph/graph_hint.h"
#include "plan/graph/graph_outline.h"

typedef struct graph_pieces graph_pieces;

typedef struct graph_pieces_options {
    const graph_hint *hints;       /* by action, or NULL */
    bool whole;                    /* all in one piece */
    size_t most_modes;             /* of a piece, besides `keep`; 63 at most */
    const struct keep_sets *seeds; /* of `whole`: where a search may begin (graph_choices.h); or NULL */
} graph_pieces_options;

/* The outline, its graph and the hints must outlive the pieces and stay as they are. */
remat_status graph_pieces_create(const graph_outline *outline, const graph_pieces_options *options,
                                 graph_pieces **pieces);
void graph_pieces_destroy(graph_pieces *pieces);

/* The chain. Its input is all data that is made once. */
const remat_profile *graph_pieces_profile(const graph_pieces *pieces);
/* The same chain with only the first `most` modes of a piece, for planners that take long with many; the caller
 * destroys it. The numbers of the modes are the same in both. */
remat_status graph_pieces_lean_profile(const graph_pieces *pieces, size_t most, remat_profile **profile);
/* What lives outside of the chain: results, and gradients that stay while several pieces run. */
uint64_t graph_pieces_constant_bytes(const graph_pieces *pieces);
size_t graph_pieces_count(const graph_pieces *pieces);
/* How many different ones there are. */
size_t graph_pieces_kinds(const graph_pieces *pieces);

/* Turns a schedule of the chain into a list of actions. Only what is read is recomputed. */
remat_status graph_pieces_expand(const graph_pieces *pieces, const remat_plan *plan, graph_sequence *sequence);
remat_status graph_pieces_expand_steps(const graph_pieces *pieces, const remat_step *steps, size_t count,
                                       graph_sequence *sequence);

/* A plan that walks the given steps, for reports and files; the caller destroys it, before the pieces. */
remat_status graph_pieces_plan(const graph_pieces *pieces, const char *strategy, const remat_step *steps, size_t count,
                               remat_plan **plan);

#endif
