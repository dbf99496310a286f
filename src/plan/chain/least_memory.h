/* The least memory of every interval of a chain, with all cuts.
 *
 * The sparse cuts of a long chain's staircases may miss the last few percent down to the smallest budget. Here only memory
 * counts, so that all cuts can be tried. It uses the choices SAVE and SPLIT with x_j kept, in plain forms: dropping x_j was
 * never found to lower the least memory, and where a smaller form does, the staircases reach lower by themselves. */
#ifndef REMAT_PLAN_CHAIN_LEAST_MEMORY_H
#define REMAT_PLAN_CHAIN_LEAST_MEMORY_H

#include "plan/chain/optimal_choices.h"

/* For chains of up to so many layers: the time grows with n cubed, a third of a second for 1,000. */
enum { LEAST_MEMORY_LAYERS = 1500 };

typedef struct least_memory {
    size_t n;
    uint64_t *gradient; /* n * (n + 1), by last, then start: with GRADIENT pending and nothing left */
    uint64_t *loss;     /* n + 1: of start..n-1 with the loss to come */
} least_memory;

remat_status least_memory_build(remat_context *context, const optimal_model *model, least_memory *least);
void least_memory_free(remat_context *context, least_memory *least);

/* Of a state with nothing left, and GRADIENT or LOSS pending. */
uint64_t least_memory_of(const least_memory *least, optimal_state state);

#endif
