#include "plan/graph/graph_plan.h"

#include <stdio.h>
#include <string.h>

#include <remat/units.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "base/search.h"
#include "plan/chain/plan_object.h"
#include "plan/graph/graph_bound.h"
#include "plan/graph/graph_search.h"

void graph_plan_options_init(graph_plan_options *options)
{
    *options = (graph_plan_options){.budget_bytes = REMAT_NO_BUDGET, .binds = GRAPH_PLACED};
}

void graph_plan_destroy(graph_plan *plan)
{
    if (!plan)
        return;
    remat_context *context = plan->graph->context;
    remat_plan_destroy(plan->chain_plan);
    if (plan->search)
        graph_search_release(plan->search);
    remat_release(context, plan->search, 1, sizeof *plan->search);
    remat_release(context, plan->offsets, plan->liveness.buffer_count, sizeof *plan->offsets);
    graph_liveness_release(context, &plan->liveness);
    graph_sequence_release(context, &plan->sequence);
    remat_release(context, plan->runs, plan->graph->action_count, sizeof *plan->runs);
    remat_release(context, plan, 1, sizeof *plan);
}

/* ---- what a plan states ---- */

/* What the budget limits of a schedule. */
static remat_status bound_bytes(const graph_plan *plan, const graph_plan_options *options, const placed_graph *placed,
                                uint64_t *bytes)
{
    *bytes = placed->arena_bytes;
    return options->binds == GRAPH_EXACT ? graph_walk_peak(plan->graph, &placed->sequence, GRAPH_EXACT, bytes)
                                         : REMAT_OK;
}

static remat_status state_bounds(graph_plan *plan, const hold_graph *g)
{
    graph_sequence plain = {0};
    REMAT_TRY(graph_bound_cost(g, UINT64_MAX, &plan->lower_bound_cost));
    REMAT_TRY(graph_bound_peak(g, &plan->least_bound_bytes));
    REMAT_TRY(graph_sequence_plain(plan->graph, &plain));
    remat_status status = graph_walk_peak(plan->graph, &plain, GRAPH_EXACT, &plan->exact_base_peak_bytes);
    graph_sequence_release(plan->graph->context, &plain);
    return status;
}

static const char *bound_name(const graph_plan_options *options)
{
    return options->binds == GRAPH_EXACT ? "peak" : "arena";
}

static void explain(graph_plan *plan)
{
    char text[GRAPH_NAME_TEXT];
    if (plan->cost == plan->base_cost && plan->sequence.count == plan->graph->action_count)
        snprintf(plan->remark, sizeof plan->remark, "everything is kept, nothing is recomputed");
    else if (plan->cost > plan->base_cost && plan->arena_bytes >= plan->base_arena_bytes &&
             plan->peak_action != GRAPH_NONE)
        snprintf(plan->remark, sizeof plan->remark,
                 "this saves no memory: the arena takes %llu bytes, and %llu with everything kept, because the peak is "
                 "where %.200s runs; what is recomputed is either alive again there or no larger than what its block "
                 "keeps",
                 (unsigned long long)plan->arena_bytes, (unsigned long long)plan->base_arena_bytes,
                 graph_action_name(plan->graph, plan->peak_action, text));
}

/* The schedule that was chosen becomes the plan's. */
static remat_status adopt(graph_plan *plan, placed_graph *placed)
{
    remat_context *context = plan->graph->context;
    remat_status status = placed_graph_fit(placed);
    if (status != REMAT_OK) {
        placed_graph_release(placed);
        return status;
    }
    plan->peak_action = placed_graph_peak_action(placed);
    plan->sequence = placed->sequence;
    plan->liveness = placed->liveness;
    plan->offsets = placed->offsets;
    plan->arena_bytes = placed->arena_bytes;
    plan->kept_bytes = placed->kept_bytes;
    plan->peak_bytes = placed->liveness.peak_bytes;
    if (plan->search)
        plan->peak_bytes += graph_flight_others(plan->search->flight, placed->kept_bytes);
    plan->cost = placed->liveness.cost;
    plan->feasible = true;
    *placed = (placed_graph){0};
    explain(plan);
    REMAT_TRY(graph_walk_peak(plan->graph, &plan->sequence, GRAPH_EXACT, &plan->exact_peak_bytes));
    plan->runs = remat_alloc_zeroed(context, plan->graph->action_count, sizeof *plan->runs);
    for (size_t i = 0; plan->runs && i < plan->sequence.count; i++)
        plan->runs[plan->sequence.actions[i]]++;
    return plan->runs ? REMAT_OK : REMAT_NO_MEMORY;
}

