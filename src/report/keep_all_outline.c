#include "report/keep_all_outline.h"

#include "base/alloc.h"
#include "plan/chain/plan_object.h"

/* Where an action has no place of its own. */
#define NO_STEP SIZE_MAX

/* One entry for each step that keeps everything: the plan's step at which it begins, and the live bytes. */
static void write_outline(report_document *to, const size_t *steps, const uint64_t *bytes, size_t count)
{
    size_t latest = 0; /* a plan may run actions in another order; the outline goes to the right only */
    document_open(to, "keep_all", '{');
    document_open(to, "step", '[');
    for (size_t i = 0; i < count; i++) {
        if (steps[i] != NO_STEP && steps[i] > latest)
            latest = steps[i];
        document_number(to, NULL, latest);
    }
    document_close(to, ']');
    DOCUMENT_COLUMN(to, "bytes", count, document_number, bytes[i]);
    document_close(to, '}');
}

/* ---- graphs ---- */

static remat_status write_graph(report_document *to, const remat_graph *graph, const graph_sequence *schedule,
                                const graph_sequence *plain, const uint64_t *bytes)
{
    const size_t count = graph->action_count;
    size_t *steps = remat_alloc(to->context, count, sizeof *steps);
    if (!steps)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        steps[i] = NO_STEP;
    for (size_t i = schedule->count; i-- > 0;)
        steps[schedule->actions[i]] = i;
    /* The plain schedule has the actions in their order. */
    write_outline(to, steps, bytes, plain->count);
    remat_release(to->context, steps, count, sizeof *steps);
    return REMAT_OK;
}

remat_status outline_of_graph(report_document *to, const remat_graph *graph, const graph_sequence *schedule,
                              graph_counting counting)
{
    graph_sequence plain = {0};
    graph_liveness found = {0};
    if (schedule->count == graph->action_count)
        return REMAT_OK;
    REMAT_TRY(graph_sequence_plain(graph, &plain));
    remat_status status = graph_walk(graph, &plain, counting, &found);
    if (status == REMAT_OK)
        status = write_graph(to, graph, schedule, &plain, found.live_bytes);
    graph_liveness_release(graph->context, &found);
    graph_sequence_release(graph->context, &plain);
    return status;
}

/* ---- chains ---- */

/* A step's place among 2N + 1: forwards, the loss, backwards. Drops have none. */
static size_t slot_of(const memory_step *step, size_t layers)
{
    switch (step->op) {
    case 'f':
    case 's': return step->layer;
    case 'l': return layers;
    case 'b': return layers + 1 + step->layer;
    default: return NO_STEP;
    }
}

static void sum_bytes(const memory_walk *walk, uint64_t *bytes)
{
    for (size_t i = 0; i < walk->tensor_count; i++) {
        bytes[walk->tensors[i].born] += walk->tensors[i].bytes; /* changes, which wrap, and back */
        bytes[walk->tensors[i].ends] -= walk->tensors[i].bytes;
    }
    for (size_t i = 1; i < walk->step_count; i++)
        bytes[i] += bytes[i - 1];
}

static remat_status write_chain(report_document *to, const memory_walk *plan, const memory_walk *all, size_t layers)
{
    const size_t slots = 2 * layers + 1, count = all->step_count;
    size_t *first = remat_alloc(to->context, slots, sizeof *first);
    size_t *steps = remat_alloc(to->context, count, sizeof *steps);
    uint64_t *bytes = remat_alloc_zeroed(to->context, count + 1, sizeof *bytes);
    remat_status status = first && steps && bytes ? REMAT_OK : REMAT_NO_MEMORY;
    if (status == REMAT_OK) {
        for (size_t i = 0; i < slots; i++)
            first[i] = NO_STEP;
        for (size_t i = plan->step_count; i-- > 0;)
            if (slot_of(&plan->steps[i], layers) != NO_STEP)
                first[slot_of(&plan->steps[i], layers)] = i;
        for (size_t i = 0; i < count; i++) {
            const size_t slot = slot_of(&all->steps[i], layers);
            steps[i] = slot == NO_STEP ? NO_STEP : first[slot];
        }
        sum_bytes(all, bytes);
        write_outline(to, steps, bytes, count);
    }
    remat_release(to->context, bytes, count + 1, sizeof *bytes);
    remat_release(to->context, steps, count, sizeof *steps);
    remat_release(to->context, first, slots, sizeof *first);
    return status;
}

remat_status outline_of_chain(report_document *to, const remat_plan *plan, const memory_walk *walk)
{
    remat_plan_options wanted;
    remat_plan *keep_all;
    memory_walk all;
    if (walk->columns || (plan->figures.schedule.total_cost == plan->figures.base_cost &&
                          plan->figures.schedule.peak_bytes == plan->figures.base_peak_bytes))
        return REMAT_OK;
    remat_plan_options_init(&wanted);
    REMAT_TRY(remat_plan_create(to->context, plan->chain, &wanted, &keep_all));
    remat_status status = memory_walk_plan(keep_all, MEMORY_STEPS_SHOWN, 1, &all);
    remat_plan_destroy(keep_all);
    if (status != REMAT_OK)
        return status;
    if (!all.columns)
        status = write_chain(to, walk, &all, plan->chain->layer_count);
    memory_walk_clear(&all);
    return status;
}
