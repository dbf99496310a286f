/* Fills the table of staircases: one for each state of each interval, shortest intervals first. */
#ifndef REMAT_PLAN_CHAIN_OPTIMAL_TABLE_H
#define REMAT_PLAN_CHAIN_OPTIMAL_TABLE_H

#include <remat/schedule.h>

#include "plan/chain/least_memory.h"
#include "plan/chain/optimal_choices.h"

typedef struct table_options {
    size_t near, corners, suffix_corners; /* as in optimal_table and optimal_intervals; 0: chosen from the chain */
    unsigned threads;                     /* 0: as many as there are; the result does not depend on it */
} table_options;

remat_status optimal_table_solve(remat_context *context, const optimal_model *model, const table_options *options,
                                 optimal_table *table);
void optimal_table_free(remat_context *context, optimal_table *table);

/* The staircase of the whole chain; add the input's bytes to a corner's memory to get the peak. */
staircase optimal_table_curve(const optimal_table *table);

/* optimal_steps.c: walks the schedule of the cheapest plan of the table within `budget` bytes, and says what it costs (2^62
 * where that is too much to say; cost may be NULL). Where no staircase reaches down to the budget, `least` guides; it may
 * be NULL where they do. What `visit` returns other than REMAT_OK ends the walk. */
remat_status optimal_table_plan(remat_context *context, const optimal_table *table, const least_memory *least,
                                uint64_t budget, remat_step_fn visit, void *user, uint64_t *cost);

#endif
