/* Ends: how an interval start..last finishes at its left end. Every start has a list of them, and an interval that
 * starts there uses a prefix of it: an end's index is the same for all last. */
#ifndef REMAT_PLAN_CHAIN_OPTIMAL_ENDS_H
#define REMAT_PLAN_CHAIN_OPTIMAL_ENDS_H

#include "plan/chain/optimal_tails.h"

#define NO_END      UINT32_MAX
#define ALL_RECORDS SIZE_MAX

/* Takes, for each k, at most `record_limit` records j with k - j <= reach. */
remat_status optimal_ends_build(remat_context *context, const optimal_model *model, size_t record_limit, size_t reach,
                                optimal_ends *ends);
/* The limits for a chain: all records where that costs about a second; on longer chains few and near ones where the
 * budgets are tight, else none. */
remat_status optimal_ends_choose(remat_context *context, const optimal_model *model, bool tight, optimal_ends *ends);
void optimal_ends_free(remat_context *context, optimal_ends *ends);
/* How many ends the interval start..last has: those with k <= last, and k = last + 1 with only the tail's step done. */
uint32_t optimal_ends_count(const optimal_ends *ends, size_t start, size_t last);
/* Index among start's ends, or NO_END; `next` does not matter. */
uint32_t optimal_ends_find(const optimal_ends *ends, size_t start, optimal_end end);
/* Of a record `start` of k: the next record of k behind it, or k. */
size_t optimal_ends_next_record(const optimal_model *model, size_t start, size_t k);
const optimal_end *optimal_ends_get(const optimal_ends *ends, size_t start, uint32_t end);
#endif
