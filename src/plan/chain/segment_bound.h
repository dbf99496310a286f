/* A lower bound by segments of layers that run again together. */
#ifndef REMAT_PLAN_CHAIN_SEGMENT_BOUND_H
#define REMAT_PLAN_CHAIN_SEGMENT_BOUND_H

#include "graph/chain.h"

/* A cost that no legal schedule whose peak is within the budget is below, in any modes, lossy ones too; UINT64_MAX
 * where there is no such schedule, 0 where the chain's figures are too large to tell (2^61). segment_bound.c has the proof.
 * Good for chains of some 20 to 1,000 layers; time grows with the square of their number, half a second for 1,000.
 * REMAT_NO_MEMORY. */
remat_status segment_bound_cost(remat_context *context, const remat_profile *chain, uint64_t budget, uint64_t *bound);

#endif
