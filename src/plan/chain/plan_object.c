#include "plan/chain/plan_object.h"

#include "base/alloc.h"
#include "graph/block_schedule.h"

#include <string.h>

remat_status plan_object_create(remat_context *context, const remat_profile *chain, const char *strategy,
                                remat_plan **plan)
{
    remat_plan *made = *plan = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    made->chain = chain;
    made->strategy = remat_text_copy(context, strategy);
    if (made->strategy)
        return REMAT_OK;
    remat_plan_destroy(made);
    *plan = NULL;
    return REMAT_NO_MEMORY;
}

void remat_plan_destroy(remat_plan *plan)
{
    if (!plan)
        return;
    plan_draft_clear(plan->context, plan->chain->layer_count, &plan->draft);
    remat_release(plan->context, plan->layers, plan->chain->layer_count, sizeof *plan->layers);
    remat_text_release(plan->context, plan->strategy);
    remat_release(plan->context, plan, 1, sizeof *plan);
}

void plan_object_take_outcomes(remat_plan *plan, const remat_simulator *simulator)
{
    for (size_t i = 0; i < plan->chain->layer_count; i++) {
        plan->layers[i].forwards = remat_simulator_forwards(simulator, i);
        plan->layers[i].decision = remat_simulator_decision(simulator, i);
    }
    plan->figures.estimated_bytes = plan->figures.schedule.kept_bytes + plan->figures.schedule.largest_recomputed_bytes;
}

remat_status plan_object_replay(remat_plan *plan)
{
    remat_simulator *simulator;
    plan->layers = remat_alloc(plan->context, plan->chain->layer_count, sizeof *plan->layers);
    if (!plan->layers)
        return REMAT_NO_MEMORY;
    REMAT_TRY(remat_simulator_create(plan->context, plan->chain, &simulator));
    remat_status status = plan_draft_play_into(plan->chain, &plan->draft, simulator, &plan->figures.schedule);
    if (status == REMAT_OK)
        plan_object_take_outcomes(plan, simulator);
    remat_simulator_destroy(simulator);
    return status;
}

remat_status plan_object_replay_base(remat_plan *plan)
{
    plan_request request = {.context = plan->context, .chain = plan->chain};
    plan_draft keep_all = {0};
    remat_figures figures;
    remat_status status = plan_draft_marks(&request, &keep_all);
    if (status == REMAT_OK)
        status = plan_draft_play(plan->context, plan->chain, &keep_all, &figures);
    plan_draft_clear(plan->context, plan->chain->layer_count, &keep_all);
    REMAT_TRY(status);
    plan->figures.base_cost = figures.total_cost;
    plan->figures.base_peak_bytes = figures.peak_bytes;
    return REMAT_OK;
}

/* ---- reading a plan ---- */

const remat_plan_figures *remat_plan_get_figures(const remat_plan *plan)
{
    return &plan->figures;
}

const char *remat_plan_strategy(const remat_plan *plan)
{
    return plan->strategy;
}

const char *remat_plan_method(const remat_plan *plan)
{
    return plan->draft.method ? plan->draft.method : "";
}

const char *remat_plan_remark(const remat_plan *plan)
{
    return plan->remark;
}

uint16_t remat_plan_decision(const remat_plan *plan, size_t layer)
{
    return plan->layers && layer < plan->chain->layer_count ? plan->layers[layer].decision : REMAT_NO_SAVE;
}

uint32_t remat_plan_forwards(const remat_plan *plan, size_t layer)
{
    return plan->layers && layer < plan->chain->layer_count ? plan->layers[layer].forwards : 0;
}

const char *remat_plan_decision_name(const remat_plan *plan, size_t layer)
{
    uint16_t decision = remat_plan_decision(plan, layer);
    return decision == REMAT_NO_SAVE ? "recompute" : plan->chain->layers[layer].modes[decision].name;
}

const char *plan_object_peak_layer(const remat_plan *plan)
{
    uint64_t peak_step = plan->figures.schedule.peak_step;
    remat_step step;
    if (!plan->draft.walk || peak_step == REMAT_NOWHERE)
        return NULL;
    remat_status status = plan_draft_step_at(plan->chain, &plan->draft, peak_step, &step);
    return status == REMAT_OK ? plan_step_layer_name(plan->chain, step) : NULL;
}

remat_status plan_object_fail_infeasible(remat_context *context, const remat_plan *plan)
{
    const remat_plan_figures *figures = &plan->figures;
    remat_fail(context, REMAT_INFEASIBLE, NULL, "the plan is infeasible and has no schedule");
    /* a file need not say what would do */
    return remat_fail_budget(context, figures->has_budget ? figures->budget_bytes : REMAT_NOWHERE,
                             figures->min_budget_bytes ? figures->min_budget_bytes : REMAT_NOWHERE,
                             plan->draft.peak_layer);
}

remat_status remat_plan_walk(const remat_plan *plan, remat_step_fn visit, void *user)
{
    if (!plan->figures.feasible)
        return plan_object_fail_infeasible(plan->context, plan);
    return plan->draft.walk ? plan->draft.walk(plan->chain, &plan->draft, visit, user) : REMAT_OK;
}

/* Plays up to the peak step and stops there. */
typedef struct peak_walk {
    remat_simulator *simulator;
    uint64_t steps_left;
    remat_live_fn visit;
    void *user;
    bool found;
} peak_walk;

static remat_status play_to_peak(void *user, remat_step step)
{
    peak_walk *walk = user;
    if (walk->steps_left == 0) {
        remat_simulator_live(walk->simulator, walk->visit, walk->user);
        walk->found = true;
        return REMAT_INTERNAL; /* not a failure: this ends the walk */
    }
    walk->steps_left--;
    return remat_simulator_step(walk->simulator, step);
}

remat_status remat_plan_peak_live(const remat_plan *plan, remat_live_fn visit, void *user)
{
    peak_walk walk = {NULL, plan->figures.schedule.peak_step, visit, user, false};
    REMAT_TRY(remat_simulator_create(plan->context, plan->chain, &walk.simulator));
    remat_status status = remat_plan_walk(plan, play_to_peak, &walk);
    if (status == REMAT_OK) /* no step comes to more than the input alone */
        remat_simulator_live(walk.simulator, visit, user);
    remat_simulator_destroy(walk.simulator);
    return walk.found ? REMAT_OK : status;
}
