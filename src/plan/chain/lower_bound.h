/* What no schedule can go below, whatever its kind. */
#ifndef REMAT_PLAN_CHAIN_LOWER_BOUND_H
#define REMAT_PLAN_CHAIN_LOWER_BOUND_H

#include "graph/chain.h"

/* A cost that no legal schedule whose peak is within the budget is below, in any modes, lossy ones too. Without a
 * budget (REMAT_NO_BUDGET) it is the least cost there is. `known_cost` is the cost of some schedule within the budget,
 * or UINT64_MAX: the search for a good bound aims at it, stops there, and never returns more. For a budget that no
 * schedule meets the result means nothing. All in integers: the same everywhere. REMAT_NO_MEMORY.
 *
 * Linear in the chain where it is long: some 0.02 s for 20 layers, 0.15 s for 1,000, 0.4 s for 10,000 and for
 * 1,000,000. */
remat_status lower_bound_cost(remat_context *context, const remat_profile *chain, uint64_t budget, uint64_t known_cost,
                              uint64_t *bound);

#endif
