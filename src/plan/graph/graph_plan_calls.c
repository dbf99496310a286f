/* The public calls of remat/graph_plans.h. */
#include <string.h>

#include <remat/graph_plans.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/input.h"
#include "base/options.h"
#include "base/output_file.h"
#include "plan/graph/graph_plan_object.h"

void remat_graph_plan_options_init_sized(remat_graph_plan_options *options, size_t size)
{
    const remat_graph_plan_options defaults = {.budget_bytes = REMAT_NO_BUDGET};
    remat_options_give(options, size, &defaults, sizeof defaults);
}

remat_status graph_plan_take_options(remat_context *context, const remat_graph_plan_options *options,
                                     remat_graph_plan_options *taken)
{
    remat_graph_plan_options_init(taken);
    return remat_options_copy(context, taken, sizeof *taken, options, "remat_graph_plan_options_init");
}

/* ---- making ---- */

void remat_graph_plan_destroy(remat_graph_plan *plan)
{
    if (!plan)
        return;
    remat_context *context = plan->graph->context;
    remat_release(context, plan->live_bytes, plan->position_count, sizeof *plan->live_bytes);
    remat_release(context, plan->places, plan->place_count, sizeof *plan->places);
    remat_text_release(context, plan->strategy);
    graph_plan_destroy(plan->plan);
    remat_release(context, plan, 1, sizeof *plan);
}

static remat_status create_object(const remat_graph *graph, const char *strategy, remat_graph_plan **made)
{
    remat_graph_plan *plan = *made = remat_alloc_zeroed(graph->context, 1, sizeof *plan);
    if (!plan)
        return REMAT_NO_MEMORY;
    plan->graph = graph;
    plan->budget_bytes = REMAT_NO_BUDGET;
    plan->strategy = remat_text_copy(graph->context, strategy);
    return plan->strategy ? REMAT_OK : REMAT_NO_MEMORY;
}

static remat_status take_live_bytes(remat_graph_plan *plan)
{
    remat_context *context = plan->graph->context;
    graph_liveness exact;
    REMAT_TRY(graph_walk(plan->graph, &plan->plan->sequence, GRAPH_EXACT, &exact));
    plan->peak_position = exact.peak_position;
    plan->live_bytes = remat_alloc(context, exact.position_count, sizeof *plan->live_bytes);
    if (plan->live_bytes) {
        plan->position_count = exact.position_count;
        memcpy(plan->live_bytes, exact.live_bytes, exact.position_count * sizeof *plan->live_bytes);
    }
    graph_liveness_release(context, &exact);
    return plan->live_bytes ? REMAT_OK : REMAT_NO_MEMORY;
}

static remat_status take_places(remat_graph_plan *plan)
{
    const graph_liveness *found = &plan->plan->liveness;
    size_t count = 0;
    for (size_t i = 0; i < found->range_count; i++)
        count += found->ranges[i].bytes > 0;
    plan->places = remat_alloc(plan->graph->context, count, sizeof *plan->places);
    if (!plan->places)
        return REMAT_NO_MEMORY;
    plan->place_count = count;
    for (size_t i = 0, k = 0; i < found->range_count; i++) {
        const live_range *range = &found->ranges[i];
        if (range->bytes)
            plan->places[k++] =
                (remat_graph_place){range->tensor, range->born,  range->ends, plan->plan->offsets[range->buffer],
                                    range->bytes,  range->buffer};
    }
    return REMAT_OK;
}

/* Everything that calls give out directly. */
static remat_status complete(remat_graph_plan *plan)
{
    const graph_plan *found = plan->plan;
    plan->min_budget_bytes = found->min_budget_bytes;
    plan->lower_bound_cost = found->lower_bound_cost;
    if (!found->feasible)
        return REMAT_OK;
    REMAT_TRY(take_live_bytes(plan));
    return take_places(plan);
}

static remat_status fail(remat_status status, remat_graph_plan **plan)
{
    remat_graph_plan_destroy(*plan);
    *plan = NULL;
    return status;
}

remat_status remat_graph_plan_create(const remat_graph *graph, const remat_graph_plan_options *options,
                                     remat_graph_plan **made)
{
    remat_graph_plan_options taken;
    graph_plan_options wanted;
    *made = NULL;
    REMAT_TRY(graph_plan_take_options(graph->context, options, &taken));
    graph_plan_options_init(&wanted);
    wanted.binds = GRAPH_EXACT;
    wanted.budget_bytes = taken.budget_bytes;
    wanted.threads = taken.threads;
    wanted.strategy = taken.strategy ? taken.strategy : taken.budget_bytes == REMAT_NO_BUDGET ? "none" : "optimal";
    remat_status status = create_object(graph, wanted.strategy, made);
    if (status != REMAT_OK)
        return fail(status, made);
    (*made)->budget_bytes = taken.budget_bytes;
    remat_status planned = graph_plan_create(graph, &wanted, &(*made)->plan);
    if (planned != REMAT_OK && planned != REMAT_INFEASIBLE)
        return fail(planned, made);
    status = complete(*made);
    return status == REMAT_OK ? planned : fail(status, made);
}

/* ---- what it says ---- */

