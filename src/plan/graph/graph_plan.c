#include "plan/graph/graph_plan.h"

#include <stdio.h>
#include <string.h>

#include <remat/units.h>

#include "base/alloc.h"
#include "base/error.h"
#include "plan/chain/plan_object.h"
#include "plan/graph/graph_search.h"
#include "plan/graph/graph_blocks.h"

void graph_plan_options_init(graph_plan_options *options)
{
    *options = (graph_plan_options){.budget_bytes = REMAT_NO_BUDGET};
}

void graph_plan_destroy(graph_plan *plan)
{
    if (!plan)
        return;
    remat_context *context = plan->graph->context;
    remat_plan_destroy(plan->chain_plan);
    graph_pieces_destroy(plan->owned[0]);
    graph_pieces_destroy(plan->owned[1]);
    remat_release(context, plan->offsets, plan->lives.buffer_count, sizeof *plan->offsets);
    graph_lives_release(context, &plan->lives);
    graph_sequence_release(context, &plan->sequence);
    remat_release(context, plan->forwards, plan->graph->layer_count, sizeof *plan->forwards);
    remat_release(context, plan, 1, sizeof *plan);
}

/* ---- what a plan states ---- */

/* A layer runs as often as the action of it that runs most. */
static remat_status count_forwards(graph_plan *plan)
{
    const remat_graph *graph = plan->graph;
    uint32_t *runs = remat_alloc_zeroed(graph->context, graph->action_count, sizeof *runs);
    plan->forwards = remat_alloc_zeroed(graph->context, graph->layer_count, sizeof *plan->forwards);
    if (runs && plan->forwards) {
        for (size_t i = 0; i < plan->sequence.count; i++) {
            uint32_t action = plan->sequence.actions[i], layer = graph->actions[action].layer;
            runs[action]++;
            if (action < graph->backward_begin && layer < graph->layer_count && runs[action] > plan->forwards[layer])
                plan->forwards[layer] = runs[action];
        }
    }
    remat_status status = runs && plan->forwards ? REMAT_OK : REMAT_NO_MEMORY;
    remat_release(graph->context, runs, graph->action_count, sizeof *runs);
    return status;
}

/* What the action at the peak needs by itself: what it reads and writes and its workspace live whatever else is kept. */
static uint64_t own_bytes(const graph_plan *plan)
{
    const remat_graph *graph = plan->graph;
    const graph_action *action = &graph->actions[plan->sequence.actions[plan->lives.peak_position]];
    const uint32_t *links = graph_reads(graph, action);
    size_t count = (size_t)action->read_count + action->write_count + action->update_count;
    uint64_t bytes = action->workspace_bytes;
    for (size_t i = 0; i < count; i++)
        bytes += graph->tensors[links[i]].bytes;
    return bytes;
}

static void explain(graph_plan *plan)
{
    if (plan->cost == plan->base_cost && plan->sequence.count == plan->graph->action_count)
        snprintf(plan->remark, sizeof plan->remark, "everything is kept, nothing is recomputed");
    else if (plan->arena_bytes >= plan->base_arena_bytes)
        snprintf(plan->remark, sizeof plan->remark,
                 "this saves no memory: the arena takes %llu bytes, and %llu with everything kept, because the peak is "
                 "where "
                 "layer %s runs, which needs %llu of them by itself; what is recomputed is either alive again "
                 "there "
                 "or no larger than what its block keeps",
                 (unsigned long long)plan->arena_bytes, (unsigned long long)plan->base_arena_bytes,
                 plan->peak_layer == GRAPH_NONE ? "?" : plan->graph->layers[plan->peak_layer].name,
                 (unsigned long long)own_bytes(plan));
}

/* The schedule that was chosen becomes the plan's. */
static remat_status adopt(graph_plan *plan, placed_graph *placed)
{
    plan->peak_layer = placed_graph_peak_layer(plan->graph, placed);
    plan->sequence = placed->sequence;
    plan->lives = placed->lives;
    plan->offsets = placed->offsets;
    plan->arena_bytes = placed->arena_bytes;
    plan->peak_bytes = placed->lives.peak_bytes;
    plan->cost = placed->lives.cost;
    plan->feasible = true;
    *placed = (placed_graph){0};
    explain(plan);
    return count_forwards(plan);
}

static remat_status refuse(graph_plan *plan, const graph_plan_options *options, const char *what)
{
    const remat_graph *graph = plan->graph;
    char budget[REMAT_SIZE_TEXT], least[REMAT_SIZE_TEXT];
    const char *layer = plan->peak_layer < graph->layer_count ? graph->layers[plan->peak_layer].name : NULL;
    if (layer)
        snprintf(plan->remark, sizeof plan->remark, "the layer '%.200s' needs it", layer);
    plan->feasible = false;
    remat_fail(graph->context, REMAT_INFEASIBLE, NULL,
               "%s not fit into %llu bytes (%s); the least it takes is %llu bytes (%s)%s%s", what,
               (unsigned long long)options->budget_bytes, remat_size_print(options->budget_bytes, budget),
               (unsigned long long)plan->min_budget_bytes, remat_size_print_up(plan->min_budget_bytes, least),
               plan->remark[0] ? ": " : "", plan->remark);
    return remat_fail_budget(graph->context, options->budget_bytes, plan->min_budget_bytes, layer);
}

