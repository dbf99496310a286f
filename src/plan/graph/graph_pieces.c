#include "base/alloc.h"
#include "base/error.h"
#include "plan/graph/graph_pieces_object.h"

void graph_pieces_destroy(graph_pieces *pieces)
{
    if (!pieces)
        return;
    remat_context *context = pieces->graph->context;
    remat_profile_destroy(pieces->profile);
    for (size_t i = 0; i < pieces->kind_count; i++) {
        graph_modes_release(&pieces->kinds[i].modes);
        graph_piece_release(&pieces->kinds[i].piece);
    }
    remat_release(context, pieces->kinds, pieces->kind_capacity, sizeof *pieces->kinds);
    remat_release(context, pieces->kind_of, pieces->cut.piece_count, sizeof *pieces->kind_of);
    remat_release(context, pieces->uses, pieces->graph->tensor_count, sizeof *pieces->uses);
    graph_gradients_release(context, &pieces->gradients);
    graph_cut_release(context, &pieces->cut);
    remat_release(context, pieces, 1, sizeof *pieces);
}

uint64_t graph_pieces_input_bytes(const graph_pieces *pieces, size_t piece)
{
    uint32_t tensor = pieces->cut.input[piece];
    return tensor == GRAPH_NONE ? 0 : pieces->graph->tensors[tensor].bytes;
}

/* Solves the piece, unless one like it was solved before. */
static remat_status add_piece(graph_pieces *pieces, size_t number, const graph_pieces_options *options)
{
    const remat_graph *graph = pieces->graph;
    REMAT_TRY(remat_grow(graph->context, (void **)&pieces->kinds, &pieces->kind_capacity, pieces->kind_count + 1,
                         sizeof *pieces->kinds));
    piece_kind *kind = &pieces->kinds[pieces->kind_count];
    REMAT_TRY(graph_piece_build(graph, &pieces->cut, pieces->uses, &pieces->gradients, number, &kind->piece));
    for (size_t i = 0; i < pieces->kind_count; i++) {
        if (graph_piece_same(&pieces->kinds[i].piece, &kind->piece)) {
            graph_piece_release(&kind->piece);
            pieces->kind_of[number] = (uint32_t)i;
            return REMAT_OK;
        }
    }
    remat_status status =
        graph_modes_find(&kind->piece, options->most_modes, pieces->cut.piece_count == 1, options->seeds, &kind->modes);
    if (status != REMAT_OK) {
        graph_piece_release(&kind->piece);
        return status;
    }
    pieces->kind_of[number] = (uint32_t)pieces->kind_count++;
    return REMAT_OK;
}

/* In the chain the gradient that passes has the bytes of the tensor that passes. What is above that is constant, and
 * only one gradient passes at a time. */
static void count_constant(graph_pieces *pieces)
{
    uint64_t most = 0;
    for (size_t i = 0; i + 1 < pieces->cut.piece_count; i++) {
        uint64_t passing = graph_gradients_passing_bytes(pieces->graph, &pieces->gradients, i);
        uint64_t counted = graph_pieces_input_bytes(pieces, i + 1);
        if (passing > counted && passing - counted > most)
            most = passing - counted;
    }
    for (size_t t = 0; pieces->cut.piece_count > 1 && t < pieces->graph->tensor_count;
         t++) /* data is the chain's input */
        most += pieces->uses[t].finished && !pieces->uses[t].loaded ? pieces->graph->tensors[t].bytes : 0;
    pieces->constant_bytes = pieces->gradients.constant_bytes + most;
}

static remat_status build(graph_pieces *pieces, const graph_pieces_options *options)
{
    const remat_graph *graph = pieces->graph;
    if (!pieces->uses)
        return REMAT_NO_MEMORY;
    REMAT_TRY(graph_find_uses(graph, pieces->uses));
    REMAT_TRY(graph_cut_find(graph, pieces->uses, options->whole, &pieces->cut));
    pieces->kind_of = remat_alloc_zeroed(graph->context, pieces->cut.piece_count, sizeof *pieces->kind_of);
    if (!pieces->kind_of)
        return REMAT_NO_MEMORY;
    REMAT_TRY(graph_gradients_find(graph, &pieces->cut, pieces->uses, &pieces->gradients));
    for (size_t i = 0; i < pieces->cut.piece_count; i++)
        REMAT_TRY(add_piece(pieces, i, options));
    count_constant(pieces);
    REMAT_TRY(remat_profile_create(graph->context, &pieces->profile));
    return graph_pieces_write_profile(pieces, options->most_modes, pieces->profile);
}

remat_status graph_pieces_create(const remat_graph *graph, const graph_pieces_options *options, graph_pieces **made)
{
    graph_pieces *pieces = *made = remat_alloc_zeroed(graph->context, 1, sizeof *pieces);
    if (!pieces)
        return REMAT_NO_MEMORY;
    pieces->graph = graph;
    pieces->uses = remat_alloc(graph->context, graph->tensor_count, sizeof *pieces->uses);
    remat_status status = build(pieces, options);
    if (status != REMAT_OK) {
        graph_pieces_destroy(pieces);
        *made = NULL;
    }
    return status;
}

const remat_profile *graph_pieces_profile(const graph_pieces *pieces)
{
    return pieces->profile;
}

remat_status graph_pieces_lean_profile(const graph_pieces *pieces, size_t most, remat_profile **profile)
{
    REMAT_TRY(remat_profile_create(pieces->graph->context, profile));
    remat_status status = graph_pieces_write_profile(pieces, most, *profile);
    if (status != REMAT_OK) {
        remat_profile_destroy(*profile);
        *profile = NULL;
    }
    return status;
}

uint64_t graph_pieces_constant_bytes(const graph_pieces *pieces)
{
    return pieces->constant_bytes;
}

size_t graph_pieces_count(const graph_pieces *pieces)
{
    return pieces->cut.piece_count;
}

size_t graph_pieces_kinds(const graph_pieces *pieces)
{
    return pieces->kind_count;
}

size_t graph_pieces_of_action(const graph_pieces *pieces, uint32_t action)
{
    const graph_cut *cut = &pieces->cut;
    size_t piece = 0;
    if (action < pieces->graph->backward_begin) {
        while (action >= cut->forward_begin[piece + 1])
            piece++;
    } else {
        while (action - pieces->graph->backward_begin < cut->backward_begin[piece + 1])
            piece++;
    }
    return piece;
}
