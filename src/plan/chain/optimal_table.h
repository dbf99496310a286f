/* Fills the table of staircases, shortest intervals first. */
#ifndef REMAT_PLAN_CHAIN_OPTIMAL_TABLE_H
#define REMAT_PLAN_CHAIN_OPTIMAL_TABLE_H

#include <remat/schedule.h>

#include "plan/chain/optimal_choices.h"
#include "plan/chain/optimal_least.h"

typedef struct table_options {
    uint64_t budget; /* at least the input: plans above it are not looked for; keep_all_peak gives the whole curve */
    size_t memory_limit;                  /* bytes for corners; 0: 400 MB */
    uint64_t work_limit;                  /* corners looked at, about; 0: chosen for a few seconds */
    size_t near, corners, suffix_corners; /* 0: chosen from the chain and the two limits */
    unsigned threads;                     /* 0: as many as there are; the result does not depend on it */
} table_options;

remat_status optimal_table_solve(remat_context *context, const optimal_model *model, const table_options *options,
                                 optimal_table *table);
/* Whether staircases are cut short where they were never found to matter, without a proof: all but short chains. */
bool optimal_table_prunes(const optimal_model *model);
void optimal_table_free(remat_context *context, optimal_table *table);

/* The staircase of the whole chain; add model->x[0] to a corner's memory to get the peak. */
staircase optimal_table_curve(const optimal_table *table);

/* optimal_steps.c: walks the schedule of the cheapest plan of the table within `budget` bytes. Where no staircase
 * reaches down to it, `least` (may be NULL otherwise) guides, and peak and cost are only known from a replay. What `visit`
 * returns ends the walk and comes back. */
remat_status optimal_table_plan(remat_context *context, const optimal_table *table, const optimal_least *least,
                                uint64_t budget, remat_step_fn visit, void *user);

#endif
