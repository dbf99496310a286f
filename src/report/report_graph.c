/* The plan of a graph as a file of the report: the graph itself, its memory position by position, the arena, the actions and
 * the curve. */
#include <string.h>

#include "base/alloc.h"
#include "base/options.h"
#include "plan/graph/graph_plan_object.h"
#include "report/keep_all_outline.h"
#include "report/report_document.h"

/* Longer schedules are shown in columns: nobody can tell rectangles apart, and a page with all of them is slow. */
enum { MOST_POSITIONS = 20000, COLUMNS = 4096 };
/* Larger graphs are not drawn. */
enum { MOST_NODES = 600 };

/* What holds memory: the letters that the page knows. */
enum { HOLDS_GIVEN, HOLDS_FORWARD, HOLDS_ONCE, HOLDS_SCRATCH, HOLD_COUNT };
static const char *const letters[HOLD_COUNT] = {"x", "s", "y", "w"};
static const char *const hold_names[HOLD_COUNT] = {"given tensors", "recomputable tensors", "tensors made once",
                                                   "workspace"};

typedef struct graph_view {
    report_document *to;
    const remat_graph *graph;
    const remat_graph_plan *plan;
    graph_liveness exact; /* sizes as the memory model counts them; the ranges are those of the places */
    uint64_t given_bytes;
} graph_view;

static const graph_sequence *schedule_of(const graph_view *view)
{
    return &view->plan->plan->sequence;
}

static const graph_action *action_at(const graph_view *view, size_t position)
{
    return &view->graph->actions[schedule_of(view)->actions[position]];
}

static int kind_of(const graph_view *view, const live_range *range)
{
    if (range->tensor == GRAPH_NONE)
        return HOLDS_SCRATCH;
    return action_at(view, range->born)->once ? HOLDS_ONCE : HOLDS_FORWARD;
}

/* ---- memory ---- */

static void write_names(report_document *to)
{
    document_open(to, "ops", '{');
    document_text(to, "f", "run, not kept:");
    document_text(to, "s", "run, kept:");
    document_text(to, "b", "run once:");
    document_close(to, '}');
    document_open(to, "kinds", '{');
    for (int k = 0; k < HOLD_COUNT; k++)
        document_text(to, letters[k], hold_names[k]);
    document_close(to, '}');
}

static char letter_at(const graph_view *view, size_t position)
{
    const uint32_t action = schedule_of(view)->actions[position];
    return view->graph->actions[action].once ? 'b' : view->plan->plan->runs[action] > 1 ? 'f' : 's';
}

static const char *range_name(const graph_view *view, const live_range *range, char text[GRAPH_NAME_TEXT])
{
    return range->tensor == GRAPH_NONE ? "workspace" : graph_tensor_name(view->graph, range->tensor, text);
}

/* The given tensors are one row without a place, live from the first position to the last. */
static void write_tensors(const graph_view *view)
{
    report_document *to = view->to;
    const live_range *ranges = view->exact.ranges;
    const graph_liveness *placed = &view->plan->plan->liveness;
    const size_t count = view->exact.range_count, steps = schedule_of(view)->count;
    char text[GRAPH_NAME_TEXT];
    document_open(to, "tensors", '{');
    document_letters_begin(to, "kind");
    for (size_t i = 0; i < count; i++)
        document_letter(to, letters[kind_of(view, &ranges[i])][0]);
    document_letter(to, letters[HOLDS_GIVEN][0]);
    document_letters_end(to);
    document_open(to, "name", '[');
    for (size_t i = 0; i < count; i++)
        document_text(to, NULL, range_name(view, &ranges[i], text));
    document_text(to, NULL, "all given tensors");
    document_close(to, ']');
    DOCUMENT_COLUMN(to, "tensor", count + 1, document_number, i < count ? ranges[i].tensor : GRAPH_NONE);
    DOCUMENT_COLUMN(to, "layer", count + 1, document_number,
                    i < count ? schedule_of(view)->actions[ranges[i].born] : 0);
    DOCUMENT_COLUMN(to, "bytes", count + 1, document_number, i < count ? ranges[i].bytes : view->given_bytes);
    DOCUMENT_COLUMN(to, "born", count + 1, document_number, i < count ? live_range_counts_from(&ranges[i]) : 0);
    DOCUMENT_COLUMN(to, "ends", count + 1, document_number, i < count ? ranges[i].ends : steps);
    DOCUMENT_COLUMN(to, "offset", count, document_number, view->plan->plan->offsets[placed->ranges[i].buffer]);
    document_close(to, '}');
}