static remat_status refuse(graph_plan *plan, const graph_plan_options *options, const char *with)
{
    const remat_graph *graph = plan->graph;
    char budget[REMAT_SIZE_TEXT], least[REMAT_SIZE_TEXT], text[GRAPH_NAME_TEXT];
    const char *action = plan->peak_action == GRAPH_NONE ? NULL : graph_action_name(graph, plan->peak_action, text);
    if (action && action != text)
        snprintf(plan->remark, sizeof plan->remark, "'%.200s' needs it", action);
    else if (action)
        snprintf(plan->remark, sizeof plan->remark, "action %.200s needs it", action);
    plan->feasible = false;
    const bool is_proven = plan->least_bound_bytes == plan->min_budget_bytes;
    remat_fail(graph->context, REMAT_INFEASIBLE, NULL,
               "%sthe %s does not fit into %llu bytes (%s); %s %llu bytes (%s)%s%s", with, bound_name(options),
               (unsigned long long)options->budget_bytes, remat_size_print(options->budget_bytes, budget),
               *with       ? "it takes"
               : is_proven ? "the smallest possible takes"
                           : "the smallest that was found takes",
               (unsigned long long)plan->min_budget_bytes, remat_size_print_up(plan->min_budget_bytes, least),
               plan->remark[0] ? ": " : "", plan->remark);
    return remat_fail_budget(graph->context, options->budget_bytes, plan->min_budget_bytes, action);
}

/* ---- the cheapest that fits ---- */

/* An exact search is its own bound, here and of the smallest budget. */
static remat_status bound_cost(graph_plan *plan, const hold_graph *g, uint64_t budget)
{
    const graph_search *search = plan->search;
    if (!search->is_exact)
        return graph_bound_cost(g, budget, &plan->lower_bound_cost);
    const size_t count = search->curve.count;
    const size_t first = REMAT_FIRST(i, 0, count, search->curve.points[i].peak_bytes <= budget);
    plan->lower_bound_cost = first < count ? remat_min(search->curve.points[first].cost, plan->cost) : plan->cost;
    return REMAT_OK;
}

/* What the plan within the smallest budget costs, from the search that is at hand. */
static remat_status describe_least(graph_plan *plan, uint64_t floor_bytes)
{
    const graph_point *chosen;
    placed_graph placed;
    REMAT_TRY(graph_search_fit(plan->search, remat_max(plan->min_budget_bytes, floor_bytes), &chosen, &placed));
    plan->least_cost = placed.liveness.cost;
    plan->least_peak_action = placed_graph_peak_action(&placed);
    placed_graph_release(&placed);
    return REMAT_OK;
}

static remat_status choose(graph_plan *plan, const hold_graph *g, const graph_plan_options *options)
{
    graph_search *search = plan->search;
    const graph_point *chosen;
    placed_graph placed;
    REMAT_TRY(graph_search_smallest(search, &plan->min_budget_bytes, &plan->peak_action));
    if (search->is_exact)
        plan->least_bound_bytes = search->curve.points[search->curve.count - 1].peak_bytes;
    if (options->budget_bytes < plan->min_budget_bytes)
        return refuse(plan, options, "");
    if (options->describes_least)
        REMAT_TRY(describe_least(plan, options->floor_bytes));
    REMAT_TRY(graph_search_fit(search, options->budget_bytes, &chosen, &placed));
    REMAT_TRY(adopt(plan, &placed));
    REMAT_TRY(bound_cost(plan, g, options->budget_bytes));
    plan->pieces = chosen->pieces;
    if (!chosen->pieces)
        return REMAT_OK;
    remat_step *steps;
    REMAT_TRY(graph_point_steps(&search->curve, chosen, &steps));
    remat_status status =
        graph_pieces_plan(chosen->pieces, "optimal", steps, chosen->steps.step_count, &plan->chain_plan);
    remat_release(plan->graph->context, steps, chosen->steps.step_count, sizeof *steps);
    return status;
}

/* ---- a schedule that is given ---- */

/* That of the chain's plan; without one, of the blocks. */
static remat_status place_fixed(const graph_plan *plan, const uint32_t *blocks, placed_graph *placed)
{
    graph_sequence sequence = {0};
    remat_status status = plan->chain_plan ? graph_pieces_expand(plan->pieces, plan->chain_plan, &sequence)
                                           : graph_blocks_sequence(&plan->search->outline, blocks, &sequence);
    if (status == REMAT_OK)
        status = graph_values_check(plan->graph, &sequence, REMAT_BAD_INPUT);
    if (status == REMAT_OK)
        status = graph_place_flight(plan->graph, &sequence, plan->search->flight, placed);
    graph_sequence_release(plan->graph->context, &sequence);
    return status;
}

