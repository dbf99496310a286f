#include "plan/chain/plan_object.h"

#include "base/alloc.h"
#include "base/input.h"
#include "base/options.h"
#include "graph/stated_figures.h"
#include "plan/chain/lower_bound.h"

#include <string.h>

/* ---- what a file states against what its schedule comes to ---- */

static remat_status compare_numbers(const remat_plan *plan, const schedule_stated *stated, remat_place place)
{
    static const char same[] = "but the schedule comes to", base[] = "but keeping all of this profile comes to";
    const remat_figures *schedule = &plan->figures.schedule;
    const stated_rule rules[] = {
        {STATED_PEAK, STATED_EXACT, schedule->peak_bytes, same},
        {STATED_KEPT, STATED_EXACT, schedule->kept_bytes, same},
        {STATED_ESTIMATED, STATED_EXACT, plan->figures.estimated_bytes, same},
        {STATED_TOTAL_COST, STATED_EXACT, schedule->total_cost, same},
        {STATED_BASE_COST, STATED_EXACT, plan->figures.base_cost, base},
        {STATED_BASE_PEAK, STATED_EXACT, plan->figures.base_peak_bytes, base},
        {STATED_FLOPS, STATED_EXACT, schedule->recompute_flops, same},
        {STATED_STEPS, STATED_EXACT, schedule->steps, same},
        {STATED_BUDGET, STATED_AT_LEAST, schedule->peak_bytes, "but the peak of the schedule is"},
        {STATED_LOWER_BOUND, STATED_AT_MOST, schedule->total_cost, "but the schedule costs only"},
        {STATED_METHOD_BOUND, STATED_AT_MOST, schedule->total_cost, "but the schedule costs only"},
        {STATED_MIN_BUDGET, STATED_AT_MOST, schedule->peak_bytes, "but the schedule has a peak of"},
        {STATED_KEPT_BUDGET, STATED_AT_LEAST, schedule->kept_bytes, "but the schedule keeps"},
    };
    const stated_figures figures = {stated->seen, stated->numbers, schedule_stated_names};
    return stated_figures_check(plan->context, place, &figures, rules, sizeof rules / sizeof rules[0]);
}

static remat_status compare_layers(const remat_plan *plan, const schedule_stated *stated, remat_place place)
{
    for (size_t i = 0; stated->has_layers && i < plan->chain->layer_count; i++) {
        const layer_outcome *said = &stated->layers[i], *found = &plan->layers[i];
        place.layer = i;
        if (said->forwards != FORWARDS_NOT_STATED && said->forwards != found->forwards) {
            place.field = "forwards";
            return remat_fail(plan->context, REMAT_CHECK_FAILED, &place, "%u is stated, but the schedule has %u",
                              said->forwards, found->forwards);
        }
        if (said->decision != DECISION_NOT_STATED && said->decision != found->decision) {
            place.field = "decision";
            const char *name =
                said->decision == REMAT_NO_SAVE ? "recompute" : plan->chain->layers[i].modes[said->decision].name;
            return remat_fail(plan->context, REMAT_CHECK_FAILED, &place,
                              "'%s' is stated, but what the schedule does is '%s'", name,
                              remat_plan_decision_name(plan, i));
        }
    }
    return REMAT_OK;
}

static remat_status compare(const remat_plan *plan, const schedule_stated *stated, const char *file)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = file;
    if (!stated->feasible) {
        place.field = "feasible";
        return remat_fail(plan->context, REMAT_CHECK_FAILED, &place, "false is stated, but there is a legal schedule");
    }
    REMAT_TRY(compare_numbers(plan, stated, place));
    return compare_layers(plan, stated, place);
}

/* ---- reading ---- */

/* Each step goes into the simulator and, for remat_plan_read, into the plan's draft. */
typedef struct step_taker {
    remat_plan *plan;
    remat_simulator *simulator;
    bool keep_steps;
} step_taker;

static remat_status take_step(void *user, remat_step step)
{
    step_taker *taker = user;
    REMAT_TRY(remat_simulator_step(taker->simulator, step));
    return taker->keep_steps ? plan_draft_add_step(taker->plan->context, &taker->plan->draft, step) : REMAT_OK;
}

