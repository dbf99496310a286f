/* A cost that no legal schedule within a budget can go below, of whatever kind it is. */
#ifndef REMAT_PLAN_CHAIN_LOWER_BOUND_H
#define REMAT_PLAN_CHAIN_LOWER_BOUND_H

#include "graph/chain.h"

/* The bound holds for every legal schedule whose peak is within the budget, in any modes, lossy ones too. Without a
 * budget (REMAT_NO_BUDGET) it is the least cost there is. For a budget that no schedule meets it means nothing.
 * `known_cost` is the cost of some schedule within the budget, or UINT64_MAX: a bound that reaches it is not improved
 * further. All in integers, so that it is the same everywhere. REMAT_NO_MEMORY.
 *
 * The best of three arguments: every layer runs forward and backward once; lower_bound.c; segment_bound.c. Some tenths of
 * a second at most for up to 10^6 layers. */
remat_status lower_bound_cost(remat_context *context, const remat_profile *chain, uint64_t budget, uint64_t known_cost,
                              uint64_t *bound);

/* The bound of segment_bound.c alone: UINT64_MAX where no schedule meets the budget; 0 where it has nothing to say: for
 * figures of 2^61 and more, and where there are too many segments to look at, as on long chains with much memory. */
remat_status segment_bound_cost(remat_context *context, const remat_profile *chain, uint64_t budget, uint64_t *bound);

#endif
