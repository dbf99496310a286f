#include "base/alloc.h"
#include "base/error.h"
#include "plan/graph/graph_piece.h"

void graph_gradients_release(remat_context *context, graph_gradients *gradients)
{
    remat_release(context, gradients->constant, gradients->tensor_count, sizeof *gradients->constant);
    remat_release(context, gradients->passing, gradients->passing_capacity, sizeof *gradients->passing);
    remat_release(context, gradients->passing_begin, gradients->piece_count + 1, sizeof *gradients->passing_begin);
    *gradients = (graph_gradients){0};
}

uint64_t graph_gradients_passing_bytes(const remat_graph *graph, const graph_gradients *gradients, size_t to_piece)
{
    uint64_t bytes = 0;
    for (size_t i = gradients->passing_begin[to_piece]; i < gradients->passing_begin[to_piece + 1]; i++)
        bytes += graph->tensors[gradients->passing[i]].bytes;
    return bytes;
}

/* Follows the gradients through the backward pass, piece by piece from the last to the first. */
typedef struct tracker {
    const remat_graph *graph;
    const graph_cut *cut;
    const tensor_use *uses;
    graph_gradients *gradients;
    uint32_t *touched; /* by tensor: the latest piece that wrote, read or updated it */
} tracker;

static remat_status note_need(tracker *to, uint32_t tensor, uint32_t piece)
{
    graph_gradients *gradients = to->gradients;
    uint32_t touched = to->touched[tensor];
    if (to->uses[tensor].maker != GRAPH_NONE || touched == piece)
        return REMAT_OK;
    to->touched[tensor] = piece;
    if (touched == GRAPH_NONE || touched > piece + 1) { /* lives through pieces that do not know it */
        gradients->constant[tensor] = true;
        return REMAT_OK;
    }
    REMAT_TRY(remat_grow(to->graph->context, (void **)&gradients->passing, &gradients->passing_capacity,
                         gradients->passing_count + 1, sizeof *gradients->passing));
    gradients->passing[gradients->passing_count++] = tensor;
    return REMAT_OK;
}

static remat_status track_piece(tracker *to, uint32_t piece)
{
    const remat_graph *graph = to->graph;
    for (size_t k = to->cut->backward_begin[piece + 1]; k < to->cut->backward_begin[piece]; k++) {
        const graph_action *action = &graph->actions[graph->backward_begin + k];
        for (size_t i = 0; i < action->read_count; i++)
            REMAT_TRY(note_need(to, graph_reads(graph, action)[i], piece));
        for (size_t i = 0; i < action->update_count; i++)
            REMAT_TRY(note_need(to, graph_updates(graph, action)[i], piece));
        for (size_t i = 0; i < action->write_count; i++)
            to->touched[graph_writes(graph, action)[i]] = piece;
    }
    return REMAT_OK;
}

/* The list was written from the last piece to the first: turned around, piece by piece, without the constant ones. */
static void order_passing(graph_gradients *gradients, size_t *counts)
{
    size_t kept = 0, at = 0;
    for (size_t piece = gradients->piece_count; piece-- > 0;) {
        size_t from = kept;
        for (size_t end = at + counts[piece]; at < end; at++)
            if (!gradients->constant[gradients->passing[at]])
                gradients->passing[kept++] = gradients->passing[at];
        counts[piece] = kept - from;
    }
    gradients->passing_count = kept;
    for (size_t i = 0; i < kept / 2; i++) {
        uint32_t tensor = gradients->passing[i];
        gradients->passing[i] = gradients->passing[kept - 1 - i];
        gradients->passing[kept - 1 - i] = tensor;
    }
    for (size_t piece = 0, begin = 0; piece <= gradients->piece_count; piece++) {
        size_t count = piece < gradients->piece_count ? counts[piece] : 0;
        gradients->passing_begin[piece] = begin;
        begin += count;
    }
}

static remat_status track(tracker *to, size_t *counts)
{
    graph_gradients *gradients = to->gradients;
    for (size_t t = 0; t < gradients->tensor_count; t++)
        to->touched[t] = GRAPH_NONE;
    for (size_t piece = gradients->piece_count; piece-- > 0;) {
        size_t before = gradients->passing_count;
        REMAT_TRY(track_piece(to, (uint32_t)piece));
        counts[piece] = gradients->passing_count - before;
    }
    order_passing(gradients, counts);
    for (size_t t = 0; t < gradients->tensor_count; t++)
        gradients->constant_bytes += gradients->constant[t] ? to->graph->tensors[t].bytes : 0;
    return REMAT_OK;
}

remat_status graph_gradients_find(const remat_graph *graph, const graph_cut *cut, const tensor_use *uses,
                                  graph_gradients *gradients)
{
    remat_context *context = graph->context;
    size_t tensors = graph->tensor_count, pieces = cut->piece_count;
    *gradients = (graph_gradients){.piece_count = pieces, .tensor_count = tensors};
    tracker to = {.graph = graph, .cut = cut, .uses = uses, .gradients = gradients};
    gradients->constant = remat_alloc_zeroed(context, tensors, sizeof *gradients->constant);
    gradients->passing_begin = remat_alloc_zeroed(context, pieces + 1, sizeof *gradients->passing_begin);
    to.touched = remat_alloc(context, tensors, sizeof *to.touched);
    size_t *counts = remat_alloc_zeroed(context, pieces, sizeof *counts);
    bool all = gradients->constant && gradients->passing_begin && to.touched && counts;
    remat_status status = all ? track(&to, counts) : REMAT_NO_MEMORY;
    remat_release(context, to.touched, tensors, sizeof *to.touched);
    remat_release(context, counts, pieces, sizeof *counts);
    if (status != REMAT_OK)
        graph_gradients_release(context, gradients);
    return status;
}
