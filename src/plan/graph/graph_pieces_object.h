/* The inside of the pieces of a graph. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_PIECES_OBJECT_H
#define REMAT_PLAN_GRAPH_GRAPH_PIECES_OBJECT_H

#include "plan/graph/graph_modes.h"
#include "plan/graph/graph_pieces.h"

/* Pieces that differ in nothing but their place share one. */
typedef struct piece_kind {
    graph_piece piece;
    graph_modes modes;
} piece_kind;

struct graph_pieces {
    const graph_outline *outline;
    const graph_hint *hints;
    graph_cut cut;
    graph_gradients gradients;
    piece_kind *kinds;
    size_t kind_count, kind_capacity;
    uint32_t *kind_of; /* by piece */
    uint64_t constant_bytes;
    remat_profile *profile;
};

/* Bytes of the tensor that passes to a piece; 0 at both ends of the chain. */
uint64_t graph_pieces_input_bytes(const graph_pieces *pieces, size_t piece);

/* graph_pieces_profile.c: writes the chain with at most `most` modes a piece besides `keep`. */
remat_status graph_pieces_write_profile(const graph_pieces *pieces, size_t most, remat_profile *profile);

#endif
