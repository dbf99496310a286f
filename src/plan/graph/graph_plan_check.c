#include "base/error.h"
#include "base/options.h"
#include "graph/graph_values.h"
#include "graph/stated_figures.h"
#include "plan/graph/graph_plan_file.h"

#include <string.h>

static remat_status compare(const remat_graph *graph, const graph_plan_text *text, const remat_graph_figures *schedule,
                            const remat_graph_figures *base)
{
    static const char same[] = "but the schedule comes to", kept[] = "but keeping everything comes to";
    const stated_rule rules[] = {
        {PLAN_PEAK, STATED_EXACT, schedule->peak_bytes, same},
        {PLAN_TOTAL_COST, STATED_EXACT, schedule->total_cost, same},
        {PLAN_BASE_COST, STATED_EXACT, base->total_cost, kept},
        {PLAN_BASE_PEAK, STATED_EXACT, base->peak_bytes, kept},
        {PLAN_BUDGET, STATED_AT_LEAST, schedule->peak_bytes, "but the peak of the schedule is"},
        {PLAN_LOWER_BOUND, STATED_AT_MOST, schedule->total_cost, "but the schedule costs only"},
        {PLAN_MIN_BUDGET, STATED_AT_MOST, schedule->peak_bytes, "but the schedule has a peak of"},
        {PLAN_MIN_BUDGET, STATED_AT_LEAST, text->numbers[PLAN_MIN_BOUND], "but min_budget_bound_bytes is"},
        {PLAN_MIN_BOUND, STATED_AT_MOST, schedule->peak_bytes, "but the schedule has a peak of"},
        {PLAN_ARENA, text->has_places ? STATED_EXACT : STATED_AT_LEAST, schedule->arena_bytes, "but the places need"},
    };
    const stated_figures stated = {text->seen, text->numbers, graph_plan_number_names};
    return stated_figures_check(graph->context, REMAT_PLACE_NOWHERE, &stated, rules, sizeof rules / sizeof rules[0]);
}

static remat_status replay_base(const remat_graph *graph, const graph_plan_text *text, remat_graph_figures *base)
{
    if (!graph_plan_states(text, PLAN_BASE_COST) && !graph_plan_states(text, PLAN_BASE_PEAK))
        return REMAT_OK;
    graph_sequence plain = {0};
    REMAT_TRY(graph_sequence_plain(graph, &plain));
    remat_status status = remat_graph_replay(graph, plain.actions, plain.count, base);
    graph_sequence_release(graph->context, &plain);
    return status;
}

remat_status graph_plan_judge(const remat_graph *graph, const graph_plan_text *text, remat_graph_figures *found)
{
    remat_graph_figures base = {0};
    REMAT_TRY(remat_graph_replay(graph, text->schedule.actions, text->schedule.count, found));
    if (!text->feasible)
        return remat_fail(graph->context, REMAT_CHECK_FAILED, NULL,
                          "feasible: false is stated, but there is a legal schedule");
    if (text->has_places)
        REMAT_TRY(graph_places_check(graph, text, &found->arena_bytes));
    REMAT_TRY(replay_base(graph, text, &base));
    return compare(graph, text, found, &base);
}

/* Such a schedule is legal all the same. */
static remat_status warn_of_values(const remat_graph *graph, const graph_sequence *schedule, const char *name)
{
    char stale[GRAPH_STALE_TEXT];
    remat_place where = REMAT_PLACE_NOWHERE;
    where.file = name;
    REMAT_TRY(graph_values_judge(graph, schedule, stale));
    if (*stale)
        remat_warn(graph->context, &where, "%s", stale);
    return REMAT_OK;
}

remat_status remat_graph_plan_check_sized(const remat_graph *graph, FILE *stream, const char *name,
                                          remat_graph_figures *figures, size_t figures_size)
{
    graph_plan_text text;
    remat_graph_figures found = {0};
    memset(figures, 0, figures_size);
    REMAT_TRY(graph_plan_read_text(graph->context, stream, name, &text));
    remat_status status = graph_plan_judge(graph, &text, &found);
    if (status == REMAT_OK)
        status = warn_of_values(graph, &text.schedule, name);
    graph_plan_text_release(&text);
    remat_struct_give(figures, figures_size, &found, sizeof found);
    return status == REMAT_CHECK_FAILED ? remat_fail_in_file(graph->context, name, REMAT_NOWHERE) : status;
}