/* Actions that run once, behind the first that may run again, are taken for the backward pass. */
static void write_phases(const graph_view *view)
{
    const size_t steps = schedule_of(view)->count;
    size_t at = 0;
    while (at < steps && action_at(view, at)->once)
        at++;
    while (at < steps && !action_at(view, at)->once)
        at++;
    if (at < steps)
        report_write_phases(view->to, SIZE_MAX, at);
}

static void write_positions(const graph_view *view)
{
    report_document *to = view->to;
    const size_t steps = schedule_of(view)->count;
    write_phases(view);
    document_letters_begin(to, "op");
    for (size_t i = 0; i < steps; i++)
        document_letter(to, letter_at(view, i));
    document_letters_end(to);
    DOCUMENT_COLUMN(to, "layer", steps, document_number, schedule_of(view)->actions[i]);
    DOCUMENT_COLUMN(to, "cost", steps, document_number, action_at(view, i)->cost);
    write_tensors(view);
}

/* By kind and position: live bytes. */
static void sum_kinds(const graph_view *view, uint64_t *sums[HOLD_COUNT])
{
    const size_t steps = schedule_of(view)->count;
    for (size_t i = 0; i < view->exact.range_count; i++) {
        const live_range *range = &view->exact.ranges[i];
        uint64_t *sum = sums[kind_of(view, range)];
        sum[live_range_counts_from(range)] += range->bytes; /* changes, which wrap, and back */
        sum[range->ends] -= range->bytes;
    }
    sums[HOLDS_GIVEN][0] = view->given_bytes;
    for (int k = 0; k < HOLD_COUNT; k++)
        for (size_t i = 1; i < steps; i++)
            sums[k][i] += sums[k][i - 1];
}

static remat_status write_columns(const graph_view *view)
{
    report_document *to = view->to;
    const size_t steps = schedule_of(view)->count;
    size_t fullest[COLUMNS];
    for (size_t c = 0; c < COLUMNS; c++) {
        fullest[c] = c * steps / COLUMNS;
        for (size_t i = fullest[c]; i < (c + 1) * steps / COLUMNS; i++)
            if (view->exact.live_bytes[i] > view->exact.live_bytes[fullest[c]])
                fullest[c] = i;
    }
    uint64_t *sums[HOLD_COUNT];
    bool there = true;
    for (int k = 0; k < HOLD_COUNT; k++) {
        sums[k] = remat_alloc_zeroed(to->context, steps + 2, sizeof *sums[k]);
        there &= sums[k] != NULL;
    }
    if (there) {
        sum_kinds(view, sums);
        document_open(to, "columns", '{');
        DOCUMENT_COLUMN(to, "step", COLUMNS, document_number, fullest[i]);
        for (int k = 0; k < HOLD_COUNT; k++)
            DOCUMENT_COLUMN(to, letters[k], COLUMNS, document_number, sums[k][fullest[i]]);
        document_close(to, '}');
    }
    for (int k = 0; k < HOLD_COUNT; k++)
        remat_release(to->context, sums[k], steps + 2, sizeof *sums[k]);
    return there ? REMAT_OK : REMAT_NO_MEMORY;
}

static remat_status write_memory(const graph_view *view, bool arena)
{
    report_document *to = view->to;
    const graph_plan *plan = view->plan->plan;
    const size_t steps = schedule_of(view)->count;
    remat_status status = REMAT_OK;
    if (steps == 0)
        return REMAT_OK;
    document_open(to, "memory", '{');
    document_number(to, "steps", steps);
    document_number(to, "peak_step", view->exact.peak_position);
    write_names(to);
    if (steps <= MOST_POSITIONS)
        write_positions(view);
    else
        status = write_columns(view);
    if (status == REMAT_OK && steps <= MOST_POSITIONS)
        status = outline_of_graph(to, view->graph, schedule_of(view), GRAPH_EXACT);
    document_close(to, '}');
    if (arena && steps <= MOST_POSITIONS) {
        document_open(to, "arena", '{');
        document_number(to, "bytes", plan->arena_bytes);
        document_number(to, "lower_bound_bytes", plan->peak_bytes);
        document_number(to, "peak_bytes", plan->peak_bytes);
        document_number(to, "given_bytes", view->given_bytes);
        document_close(to, '}');
    }
    return status;
}

