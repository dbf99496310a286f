/* Blocks of layers that are recomputed together, declared by the user. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_BLOCKS_H
#define REMAT_PLAN_GRAPH_GRAPH_BLOCKS_H

#include "graph/graph_walk.h"

/* Forward once; when the backward reaches a block, those forward actions of its layers run again whose results the
 * block's backward needs, directly or through one another. What others read of a block is kept and serves the block as
 * well. `block_of_layer`: a block's number for each layer, GRAPH_NONE for none. REMAT_INVALID as in graph_cut.h. */
remat_status graph_blocks_sequence(const remat_graph *graph, const uint32_t *block_of_layer, graph_sequence *sequence);

#endif
