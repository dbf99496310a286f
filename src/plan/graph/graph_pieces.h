/* A graph as a chain: its pieces are the layers of a profile, whose modes say which tensors of a piece are kept.
 *
 *     graph_outline_create(graph, &outline);
 *     graph_pieces_create(&outline, &options, &pieces);
 *     remat_plan_create(context, pieces->profile, ..., &plan);
 *     graph_pieces_expand(pieces, plan, &sequence);
 *
 * The chain is on the safe side: the peak of the sequence (graph_walk.h, GRAPH_PLACED) is never above the peak of the
 * chain's schedule plus the constant bytes. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_PIECES_H
#define REMAT_PLAN_GRAPH_GRAPH_PIECES_H

#include <remat/plan.h>

#include "graph/graph_walk.h"
#include "plan/chain/optimal_table.h"
#include "plan/graph/graph_modes.h"

typedef struct graph_pieces_options {
    const graph_hint *hints; /* by action, or NULL */
    /* Schedules of the graph: it is one piece, and they are its modes. NULL: it is cut where a single tensor passes. */
    const graph_sequence *schedules;
    size_t schedule_count;
} graph_pieces_options;

/* How finely a chain of up to so many pieces is solved: with how many modes a piece besides `keep`, and how. */
typedef struct chain_effort {
    size_t pieces, modes;
    table_options table;
} chain_effort;

/* Pieces that differ in nothing but their place share one. */
typedef struct piece_kind {
    graph_piece piece;
    graph_modes modes;
} piece_kind;

typedef struct graph_pieces {
    const graph_outline *outline;
    const graph_hint *hints;
    graph_cut cut;
    graph_gradients gradients;
    const chain_effort *effort;
    piece_kind *kinds;
    size_t kind_count, kind_capacity;
    uint32_t *kind_of;       /* by piece */
    uint64_t constant_bytes; /* live outside of the chain: results, and gradients that stay while several pieces run */
    remat_profile *profile;  /* the chain; its input is all data that is made once, a single piece counts it itself */
} graph_pieces;

/* The outline, its graph and the hints must outlive the pieces and stay as they are. */
remat_status graph_pieces_create(const graph_outline *outline, const graph_pieces_options *options,
                                 graph_pieces **pieces);
void graph_pieces_destroy(graph_pieces *pieces);

/* graph_pieces_profile.c: makes the chain. */
remat_status graph_pieces_make_profile(graph_pieces *pieces);

/* Turns a schedule of the chain into a list of actions. Only what is read is recomputed. */
remat_status graph_pieces_expand(const graph_pieces *pieces, const remat_plan *plan, graph_sequence *sequence);
remat_status graph_pieces_expand_steps(const graph_pieces *pieces, const remat_step *steps, size_t count,
                                       graph_sequence *sequence);

/* A plan that walks the given steps, for reports and files; the caller destroys it, before the pieces. */
remat_status graph_pieces_plan(const graph_pieces *pieces, const char *strategy, const remat_step *steps, size_t count,
                               remat_plan **plan);

#endif
