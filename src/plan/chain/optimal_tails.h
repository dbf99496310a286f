/* Tails: what waits at the right end of an interval, held from its start. `behind` is the place behind its last layer.
 */
#ifndef REMAT_PLAN_CHAIN_OPTIMAL_TAILS_H
#define REMAT_PLAN_CHAIN_OPTIMAL_TAILS_H

#include "plan/chain/optimal_model.h"

enum {
    TAIL_GRADIENT = 0, /* y_behind is live */
    TAIL_SAVED = 1,    /* TAIL_SAVED + q: s_behind in mode q and y_{behind+1}; its backward waits for x_behind */
    TAIL_LOSS = 1      /* where behind = n: the loss has yet to run */
};

uint32_t optimal_tail_limit(const optimal_model *model); /* kinds of tail, whether they exist at a given place or not */
bool optimal_tail_exists(const optimal_model *model, size_t behind, uint32_t tail);
uint64_t optimal_tail_bytes(const optimal_model *model, size_t behind, uint32_t tail);
/* Most bytes, the tail's included, and cost of the tail's own step once x_behind is readable; x_behind is not counted.
 */
void optimal_tail_step(const optimal_model *model, size_t behind, uint32_t tail, uint64_t *memory, uint64_t *cost);
#endif
