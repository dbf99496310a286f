#include "plan/graph/graph_outline.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"

/* Every sum of figures that the planner forms stays below 2^63. */
#define SUM_LIMIT ((uint64_t)1 << 61)

void graph_outline_forget(graph_outline *outline)
{
    if (!outline->graph)
        return;
    remat_release(outline->graph->context, outline->uses, outline->graph->tensor_count, sizeof *outline->uses);
    outline->uses = NULL;
}

void graph_outline_release(graph_outline *outline)
{
    graph_outline_forget(outline);
    *outline = (graph_outline){0};
}

/* ---- who makes and needs what ---- */

static remat_status invalid(const remat_graph *graph, uint32_t action, uint32_t tensor, const char *what)
{
    char a[GRAPH_NAME_TEXT], t[GRAPH_NAME_TEXT];
    return remat_fail(graph->context, REMAT_BAD_INPUT, NULL, "action %s, tensor %s: %s",
                      graph_action_name(graph, action, a), graph_tensor_name(graph, tensor, t), what);
}

static remat_status note_forward(const graph_outline *outline, uint32_t number)
{
    const remat_graph *graph = outline->graph;
    const graph_action *action = &graph->actions[number];
    const uint32_t *needs = graph_reads(graph, action), *writes = graph_writes(graph, action);
    for (size_t i = 0; i < graph_need_count(action); i++) {
        tensor_use *use = &outline->uses[needs[i]];
        use->last_forward = number;
        if (i >= action->read_count && use->maker != GRAPH_NONE && !use->made_once)
            return invalid(graph, number, needs[i], "it is updated before the backward pass, but may be recomputed");
    }
    for (size_t i = 0; i < action->write_count; i++) {
        tensor_use *use = &outline->uses[writes[i]];
        if (use->maker != GRAPH_NONE)
            return invalid(graph, number, writes[i],
                           "two actions before the backward pass write it; give each its own tensor");
        use->maker = number;
        use->made_once = action->once;
    }
    return REMAT_OK;
}

static remat_status note_backward(const graph_outline *outline, uint32_t number)
{
    const remat_graph *graph = outline->graph;
    const graph_action *action = &graph->actions[outline->forward_count + number];
    const uint32_t *needs = graph_reads(graph, action), *writes = graph_writes(graph, action);
    for (size_t i = 0; i < graph_need_count(action); i++) {
        tensor_use *use = &outline->uses[needs[i]];
        use->first_back = use->first_back == GRAPH_NONE ? number : use->first_back;
        use->last_back = number;
        use->overwritten |= i >= action->read_count || needs[i] == action->in_place_from;
    }
    for (size_t i = 0; i < action->write_count; i++)
        if (outline->uses[writes[i]].maker != GRAPH_NONE)
            return invalid(graph, outline->forward_count + number, writes[i],
                           "it is written both before and in the backward pass; give each its own tensor");
    return REMAT_OK;
}

static remat_status check_sums(const remat_graph *graph)
{
    uint64_t bytes = 0, cost = 0;
    bool fits = true;
    for (size_t t = 0; t < graph->tensor_count; t++)
        fits = fits && remat_add(&bytes, graph_placed_bytes(graph->tensors[t].bytes));
    for (size_t i = 0; i < graph->action_count; i++)
        fits = fits && remat_add(&bytes, graph_placed_bytes(graph->actions[i].workspace_bytes)) &&
               remat_add(&cost, graph->actions[i].cost);
    if (fits && bytes < SUM_LIMIT && cost < SUM_LIMIT)
        return REMAT_OK;
    return remat_fail(graph->context, REMAT_INVALID, NULL, "the bytes or the costs of all actions together reach 2^61");
}

static remat_status find_uses(graph_outline *outline)
{
    const remat_graph *graph = outline->graph;
    for (size_t t = 0; t < graph->tensor_count; t++)
        outline->uses[t] = (tensor_use){GRAPH_NONE, GRAPH_NONE, GRAPH_NONE, GRAPH_NONE, false, false, false};
    for (uint32_t i = 0; i < outline->forward_count; i++)
        REMAT_TRY(note_forward(outline, i));
    for (uint32_t i = 0; i < outline->backward_count; i++)
        REMAT_TRY(note_backward(outline, i));
    for (size_t i = 0; i < graph->result_count; i++)
        outline->uses[graph->results[i]].is_result = true;
    return check_sums(graph);
}

/* ---- the whole ---- */

remat_status graph_outline_create(const remat_graph *graph, graph_outline *outline)
{
    *outline = (graph_outline){.graph = graph};
    for (size_t i = 0; i < graph->action_count; i++)
        if (!graph->actions[i].once)
            outline->forward_count = (uint32_t)i + 1;
    outline->backward_count = (uint32_t)graph->action_count - outline->forward_count;
    outline->uses = remat_alloc(graph->context, graph->tensor_count, sizeof *outline->uses);
    remat_status status = outline->uses ? find_uses(outline) : REMAT_NO_MEMORY;
    if (status != REMAT_OK)
        graph_outline_release(outline);
    return status;
}
