#include "base/alloc.h"
#include "base/error.h"
#include "plan/graph/graph_search.h"

enum { USUAL_POINTS = 64 };

void graph_plan_curve_release(graph_plan_curve *curve)
{
    remat_release(curve->context, curve->points, curve->capacity, sizeof *curve->points);
    *curve = (graph_plan_curve){0};
}

/* What the backward reads as the forward first made it, and what runs again. */
static remat_status look_at(const remat_graph *graph, const placed_graph *placed, graph_plan_point *point)
{
    bool *ran = remat_alloc_zeroed(graph->context, graph->action_count, sizeof *ran);
    if (!ran)
        return REMAT_NO_MEMORY;
    size_t turn = 0; /* where the backward begins */
    while (turn < placed->sequence.count && placed->sequence.actions[turn] < graph->backward_begin)
        turn++;
    for (size_t i = 0; i < placed->sequence.count; i++) {
        uint32_t action = placed->sequence.actions[i];
        point->recomputed_actions += ran[action];
        ran[action] = true;
    }
    for (size_t i = 0; i < placed->lives.life_count; i++) {
        const graph_life *life = &placed->lives.lives[i];
        if (life->tensor != GRAPH_NONE && life->born < turn && life->ends > turn)
            point->kept_bytes += graph->tensors[life->tensor].bytes;
    }
    remat_release(graph->context, ran, graph->action_count, sizeof *ran);
    return REMAT_OK;
}

static remat_status add_point(graph_search *search, size_t number, graph_plan_curve *curve)
{
    placed_graph placed;
    graph_plan_point point = {0};
    REMAT_TRY(graph_search_place(search, number, true, &placed));
    point.arena_bytes = placed.arena_bytes;
    point.peak_bytes = placed.lives.peak_bytes;
    point.cost = placed.lives.cost;
    remat_status status = look_at(search->graph, &placed, &point);
    placed_graph_release(&placed);
    REMAT_TRY(status);
    /* From the smallest peak on: a dearer point with no smaller an arena is of no use. */
    while (curve->count > 0 && curve->points[curve->count - 1].arena_bytes >= point.arena_bytes)
        curve->count--;
    REMAT_TRY(remat_grow(curve->context, (void **)&curve->points, &curve->capacity, curve->count + 1, sizeof point));
    curve->points[curve->count++] = point;
    return REMAT_OK;
}

static remat_status place_plain(const remat_graph *graph, graph_plan_curve *curve)
{
    graph_sequence sequence = {0};
    placed_graph placed;
    remat_status status = graph_sequence_plain(graph, &sequence);
    if (status != REMAT_OK) {
        graph_sequence_release(graph->context, &sequence);
        return status;
    }
    REMAT_TRY(graph_place(graph, &sequence, true, &placed));
    curve->base_arena_bytes = placed.arena_bytes;
    curve->base_cost = placed.lives.cost;
    placed_graph_release(&placed);
    return REMAT_OK;
}

remat_status graph_plan_curve_create(const remat_graph *graph, const graph_plan_options *options, size_t most_points,
                                     graph_plan_curve *curve)
{
    graph_search search;
    *curve = (graph_plan_curve){.context = graph->context};
    REMAT_TRY(place_plain(graph, curve));
    REMAT_TRY(graph_search_begin(graph, options, true, &search));
    size_t count = search.curve.count, most = most_points ? most_points : USUAL_POINTS;
    size_t taken = count < most ? count : most;
    remat_status status = REMAT_OK;
    for (size_t i = taken; status == REMAT_OK && i-- > 0;)
        status = add_point(&search, taken > 1 ? i * (count - 1) / (taken - 1) : 0, curve);
    graph_search_release(&search);
    if (status != REMAT_OK)
        graph_plan_curve_release(curve);
    return status;
}