/* ---- the graph ---- */

static const char *decision_of(const graph_view *view, size_t action)
{
    const uint32_t *runs = view->plan->plan->runs;
    if (view->graph->actions[action].once)
        return "once";
    return runs[action] > 1 ? "recompute" : runs[action] == 1 ? "keep" : "left out";
}

static uint64_t bytes_written(const graph_view *view, size_t action)
{
    const graph_action *about = &view->graph->actions[action];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < about->write_count; i++)
        bytes += view->graph->tensors[graph_writes(view->graph, about)[i]].bytes;
    return bytes;
}

/* Actions that may run again are what a plan decides about: they are drawn. Where there are none, all are. */
static bool is_drawn(const graph_view *view, size_t action, bool all)
{
    return all || !view->graph->actions[action].once;
}

static void write_links(const graph_view *view, const uint32_t *writers, bool all)
{
    report_document *to = view->to;
    char text[GRAPH_NAME_TEXT];
    document_open(to, "links", '[');
    for (size_t i = 0; i < view->graph->action_count; i++) {
        const graph_action *action = &view->graph->actions[i];
        for (uint32_t k = 0; is_drawn(view, i, all) && k < action->read_count; k++) {
            const uint32_t tensor = graph_reads(view->graph, action)[k];
            if (writers[tensor] == GRAPH_NONE || !is_drawn(view, writers[tensor], all))
                continue;
            document_open(to, NULL, '[');
            document_number(to, NULL, writers[tensor]);
            document_number(to, NULL, i);
            document_number(to, NULL, view->graph->tensors[tensor].bytes);
            document_text(to, NULL, graph_tensor_name(view->graph, tensor, text));
            document_close(to, ']');
        }
    }
    document_close(to, ']');
}

static remat_status write_graph(const graph_view *view)
{
    report_document *to = view->to;
    const remat_graph *graph = view->graph;
    size_t again = 0;
    for (size_t i = 0; i < graph->action_count; i++)
        again += !graph->actions[i].once;
    const bool all = again == 0;
    document_open(to, "graph", '{');
    document_number(to, "tensors", graph->tensor_count);
    document_number(to, "actions", graph->action_count);
    document_number(to, "may_run_again", again);
    const size_t drawn = all ? graph->action_count : again;
    if (drawn > 0 && drawn <= MOST_NODES) {
        uint32_t *writers = remat_alloc(to->context, graph->tensor_count, sizeof *writers);
        if (!writers)
            return REMAT_NO_MEMORY;
        for (size_t i = 0; i < graph->tensor_count; i++)
            writers[i] = GRAPH_NONE;
        document_open(to, "nodes", '[');
        for (size_t i = 0; i < graph->action_count; i++) {
            for (uint32_t k = 0; k < graph->actions[i].write_count; k++)
                writers[graph_writes(graph, &graph->actions[i])[k]] = (uint32_t)i;
            if (is_drawn(view, i, all))
                document_number(to, NULL, i);
        }
        document_close(to, ']');
        write_links(view, writers, all);
        remat_release(to->context, writers, graph->tensor_count, sizeof *writers);
    }
    document_close(to, '}');
    return REMAT_OK;
}

/* The actions, in the place of layers. */
static void write_actions(const graph_view *view)
{
    report_document *to = view->to;
    const remat_graph *graph = view->graph;
    const size_t count = graph->action_count;
    const uint32_t *runs = view->plan->plan->runs;
    char text[GRAPH_NAME_TEXT];
    document_open(to, "layers", '{');
    document_open(to, "name", '[');
    for (size_t i = 0; i < count; i++)
        document_text(to, NULL, graph_action_name(graph, (uint32_t)i, text));
    document_close(to, ']');
    DOCUMENT_COLUMN(to, "role", count, document_text, graph->actions[i].once ? "once" : "layer");
    DOCUMENT_COLUMN(to, "activation_bytes", count, document_number, bytes_written(view, i));
    DOCUMENT_COLUMN(to, "forward_cost", count, document_number, graph->actions[i].cost);
    if (runs) {
        DOCUMENT_COLUMN(to, "decision", count, document_text, decision_of(view, i));
        DOCUMENT_COLUMN(to, "forwards", count, document_number, runs[i]);
    }
    document_close(to, '}');
}

/* ---- figures and the curve ---- */

