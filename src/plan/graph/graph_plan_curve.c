#include "base/alloc.h"
#include "base/error.h"
#include "plan/graph/graph_search.h"

void graph_plan_curve_release(graph_plan_curve *curve)
{
    remat_release(curve->context, curve->points, curve->capacity, sizeof *curve->points);
    *curve = (graph_plan_curve){0};
}

/* Runs besides the first of each action. A schedule may leave actions out, so it is not the difference of two counts. */
static remat_status count_repeats(const remat_graph *graph, const graph_sequence *sequence, uint64_t *repeats)
{
    bool *ran = remat_alloc_zeroed(graph->context, graph->action_count, sizeof *ran);
    if (!ran)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < sequence->count; i++) {
        *repeats += ran[sequence->actions[i]];
        ran[sequence->actions[i]] = true;
    }
    remat_release(graph->context, ran, graph->action_count, sizeof *ran);
    return REMAT_OK;
}

static uint64_t bound_bytes(const graph_plan_point *point, graph_counting binds)
{
    return binds == GRAPH_EXACT ? point->exact_peak_bytes : point->arena_bytes;
}

static remat_status add_point(graph_search *search, size_t number, graph_counting binds, graph_plan_curve *curve)
{
    placed_graph placed;
    graph_plan_point point = {0};
    REMAT_TRY(graph_search_place(search, number, &placed));
    point.arena_bytes = placed.arena_bytes;
    point.peak_bytes = placed.liveness.peak_bytes;
    point.cost = placed.liveness.cost;
    remat_status status = count_repeats(search->outline.graph, &placed.sequence, &point.recomputed_actions);
    if (status == REMAT_OK)
        status = graph_walk_peak(search->outline.graph, &placed.sequence, GRAPH_EXACT, &point.exact_peak_bytes);
    placed_graph_release(&placed);
    REMAT_TRY(status);
    /* From the smallest peak on: a dearer point that takes no less is of no use. */
    while (curve->count > 0 && bound_bytes(&curve->points[curve->count - 1], binds) >= bound_bytes(&point, binds))
        curve->count--;
    REMAT_TRY(remat_grow(curve->context, (void **)&curve->points, &curve->capacity, curve->count + 1, sizeof point));
    curve->points[curve->count++] = point;
    return REMAT_OK;
}

static remat_status add_points(graph_search *search, graph_counting binds, graph_plan_curve *curve)
{
    curve->base_arena_bytes = search->base_arena_bytes;
    curve->base_cost = search->base_cost;
    for (size_t i = search->curve.count; i-- > 0;)
        REMAT_TRY(add_point(search, i, binds, curve));
    return REMAT_OK;
}

remat_status graph_plan_curve_create(const remat_graph *graph, const graph_plan_options *options,
                                     graph_plan_curve *curve)
{
    graph_search search;
    graph_sequence plain = {0};
    hold_graph g;
    *curve = (graph_plan_curve){.context = graph->context};
    REMAT_TRY(hold_graph_create(graph, options->binds, &g));
    remat_status status = graph_search_begin(&g, options, true, &search);
    hold_graph_release(&g);
    REMAT_TRY(status);
    status = add_points(&search, options->binds, curve);
    if (status == REMAT_OK)
        status = graph_sequence_plain(graph, &plain);
    if (status == REMAT_OK)
        status = graph_walk_peak(graph, &plain, GRAPH_EXACT, &curve->base_exact_peak_bytes);
    graph_sequence_release(graph->context, &plain);
    graph_search_release(&search);
    if (status != REMAT_OK)
        graph_plan_curve_release(curve);
    return status;
}
