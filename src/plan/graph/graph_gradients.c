#include "base/alloc.h"
#include "base/error.h"
#include "plan/graph/graph_piece.h"

void graph_gradients_release(remat_context *context, graph_gradients *gradients)
{
    remat_release(context, gradients->spans, gradients->tensor_count, sizeof *gradients->spans);
    remat_release(context, gradients->passing_bytes, gradients->piece_count, sizeof *gradients->passing_bytes);
    *gradients = (graph_gradients){0};
}

static void note_need(gradient_span *span, uint32_t piece)
{
    span->constant |= span->to == GRAPH_NONE || span->to > piece + 1; /* it lives through pieces that do not know it */
    span->to = piece;
}

static void note_write(gradient_span *span, uint32_t piece)
{
    span->constant |= span->from != GRAPH_NONE && span->from != piece; /* made twice: better safe */
    span->from = span->from == GRAPH_NONE ? piece : span->from;
    span->to = piece;
}

/* Follows the gradients through the backward pass, from the last piece to the first. */
static void find_spans(const graph_outline *outline, const graph_cut *cut, gradient_span *spans)
{
    const remat_graph *graph = outline->graph;
    for (size_t t = 0; t < graph->tensor_count; t++)
        spans[t] = (gradient_span){GRAPH_NONE, GRAPH_NONE, false};
    for (uint32_t piece = (uint32_t)cut->piece_count; piece-- > 0;)
        for (uint32_t k = cut->begins[piece + 1].backward; k < cut->begins[piece].backward; k++) {
            const graph_action *action = &graph->actions[outline->forward_count + k];
            const uint32_t *needs = graph_reads(graph, action), *writes = graph_writes(graph, action);
            for (size_t i = 0; i < graph_need_count(action); i++)
                if (outline->uses[needs[i]].maker == GRAPH_NONE && !graph->tensors[needs[i]].given)
                    note_need(&spans[needs[i]], piece);
            for (size_t i = 0; i < action->write_count; i++)
                note_write(&spans[writes[i]], piece);
        }
    for (size_t i = 0; i < graph->result_count && cut->piece_count > 1; i++)
        spans[graph->results[i]].constant |= outline->uses[graph->results[i]].maker == GRAPH_NONE;
}

remat_status graph_gradients_find(const graph_outline *outline, const graph_cut *cut, graph_gradients *gradients)
{
    const remat_graph *graph = outline->graph;
    *gradients = (graph_gradients){.piece_count = cut->piece_count, .tensor_count = graph->tensor_count};
    gradients->spans = remat_alloc(graph->context, graph->tensor_count, sizeof *gradients->spans);
    gradients->passing_bytes = remat_alloc_zeroed(graph->context, cut->piece_count, sizeof *gradients->passing_bytes);
    if (!gradients->spans || !gradients->passing_bytes) {
        graph_gradients_release(graph->context, gradients);
        return REMAT_NO_MEMORY;
    }
    find_spans(outline, cut, gradients->spans);
    for (size_t t = 0; t < graph->tensor_count; t++) {
        const gradient_span *span = &gradients->spans[t];
        uint64_t bytes = graph_placed_bytes(graph->tensors[t].bytes);
        gradients->constant_bytes += span->constant ? bytes : 0;
        for (uint32_t piece = span->to; !span->constant && span->from != GRAPH_NONE && piece < span->from; piece++)
            gradients->passing_bytes[piece] += bytes;
    }
    return REMAT_OK;
}
