#ifndef REMAT_PLAN_LOWER_BOUND_H
#define REMAT_PLAN_LOWER_BOUND_H

#include "profile/chain.h"

/* A cost that no legal schedule whose peak is within the budget can be below. */
uint64_t remat_lower_bound_cost(const remat_profile *chain, uint64_t budget_bytes);

#endif