static remat_status use_fixed(graph_plan *plan, const graph_plan_options *options, const char *with)
{
    placed_graph placed;
    REMAT_TRY(place_fixed(plan, options->blocks, &placed));
    remat_status status = bound_bytes(plan, options, &placed, &plan->min_budget_bytes);
    if (status == REMAT_OK && plan->min_budget_bytes <= options->budget_bytes)
        return adopt(plan, &placed);
    plan->peak_action = placed_graph_peak_action(&placed);
    placed_graph_release(&placed);
    return status == REMAT_OK ? refuse(plan, options, with) : status;
}

/* The file says nothing about how the graph was cut: in pieces, or not at all. */
static remat_status load_file(graph_plan *plan, const graph_plan_options *options)
{
    for (int i = 1; i >= 0; i--) { /* if both fail, the message is about the pieces, which is what people know */
        plan->pieces = plan->search->pieces[i];
        if (!plan->pieces)
            continue;
        remat_status status =
            remat_plan_load(plan->graph->context, options->plan_path, plan->pieces->profile, &plan->chain_plan);
        if (i == 0 || (status != REMAT_CHECK_FAILED && status != REMAT_BAD_INPUT))
            return status;
    }
    return REMAT_OK;
}

static remat_status use_file(graph_plan *plan, const graph_plan_options *options)
{
    REMAT_TRY(load_file(plan, options));
    return use_fixed(plan, options, "with this plan ");
}

/* ---- the strategy `budget` ---- */

/* The plan that the strategy makes for the chain within `bytes`; its schedule, placed. REMAT_BAD_INPUT: it computes something else. */
static remat_status try_chain_budget(graph_plan *plan, remat_plan_options *how, uint64_t bytes, placed_graph *placed)
{
    remat_plan_destroy(plan->chain_plan);
    plan->chain_plan = NULL;
    how->budget_bytes = bytes;
    REMAT_TRY(remat_plan_create(plan->graph->context, plan->pieces->profile, how, &plan->chain_plan));
    return place_fixed(plan, NULL, placed);
}

/* The chain is on the safe side: a schedule whose peak in the chain is above the budget may have an arena that fits. So the
 * chain's budget goes down in steps from where everything is kept, and the arena decides. The steps do not depend on the
 * budget, so that the least arena among them is one that every budget from there on finds. Schedules that compute something else
 * are passed over. */
static remat_status use_budget_strategy(graph_plan *plan, const graph_plan_options *options, remat_plan_options *how)
{
    enum { SHORT_CHAIN = 400, MOST_STEPS = 32, STEPS_OF_LONG = 8 };
    const size_t steps = plan->pieces->cut.piece_count <= SHORT_CHAIN ? MOST_STEPS : STEPS_OF_LONG;
    how->budget_bytes = 0; /* which only asks for the least */
    remat_status status = remat_plan_create(plan->graph->context, plan->pieces->profile, how, &plan->chain_plan);
    if (status != REMAT_OK && status != REMAT_INFEASIBLE)
        return status;
    const remat_plan_figures *asked = remat_plan_get_figures(plan->chain_plan);
    const uint64_t least = asked->min_budget_bytes, most = remat_max(asked->base_peak_bytes, least);
    const uint64_t step = (most - least) / steps + 1;
    remat_plan *chosen = NULL;
    plan->min_budget_bytes = UINT64_MAX;
    status = REMAT_OK;
    for (uint64_t bytes = most, before = most + 1; status == REMAT_OK && bytes < before;) {
        placed_graph placed;
        const remat_status tried = try_chain_budget(plan, how, bytes, &placed);
        if (tried != REMAT_OK && tried != REMAT_BAD_INPUT) {
            status = tried;
            break;
        }
        before = remat_min(bytes, remat_plan_get_figures(plan->chain_plan)->schedule.peak_bytes);
        bytes = before > least ? remat_max(before - remat_min(step, before), least) : before;
        if (tried != REMAT_OK)
            continue;
        uint64_t takes = 0;
        status = bound_bytes(plan, options, &placed, &takes);
        if (takes < plan->min_budget_bytes && !chosen)
            plan->peak_action = placed_graph_peak_action(&placed);
        plan->min_budget_bytes = remat_min(plan->min_budget_bytes, takes);
        if (status == REMAT_OK && !chosen && takes <= options->budget_bytes) {
            chosen = plan->chain_plan;
            plan->chain_plan = NULL;
            status = adopt(plan, &placed);
        } else
            placed_graph_release(&placed);
    }
    remat_plan_destroy(plan->chain_plan);
    plan->chain_plan = chosen;
    if (status != REMAT_OK || chosen)
        return status;
    return plan->min_budget_bytes == UINT64_MAX ? REMAT_BAD_INPUT : refuse(plan, options, "with this strategy ");
}

