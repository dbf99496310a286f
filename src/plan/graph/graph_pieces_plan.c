#include "plan/graph/graph_pieces_object.h"
#include "plan/chain/lower_bound.h"
#include "plan/chain/plan_object.h"

static remat_status fill(remat_plan *plan, const remat_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        REMAT_TRY(plan_draft_add_step(plan->context, &plan->draft, steps[i]));
    REMAT_TRY(plan_object_replay_base(plan));
    REMAT_TRY(plan_object_replay(plan));
    plan->figures.min_budget_bytes = plan->figures.schedule.peak_bytes;
    plan->figures.feasible = true;
    plan_object_explain(plan);
    return lower_bound_cost(plan->context, plan->chain, REMAT_NO_BUDGET, UINT64_MAX, &plan->figures.lower_bound_cost);
}

remat_status graph_pieces_plan(const graph_pieces *pieces, const char *strategy, const remat_step *steps, size_t count,
                               remat_plan **plan)
{
    REMAT_TRY(plan_object_create(pieces->graph->context, pieces->profile, strategy, plan));
    remat_status status = fill(*plan, steps, count);
    if (status != REMAT_OK) {
        remat_plan_destroy(*plan);
        *plan = NULL;
    }
    return status;
}
