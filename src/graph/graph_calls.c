/* The public calls of remat/graph.h that build a graph and look at it. Names are copied. */
#include "graph/graph_object.h"

#include "base/error.h"
#include "base/options.h"
#include "graph/graph_walk.h"

static const remat_graph_tensor tensor_defaults = {.struct_size = sizeof(remat_graph_tensor)};
static const remat_graph_action action_defaults = {
    .struct_size = sizeof(remat_graph_action), .in_place_from = REMAT_NO_TENSOR, .in_place_to = REMAT_NO_TENSOR};

void remat_graph_tensor_init_sized(remat_graph_tensor *tensor, size_t size)
{
    remat_options_give(tensor, size, &tensor_defaults, sizeof tensor_defaults);
}

void remat_graph_action_init_sized(remat_graph_action *action, size_t size)
{
    remat_options_give(action, size, &action_defaults, sizeof action_defaults);
}

remat_status remat_graph_create(remat_context *context, remat_graph **graph)
{
    return graph_create(context, graph);
}

void remat_graph_destroy(remat_graph *graph)
{
    graph_destroy(graph);
}

/* ---- adding ---- */

remat_status graph_copy_text(remat_graph *graph, const char *text, const char **copy)
{
    *copy = text ? text_pool_text(&graph->texts, text) : NULL;
    return text && !*copy ? REMAT_NO_MEMORY : REMAT_OK;
}

remat_status remat_graph_add_tensor(remat_graph *graph, const remat_graph_tensor *tensor)
{
    remat_graph_tensor wanted = tensor_defaults;
    REMAT_TRY(remat_options_copy(graph->context, &wanted, sizeof wanted, tensor, "remat_graph_tensor_init"));
    graph_tensor added = {.bytes = wanted.bytes, .given = wanted.given};
    REMAT_TRY(graph_copy_text(graph, wanted.name, &added.name));
    return graph_add_tensor(graph, &added);
}

remat_status remat_graph_add_action(remat_graph *graph, const remat_graph_action *action)
{
    remat_graph_action wanted = action_defaults;
    REMAT_TRY(remat_options_copy(graph->context, &wanted, sizeof wanted, action, "remat_graph_action_init"));
    graph_action added = {.in_place_from = wanted.in_place_from,
                          .in_place_to = wanted.in_place_to,
                          .once = wanted.once,
                          .workspace_bytes = wanted.workspace_bytes,
                          .cost = wanted.cost};
    const graph_links links = {.reads = wanted.reads,
                               .updates = wanted.updates,
                               .writes = wanted.writes,
                               .read_count = wanted.read_count,
                               .update_count = wanted.update_count,
                               .write_count = wanted.write_count};
    REMAT_TRY(graph_copy_text(graph, wanted.name, &added.name));
    return graph_add_action(graph, &added, &links);
}

remat_status remat_graph_add_result(remat_graph *graph, uint32_t tensor)
{
    return graph_add_result(graph, tensor);
}

remat_status remat_graph_set_name(remat_graph *graph, const char *name)
{
    return graph_copy_text(graph, name, &graph->name);
}

remat_status remat_graph_set_cost_unit(remat_graph *graph, const char *unit)
{
    return graph_copy_text(graph, unit, &graph->cost_unit);
}

/* ---- looking ---- */

const char *remat_graph_name(const remat_graph *graph)
{
    return graph->name;
}

const char *remat_graph_cost_unit(const remat_graph *graph)
{
    return graph->cost_unit;
}

size_t remat_graph_tensor_count(const remat_graph *graph)
{
    return graph->tensor_count;
}

size_t remat_graph_action_count(const remat_graph *graph)
{
    return graph->action_count;
}

size_t remat_graph_result_count(const remat_graph *graph)
{
    return graph->result_count;
}

uint32_t remat_graph_result(const remat_graph *graph, size_t position)
{
    return position < graph->result_count ? graph->results[position] : REMAT_NO_TENSOR;
}

static remat_status no_such(const remat_graph *graph, const char *what, size_t number, size_t count)
{
    return remat_fail(graph->context, REMAT_INVALID, NULL, "there is no %s %zu; the graph has %zu", what, number,
                      count);
}

remat_status remat_graph_get_tensor_sized(const remat_graph *graph, size_t number, remat_graph_tensor *tensor,
                                          size_t tensor_size)
{
    if (number >= graph->tensor_count)
        return no_such(graph, "tensor", number, graph->tensor_count);
    const graph_tensor *from = &graph->tensors[number];
    const remat_graph_tensor found = {
        .struct_size = tensor_size, .name = from->name, .bytes = from->bytes, .given = from->given};
    remat_struct_give(tensor, tensor_size, &found, sizeof found);
    return REMAT_OK;
}

remat_status remat_graph_get_action_sized(const remat_graph *graph, size_t number, remat_graph_action *action,
                                          size_t action_size)
{
    if (number >= graph->action_count)
        return no_such(graph, "action", number, graph->action_count);
    const graph_action *from = &graph->actions[number];
    const remat_graph_action found = {.struct_size = action_size,
                                      .name = from->name,
                                      .reads = graph_reads(graph, from),
                                      .updates = graph_updates(graph, from),
                                      .writes = graph_writes(graph, from),
                                      .read_count = from->read_count,
                                      .update_count = from->update_count,
                                      .write_count = from->write_count,
                                      .in_place_from = from->in_place_from,
                                      .in_place_to = from->in_place_to,
                                      .once = from->once,
                                      .workspace_bytes = from->workspace_bytes,
                                      .cost = from->cost};
    remat_struct_give(action, action_size, &found, sizeof found);
    return REMAT_OK;
}

/* ---- schedules ---- */

remat_status remat_graph_replay_sized(const remat_graph *graph, const uint32_t *actions, size_t count,
                                      remat_graph_figures *figures, size_t figures_size)
{
    graph_walker walker;
    REMAT_TRY(graph_walker_create(graph, GRAPH_EXACT, &walker));
    remat_status status = graph_walker_run(&walker, actions, count);
    if (status == REMAT_OK)
        status = graph_walker_finish(&walker);
    const remat_graph_figures found = {.actions = count,
                                       .peak_bytes = walker.found.peak_bytes,
                                       .peak_position = walker.found.peak_position,
                                       .total_cost = walker.found.cost};
    if (status == REMAT_OK)
        remat_struct_give(figures, figures_size, &found, sizeof found);
    graph_walker_release(&walker);
    return status;
}
