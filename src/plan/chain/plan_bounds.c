#include "base/error.h"
#include "base/min_max.h"
#include "plan/chain/lower_bound.h"
#include "plan/chain/plan_object.h"

remat_status plan_object_find_bounds(const remat_plan *plan, uint64_t *min_budget, uint64_t *lower_bound)
{
    const remat_figures *schedule = &plan->figures.schedule;
    remat_plan_options options;
    remat_plan *nothing; /* fits into no bytes: the planner says what would */
    remat_plan_options_init(&options);
    options.strategy = plan->strategy;
    options.budget_bytes = 0;
    remat_status status = remat_plan_create(plan->context, plan->chain, &options, &nothing);
    if (status == REMAT_NO_MEMORY)
        return status;
    *min_budget = schedule->peak_bytes; /* of a strategy that only another program knows, no more is known */
    if (nothing)
        *min_budget = remat_min(*min_budget, nothing->figures.min_budget_bytes);
    remat_plan_destroy(nothing);
    return lower_bound_cost(plan->context, plan->chain, schedule->peak_bytes, schedule->total_cost, lower_bound);
}
