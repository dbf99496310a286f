/* What the simple strategies decide, and what their decisions mean as a schedule: once more, slowly, from the
 * specification, to compare the library with. */
#ifndef TESTS_SLOW_BLOCKS_H
#define TESTS_SLOW_BLOCKS_H

#include "support/slow_replay.h"

/* For each layer the number of its block, from 1; 0 where the layer is kept. Layers of one block are adjacent. */
typedef struct slow_blocks {
    size_t n;
    size_t *block;
} slow_blocks;
void slow_blocks_clear(slow_blocks *blocks);

/* Blocks of the layers whose `recompute` is true; adjacent ones are one block. */
slow_blocks slow_blocks_of(const bool *recompute, size_t n);

/* The blocks of `none`, `full`, `full:K`, `selective:R`, `attention-only`, `ffn-only`, `every-nth:N`, `largest:K` and
 * `sqrt`. */
slow_blocks slow_blocks_by_strategy(const remat_profile *profile, const char *strategy);

/* The order in which `budget` drops layers: n positions; the caller frees. */
size_t *slow_budget_order(const remat_profile *profile);
/* The blocks that are left when the first `length` of that order are recomputed. */
slow_blocks slow_blocks_of_prefix(const remat_profile *profile, const size_t *order, size_t length);

/* The steps. */
void slow_blocks_schedule(const slow_blocks *blocks, step_list *steps);
/* Their peak, by the slow replay. */
uint64_t slow_blocks_peak(const remat_profile *profile, const slow_blocks *blocks);

#endif
