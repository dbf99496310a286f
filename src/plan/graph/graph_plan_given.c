/* A plan that somebody else made: the schedule comes from a file. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "graph/graph_values.h"
#include "plan/graph/graph_bound.h"
#include "plan/graph/graph_plan_file.h"
#include "plan/graph/graph_search.h"

/* With the places of the file, or with others where those cannot be used. Takes the schedule of the text. */
static remat_status place_text(const remat_graph *graph, graph_plan_text *text, placed_graph *placed)
{
    bool usable = false;
    *placed = (placed_graph){.context = graph->context};
    if (text->has_places) {
        remat_status status = graph_walk(graph, &text->schedule, GRAPH_PLACED, &placed->liveness);
        if (status == REMAT_OK) {
            placed->offsets = remat_alloc(graph->context, placed->liveness.buffer_count, sizeof *placed->offsets);
            status = placed->offsets ? graph_places_take(graph, text, placed, &usable) : REMAT_NO_MEMORY;
        }
        if (status != REMAT_OK || !usable)
            placed_graph_release(placed);
        REMAT_TRY(status);
    }
    if (!usable)
        return graph_place(graph, &text->schedule, placed);
    placed->sequence = text->schedule;
    text->schedule = (graph_sequence){0};
    return REMAT_OK;
}

/* A program copies its data in before anything runs: the actions with `once` that come first in its graph come first in
 * every schedule. Another schedule is changed so; its places are of no use then. */
static void put_loads_first(const remat_graph *graph, graph_plan_text *text)
{
    uint32_t *actions = text->schedule.actions, loads = 0;
    size_t moved = 0;
    while (loads < graph->action_count && graph->actions[loads].once)
        loads++;
    for (size_t i = 0; i < text->schedule.count && moved < loads; i++) {
        if (actions[i] >= loads)
            continue;
        text->has_places &= i == moved;
        memmove(actions + moved + 1, actions + moved, (i - moved) * sizeof *actions);
        actions[moved] = (uint32_t)moved; /* they stand in order */
        moved++;
    }
}

/* In a program every action has its purpose, also one that makes no tensor: a loss, for example. */
static remat_status expect_all_run(const graph_plan *plan)
{
    char text[GRAPH_NAME_TEXT];
    for (uint32_t i = 0; i < plan->graph->action_count; i++)
        if (!plan->runs[i])
            return remat_fail(plan->graph->context, REMAT_CHECK_FAILED, NULL,
                              "action %.80s does not run; in a training, every action runs at least once",
                              graph_action_name(plan->graph, i, text));
    return REMAT_OK;
}

static remat_status find_base(graph_plan *plan)
{
    const remat_graph *graph = plan->graph;
    graph_sequence sequence = {0};
    placed_graph base;
    REMAT_TRY(graph_sequence_plain(graph, &sequence));
    remat_status status = graph_walk_peak(graph, &sequence, GRAPH_EXACT, &plan->exact_base_peak_bytes);
    if (status != REMAT_OK) {
        graph_sequence_release(graph->context, &sequence);
        return status;
    }
    REMAT_TRY(graph_place(graph, &sequence, &base));
    plan->base_arena_bytes = base.arena_bytes;
    plan->base_peak_bytes = base.liveness.peak_bytes;
    plan->base_cost = base.liveness.cost;
    placed_graph_release(&base);
    return REMAT_OK;
}

static remat_status state_bounds(graph_plan *plan, graph_counting binds)
{
    hold_graph g;
    REMAT_TRY(hold_graph_create(plan->graph, binds, &g));
    remat_status status = graph_bound_cost(&g, UINT64_MAX, &plan->lower_bound_cost);
    if (status == REMAT_OK)
        status = graph_bound_peak(&g, &plan->least_bound_bytes);
    hold_graph_release(&g);
    return status;
}

static remat_status count_runs(graph_plan *plan)
{
    plan->runs = remat_alloc_zeroed(plan->graph->context, plan->graph->action_count, sizeof *plan->runs);
    if (!plan->runs)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < plan->sequence.count; i++)
        plan->runs[plan->sequence.actions[i]]++;
    return REMAT_OK;
}

static remat_status fill(graph_plan *plan, graph_counting binds, graph_plan_text *text,
                         const remat_graph_figures *found)
{
    placed_graph placed;
    REMAT_TRY(find_base(plan));
    REMAT_TRY(state_bounds(plan, binds));
    if (binds == GRAPH_PLACED)
        put_loads_first(plan->graph, text);
    REMAT_TRY(place_text(plan->graph, text, &placed));
    plan->feasible = true;
    plan->peak_action = placed_graph_peak_action(&placed);
    plan->sequence = placed.sequence;
    plan->liveness = placed.liveness;
    plan->offsets = placed.offsets;
    plan->arena_bytes = placed.arena_bytes;
    plan->peak_bytes = placed.liveness.peak_bytes;
    plan->cost = placed.liveness.cost;
    plan->exact_peak_bytes = found->peak_bytes;
    plan->min_budget_bytes = binds == GRAPH_EXACT ? found->peak_bytes : placed.arena_bytes;
    REMAT_TRY(count_runs(plan));
    return binds == GRAPH_PLACED ? expect_all_run(plan) : REMAT_OK;
}

static remat_status read_plan(graph_counting binds, FILE *stream, const char *name, graph_plan_text *text,
                              graph_plan *plan)
{
    const remat_graph *graph = plan->graph;
    remat_graph_figures found = {0};
    REMAT_TRY(graph_plan_read_text(graph->context, stream, name, text));
    remat_status status = graph_plan_judge(graph, text, &found);
    if (status == REMAT_OK && binds == GRAPH_PLACED)
        status = graph_values_check(graph, &text->schedule, REMAT_CHECK_FAILED);
    if (status == REMAT_OK)
        status = fill(plan, binds, text, &found);
    if (status == REMAT_CHECK_FAILED)
        status = remat_fail_in_file(graph->context, name, REMAT_NOWHERE);
    if (status != REMAT_OK)
        graph_plan_text_release(text);
    return status;
}

remat_status graph_plan_given(const remat_graph *graph, graph_counting binds, FILE *stream, const char *name,
                              graph_plan_text *text, graph_plan **made)
{
    *text = (graph_plan_text){0};
    graph_plan *plan = *made = remat_alloc_zeroed(graph->context, 1, sizeof *plan);
    if (!plan)
        return REMAT_NO_MEMORY;
    plan->graph = graph;
    plan->peak_action = GRAPH_NONE;
    remat_status status = read_plan(binds, stream, name, text, plan);
    if (status == REMAT_OK)
        return status;
    graph_plan_destroy(plan);
    *made = NULL;
    return status;
}
