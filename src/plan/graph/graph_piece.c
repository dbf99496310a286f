#include "plan/graph/graph_piece.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

void graph_piece_release(graph_piece *piece)
{
    remat_release(piece->context, piece->tensors, piece->tensor_capacity, sizeof *piece->tensors);
    remat_release(piece->context, piece->actions, piece->action_capacity, sizeof *piece->actions);
    remat_release(piece->context, piece->links, piece->link_capacity, sizeof *piece->links);
    *piece = (graph_piece){0};
}

/* ---- from the graph ---- */

typedef struct builder {
    const remat_graph *graph;
    const graph_cut *cut;
    const tensor_use *uses;
    const graph_gradients *gradients;
    size_t number;
    graph_piece *piece;
} builder;

/* The tensor's number in the piece, or GRAPH_NONE. Pieces are small; joined ones have a few hundred tensors. */
static uint32_t find(const graph_piece *piece, uint32_t tensor)
{
    for (uint32_t i = 0; i < piece->tensor_count; i++)
        if (piece->tensors[i].number == tensor)
            return i;
    return GRAPH_NONE;
}

static bool passes(const builder *b, uint32_t tensor, size_t to_piece)
{
    for (size_t i = b->gradients->passing_begin[to_piece]; i < b->gradients->passing_begin[to_piece + 1]; i++)
        if (b->gradients->passing[i] == tensor)
            return true;
    return false;
}

/* Whether the piece must count a tensor: nothing that lives all through, be it data, a result, its input or certain
 * gradients. Where it is the only piece, data and results live as long as they are read. */
static bool counts(const builder *b, uint32_t tensor)
{
    const tensor_use *use = &b->uses[tensor];
    if (b->gradients->constant[tensor] || (tensor_stays(use) && b->cut->piece_count > 1))
        return false;
    return use->maker == GRAPH_NONE || use->maker >= b->piece->first_forward;
}

static remat_status meet(builder *b, uint32_t tensor)
{
    graph_piece *piece = b->piece;
    const tensor_use *use = &b->uses[tensor];
    bool made = use->maker != GRAPH_NONE && !use->loaded;
    if (!counts(b, tensor) || find(piece, tensor) != GRAPH_NONE)
        return REMAT_OK;
    REMAT_TRY(remat_grow(piece->context, (void **)&piece->tensors, &piece->tensor_capacity, piece->tensor_count + 1,
                         sizeof *piece->tensors));
    piece->tensors[piece->tensor_count++] = (piece_tensor){
        .bytes = b->graph->tensors[tensor].bytes,
        .number = tensor,
        .maker = made ? use->maker - piece->first_forward : GRAPH_NONE,
        .is_data = use->loaded,
        .is_output = made && tensor == b->cut->input[b->number + 1],
        .wanted = made && (use->finished ||
                           (use->first_back != GRAPH_NONE && use->last_back >= b->cut->backward_begin[b->number + 1])),
        .arrives = !made && passes(b, tensor, b->number),
        .leaves = !made && b->number > 0 && passes(b, tensor, b->number - 1),
    };
    piece->inner_count += made;
    return REMAT_OK;
}

static remat_status meet_all(builder *b, const graph_action *action)
{
    const uint32_t *links = b->graph->links + action->first_link;
    size_t count = (size_t)action->read_count + action->write_count + action->update_count;
    for (size_t i = 0; i < count; i++)
        REMAT_TRY(meet(b, links[i]));
    return REMAT_OK;
}

/* First those that the piece makes itself, in the order in which it does, then the others. */
static remat_status meet_tensors(builder *b)
{
    const remat_graph *graph = b->graph;
    const graph_piece *piece = b->piece;
    for (size_t i = 0; i < piece->forward_count; i++) {
        const graph_action *action = &graph->actions[piece->first_forward + i];
        for (size_t k = 0; action->kind != GRAPH_LOAD && k < action->write_count; k++)
            REMAT_TRY(meet(b, graph_writes(graph, action)[k]));
    }
    for (size_t i = 0; i < piece->forward_count; i++)
        REMAT_TRY(meet_all(b, &graph->actions[piece->first_forward + i]));
    for (size_t i = 0; i < piece->backward_count; i++)
        REMAT_TRY(meet_all(b, &graph->actions[graph->backward_begin + piece->first_backward + i]));
    return REMAT_OK;
}

