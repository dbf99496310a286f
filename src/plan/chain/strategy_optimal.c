#include "plan/chain/exhaustive.h"
#include "plan/chain/optimal_solve.h"

#include <string.h>

/* ---- methods ---- */

static const char *const names[] = {[METHOD_EXHAUSTIVE] = "exhaustive", [METHOD_INTERVALS] = "intervals"};

const char *optimal_method_name(optimal_method method)
{
    return names[method];
}

const char *optimal_method_find(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return names[i];
    return NULL;
}

remat_status optimal_method_choose(remat_context *context, const remat_profile *chain,
                                   const remat_plan_options *options, optimal_method *method)
{
    const char *asked = options->method;
    *method = exhaustive_applies(chain) ? METHOD_EXHAUSTIVE : METHOD_INTERVALS;
    if (!asked || strcmp(asked, "auto") == 0 || strcmp(asked, names[*method]) == 0)
        return REMAT_OK;
    if (!optimal_method_find(asked))
        return remat_fail(context, REMAT_INVALID, NULL, "there is no method '%.60s'; use auto, exhaustive or intervals",
                          asked);
    if (*method == METHOD_INTERVALS)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "the chain is too long for the method 'exhaustive' (%zu layers); use auto or intervals",
                          chain->layer_count);
    *method = METHOD_INTERVALS;
    return REMAT_OK;
}

/* A draft that takes the steps of a walk. */
typedef struct draft_taker {
    remat_context *context;
    plan_draft *draft;
} draft_taker;

static remat_status append_step(void *user, remat_step step)
{
    draft_taker *taker = user;
    return plan_draft_add_step(taker->context, taker->draft, step);
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

/* `least` is that schedule, if `status` is REMAT_OK. */
static remat_status refuse(const plan_request *request, remat_status status, plan_draft *least, plan_draft *draft)
{
    draft->infeasible = true;
    if (status == REMAT_OK)
        status = explain_least(request, least, draft);
    plan_draft_clear(request->context, request->chain->layer_count, least);
    return status;
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

static remat_status plan_exhaustive(const plan_request *request, plan_draft *draft)
{
    const remat_profile *chain = request->chain;
    uint64_t budget = request->options->budget_bytes;
    bool lossy = request->options->allow_lossy, feasible;
    draft->knows_min_budget = true;
    REMAT_TRY(exhaustive_min_budget(request->context, chain, lossy, &draft->min_budget_bytes));
    if (budget < draft->min_budget_bytes) {
        plan_draft least = {0};
        remat_status status = exhaustive_solve(request->context, chain, draft->min_budget_bytes, lossy, &least,
                                               &feasible, &draft->method_bound_cost);
        return refuse(request, status, &least, draft);
    }
    REMAT_TRY(exhaustive_solve(request->context, chain, budget, lossy, draft, &feasible, &draft->method_bound_cost));
    draft->lower_bound_cost = draft->method_bound_cost;
    /* The bound holds for every legal schedule, those with lossy modes included. */
    if (!lossy && has_lossy_modes(chain))
        REMAT_TRY(exhaustive_solve(request->context, chain, budget, true, NULL, &feasible, &draft->lower_bound_cost));
    return REMAT_OK;
}

/* ---- longer chains: over intervals ---- */

static remat_status plan_from_solution(const plan_request *request, const optimal_solution *solution, plan_draft *draft)
{
    uint64_t peak, cost;
    size_t points = 0; /* within the budget */
    draft->knows_min_budget = true;
    optimal_curve_point(solution, 0, &draft->min_budget_bytes, &cost);
    for (; points < optimal_curve_count(solution); points++) {
        optimal_curve_point(solution, points, &peak, &cost);
        if (peak > request->options->budget_bytes)
            break;
    }
    if (points == 0) {
        plan_draft least = {0};
        remat_status status = optimal_walk(solution, 0, append_step, &(draft_taker){request->context, &least});
        return refuse(request, status, &least, draft);
    }
    optimal_curve_point(solution, points - 1, &peak, &cost);
    REMAT_TRY(optimal_walk(solution, points - 1, append_step, &(draft_taker){request->context, draft}));
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
