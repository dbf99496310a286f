/* A lower bound from segments of layers that are recomputed together. */
#ifndef REMAT_PLAN_CHAIN_SEGMENT_BOUND_H
#define REMAT_PLAN_CHAIN_SEGMENT_BOUND_H

#include "graph/chain.h"

/* A cost that no legal schedule whose peak is within the budget is below, in any modes, lossy ones too (the argument
 * is in segment_bound.c); UINT64_MAX where no schedule meets the budget. 0 where it has nothing to say: for figures of
 * 2^61 and more, and where there are too many segments to look at, as on long chains with much memory.
 * REMAT_NO_MEMORY. */
remat_status segment_bound_cost(remat_context *context, const remat_profile *chain, uint64_t budget, uint64_t *bound);

#endif
