#include "plan/chain/exhaustive.h"
#include "plan/chain/optimal_method.h"
#include "plan/chain/optimal_solve.h"

static remat_status append_step(void *user, remat_step step)
{
    const struct {
        remat_context *context;
        plan_draft *draft;
    } *to = user;
    return plan_draft_add_step(to->context, to->draft, step);
}

/* ---- what forbids a budget ---- */

/* Names the step at which even the schedule of the smallest peak reaches it. */
static remat_status explain_least(const plan_request *request, const plan_draft *least, plan_draft *draft)
{
    remat_figures figures;
    remat_step step;
    REMAT_TRY(plan_draft_play(request->context, request->chain, least, &figures));
    if (figures.peak_step == REMAT_NOWHERE) {
        snprintf(draft->remark, sizeof draft->remark, "the input alone takes that much");
        return REMAT_OK;
    }
    REMAT_TRY(plan_draft_step_at(request->chain, least, figures.peak_step, &step));
    char text[REMAT_STEP_TEXT];
    const char *layer = draft->peak_layer = plan_step_layer_name(request->chain, step);
    snprintf(draft->remark, sizeof draft->remark, "the step '%s'%s%.60s%s needs it, however little is kept",
             remat_step_print(request->chain, step, text), layer ? " (" : "", layer ? layer : "", layer ? ")" : "");
    return REMAT_OK;
}

/* ---- short chains: the best of all legal schedules ---- */

static bool has_lossy_modes(const remat_profile *chain)
{
    for (size_t i = 0; i < chain->layer_count; i++)
        for (size_t k = 0; k < chain->layers[i].mode_count; k++)
            if (!chain->layers[i].modes[k].lossless)
                return true;
    return false;
}

static remat_status refuse_exhaustive(const plan_request *request, plan_draft *draft)
{
    plan_draft least = {0};
    bool feasible;
    uint64_t cost;
    draft->infeasible = true;
    remat_status status = exhaustive_solve(request->context, request->chain, draft->min_budget_bytes,
                                           request->options->allow_lossy, &least, &feasible, &cost);
    if (status == REMAT_OK)
        status = explain_least(request, &least, draft);
    plan_draft_clear(request->context, request->chain->layer_count, &least);
    return status;
}

static remat_status plan_exhaustive(const plan_request *request, plan_draft *draft)
{
    const remat_profile *chain = request->chain;
    uint64_t budget = request->options->budget_bytes;
    bool lossy = request->options->allow_lossy, feasible;
    draft->knows_min_budget = true;
    REMAT_TRY(exhaustive_min_budget(request->context, chain, lossy, &draft->min_budget_bytes));
    if (budget < draft->min_budget_bytes)
        return refuse_exhaustive(request, draft);
    REMAT_TRY(exhaustive_solve(request->context, chain, budget, lossy, draft, &feasible, &draft->method_bound_cost));
    draft->lower_bound_cost = draft->method_bound_cost;
    /* The bound holds for every legal schedule, those with lossy modes included. */
    if (!lossy && has_lossy_modes(chain))
        REMAT_TRY(exhaustive_solve(request->context, chain, budget, true, NULL, &feasible, &draft->lower_bound_cost));
    return REMAT_OK;
}

/* ---- longer chains: over intervals ---- */

/* The last point of the curve within the budget; false where none is. */
static bool find_point(const optimal_solution *solution, uint64_t budget, size_t *point)
{
    size_t low = 0, high = optimal_curve_count(solution);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint64_t peak, cost;
        optimal_curve_point(solution, middle, &peak, &cost);
        if (peak <= budget)
            low = middle + 1;
        else
            high = middle;
    }
    *point = low - 1;
    return low > 0;
}

static remat_status walk_point(const plan_request *request, const optimal_solution *solution, size_t point,
                               plan_draft *draft)
{
    struct {
        remat_context *context;
        plan_draft *draft;
    } to = {request->context, draft};
    return optimal_walk(solution, point, append_step, &to);
}

static remat_status plan_from_solution(const plan_request *request, const optimal_solution *solution, plan_draft *draft)
{
    uint64_t budget = request->options->budget_bytes, peak, cost;
    size_t point;
    draft->knows_min_budget = true;
    optimal_curve_point(solution, 0, &draft->min_budget_bytes, &cost);
    if (!find_point(solution, budget, &point)) {
        plan_draft least = {0};
        draft->infeasible = true;
        remat_status status = walk_point(request, solution, 0, &least);
        if (status == REMAT_OK)
            status = explain_least(request, &least, draft);
        plan_draft_clear(request->context, request->chain->layer_count, &least);
        return status;
    }
    optimal_curve_point(solution, point, &peak, &cost);
    REMAT_TRY(walk_point(request, solution, point, draft));
    if (optimal_is_exact(solution))
        draft->method_bound_cost = cost;
    return REMAT_OK;
}

remat_status strategy_optimal(const plan_request *request, plan_draft *draft)
{
    optimal_method method;
    REMAT_TRY(optimal_method_choose(request->context, request->chain, request->options, &method));
    draft->method = optimal_method_name(method);
    if (method == METHOD_EXHAUSTIVE)
        return plan_exhaustive(request, draft);
    optimal_solution *solution;
    optimal_options options = {request->options->allow_lossy, request->options->threads};
    REMAT_TRY(optimal_solve(request->context, request->chain, &options, &solution));
    remat_status status = plan_from_solution(request, solution, draft);
    optimal_solution_destroy(solution);
    return status;
}
