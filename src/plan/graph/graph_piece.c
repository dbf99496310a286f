#include "plan/graph/graph_piece.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

void graph_piece_release(graph_piece *piece)
{
    if (piece->graph)
        remat_release(piece->graph->context, piece->tensors, piece->tensor_capacity, sizeof *piece->tensors);
    graph_destroy(piece->graph);
    *piece = (graph_piece){0};
}

/* ---- from the graph ---- */

typedef struct builder {
    const graph_outline *outline;
    const graph_cut *cut;
    const graph_gradients *gradients;
    uint32_t number, first_forward, first_backward;
    uint32_t *local; /* by tensor of the whole graph: its number here */
    uint32_t *links; /* of the action at hand */
    graph_piece *piece;
} builder;

static bool passes_to(const builder *b, uint32_t tensor, uint32_t piece)
{
    const gradient_span *span = &b->gradients->spans[tensor];
    return span->from != GRAPH_NONE && !span->constant && span->to <= piece && piece < span->from;
}

/* Whether the piece must count a tensor: nothing that lives all through, be it given, data, a result, its input or
 * certain gradients. Where it is the only piece, data and results live as long as they are read. */
static bool counts(const builder *b, uint32_t tensor)
{
    const tensor_use *use = &b->outline->uses[tensor];
    if (b->outline->graph->tensors[tensor].given || b->gradients->spans[tensor].constant ||
        (use->maker != GRAPH_NONE && tensor_stays(use) && b->cut->piece_count > 1))
        return false;
    return use->maker == GRAPH_NONE || use->maker >= b->first_forward;
}

/* `write`: which of its maker's writes an inner tensor is. */
static remat_status meet(builder *b, uint32_t tensor, uint32_t write)
{
    graph_piece *piece = b->piece;
    const tensor_use *use = &b->outline->uses[tensor];
    bool is_inner = use->maker != GRAPH_NONE && !use->made_once;
    if (b->local[tensor] != GRAPH_NONE || !counts(b, tensor))
        return REMAT_OK;
    uint32_t number = (uint32_t)piece->graph->tensor_count;
    REMAT_TRY(remat_grow(piece->graph->context, (void **)&piece->tensors, &piece->tensor_capacity, number + 1,
                         sizeof *piece->tensors));
    piece->tensors[number] = (piece_tensor){
        .number = tensor,
        .maker = is_inner ? use->maker - b->first_forward : GRAPH_NONE,
        .write = write,
        .wanted =
            is_inner && (use->is_result || (use->first_back != GRAPH_NONE && use->last_back >= b->first_backward)),
    };
    REMAT_TRY(graph_add_tensor(piece->graph, &(graph_tensor){.bytes = b->outline->graph->tensors[tensor].bytes}));
    piece->inner_count += is_inner;
    b->local[tensor] = number;
    return REMAT_OK;
}

static remat_status meet_all(builder *b, const graph_action *action)
{
    const uint32_t *links = graph_reads(b->outline->graph, action);
    for (size_t i = 0; i < graph_need_count(action) + action->write_count; i++)
        REMAT_TRY(meet(b, links[i], 0));
    return REMAT_OK;
}

/* First those that the piece may make again, in the order in which it makes them, then the others. */
static remat_status meet_tensors(builder *b)
{
    const remat_graph *graph = b->outline->graph;
    const graph_action *forward = graph->actions + b->first_forward;
    const graph_action *backward = graph->actions + b->outline->forward_count + b->first_backward;
    for (size_t i = 0; i < b->piece->forward_count; i++)
        for (uint32_t k = 0; !forward[i].once && k < forward[i].write_count; k++)
            REMAT_TRY(meet(b, graph_writes(graph, &forward[i])[k], k));
    for (size_t i = 0; i < b->piece->forward_count; i++)
        REMAT_TRY(meet_all(b, &forward[i]));
    for (size_t i = 0; i < b->piece->backward_count; i++)
        REMAT_TRY(meet_all(b, &backward[i]));
    return REMAT_OK;
}

/* Appends the piece's numbers of those tensors that it counts. */
static size_t translate(const builder *b, const uint32_t *tensors, size_t count, uint32_t *to)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (b->local[tensors[i]] != GRAPH_NONE)
            to[known++] = b->local[tensors[i]];
    return known;
}

static remat_status add_action(builder *b, const graph_action *from)
{
    const remat_graph *graph = b->outline->graph;
    graph_action action = {.once = from->once, .workspace_bytes = from->workspace_bytes, .cost = from->cost};
    action.in_place_from = action.in_place_to = GRAPH_NONE;
    if (from->in_place_from != GRAPH_NONE && b->local[from->in_place_from] != GRAPH_NONE &&
        b->local[from->in_place_to] != GRAPH_NONE) {
        action.in_place_from = b->local[from->in_place_from];
        action.in_place_to = b->local[from->in_place_to];
    }
    graph_links links = {.reads = b->links};
    links.read_count = translate(b, graph_reads(graph, from), from->read_count, b->links);
    links.updates = links.reads + links.read_count;
    links.update_count = translate(b, graph_updates(graph, from), from->update_count, b->links + links.read_count);
    links.writes = links.updates + links.update_count;
    links.write_count =
        translate(b, graph_writes(graph, from), from->write_count, b->links + links.read_count + links.update_count);
    return graph_add_action(b->piece->graph, &action, &links);
}