void remat_graph_plan_get_figures_sized(const remat_graph_plan *plan, remat_graph_plan_figures *figures,
                                        size_t figures_size)
{
    const graph_plan *found = plan->plan;
    const remat_graph_plan_figures all = {
        .feasible = found->feasible,
        .has_budget = plan->budget_bytes != REMAT_NO_BUDGET,
        .budget_bytes = plan->budget_bytes != REMAT_NO_BUDGET ? plan->budget_bytes : 0,
        .actions = found->sequence.count,
        .peak_bytes = found->exact_peak_bytes,
        .peak_position = plan->peak_position,
        .total_cost = found->cost,
        .arena_bytes = found->arena_bytes,
        .base_cost = found->base_cost,
        .base_peak_bytes = found->exact_base_peak_bytes,
        .lower_bound_cost = plan->lower_bound_cost,
        .min_budget_bytes = plan->min_budget_bytes,
        .min_budget_bound_bytes = found->least_bound_bytes,
    };
    remat_struct_give(figures, figures_size, &all, sizeof all);
}

const char *remat_graph_plan_strategy(const remat_graph_plan *plan)
{
    return plan->strategy;
}

const char *remat_graph_plan_remark(const remat_graph_plan *plan)
{
    return plan->plan->remark;
}

const uint32_t *remat_graph_plan_schedule(const remat_graph_plan *plan, size_t *count)
{
    *count = plan->plan->sequence.count;
    return plan->plan->sequence.actions;
}

uint32_t remat_graph_plan_runs(const remat_graph_plan *plan, uint32_t action)
{
    return plan->plan->runs && action < plan->graph->action_count ? plan->plan->runs[action] : 0;
}

const uint64_t *remat_graph_plan_live_bytes(const remat_graph_plan *plan, size_t *count)
{
    *count = plan->position_count;
    return plan->live_bytes;
}

size_t remat_graph_plan_place_count(const remat_graph_plan *plan)
{
    return plan->place_count;
}

remat_status remat_graph_plan_get_place_sized(const remat_graph_plan *plan, size_t position, remat_graph_place *place,
                                              size_t place_size)
{
    if (position >= plan->place_count)
        return remat_fail(plan->graph->context, REMAT_INVALID, NULL, "the plan has %zu places; there is no place %zu",
                          plan->place_count, position);
    remat_struct_give(place, place_size, &plan->places[position], sizeof *plan->places);
    return REMAT_OK;
}

/* ---- files ---- */

typedef struct plan_file {
    const remat_graph_plan *plan;
    bool only_figures;
} plan_file;

static remat_status write_plan(const void *user, FILE *stream)
{
    const plan_file *file = user;
    const remat_graph_plan *plan = file->plan;
    const graph_plan *found = plan->plan;
    const placed_graph placed = {.context = plan->graph->context,
                                 .sequence = found->sequence,
                                 .liveness = found->liveness,
                                 .offsets = found->offsets,
                                 .arena_bytes = found->arena_bytes};
    graph_plan_content content;
    graph_plan_content_init(found->feasible ? &placed : NULL, &content);
    content.numbers[PLAN_BUDGET] = plan->budget_bytes; /* UINT64_MAX where there is none */
    content.numbers[PLAN_BASE_COST] = found->base_cost;
    content.numbers[PLAN_BASE_PEAK] = found->exact_base_peak_bytes;
    content.numbers[PLAN_LOWER_BOUND] = plan->lower_bound_cost;
    content.numbers[PLAN_MIN_BUDGET] = plan->min_budget_bytes;
    content.numbers[PLAN_MIN_BOUND] = found->least_bound_bytes;
    content.strategy = plan->strategy;
    content.remark = found->remark;
    content.only_figures = file->only_figures;
    return graph_plan_file_write(plan->graph, &content, stream);
}

remat_status remat_graph_plan_write(const remat_graph_plan *plan, FILE *stream, bool with_schedule)
{
    return write_plan(&(plan_file){plan, !with_schedule}, stream);
}

remat_status remat_graph_plan_save(const remat_graph_plan *plan, const char *path)
{
    return output_save(plan->graph->context, path, write_plan, &(plan_file){plan, false});
}

/* What the file states is not judged here beyond what a replay can judge, so it stays what the file states. */
static remat_status take_text(remat_graph_plan *plan, const graph_plan_text *text)
{
    const uint64_t *numbers = text->numbers;
    REMAT_TRY(complete(plan));
    if (graph_plan_states(text, PLAN_BUDGET))
        plan->budget_bytes = numbers[PLAN_BUDGET];
    if (graph_plan_states(text, PLAN_LOWER_BOUND))
        plan->lower_bound_cost = numbers[PLAN_LOWER_BOUND];
    if (graph_plan_states(text, PLAN_MIN_BOUND))
        plan->plan->least_bound_bytes = numbers[PLAN_MIN_BOUND];
    if (graph_plan_states(text, PLAN_MIN_BUDGET))
        plan->min_budget_bytes = numbers[PLAN_MIN_BUDGET];
    return REMAT_OK;
}

remat_status remat_graph_plan_read(const remat_graph *graph, FILE *stream, const char *name, remat_graph_plan **made)
{
    graph_plan_text text = {0};
    remat_status status = create_object(graph, "file", made);
    if (status == REMAT_OK)
        status = graph_plan_given(graph, GRAPH_EXACT, stream, name, &text, &(*made)->plan);
    if (status == REMAT_OK)
        status = take_text(*made, &text);
    graph_plan_text_release(&text);
    return status == REMAT_OK ? REMAT_OK : fail(status, made);
}

remat_status remat_graph_plan_load(const remat_graph *graph, const char *path, remat_graph_plan **plan)
{
    FILE *stream;
    *plan = NULL;
    REMAT_TRY(input_open(graph->context, path, &stream));
    remat_status status = remat_graph_plan_read(graph, stream, path, plan);
    fclose(stream);
    return status;
}
