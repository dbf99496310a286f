/* The ways of saving one piece of a graph: which of its tensors to keep, and what that costs.
 *
 * Of a small piece all choices are evaluated. In a larger one a search goes from good choices to those that differ in a
 * tensor or two. Of all choices seen, those are left that no other beats in everything, and of these the ones that are
 * best at most rates of exchange between bytes and time. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_MODES_H
#define REMAT_PLAN_GRAPH_GRAPH_MODES_H

#include "plan/graph/graph_piece.h"

typedef struct graph_mode {
    piece_figures figures;
    uint8_t *keep;     /* by inner tensor */
    uint32_t *forward; /* the piece's forward where it recomputes, too; NULL: each action once */
    size_t forward_count;
    uint32_t *backward; /* the backward with what is made again, as numbers of the piece's actions */
    size_t backward_count;
} graph_mode;

/* Mode 0 keeps all that the backward reads. The others stand in order of importance. */
typedef struct graph_modes {
    remat_context *context;
    size_t inner_count;
    graph_mode *modes;
    size_t count, capacity;
    uint64_t plain_peak; /* of a forward that saves nothing */
} graph_modes;

/* At most `most` besides mode 0. `alone`: the piece is the whole graph, and only its highest peak counts. */
remat_status graph_modes_find(const graph_piece *piece, size_t most, bool alone, graph_modes *modes);
void graph_modes_release(graph_modes *modes);

/* Of a piece that is the whole graph: its modes are given schedules of that graph. */
remat_status graph_modes_take(const graph_piece *piece, const graph_sequence *schedules, size_t count,
                              graph_modes *modes);

#endif
