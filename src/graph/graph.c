#include "graph/graph_object.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"

remat_status graph_create(remat_context *context, remat_graph **made)
{
    remat_graph *g = *made = remat_alloc_zeroed(context, 1, sizeof *g);
    if (!g)
        return REMAT_NO_MEMORY;
    g->context = context;
    text_pool_begin(&g->texts, context);
    return REMAT_OK;
}

void graph_destroy(remat_graph *graph)
{
    if (!graph)
        return;
    remat_context *context = graph->context;
    text_pool_end(&graph->texts);
    remat_release(context, graph->tensors, graph->tensor_capacity, sizeof *graph->tensors);
    remat_release(context, graph->actions, graph->action_capacity, sizeof *graph->actions);
    remat_release(context, graph->links, graph->link_capacity, sizeof *graph->links);
    remat_release(context, graph->results, graph->result_capacity, sizeof *graph->results);
    remat_release(context, graph, 1, sizeof *graph);
}

remat_status graph_fit(remat_graph *graph)
{
    remat_context *context = graph->context;
    REMAT_TRY(remat_fit(context, (void **)&graph->tensors, &graph->tensor_capacity, graph->tensor_count,
                        sizeof *graph->tensors));
    REMAT_TRY(remat_fit(context, (void **)&graph->actions, &graph->action_capacity, graph->action_count,
                        sizeof *graph->actions));
    REMAT_TRY(
        remat_fit(context, (void **)&graph->links, &graph->link_capacity, graph->link_count, sizeof *graph->links));
    return remat_fit(context, (void **)&graph->results, &graph->result_capacity, graph->result_count,
                     sizeof *graph->results);
}

static const char *name_or_number(const char *name, uint32_t number, char text[GRAPH_NAME_TEXT])
{
    if (name && *name)
        return name;
    snprintf(text, GRAPH_NAME_TEXT, "%u", number);
    return text;
}

const char *graph_action_name(const remat_graph *graph, uint32_t action, char text[GRAPH_NAME_TEXT])
{
    return name_or_number(graph->actions[action].name, action, text);
}

const char *graph_tensor_name(const remat_graph *graph, uint32_t tensor, char text[GRAPH_NAME_TEXT])
{
    return name_or_number(graph->tensors[tensor].name, tensor, text);
}

remat_status graph_add_tensor(remat_graph *graph, const graph_tensor *tensor)
{
    char text[GRAPH_NAME_TEXT];
    if (graph->tensor_count >= GRAPH_NONE - 1)
        return remat_fail(graph->context, REMAT_INVALID, NULL, "the graph is too large: it reaches 2^32 tensors");
    if (tensor->bytes >= REMAT_LIMIT)
        return remat_fail(graph->context, REMAT_INVALID, NULL, "tensor %s: its bytes reach 2^63",
                          name_or_number(tensor->name, (uint32_t)graph->tensor_count, text));
    REMAT_TRY(remat_grow(graph->context, (void **)&graph->tensors, &graph->tensor_capacity, graph->tensor_count + 1,
                         sizeof *graph->tensors));
    graph_tensor *added = &graph->tensors[graph->tensor_count++];
    *added = *tensor;
    added->writer = GRAPH_NONE;
    return REMAT_OK;
}

remat_status graph_add_result(remat_graph *graph, uint32_t tensor)
{
    if (tensor >= graph->tensor_count)
        return remat_fail(graph->context, REMAT_INVALID, NULL, "there is no tensor %u for a result", tensor);
    REMAT_TRY(remat_grow(graph->context, (void **)&graph->results, &graph->result_capacity, graph->result_count + 1,
                         sizeof *graph->results));
    graph->results[graph->result_count++] = tensor;
    return REMAT_OK;
}

/* ---- actions ---- */

static bool contains(const uint32_t *list, size_t count, uint32_t tensor)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == tensor)
            return true;
    return false;
}

