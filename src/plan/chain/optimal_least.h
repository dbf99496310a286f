/* The least memory of every state of a long chain, with all cuts and no thinning: its smallest budget, exactly, where
 * the ends are STAYS and LEAVES(start, SAVED) alone, in plain forms (temporary bases seldom lower it; where they do,
 * the curve reaches lower). The sparse cuts of the staircases may miss the last few percent down to it. Short chains
 * need none of this: their staircases have all cuts, and begin exactly at the smallest budget. */
#ifndef REMAT_PLAN_CHAIN_OPTIMAL_LEAST_H
#define REMAT_PLAN_CHAIN_OPTIMAL_LEAST_H

#include "plan/chain/optimal_choices.h"

typedef struct optimal_least {
    const optimal_model *model;
    uint32_t per_side;            /* 1 + modes: kinds of tail, and of end (0: STAYS, 1 + q: LEAVES(start, SAVED q)) */
    int64_t *by_start, *by_last;  /* the same figures, (tail, end, start, last) and (tail, end, last, start) */
    int64_t *x, *zero, *run_peak; /* n + 1 each */
    /* The inner loop, as this machine does it fastest; the result is the same. */
    int64_t (*least_cut)(const int64_t *right, const int64_t *shift, const int64_t *left, const int64_t *peak,
                         int64_t base, int64_t held, size_t count);
} optimal_least;

/* Whether the chain is short enough: n squared figures a state, and n cubed steps. */
bool optimal_least_applies(const optimal_model *model);

remat_status optimal_least_build(remat_context *context, const optimal_model *model, optimal_least *least);
void optimal_least_free(remat_context *context, optimal_least *least);
uint64_t optimal_least_of(const optimal_least *least, optimal_state state); /* MEMORY_END where there is none */
uint64_t optimal_least_budget(const optimal_least *least);

#endif