static void write_figures(const graph_view *view)
{
    report_document *to = view->to;
    remat_graph_plan_figures figures;
    uint64_t again = 0, recomputed = 0;
    remat_graph_plan_get_figures(view->plan, &figures);
    for (uint32_t i = 0; i < view->graph->action_count; i++) {
        again += !view->graph->actions[i].once;
        recomputed += remat_graph_plan_runs(view->plan, i) > 1;
    }
    document_open(to, "figures", '{');
    if (figures.has_budget)
        document_number(to, "budget_bytes", figures.budget_bytes);
    document_number(to, "min_budget_bytes", figures.min_budget_bytes);
    document_number(to, "min_budget_bound_bytes", figures.min_budget_bound_bytes);
    document_number(to, "base_cost", figures.base_cost);
    document_number(to, "base_peak_bytes", figures.base_peak_bytes);
    if (figures.feasible) {
        document_number(to, "peak_bytes", figures.peak_bytes);
        document_number(to, "arena_bytes", figures.arena_bytes);
        document_number(to, "total_cost", figures.total_cost);
        document_number(to, "lower_bound_cost", figures.lower_bound_cost);
        document_number(to, "recomputed_layers", recomputed);
        document_number(to, "layers", again);
        document_number(to, "steps", figures.actions);
    }
    document_close(to, '}');
}

static remat_status write_curve(const graph_view *view, const remat_report_options *options)
{
    report_document *to = view->to;
    remat_graph_plan_options wanted;
    remat_graph_sweep *sweep;
    remat_graph_plan_options_init(&wanted);
    wanted.threads = options->threads;
    REMAT_TRY(remat_graph_sweep_create(view->graph, &wanted, &sweep));
    const size_t count = remat_graph_sweep_count(sweep);
    document_open(to, "curve", '{');
    document_number(to, "plans", count);
    document_open(to, "points", '[');
    for (size_t i = 0; i < count; i++) {
        remat_graph_point point = {0};
        remat_graph_sweep_get_point(sweep, i, &point);
        document_open(to, NULL, '[');
        document_number(to, NULL, point.peak_bytes);
        document_number(to, NULL, point.total_cost);
        document_close(to, ']');
    }
    document_close(to, ']');
    if (count > 0)
        document_number(to, "knee", remat_graph_sweep_knee(sweep));
    document_close(to, '}');
    remat_graph_sweep_destroy(sweep);
    return REMAT_OK;
}

/* ---- the whole ---- */

static remat_status write_file(graph_view *view, const remat_report_options *options)
{
    report_document *to = view->to;
    const remat_graph *graph = view->graph;
    document_text(to, "cost_unit", graph->cost_unit ? graph->cost_unit : "");
    /* The strategy is called optimal, but the word is shown only where the plan is proven to be. */
    const bool proven = view->plan->plan->cost == view->plan->lower_bound_cost;
    document_text(to, "strategy",
                  strcmp(view->plan->strategy, "optimal") == 0 && !proven ? "cheapest found" : view->plan->strategy);
    document_text(to, "remark", view->plan->plan->remark);
    document_bool(to, "feasible", view->plan->plan->feasible);
    write_figures(view);
    REMAT_TRY(write_graph(view));
    if (view->plan->plan->feasible)
        REMAT_TRY(write_memory(view, options->arena));
    if (options->curve)
        REMAT_TRY(write_curve(view, options));
    write_actions(view);
    return REMAT_OK;
}

remat_status remat_report_add_graph_plan(remat_report *report, const char *label, const remat_graph_plan *plan,
                                         const remat_report_options *options)
{
    remat_context *context = report_context(report);
    remat_report_options wanted;
    remat_report_options_init(&wanted);
    REMAT_TRY(remat_options_copy(context, &wanted, sizeof wanted, options, "remat_report_options_init"));
    graph_view view = {.graph = plan->graph, .plan = plan};
    for (size_t i = 0; i < plan->graph->tensor_count; i++)
        view.given_bytes += plan->graph->tensors[i].given ? plan->graph->tensors[i].bytes : 0;
    if (plan->plan->feasible)
        REMAT_TRY(graph_walk(plan->graph, &plan->plan->sequence, GRAPH_EXACT, &view.exact));
    view.to = report_begin_file(report, "graph", label, plan->graph->name ? plan->graph->name : "");
    remat_status status = write_file(&view, &wanted);
    if (status != REMAT_OK && view.to->status == REMAT_OK)
        view.to->status = status;
    status = report_end_file(report);
    graph_liveness_release(plan->graph->context, &view.exact);
    return status;
}
