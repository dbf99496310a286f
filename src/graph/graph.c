#include "graph/graph.h"

#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"

remat_status graph_create(remat_context *context, remat_graph **made)
{
    remat_graph *g = remat_alloc_zeroed(context, 1, sizeof *g);
    if (!g)
        return REMAT_NO_MEMORY;
    g->context = context;
    *made = g;
    return REMAT_OK;
}

void graph_destroy(remat_graph *graph)
{
    if (!graph)
        return;
    remat_context *context = graph->context;
    remat_release(context, graph->tensors, graph->tensor_capacity, sizeof *graph->tensors);
    remat_release(context, graph->layers, graph->layer_capacity, sizeof *graph->layers);
    remat_release(context, graph->actions, graph->action_capacity, sizeof *graph->actions);
    remat_release(context, graph->links, graph->link_capacity, sizeof *graph->links);
    remat_release(context, graph, 1, sizeof *graph);
}

static remat_status round_up(remat_context *context, const char *name, uint64_t *bytes)
{
    if (!remat_add(bytes, 63))
        return remat_fail(context, REMAT_INVALID, NULL, "%s: its bytes pass 2^63", name ? name : "a tensor");
    *bytes &= ~(uint64_t)63;
    return REMAT_OK;
}

remat_status graph_add_tensor(remat_graph *graph, const char *name, uint64_t bytes)
{
    REMAT_TRY(round_up(graph->context, name, &bytes));
    REMAT_TRY(remat_grow(graph->context, (void **)&graph->tensors, &graph->tensor_capacity, graph->tensor_count + 1,
                         sizeof *graph->tensors));
    graph->tensors[graph->tensor_count++] = (graph_tensor){name, bytes};
    return REMAT_OK;
}

remat_status graph_add_layer(remat_graph *graph, const graph_layer *layer)
{
    REMAT_TRY(remat_grow(graph->context, (void **)&graph->layers, &graph->layer_capacity, graph->layer_count + 1,
                         sizeof *graph->layers));
    graph->layers[graph->layer_count++] = *layer;
    return REMAT_OK;
}

static void append_links(remat_graph *graph, const uint32_t *from, size_t count)
{
    if (count)
        memcpy(graph->links + graph->link_count, from, count * sizeof *from);
    graph->link_count += count;
}

remat_status graph_add_action(remat_graph *graph, const graph_action *action, const graph_links *links)
{
    graph_action added = *action;
    added.first_link = (uint32_t)graph->link_count;
    added.read_count = (uint16_t)links->read_count;
    added.write_count = (uint16_t)links->write_count;
    added.update_count = (uint16_t)links->update_count;
    REMAT_TRY(round_up(graph->context, "a workspace", &added.workspace_bytes));
    size_t more = links->read_count + links->write_count + links->update_count;
    REMAT_TRY(remat_grow(graph->context, (void **)&graph->links, &graph->link_capacity, graph->link_count + more,
                         sizeof *graph->links));
    REMAT_TRY(remat_grow(graph->context, (void **)&graph->actions, &graph->action_capacity, graph->action_count + 1,
                         sizeof *graph->actions));
    append_links(graph, links->reads, links->read_count);
    append_links(graph, links->writes, links->write_count);
    append_links(graph, links->updates, links->update_count);
    graph->actions[graph->action_count++] = added;
    if (added.kind == GRAPH_LOAD || added.kind == GRAPH_FORWARD)
        graph->backward_begin = graph->action_count;
    return REMAT_OK;
}
