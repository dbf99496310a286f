#include "plan/graph/graph_must_run.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/min_max.h"

enum { NO_WRITER = GRAPH_NONE, SEVERAL = GRAPH_NONE - 1 };

typedef struct must_run {
    const remat_graph *graph;
    graph_counting counting;
    uint32_t *writers; /* by tensor: the only action that writes it, or one of the above */
    bool *runs;        /* by action */
    uint32_t *waiting; /* actions that must run and were not looked at yet */
    size_t waiting_count;
    uint32_t *counted; /* by tensor: the last action for which it was counted */
    uint64_t given_bytes;
} must_run;

static uint64_t tensor_bytes(const must_run *found, uint32_t tensor)
{
    const graph_tensor *t = &found->graph->tensors[tensor];
    if (t->given)
        return 0; /* counted once for all, in given_bytes */
    return found->counting == GRAPH_EXACT ? t->bytes : graph_placed_bytes(t->bytes);
}

static void demand(must_run *found, uint32_t action)
{
    if (found->runs[action])
        return;
    found->runs[action] = true;
    found->waiting[found->waiting_count++] = action;
}

static void demand_tensor(must_run *found, uint32_t tensor)
{
    uint32_t writer = found->writers[tensor];
    if (writer != NO_WRITER && writer != SEVERAL)
        demand(found, writer);
}

/* Actions with `once` must run, and so must the only writers of results and of what such actions need. */
static void find_actions(must_run *found)
{
    const remat_graph *graph = found->graph;
    for (size_t i = 0; i < graph->tensor_count; i++)
        found->writers[i] = NO_WRITER;
    for (uint32_t i = 0; i < graph->action_count; i++) {
        const graph_action *action = &graph->actions[i];
        const uint32_t *writes = graph_writes(graph, action);
        for (uint32_t k = 0; k < action->write_count; k++)
            found->writers[writes[k]] = found->writers[writes[k]] == NO_WRITER ? i : SEVERAL;
        if (action->once)
            demand(found, i);
    }
    for (size_t i = 0; i < graph->result_count; i++)
        demand_tensor(found, graph->results[i]);
    while (found->waiting_count > 0) {
        const graph_action *action = &graph->actions[found->waiting[--found->waiting_count]];
        const uint32_t *needs = graph_reads(graph, action);
        for (size_t k = 0; k < graph_need_count(action); k++)
            demand_tensor(found, needs[k]);
    }
}

static bool count(must_run *found, uint32_t mark, uint32_t tensor, uint64_t *bytes)
{
    if (found->counted[tensor] == mark)
        return true;
    found->counted[tensor] = mark;
    return remat_add(bytes, tensor_bytes(found, tensor));
}

/* What is live while an action runs: what it needs, what it writes, its workspace. A tensor that it both reads and writes
 * has two instances then, but one is enough for a bound. */
static bool count_action(must_run *found, uint32_t number, uint64_t *bytes)
{
    const graph_action *action = &found->graph->actions[number];
    const uint32_t *links = graph_reads(found->graph, action);
    const uint64_t workspace = action->workspace_bytes;
    *bytes = found->given_bytes;
    if (!remat_add(bytes, found->counting == GRAPH_EXACT ? workspace : graph_placed_bytes(workspace)))
        return false;
    for (size_t k = 0; k < graph_need_count(action) + action->write_count; k++) {
        bool may_share =
            action->in_place_from != GRAPH_NONE && k >= graph_need_count(action) && links[k] == action->in_place_to;
        if (may_share && found->graph->tensors[links[k]].bytes <= found->graph->tensors[action->in_place_from].bytes)
            continue;
        if (!count(found, number, links[k], bytes))
            return false;
    }
    return true;
}

/* At the last position all results are live. */
static bool count_end(must_run *found, uint64_t *bytes)
{
    *bytes = found->given_bytes;
    for (size_t i = 0; i < found->graph->result_count; i++)
        if (!count(found, GRAPH_NONE - 1, found->graph->results[i], bytes))
            return false;
    return true;
}

static bool add_up(must_run *found, graph_least *least)
{
    const remat_graph *graph = found->graph;
    uint64_t bytes;
    for (size_t i = 0; i < graph->tensor_count; i++) {
        found->counted[i] = GRAPH_NONE;
        if (graph->tensors[i].given && found->counting == GRAPH_EXACT &&
            !remat_add(&found->given_bytes, graph->tensors[i].bytes))
            return false;
    }
    if (graph->action_count == 0)
        return true;
    if (!count_end(found, &bytes))
        return false;
    least->peak_bytes = bytes;
    for (uint32_t i = 0; i < graph->action_count; i++) {
        if (!found->runs[i])
            continue;
        if (!remat_add(&least->cost, graph->actions[i].cost) || !count_action(found, i, &bytes))
            return false;
        least->peak_bytes = remat_max(least->peak_bytes, bytes);
    }
    return true;
}

remat_status graph_least_find(const remat_graph *graph, graph_counting counting, graph_least *least)
{
    remat_context *context = graph->context;
    const size_t tensors = graph->tensor_count, actions = graph->action_count;
    must_run found = {.graph = graph, .counting = counting};
    remat_status status = REMAT_NO_MEMORY;
    *least = (graph_least){0};
    found.writers = remat_alloc(context, tensors, sizeof *found.writers);
    found.counted = remat_alloc(context, tensors, sizeof *found.counted);
    found.waiting = remat_alloc(context, actions, sizeof *found.waiting);
    found.runs = remat_alloc_zeroed(context, actions, sizeof *found.runs);
    if (found.writers && found.counted && found.waiting && found.runs) {
        find_actions(&found);
        status = add_up(&found, least) ? REMAT_OK
                                       : remat_fail(context, REMAT_INVALID, NULL,
                                                    "the bytes or costs of the graph add up to 2^63 or more");
    }
    remat_release(context, found.runs, actions, sizeof *found.runs);
    remat_release(context, found.waiting, actions, sizeof *found.waiting);
    remat_release(context, found.counted, tensors, sizeof *found.counted);
    remat_release(context, found.writers, tensors, sizeof *found.writers);
    return status;
}