static remat_status place_base(graph_plan *plan, placed_graph *placed)
{
    graph_sequence sequence = {0};
    remat_status status = graph_sequence_plain(plan->graph, &sequence);
    if (status != REMAT_OK) {
        graph_sequence_release(plan->graph->context, &sequence);
        return status;
    }
    REMAT_TRY(graph_place(plan->graph, &sequence, true, placed));
    plan->base_arena_bytes = placed->arena_bytes;
    plan->base_peak_bytes = placed->lives.peak_bytes;
    plan->base_cost = placed->lives.cost;
    return REMAT_OK;
}

/* ---- the cheapest that fits ---- */

static remat_status choose(graph_plan *plan, const graph_plan_options *options, graph_search *search)
{
    uint64_t least;
    size_t point;
    placed_graph placed;
    REMAT_TRY(graph_search_smallest(search, &least, &plan->peak_layer));
    plan->min_budget_bytes = least;
    if (options->budget_bytes < least)
        return refuse(plan, options, "the arena does");
    REMAT_TRY(graph_search_fit(search, options->budget_bytes, &point, &placed));
    if (point == search->curve.count)
        return remat_fail(plan->graph->context, REMAT_INTERNAL, NULL, "the smallest arena was not found again");
    const graph_point *chosen = &search->curve.points[point];
    if (placed.arena_bytes > placed.lives.peak_bytes) { /* it fits; placed harder, it is what a plan file gets */
        placed_graph_release(&placed);
        REMAT_TRY(graph_search_place(search, point, true, &placed));
    }
    remat_status status = adopt(plan, &placed);
    placed_graph_release(&placed);
    plan->pieces = chosen->pieces;
    if (status == REMAT_OK && chosen->pieces)
        status = graph_pieces_plan(chosen->pieces, "optimal", chosen->steps, chosen->count, &plan->chain_plan);
    return status;
}

/* ---- a schedule that is given ---- */

static remat_status place_fixed(graph_plan *plan, const graph_plan_options *options, graph_sequence *sequence,
                                const char *what)
{
    placed_graph placed;
    remat_status status = graph_place(plan->graph, sequence, false, &placed);
    if (status == REMAT_OK && placed.arena_bytes > placed.lives.peak_bytes) {
        graph_sequence again = placed.sequence; /* once more, harder */
        placed.sequence = (graph_sequence){0};
        placed_graph_release(&placed);
        status = graph_place(plan->graph, &again, true, &placed);
    }
    REMAT_TRY(status);
    plan->min_budget_bytes = placed.arena_bytes;
    plan->arena_count++;
    if (placed.arena_bytes <= options->budget_bytes) {
        status = adopt(plan, &placed);
        placed_graph_release(&placed);
        return status;
    }
    plan->peak_layer = placed_graph_peak_layer(plan->graph, &placed);
    placed_graph_release(&placed);
    return refuse(plan, options, what);
}

static remat_status use_chain_plan(graph_plan *plan, const graph_plan_options *options, const graph_pieces *pieces,
                                   const char *what)
{
    graph_sequence sequence = {0};
    remat_status status = graph_pieces_expand(pieces, plan->chain_plan, &sequence);
    plan->pieces = pieces;
    if (status == REMAT_OK)
        return place_fixed(plan, options, &sequence, what);
    graph_sequence_release(plan->graph->context, &sequence);
    return status;
}

static remat_status use_blocks(graph_plan *plan, const graph_plan_options *options)
{
    graph_sequence sequence = {0};
    remat_status status = graph_blocks_sequence(plan->graph, options->block_of_layer, &sequence);
    if (status == REMAT_OK)
        return place_fixed(plan, options, &sequence, "with its blocks the arena does");
    graph_sequence_release(plan->graph->context, &sequence);
    return status;
}

/* The file says nothing about how the graph was cut: finely, or not at all. */
static remat_status load_file(graph_plan *plan, const graph_plan_options *options, graph_search *search)
{
    remat_context *context = plan->graph->context;
    for (int i = 1; i >= 0; i--) { /* if both fail, the message is about the fine cut, which is what people know */
        plan->pieces = search->pieces[i];
        if (!plan->pieces)
            continue;
        remat_status status =
            remat_plan_load(context, options->plan_path, graph_pieces_profile(plan->pieces), &plan->chain_plan);
        if (i == 0 || (status != REMAT_CHECK_FAILED && status != REMAT_BAD_INPUT))
            return status;
    }
    return REMAT_OK;
}