static remat_status link(graph_piece *piece, const uint32_t *tensors, size_t count, uint32_t *linked)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t known = find(piece, tensors[i]);
        if (known == GRAPH_NONE)
            continue;
        REMAT_TRY(remat_grow(piece->context, (void **)&piece->links, &piece->link_capacity, piece->link_count + 1,
                             sizeof *piece->links));
        piece->links[piece->link_count++] = known;
        ++*linked;
    }
    return REMAT_OK;
}

static remat_status add_action(builder *b, const graph_action *from)
{
    graph_piece *piece = b->piece;
    const remat_graph *graph = b->graph;
    piece_action action = {
        .first_link = (uint32_t)piece->link_count,
        .in_place_from = from->in_place_from == GRAPH_NONE ? GRAPH_NONE : find(piece, from->in_place_from),
        .in_place_to = from->in_place_to == GRAPH_NONE ? GRAPH_NONE : find(piece, from->in_place_to),
        .workspace_bytes = from->workspace_bytes,
        .cost = from->cost,
        .is_load = from->kind == GRAPH_LOAD,
    };
    REMAT_TRY(link(piece, graph_reads(graph, from), from->read_count, &action.need_count));
    REMAT_TRY(link(piece, graph_updates(graph, from), from->update_count, &action.need_count));
    REMAT_TRY(link(piece, graph_writes(graph, from), from->write_count, &action.write_count));
    REMAT_TRY(remat_grow(piece->context, (void **)&piece->actions, &piece->action_capacity, piece->action_count + 1,
                         sizeof *piece->actions));
    *(piece->action_count < piece->forward_count ? &piece->forward_cost : &piece->backward_cost) += action.cost;
    piece->actions[piece->action_count++] = action;
    return REMAT_OK;
}

static remat_status build(builder *b)
{
    graph_piece *piece = b->piece;
    size_t first_back = b->graph->backward_begin + piece->first_backward;
    REMAT_TRY(meet_tensors(b));
    for (size_t i = 0; i < piece->forward_count; i++)
        REMAT_TRY(add_action(b, &b->graph->actions[piece->first_forward + i]));
    for (size_t i = 0; i < piece->backward_count; i++)
        REMAT_TRY(add_action(b, &b->graph->actions[first_back + i]));
    uint32_t output = b->cut->input[b->number + 1];
    piece->output = output == GRAPH_NONE ? GRAPH_NONE : find(piece, output);
    return REMAT_OK;
}

remat_status graph_piece_build(const remat_graph *graph, const graph_cut *cut, const tensor_use *uses,
                               const graph_gradients *gradients, size_t number, graph_piece *piece)
{
    *piece = (graph_piece){
        .context = graph->context,
        .first_forward = cut->forward_begin[number],
        .forward_count = cut->forward_begin[number + 1] - cut->forward_begin[number],
        .first_backward = cut->backward_begin[number + 1],
        .backward_count = cut->backward_begin[number] - cut->backward_begin[number + 1],
    };
    builder b = {graph, cut, uses, gradients, number, piece};
    remat_status status = build(&b);
    if (status != REMAT_OK)
        graph_piece_release(piece);
    return status;
}

/* ---- pieces that repeat ---- */

static bool same_tensor(const piece_tensor *a, const piece_tensor *b)
{
    return a->bytes == b->bytes && a->maker == b->maker && a->is_output == b->is_output && a->is_data == b->is_data &&
           a->wanted == b->wanted && a->arrives == b->arrives && a->leaves == b->leaves;
}

static bool same_action(const piece_action *a, const piece_action *b)
{
    return a->first_link == b->first_link && a->need_count == b->need_count && a->write_count == b->write_count &&
           a->in_place_from == b->in_place_from && a->in_place_to == b->in_place_to &&
           a->workspace_bytes == b->workspace_bytes && a->cost == b->cost && a->is_load == b->is_load;
}

bool graph_piece_same(const graph_piece *a, const graph_piece *b)
{
    if (a->forward_count != b->forward_count || a->backward_count != b->backward_count ||
        a->tensor_count != b->tensor_count || a->link_count != b->link_count || a->output != b->output)
        return false;
    for (size_t i = 0; i < a->tensor_count; i++)
        if (!same_tensor(&a->tensors[i], &b->tensors[i]))
            return false;
    for (size_t i = 0; i < a->action_count; i++)
        if (!same_action(&a->actions[i], &b->actions[i]))
            return false;
    return a->link_count == 0 || memcmp(a->links, b->links, a->link_count * sizeof *a->links) == 0;
}
