#include "graph/graph_values.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"

/* Whether some tensor has a second writer, or an update. */
static remat_status find_changes(const remat_graph *graph, bool *found)
{
    bool *written = remat_alloc_zeroed(graph->context, graph->tensor_count, sizeof *written);
    *found = false;
    if (!written)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < graph->action_count && !*found; i++) {
        const graph_action *action = &graph->actions[i];
        const uint32_t *writes = graph_writes(graph, action);
        *found = action->update_count > 0;
        for (uint32_t k = 0; k < action->write_count; k++) {
            *found |= written[writes[k]];
            written[writes[k]] = true;
        }
    }
    remat_release(graph->context, written, graph->tensor_count, sizeof *written);
    return REMAT_OK;
}

static void forget(const graph_values *values)
{
    for (size_t t = 0; t < values->graph->tensor_count; t++)
        values->changed_by[t] = GRAPH_NONE;
}

static void run(const graph_values *values, uint32_t number)
{
    const remat_graph *graph = values->graph;
    const graph_action *action = &graph->actions[number];
    const uint32_t *updates = graph_updates(graph, action), *writes = graph_writes(graph, action);
    for (uint32_t k = 0; k < action->update_count; k++)
        values->changed_by[updates[k]] = number;
    for (uint32_t k = 0; k < action->write_count; k++)
        values->changed_by[writes[k]] = number;
}

remat_status graph_values_create(const remat_graph *graph, graph_values *values)
{
    bool found;
    *values = (graph_values){.graph = graph};
    REMAT_TRY(find_changes(graph, &found));
    if (!found)
        return REMAT_OK;
    values->expected = remat_alloc(graph->context, graph->link_count, sizeof *values->expected);
    values->expected_results = remat_alloc(graph->context, graph->result_count, sizeof *values->expected_results);
    values->changed_by = remat_alloc(graph->context, graph->tensor_count, sizeof *values->changed_by);
    if (!values->expected || !values->expected_results || !values->changed_by) {
        graph_values_release(values);
        return REMAT_NO_MEMORY;
    }
    forget(values);
    for (uint32_t i = 0; i < graph->action_count; i++) {
        const graph_action *action = &graph->actions[i];
        const uint32_t *needs = graph_reads(graph, action);
        for (size_t k = 0; k < graph_need_count(action); k++)
            values->expected[action->first_link + k] = values->changed_by[needs[k]];
        run(values, i);
    }
    for (size_t i = 0; i < graph->result_count; i++)
        values->expected_results[i] = values->changed_by[graph->results[i]];
    return REMAT_OK;
}

void graph_values_release(graph_values *values)
{
    if (!values->graph)
        return;
    const remat_graph *graph = values->graph;
    remat_release(graph->context, values->expected, graph->link_count, sizeof *values->expected);
    remat_release(graph->context, values->expected_results, graph->result_count, sizeof *values->expected_results);
    remat_release(graph->context, values->changed_by, graph->tensor_count, sizeof *values->changed_by);
    *values = (graph_values){0};
}

bool graph_values_agree(const graph_values *values, const graph_sequence *sequence, graph_stale_read *first)
{
    const remat_graph *graph = values->graph;
    if (!values->expected)
        return true;
    forget(values);
    for (size_t i = 0; i < sequence->count; i++) {
        const graph_action *action = &graph->actions[sequence->actions[i]];
        const uint32_t *needs = graph_reads(graph, action);
        for (size_t k = 0; k < graph_need_count(action); k++) {
            *first = (graph_stale_read){i, needs[k], values->changed_by[needs[k]]};
            if (first->changed_by != values->expected[action->first_link + k])
                return false;
        }
        run(values, sequence->actions[i]);
    }
    for (size_t i = 0; i < graph->result_count; i++) {
        *first = (graph_stale_read){sequence->count, graph->results[i], values->changed_by[graph->results[i]]};
        if (first->changed_by != values->expected_results[i])
            return false;
    }
    return true;
}

static void describe(const remat_graph *graph, const graph_sequence *sequence, const graph_stale_read *read,
                     char text[GRAPH_STALE_TEXT])
{
    char reader[GRAPH_NAME_TEXT], tensor[GRAPH_NAME_TEXT], by[GRAPH_NAME_TEXT];
    const bool is_result = read->position == sequence->count, is_changed = read->changed_by != GRAPH_NONE;
    int at = is_result ? snprintf(text, GRAPH_STALE_TEXT, "the end: result ")
                       : snprintf(text, GRAPH_STALE_TEXT, "step %zu: action %.80s reads tensor ", read->position,
                                  graph_action_name(graph, sequence->actions[read->position], reader));
    snprintf(text + at, (size_t)(GRAPH_STALE_TEXT - at),
             "%.80s %s%s%.80s; in the order of the graph it %s another value",
             graph_tensor_name(graph, read->tensor, tensor), is_result ? "is " : "",
             is_changed ? "as it is after action " : "before it is changed",
             is_changed ? graph_action_name(graph, read->changed_by, by) : "", is_result ? "has" : "reads");
}

remat_status graph_values_judge(const remat_graph *graph, const graph_sequence *sequence, char text[GRAPH_STALE_TEXT])
{
    graph_values values;
    graph_stale_read first;
    *text = '\0';
    REMAT_TRY(graph_values_create(graph, &values));
    if (!graph_values_agree(&values, sequence, &first))
        describe(graph, sequence, &first, text);
    graph_values_release(&values);
    return REMAT_OK;
}

remat_status graph_values_check(const remat_graph *graph, const graph_sequence *sequence, remat_status wrong)
{
    char text[GRAPH_STALE_TEXT];
    REMAT_TRY(graph_values_judge(graph, sequence, text));
    return *text ? remat_fail(graph->context, wrong, NULL, "%s", text) : REMAT_OK;
}