static remat_status use_strategy(graph_plan *plan, const graph_plan_options *options)
{
    remat_plan_options how;
    remat_plan_options_init(&how);
    how.strategy = options->strategy;
    how.threads = options->threads;
    plan->pieces = plan->search->pieces[0];
    bool takes_budget = false;
    const remat_strategy_info *info;
    size_t name = strcspn(options->strategy, ":");
    for (size_t i = 0; (info = remat_strategy_list(i)) != NULL; i++)
        if (strlen(info->name) == name && strncmp(info->name, options->strategy, name) == 0)
            takes_budget = info->needs_budget;
    if (takes_budget && options->budget_bytes != REMAT_NO_BUDGET)
        return use_budget_strategy(plan, options, &how);
    REMAT_TRY(remat_plan_create(plan->graph->context, plan->pieces->profile, &how, &plan->chain_plan));
    return use_fixed(plan, options, "with this strategy ");
}

/* ---- all together ---- */

/* Everything is kept. Nothing is searched, so that any legal graph has this plan, and a very large one at once. */
static remat_status keep_all(graph_plan *plan, const graph_plan_options *options)
{
    graph_sequence sequence = {0};
    placed_graph placed;
    REMAT_TRY(graph_sequence_plain(plan->graph, &sequence));
    REMAT_TRY(graph_place(plan->graph, &sequence, &placed));
    plan->base_arena_bytes = placed.arena_bytes;
    plan->base_peak_bytes = placed.liveness.peak_bytes;
    plan->base_cost = placed.liveness.cost;
    plan->min_budget_bytes = plan->exact_base_peak_bytes;
    if (plan->min_budget_bytes <= options->budget_bytes)
        return adopt(plan, &placed);
    plan->peak_action = placed_graph_peak_action(&placed);
    placed_graph_release(&placed);
    return refuse(plan, options, "with everything kept ");
}

static remat_status fill(graph_plan *plan, const hold_graph *g, const graph_plan_options *options)
{
    bool chooses = !options->plan_path && (!options->strategy || strcmp(options->strategy, "optimal") == 0);
    bool only_blocks = chooses && !options->strategy && options->blocks && options->budget_bytes == REMAT_NO_BUDGET;
    bool needs_all = options->plan_path || (chooses && !only_blocks); /* a file may be about the whole graph */
    REMAT_TRY(state_bounds(plan, g));
    if (options->binds == GRAPH_EXACT && options->strategy && strcmp(options->strategy, "none") == 0)
        return keep_all(plan, options);
    REMAT_TRY(graph_search_begin(g, options, needs_all, plan->search));
    plan->base_arena_bytes = plan->search->base_arena_bytes;
    plan->base_peak_bytes = plan->search->base_peak_bytes;
    plan->base_cost = plan->search->base_cost;
    if (options->plan_path)
        return use_file(plan, options);
    if (only_blocks)
        return use_fixed(plan, options, "with its blocks ");
    return chooses ? choose(plan, g, options) : use_strategy(plan, options);
}

remat_status graph_plan_create(const remat_graph *graph, const graph_plan_options *options, graph_plan **made)
{
    graph_plan *plan = *made = remat_alloc_zeroed(graph->context, 1, sizeof *plan);
    if (!plan)
        return REMAT_NO_MEMORY;
    plan->graph = graph;
    plan->peak_action = plan->least_peak_action = GRAPH_NONE;
    plan->search = remat_alloc_zeroed(graph->context, 1, sizeof *plan->search);
    hold_graph g = {0};
    remat_status status = plan->search ? hold_graph_create(graph, options->binds, &g) : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        status = fill(plan, &g, options);
    hold_graph_release(&g);
    if (plan->search)
        graph_search_forget(plan->search);
    if (plan->chain_plan)
        plan->chain_plan->of_model = true;
    if (status == REMAT_OK || status == REMAT_INFEASIBLE)
        return status;
    graph_plan_destroy(plan);
    *made = NULL;
    return status;
}
