/* The cheapest legal schedule of a short chain, among all there are.
 *
 * A search over the states of the memory model, in the order of cost plus an estimate of what must still be paid. It
 * knows no family of schedules: whatever the memory model allows is found. */
#ifndef REMAT_PLAN_CHAIN_EXHAUSTIVE_H
#define REMAT_PLAN_CHAIN_EXHAUSTIVE_H

#include "plan/chain/strategy.h"

/* Whether the chain is short enough for the calls below, each of which then stays under a second and 200 MB. By a
 * count of the states there can be, at most 500,000: chains of up to 11 layers without modes, 8 with one more mode a
 * layer, 6 with three, and fewer where a mode beats a plain forward in bytes or cost (6 and 5). The calls refuse any
 * other chain with REMAT_INTERNAL. */
bool exhaustive_applies(const remat_profile *chain);

/* The least cost of any legal schedule within the budget (REMAT_NO_BUDGET: none), and that schedule's steps appended to
 * the draft (NULL: the cost alone; a chain without layers has no steps). Modes that are not lossless are used only with
 * `allow_lossy`. *feasible false: there is none, or only such whose cost reaches 2^63; *cost is 0 then. The same
 * schedule comes out everywhere. */
remat_status exhaustive_solve(remat_context *context, const remat_profile *chain, uint64_t budget, bool allow_lossy,
                              plan_draft *draft, bool *feasible, uint64_t *cost);

/* The smallest budget for which there is a legal schedule. */
remat_status exhaustive_min_budget(remat_context *context, const remat_profile *chain, bool allow_lossy,
                                   uint64_t *bytes);

#endif
