/* Small chains that many tests plan, and helpers to look at plans. */
#ifndef TESTS_CHAINS_H
#define TESTS_CHAINS_H

#include "support/fixture.h"
#include "support/slow_replay.h"

/* attention 1024 bytes / 2,000,000 flops and ffn 512 / 1,000,000 in turn, three times. */
remat_profile *six_layers(fixture *f);
/* `count` layers of type other, all alike. */
remat_profile *equal_layers(fixture *f, size_t count, uint64_t bytes, uint64_t flops);
/* Layers of type other with these bytes, 10 flops each. */
remat_profile *layers_of_bytes(fixture *f, const uint64_t *bytes, size_t count);

/* Plans without a budget; must be feasible. */
remat_plan *plan_by(fixture *f, const remat_profile *profile, const char *strategy);

/* Which positions are recomputed, as text: "0 2 4". Returns `text`. */
const char *recomputed_layers(const remat_profile *profile, const remat_plan *plan, char text[256]);

/* Plans by each strategy that takes no budget, then by the greedy under both rules, with a budget that is in reach. */
typedef struct strategy_case {
    const char *strategy;
    bool has_budget;
    remat_budget_counts count;
} strategy_case;
extern const strategy_case strategy_cases[];
extern const size_t strategy_case_count;
remat_plan *plan_case(fixture *f, const remat_profile *profile, const strategy_case *wanted);

#endif
