/* The ways of saving one piece of a graph: which of its tensors to keep, and what that costs.
 *
 * Small pieces are enumerated, all choices of them; in larger ones single tensors change sides while that pays, at many
 * rates of exchange between bytes and time. Of all choices seen, those are left that no other beats in everything, and
 * of these the ones that are best at most rates. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_MODES_H
#define REMAT_PLAN_GRAPH_GRAPH_MODES_H

#include "plan/graph/graph_choices.h"

typedef struct graph_mode {
    piece_figures figures;
    uint8_t *keep;      /* by inner tensor */
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

/* At most `most` besides mode 0. `alone`: the piece is the whole graph, and only its highest peak counts; then a search
 * may begin with `seeds`, or NULL. */
remat_status graph_modes_find(const graph_piece *piece, size_t most, bool alone, const keep_sets *seeds,
                              graph_modes *modes);
void graph_modes_release(graph_modes *modes);

#endif