static const char *wrong_with_writes(remat_graph *graph, uint32_t number, char text[GRAPH_WRONG_TEXT])
{
    const graph_action *action = &graph->actions[number];
    const uint32_t *writes = graph_writes(graph, action);
    char name[GRAPH_NAME_TEXT];
    for (size_t i = 0; i < action->write_count; i++) {
        graph_tensor *tensor = &graph->tensors[writes[i]];
        if (tensor->given || tensor->writer == number) {
            snprintf(text, GRAPH_WRONG_TEXT,
                     tensor->given ? "it writes tensor %.80s, which is given" : "it writes tensor %.80s twice",
                     graph_tensor_name(graph, writes[i], name));
            return text;
        }
        tensor->writer = number;
    }
    return NULL;
}

const char *graph_check_action(remat_graph *graph, uint32_t number, char text[GRAPH_WRONG_TEXT])
{
    const graph_action *action = &graph->actions[number];
    const uint32_t *links = graph_reads(graph, action);
    for (size_t i = 0; i < graph_need_count(action) + action->write_count; i++)
        if (links[i] >= graph->tensor_count) {
            snprintf(text, GRAPH_WRONG_TEXT, "there is no tensor %u; there are %zu", links[i], graph->tensor_count);
            return text;
        }
    if (action->workspace_bytes >= REMAT_LIMIT || action->cost >= REMAT_LIMIT)
        return "its cost or the bytes of its workspace reach 2^63";
    if (action->update_count && !action->once)
        return "it updates a tensor, but may run more than once";
    if (action->in_place_from != GRAPH_NONE || action->in_place_to != GRAPH_NONE)
        if (!contains(graph_reads(graph, action), action->read_count, action->in_place_from) ||
            !contains(graph_writes(graph, action), action->write_count, action->in_place_to))
            return "in_place does not name a tensor that it reads and one that it writes";
    return wrong_with_writes(graph, number, text);
}

static void append_links(remat_graph *graph, const uint32_t *from, size_t count)
{
    if (count)
        memcpy(graph->links + graph->link_count, from, count * sizeof *from);
    graph->link_count += count;
}

remat_status graph_append_action(remat_graph *graph, const graph_action *action, const graph_links *links)
{
    size_t more = links->read_count + links->update_count + links->write_count;
    if (more >= GRAPH_NONE - graph->link_count || graph->action_count >= GRAPH_NONE - 1)
        return remat_fail(graph->context, REMAT_INVALID, NULL, "the graph is too large: it reaches 2^32 numbers");
    /* One more than needed: `links` is not NULL even where no action has any. */
    REMAT_TRY(remat_grow(graph->context, (void **)&graph->links, &graph->link_capacity, graph->link_count + more + 1,
                         sizeof *graph->links));
    REMAT_TRY(remat_grow(graph->context, (void **)&graph->actions, &graph->action_capacity, graph->action_count + 1,
                         sizeof *graph->actions));
    graph_action *added = &graph->actions[graph->action_count++];
    *added = *action;
    added->first_link = (uint32_t)graph->link_count;
    added->read_count = (uint32_t)links->read_count;
    added->update_count = (uint32_t)links->update_count;
    added->write_count = (uint32_t)links->write_count;
    append_links(graph, links->reads, links->read_count);
    append_links(graph, links->updates, links->update_count);
    append_links(graph, links->writes, links->write_count);
    return REMAT_OK;
}

/* Takes back the last action. */
static void remove_action(remat_graph *graph)
{
    const graph_action *action = &graph->actions[--graph->action_count];
    const uint32_t *writes = graph_writes(graph, action);
    for (size_t i = 0; i < action->write_count; i++)
        if (writes[i] < graph->tensor_count)
            graph->tensors[writes[i]].writer = GRAPH_NONE;
    graph->link_count = action->first_link;
}

remat_status graph_add_action(remat_graph *graph, const graph_action *action, const graph_links *links)
{
    char text[GRAPH_NAME_TEXT], wrong_text[GRAPH_WRONG_TEXT];
    const uint32_t number = (uint32_t)graph->action_count;
    REMAT_TRY(graph_append_action(graph, action, links));
    const char *wrong = graph_check_action(graph, number, wrong_text);
    if (!wrong)
        return REMAT_OK;
    remove_action(graph);
    return remat_fail(graph->context, REMAT_INVALID, NULL, "action %s: %s", name_or_number(action->name, number, text),
                      wrong);
}