static remat_status finish(step_taker *taker, const schedule_stated *stated, const char *file)
{
    remat_plan *plan = taker->plan;
    if (remat_simulator_finish(taker->simulator, &plan->figures.schedule) != REMAT_OK)
        return remat_fail_in_file(plan->context, file, REMAT_NOWHERE);
    plan_object_take_outcomes(plan, taker->simulator);
    REMAT_TRY(plan_object_replay_base(plan));
    REMAT_TRY(compare(plan, stated, file));
    plan->figures.feasible = true;
    plan->figures.method_bound_cost = stated->numbers[STATED_METHOD_BOUND];
    plan->model_layers = stated->numbers[STATED_MODEL_LAYERS];
    plan->recomputed_model_layers = stated->numbers[STATED_RECOMPUTED_MODEL_LAYERS];
    plan->draft.method = optimal_method_find(stated->method);
    plan->figures.has_budget = schedule_states(stated, STATED_BUDGET);
    plan->figures.budget_bytes = stated->numbers[STATED_BUDGET];
    plan->figures.min_budget_bytes = schedule_states(stated, STATED_MIN_BUDGET) ? stated->numbers[STATED_MIN_BUDGET]
                                                                                : plan->figures.schedule.peak_bytes;
    uint64_t budget = plan->figures.has_budget ? plan->figures.budget_bytes : REMAT_NO_BUDGET;
    if (schedule_states(stated, STATED_LOWER_BOUND))
        plan->figures.lower_bound_cost = stated->numbers[STATED_LOWER_BOUND];
    else if (taker->keep_steps) /* a mere check has no use for it */
        REMAT_TRY(lower_bound_cost(plan->context, plan->chain, budget, plan->figures.schedule.total_cost,
                                   &plan->figures.lower_bound_cost));
    if (schedule_states(stated, STATED_KEPT_BUDGET)) {
        plan->count = REMAT_COUNT_KEPT;
        plan->figures.has_budget = true;
        plan->figures.budget_bytes = stated->numbers[STATED_KEPT_BUDGET];
    }
    return REMAT_OK;
}

static remat_status read_into(remat_plan *plan, FILE *stream, const char *name, bool keep_steps)
{
    schedule_stated stated = {0};
    step_taker taker = {plan, NULL, keep_steps};
    plan->layers = remat_alloc(plan->context, plan->chain->layer_count, sizeof *plan->layers);
    if (!plan->layers)
        return REMAT_NO_MEMORY;
    REMAT_TRY(remat_simulator_create(plan->context, plan->chain, &taker.simulator));
    remat_status status = schedule_read_stream(plan->context, stream, name, plan->chain, &stated, take_step, &taker);
    if (status == REMAT_OK)
        status = finish(&taker, &stated, name);
    if (status == REMAT_OK && keep_steps) {
        remat_text_release(plan->context, plan->strategy);
        plan->strategy = remat_text_copy(plan->context, stated.strategy[0] ? stated.strategy : "unknown");
        status = plan->strategy ? REMAT_OK : REMAT_NO_MEMORY;
        snprintf(plan->remark, sizeof plan->remark, "%s", stated.remark);
    }
    remat_simulator_destroy(taker.simulator);
    schedule_stated_clear(plan->context, plan->chain, &stated);
    return status;
}

remat_status remat_plan_check_sized(remat_context *context, FILE *stream, const char *name,
                                    const remat_profile *profile, remat_figures *figures, size_t figures_size)
{
    remat_plan *plan;
    memset(figures, 0, figures_size);
    REMAT_TRY(plan_object_create(context, profile, "", &plan));
    remat_status status = read_into(plan, stream, name, false);
    remat_struct_give(figures, figures_size, &plan->figures.schedule, sizeof plan->figures.schedule);
    remat_plan_destroy(plan);
    return status;
}

remat_status remat_plan_read(remat_context *context, FILE *stream, const char *name, const remat_profile *profile,
                             remat_plan **plan)
{
    REMAT_TRY(plan_object_create(context, profile, "", plan));
    remat_status status = read_into(*plan, stream, name, true);
    if (status != REMAT_OK) {
        remat_plan_destroy(*plan);
        *plan = NULL;
    }
    return status;
}

remat_status remat_plan_load(remat_context *context, const char *path, const remat_profile *profile, remat_plan **plan)
{
    *plan = NULL;
    FILE *stream;
    REMAT_TRY(input_open(context, path, &stream));
    remat_status status = remat_plan_read(context, stream, path, profile, plan);
    fclose(stream);
    return status;
}
