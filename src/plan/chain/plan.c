#include "plan/chain/plan_object.h"

#include "base/min_max.h"
#include "base/options.h"
#include "plan/chain/lower_bound.h"

void remat_plan_options_init_sized(remat_plan_options *options, size_t size)
{
    const remat_plan_options defaults = {.budget_bytes = REMAT_NO_BUDGET, .budget_counts = REMAT_COUNT_PEAK};
    remat_options_give(options, size, &defaults, sizeof defaults);
}

static remat_status refuse(remat_plan *plan, const remat_plan_options *options)
{
    char budget[REMAT_SIZE_TEXT], least[REMAT_SIZE_TEXT];
    if (!plan->draft.infeasible) /* there is a schedule, but its peak is over the budget */
        plan->draft.peak_layer = plan_object_peak_layer(plan);
    plan->figures.schedule = (remat_figures){0};
    plan->figures.estimated_bytes = 0;
    plan->figures.feasible = false;
    remat_size_print(options->budget_bytes, budget);
    remat_size_print_up(plan->figures.min_budget_bytes, least);
    if (plan->draft.remark[0])
        snprintf(plan->remark, sizeof plan->remark, "%s", plan->draft.remark);
    remat_fail(plan->context, REMAT_INFEASIBLE, NULL,
               "strategy '%s' cannot meet a budget of %llu bytes (%s); the least it can meet is %llu bytes "
               "(%s)%s%s",
               plan->strategy, (unsigned long long)options->budget_bytes, budget,
               (unsigned long long)plan->figures.min_budget_bytes, least, plan->remark[0] ? ": " : "", plan->remark);
    return remat_fail_budget(plan->context, options->budget_bytes, plan->figures.min_budget_bytes,
                             plan->draft.peak_layer);
}

/* How many recomputed layers stand alone and have nothing to give but their output. */
static size_t bare_single_blocks(const remat_plan *plan)
{
    size_t bare = 0, n = plan->chain->layer_count;
    for (size_t i = 0; i < n; i++) {
        const remat_layer *layer = &plan->chain->layers[i];
        bare += plan->layers[i].decision == REMAT_NO_SAVE &&
                layer->output_bytes == layer->modes[REMAT_KEEP].activation_bytes;
    }
    return bare;
}

void plan_object_explain(remat_plan *plan)
{
    const remat_plan_figures *figures = &plan->figures;
    uint64_t peak = figures->schedule.peak_bytes, base = figures->base_peak_bytes;
    uint64_t recomputed = figures->schedule.recomputed_layers;
    if (peak < base || plan->chain->layer_count == 0)
        return;
    if (plan->draft.remark[0])
        snprintf(plan->remark, sizeof plan->remark, "saves nothing: %s", plan->draft.remark);
    else if (recomputed == 0)
        snprintf(plan->remark, sizeof plan->remark, "saves nothing: no layer is recomputed");
    else if (bare_single_blocks(plan) == recomputed && peak == base)
        snprintf(plan->remark, sizeof plan->remark,
                 "saves nothing: a block keeps its output, and the recomputed layers have nothing else "
                 "(activation_bytes equals output_bytes)");
    else {
        char text[REMAT_SIZE_TEXT];
        snprintf(plan->remark, sizeof plan->remark,
                 "saves nothing: the peak %s %s, at step %llu; recomputing costs as much there as it frees",
                 peak == base ? "stays at" : "rises to", remat_size_print(peak, text),
                 (unsigned long long)figures->schedule.peak_step);
    }
}

static remat_status fill(remat_plan *plan, const strategy_entry *chosen, const plan_request *request)
{
    const remat_plan_options *options = request->options;
    remat_plan_figures *figures = &plan->figures;
    /* what binds the peak */
    uint64_t budget = options->budget_counts == REMAT_COUNT_PEAK ? options->budget_bytes : REMAT_NO_BUDGET;
    figures->has_budget = options->budget_bytes != REMAT_NO_BUDGET;
    figures->budget_bytes = figures->has_budget ? options->budget_bytes : 0;
    plan->count = options->budget_counts;
    REMAT_TRY(plan_object_replay_base(plan));
    /* what a refused plan states: true under any budget */
    REMAT_TRY(lower_bound_cost(plan->context, request->chain, REMAT_NO_BUDGET, UINT64_MAX, &figures->lower_bound_cost));
    REMAT_TRY(chosen->plan(request, &plan->draft));
    figures->min_budget_bytes = plan->draft.min_budget_bytes;
    if (plan->draft.infeasible)
        return refuse(plan, options);
    REMAT_TRY(plan_object_replay(plan));
    if (!plan->draft.knows_min_budget)
        figures->min_budget_bytes = figures->schedule.peak_bytes;
    if (figures->schedule.peak_bytes > budget && plan->draft.knows_min_budget)
        return remat_fail(plan->context, REMAT_INTERNAL, NULL,
                          "strategy '%s' chose a schedule whose peak is %llu bytes, over its budget of %llu",
                          plan->strategy, (unsigned long long)figures->schedule.peak_bytes, (unsigned long long)budget);
    if (figures->schedule.peak_bytes > budget)
        return refuse(plan, options);
    REMAT_TRY(lower_bound_cost(plan->context, request->chain, budget, figures->schedule.total_cost,
                               &figures->lower_bound_cost));
    figures->lower_bound_cost = remat_max(figures->lower_bound_cost, plan->draft.lower_bound_cost);
    if (figures->lower_bound_cost > figures->schedule.total_cost)
        return remat_fail(plan->context, REMAT_INTERNAL, NULL, "the lower bound %llu is above the cost %llu",
                          (unsigned long long)figures->lower_bound_cost,
                          (unsigned long long)figures->schedule.total_cost);
    if (plan->draft.method)
        figures->method_bound_cost = remat_max(figures->lower_bound_cost, plan->draft.method_bound_cost);
    figures->feasible = true;
    plan_object_explain(plan);
    return REMAT_OK;
}

remat_status remat_plan_create(remat_context *context, const remat_profile *profile, const remat_plan_options *given,
                               remat_plan **plan)
{
    *plan = NULL;
    remat_plan_options options;
    remat_plan_options_init(&options);
    REMAT_TRY(remat_options_copy(context, &options, sizeof options, given, "remat_plan_options_init"));
    bool has_budget = options.budget_bytes != REMAT_NO_BUDGET;
    const char *text = options.strategy ? options.strategy : has_budget ? "optimal" : "none";
    plan_request request = {.context = context, .chain = profile, .options = &options};
    const strategy_entry *chosen;
    REMAT_TRY(remat_strategy_parse(&request, text, &chosen));
    if (options.method && chosen->plan != strategy_optimal)
        return remat_fail(context, REMAT_INVALID, NULL, "only the strategy 'optimal' has methods, not '%s'", text);
    if (options.budget_counts == REMAT_COUNT_KEPT && chosen->plan != strategy_budget)
        return remat_fail(context, REMAT_INVALID, NULL, "only the strategy 'budget' can count the bytes kept");
    REMAT_TRY(plan_object_create(context, profile, text, plan));
    remat_status status = fill(*plan, chosen, &request);
    if (status != REMAT_OK && status != REMAT_INFEASIBLE) {
        remat_plan_destroy(*plan);
        *plan = NULL;
    }
    return status;
}
