/* Blocks of actions that are recomputed together, declared by the user. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_BLOCKS_H
#define REMAT_PLAN_GRAPH_GRAPH_BLOCKS_H

#include "plan/graph/graph_outline.h"

/* Forward once; when the backward reaches a block, those of its forward actions run again whose results the block's
 * backward needs, directly or through one another. What others read of a block is kept and serves the block as well.
 * `blocks`: a block's number for each action, counted from 0; GRAPH_NONE for none. */
remat_status graph_blocks_sequence(const graph_outline *outline, const uint32_t *blocks, graph_sequence *sequence);

#endif
