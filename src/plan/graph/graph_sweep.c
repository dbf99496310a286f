/* The curve of a graph as the public calls know it. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "plan/chain/curve_knee.h"
#include "plan/graph/graph_plan_object.h"

struct remat_graph_sweep {
    remat_context *context;
    graph_plan_curve curve;
};

void remat_graph_sweep_destroy(remat_graph_sweep *sweep)
{
    if (!sweep)
        return;
    if (sweep->curve.context)
        graph_plan_curve_release(&sweep->curve);
    remat_release(sweep->context, sweep, 1, sizeof *sweep);
}

remat_status remat_graph_sweep_create(const remat_graph *graph, const remat_graph_plan_options *options,
                                      remat_graph_sweep **made)
{
    remat_graph_plan_options taken;
    graph_plan_options wanted;
    *made = NULL;
    REMAT_TRY(graph_plan_take_options(graph->context, options, &taken));
    remat_graph_sweep *sweep = remat_alloc_zeroed(graph->context, 1, sizeof *sweep);
    if (!sweep)
        return REMAT_NO_MEMORY;
    sweep->context = graph->context;
    graph_plan_options_init(&wanted);
    wanted.binds = GRAPH_EXACT;
    wanted.threads = taken.threads;
    remat_status status = graph_plan_curve_create(graph, &wanted, &sweep->curve);
    if (status == REMAT_OK)
        *made = sweep;
    else
        remat_graph_sweep_destroy(sweep);
    return status;
}

size_t remat_graph_sweep_count(const remat_graph_sweep *sweep)
{
    return sweep->curve.count;
}

remat_status remat_graph_sweep_get_point_sized(const remat_graph_sweep *sweep, size_t position,
                                               remat_graph_point *point, size_t point_size)
{
    if (position >= sweep->curve.count)
        return remat_fail(sweep->context, REMAT_INVALID, NULL, "the curve has %zu points; there is no point %zu",
                          sweep->curve.count, position);
    const graph_plan_point *from = &sweep->curve.points[position];
    const remat_graph_point found = {from->exact_peak_bytes, from->cost, from->arena_bytes, from->recomputed_actions};
    remat_struct_give(point, point_size, &found, sizeof found);
    return REMAT_OK;
}

static remat_sweep_point point_at(const void *points, size_t position)
{
    const graph_plan_point *point = (const graph_plan_point *)points + position;
    return (remat_sweep_point){point->exact_peak_bytes, point->cost};
}

size_t remat_graph_sweep_knee(const remat_graph_sweep *sweep)
{
    return curve_knee(point_at, sweep->curve.points, sweep->curve.count);
}

uint64_t remat_graph_sweep_base_cost(const remat_graph_sweep *sweep)
{
    return sweep->curve.base_cost;
}

uint64_t remat_graph_sweep_base_peak_bytes(const remat_graph_sweep *sweep)
{
    return sweep->curve.base_exact_peak_bytes;
}