static remat_status add_turn(builder *b)
{
    graph_piece *piece = b->piece;
    uint32_t output = b->cut->begins[b->number + 1].input;
    piece->output = output == GRAPH_NONE ? GRAPH_NONE : b->local[output];
    graph_action turn = {.once = true, .in_place_from = GRAPH_NONE, .in_place_to = GRAPH_NONE};
    graph_links links = {.reads = &piece->output, .read_count = piece->output != GRAPH_NONE, .writes = b->links};
    for (uint32_t t = piece->inner_count; t < piece->graph->tensor_count; t++) {
        uint32_t tensor = piece->tensors[t].number;
        if (passes_to(b, tensor, b->number))
            b->links[links.write_count++] = t;
        bool is_result = b->outline->uses[tensor].is_result;
        if (is_result || (b->number > 0 && passes_to(b, tensor, b->number - 1)))
            REMAT_TRY(graph_add_result(piece->graph, t));
    }
    for (uint32_t t = 0; t < piece->inner_count; t++)
        if (b->outline->uses[piece->tensors[t].number].is_result)
            REMAT_TRY(graph_add_result(piece->graph, t));
    return graph_add_action(piece->graph, &turn, &links);
}

static remat_status build(builder *b)
{
    graph_piece *piece = b->piece;
    const graph_action *actions = b->outline->graph->actions;
    REMAT_TRY(meet_tensors(b));
    for (uint32_t i = 0; i < piece->forward_count; i++) {
        REMAT_TRY(add_action(b, &actions[b->first_forward + i]));
        piece->forward_cost += actions[b->first_forward + i].cost;
    }
    REMAT_TRY(add_turn(b));
    for (uint32_t i = 0; i < piece->backward_count; i++) {
        const graph_action *action = &actions[b->outline->forward_count + b->first_backward + i];
        REMAT_TRY(add_action(b, action));
        piece->backward_cost += action->cost;
    }
    return REMAT_OK;
}

remat_status graph_piece_build(const graph_outline *outline, const graph_cut *cut, const graph_gradients *gradients,
                               uint32_t number, uint32_t *room, graph_piece *piece)
{
    *piece = (graph_piece){
        .forward_count = cut->begins[number + 1].forward - cut->begins[number].forward,
        .backward_count = cut->begins[number].backward - cut->begins[number + 1].backward,
    };
    REMAT_TRY(graph_create(outline->graph->context, &piece->graph));
    builder b = {
        .outline = outline, .cut = cut, .gradients = gradients, .number = number, .local = room, .piece = piece};
    b.links = room + outline->graph->tensor_count;
    b.first_forward = cut->begins[number].forward;
    b.first_backward = cut->begins[number + 1].backward;
    remat_status status = build(&b);
    for (size_t t = 0; t < piece->graph->tensor_count; t++)
        b.local[piece->tensors[t].number] = GRAPH_NONE;
    if (status != REMAT_OK)
        graph_piece_release(piece);
    return status;
}

/* ---- pieces that repeat ---- */

static bool same_action(const graph_action *a, const graph_action *b)
{
    return a->first_link == b->first_link && a->read_count == b->read_count && a->update_count == b->update_count &&
           a->write_count == b->write_count && a->in_place_from == b->in_place_from &&
           a->in_place_to == b->in_place_to && a->once == b->once && a->workspace_bytes == b->workspace_bytes &&
           a->cost == b->cost;
}

static bool same_list(const uint32_t *a, const uint32_t *b, size_t count)
{
    return count == 0 || memcmp(a, b, count * sizeof *a) == 0;
}

bool graph_piece_same(const graph_piece *a, const graph_piece *b)
{
    const remat_graph *g = a->graph, *h = b->graph;
    if (a->forward_count != b->forward_count || a->output != b->output || a->inner_count != b->inner_count ||
        g->action_count != h->action_count || g->tensor_count != h->tensor_count || g->link_count != h->link_count ||
        g->result_count != h->result_count)
        return false;
    for (size_t i = 0; i < g->tensor_count; i++)
        if (g->tensors[i].bytes != h->tensors[i].bytes || a->tensors[i].maker != b->tensors[i].maker ||
            a->tensors[i].write != b->tensors[i].write || a->tensors[i].wanted != b->tensors[i].wanted)
            return false;
    for (size_t i = 0; i < g->action_count; i++)
        if (!same_action(&g->actions[i], &h->actions[i]))
            return false;
    return same_list(g->links, h->links, g->link_count) && same_list(g->results, h->results, g->result_count);
}