static remat_status use_file(graph_plan *plan, const graph_plan_options *options, graph_search *search)
{
    REMAT_TRY(load_file(plan, options, search));
    if (!remat_plan_get_figures(plan->chain_plan)->feasible) {
        plan_object_fail_infeasible(plan->graph->context, plan->chain_plan);
        return remat_fail_in_file(plan->graph->context, options->plan_path, REMAT_NOWHERE);
    }
    return use_chain_plan(plan, options, plan->pieces, "with this plan the arena does");
}

/* A strategy that takes a budget gets less and less of it, until the arena fits. */
static remat_status use_budget_strategy(graph_plan *plan, const graph_plan_options *options, const graph_pieces *pieces,
                                        remat_plan_options *how)
{
    enum { MOST_TRIES = 40 };
    remat_context *context = plan->graph->context;
    uint64_t constant = graph_pieces_constant_bytes(pieces), least = UINT64_MAX;
    how->budget_bytes = options->budget_bytes > constant ? options->budget_bytes - constant : 0;
    for (int i = 0; i < MOST_TRIES; i++) {
        remat_plan_destroy(plan->chain_plan);
        plan->chain_plan = NULL;
        remat_status status = remat_plan_create(context, graph_pieces_profile(pieces), how, &plan->chain_plan);
        if (status == REMAT_OK)
            status = use_chain_plan(plan, options, pieces, "with this strategy the arena does");
        else if (status == REMAT_INFEASIBLE && least == UINT64_MAX)
            plan->min_budget_bytes = remat_plan_get_figures(plan->chain_plan)->min_budget_bytes + constant;
        least = plan->min_budget_bytes < least ? plan->min_budget_bytes : least;
        plan->min_budget_bytes = least;
        uint64_t over = least > options->budget_bytes ? least - options->budget_bytes : 0;
        over = over < GRAPH_ALIGNMENT ? GRAPH_ALIGNMENT : over;
        if (status != REMAT_INFEASIBLE || !remat_plan_get_figures(plan->chain_plan)->feasible ||
            how->budget_bytes < over)
            return status;
        how->budget_bytes -= over;
    }
    return refuse(plan, options, "with this strategy the arena does");
}

static remat_status use_strategy(graph_plan *plan, const graph_plan_options *options, graph_search *search)
{
    remat_plan_options how;
    remat_plan_options_init(&how);
    how.strategy = options->strategy;
    how.threads = options->threads;
    const graph_pieces *pieces = search->pieces[0];
    bool takes_budget = false;
    const remat_strategy_info *info;
    size_t name = strcspn(options->strategy, ":");
    for (size_t i = 0; (info = remat_strategy_list(i)) != NULL; i++)
        if (strlen(info->name) == name && strncmp(info->name, options->strategy, name) == 0)
            takes_budget = info->needs_budget;
    if (takes_budget && options->budget_bytes != REMAT_NO_BUDGET)
        return use_budget_strategy(plan, options, pieces, &how);
    REMAT_TRY(remat_plan_create(plan->graph->context, graph_pieces_profile(pieces), &how, &plan->chain_plan));
    return use_chain_plan(plan, options, pieces, "with this strategy the arena does");
}

/* ---- all together ---- */

static remat_status fill(graph_plan *plan, const graph_plan_options *options, graph_search *search)
{
    placed_graph base;
    REMAT_TRY(place_base(plan, &base));
    placed_graph_release(&base);
    bool chooses = !options->plan_path && (!options->strategy || strcmp(options->strategy, "optimal") == 0);
    bool only_blocks =
        chooses && !options->strategy && options->block_of_layer && options->budget_bytes == REMAT_NO_BUDGET;
    bool needs_all = options->plan_path || (chooses && !only_blocks); /* a file may be about the whole graph */
    REMAT_TRY(graph_search_begin(plan->graph, options, needs_all, search));
    if (options->plan_path)
        return use_file(plan, options, search);
    if (only_blocks)
        return use_blocks(plan, options);
    return chooses ? choose(plan, options, search) : use_strategy(plan, options, search);
}

remat_status graph_plan_create(const remat_graph *graph, const graph_plan_options *options, graph_plan **made)
{
    graph_plan *plan = *made = remat_alloc_zeroed(graph->context, 1, sizeof *plan);
    if (!plan)
        return REMAT_NO_MEMORY;
    graph_search search = {0};
    plan->graph = graph;
    plan->peak_layer = GRAPH_NONE;
    remat_status status = fill(plan, options, &search);
    plan->arena_count += search.arena_count;
    for (int i = 0; i < 2; i++) { /* the plan of the chain needs them */
        plan->owned[i] = search.pieces[i];
        search.pieces[i] = NULL;
    }
    graph_search_release(&search);
    if (status == REMAT_OK || status == REMAT_INFEASIBLE)
        return status;
    graph_plan_destroy(plan);
    *made = NULL;
    return status;
}
