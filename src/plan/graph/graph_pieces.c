#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "plan/chain/lower_bound.h"
#include "plan/chain/plan_object.h"
#include "plan/graph/graph_pieces.h"

/* Modes and cuts make the planner slow, the more so the longer the chain. These take some tenths of a second at most, and
 * on transformers finer ones bring less than a percent. The longest chains are solved coarsely: their tables would take
 * more memory than the training does. */
static const chain_effort efforts[] = {
    {1, 63, {0, 0, 0, 0}},     {8, 16, {0, 1024, 4096, 0}}, {16, 12, {0, 1024, 4096, 0}},
    {28, 4, {16, 32, 400, 0}}, {60, 3, {16, 32, 400, 0}},   {120, 3, {8, 16, 200, 0}},
    {400, 2, {8, 16, 200, 0}}, {2500, 1, {6, 12, 200, 0}},  {SIZE_MAX, 1, {6, 12, 64, 0}},
};

void graph_pieces_destroy(graph_pieces *pieces)
{
    if (!pieces)
        return;
    remat_context *context = pieces->outline->graph->context;
    remat_profile_destroy(pieces->profile);
    for (size_t i = 0; i < pieces->kind_count; i++) {
        graph_modes_release(&pieces->kinds[i].modes);
        graph_piece_release(&pieces->kinds[i].piece);
    }
    remat_release(context, pieces->kinds, pieces->kind_capacity, sizeof *pieces->kinds);
    remat_release(context, pieces->kind_of, pieces->cut.piece_count, sizeof *pieces->kind_of);
    graph_gradients_release(context, &pieces->gradients);
    graph_cut_release(context, &pieces->cut);
    remat_release(context, pieces, 1, sizeof *pieces);
}

/* Solves the piece, unless one like it was solved before. */
static remat_status add_piece(graph_pieces *pieces, uint32_t number, const graph_pieces_options *options,
                              uint32_t *room)
{
    REMAT_TRY(remat_grow(pieces->outline->graph->context, (void **)&pieces->kinds, &pieces->kind_capacity,
                         pieces->kind_count + 1, sizeof *pieces->kinds));
    piece_kind *kind = &pieces->kinds[pieces->kind_count];
    REMAT_TRY(graph_piece_build(pieces->outline, &pieces->cut, &pieces->gradients, number, room, &kind->piece));
    for (size_t i = 0; i < pieces->kind_count; i++) {
        if (graph_piece_same(&pieces->kinds[i].piece, &kind->piece)) {
            graph_piece_release(&kind->piece);
            pieces->kind_of[number] = (uint32_t)i;
            return REMAT_OK;
        }
    }
    remat_status status =
        options->schedules
            ? graph_modes_take(&kind->piece, options->schedules, options->schedule_count, &kind->modes)
            : graph_modes_find(&kind->piece, pieces->effort->modes, pieces->cut.piece_count == 1, &kind->modes);
    if (status != REMAT_OK) {
        graph_piece_release(&kind->piece);
        return status;
    }
    pieces->kind_of[number] = (uint32_t)pieces->kind_count++;
    return REMAT_OK;
}

static remat_status add_pieces(graph_pieces *pieces, const graph_pieces_options *options)
{
    const remat_graph *graph = pieces->outline->graph;
    size_t size = graph_piece_room(graph);
    uint32_t *room = remat_alloc(graph->context, size, sizeof *room);
    remat_status status = room ? REMAT_OK : REMAT_NO_MEMORY;
    for (size_t t = 0; room && t < graph->tensor_count; t++)
        room[t] = GRAPH_NONE;
    for (uint32_t i = 0; status == REMAT_OK && i < pieces->cut.piece_count; i++)
        status = add_piece(pieces, i, options, room);
    remat_release(graph->context, room, size, sizeof *room);
    return status;
}

/* In the chain the gradient that passes has the bytes of the tensor that passes. What is above that is constant, and
 * only one gradient passes at a time. */
static void count_constant(graph_pieces *pieces)
{
    const graph_outline *outline = pieces->outline;
    uint64_t most = 0;
    for (size_t i = 0; i + 1 < pieces->cut.piece_count; i++) {
        uint64_t passing = pieces->gradients.passing_bytes[i],
                 counted = graph_cut_input_bytes(&pieces->cut, outline->graph, i + 1);
        most = remat_max(most, passing > counted ? passing - counted : 0);
    }
    for (size_t t = 0; pieces->cut.piece_count > 1 && t < outline->graph->tensor_count; t++) {
        const tensor_use *use = &outline->uses[t];
        if (use->is_result && use->maker != GRAPH_NONE && !use->made_once) /* what is made once is the chain's input */
            most += graph_placed_bytes(outline->graph->tensors[t].bytes);
    }
    pieces->constant_bytes = pieces->gradients.constant_bytes + most;
}

static remat_status build(graph_pieces *pieces, const graph_pieces_options *options)
{
    remat_context *context = pieces->outline->graph->context;
    REMAT_TRY(graph_cut_find(pieces->outline, options->schedules != NULL, &pieces->cut));
    for (pieces->effort = efforts; pieces->cut.piece_count > pieces->effort->pieces; pieces->effort++)
        continue;
    pieces->kind_of = remat_alloc_zeroed(context, pieces->cut.piece_count, sizeof *pieces->kind_of);
    if (!pieces->kind_of)
        return REMAT_NO_MEMORY;
    REMAT_TRY(graph_gradients_find(pieces->outline, &pieces->cut, &pieces->gradients));
    REMAT_TRY(add_pieces(pieces, options));
    count_constant(pieces);
    return graph_pieces_make_profile(pieces);
}

remat_status graph_pieces_create(const graph_outline *outline, const graph_pieces_options *options, graph_pieces **made)
{
    graph_pieces *pieces = *made = remat_alloc_zeroed(outline->graph->context, 1, sizeof *pieces);
    if (!pieces)
        return REMAT_NO_MEMORY;
    pieces->outline = outline;
    pieces->hints = options->hints;
    remat_status status = build(pieces, options);
    if (status != REMAT_OK) {
        graph_pieces_destroy(pieces);
        *made = NULL;
    }
    return status;
}

/* ---- a plan of the chain ---- */

static remat_status fill_plan(remat_plan *plan, const remat_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        REMAT_TRY(plan_draft_add_step(plan->context, &plan->draft, steps[i]));
    REMAT_TRY(plan_object_replay_base(plan));
    REMAT_TRY(plan_object_replay(plan));
    plan->figures.min_budget_bytes = plan->figures.schedule.peak_bytes;
    plan->figures.feasible = true;
    plan_object_explain(plan);
    return lower_bound_cost(plan->context, plan->chain, REMAT_NO_BUDGET, UINT64_MAX, &plan->figures.lower_bound_cost);
}

remat_status graph_pieces_plan(const graph_pieces *pieces, const char *strategy, const remat_step *steps, size_t count,
                               remat_plan **plan)
{
    REMAT_TRY(plan_object_create(pieces->outline->graph->context, pieces->profile, strategy, plan));
    remat_status status = fill_plan(*plan, steps, count);
    if (status != REMAT_OK) {
        remat_plan_destroy(*plan);
        *plan = NULL;
    }
    return status;
}
