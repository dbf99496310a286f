#include "plan/graph/flight_search.h"

#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"

/* Gives all schedules of a curve to another one, which counts them in its own way. */
static remat_status give_points(const graph_curve *from, graph_curve *to)
{
    for (size_t i = 0; i < from->count; i++) {
        graph_sequence sequence;
        REMAT_TRY(graph_point_actions(from, &from->points[i], &sequence));
        remat_status status = graph_curve_offer(to, &sequence);
        graph_sequence_release(to->outline->graph->context, &sequence);
        REMAT_TRY(status);
    }
    return REMAT_OK;
}

static remat_status search_heavy(const remat_graph *heavy, const graph_plan_options *options, graph_curve *curve)
{
    graph_plan_options alone = *options;
    hold_graph g;
    graph_search search;
    alone.flight = (graph_flight){1, GRAPH_NONE};
    REMAT_TRY(hold_graph_create(heavy, options->binds, &g));
    remat_status status = graph_search_begin(&g, &alone, true, &search);
    if (status == REMAT_OK)
        status = give_points(&search.curve, curve);
    graph_search_release(&search);
    hold_graph_release(&g);
    return status;
}

/* With a workspace as large as the peak of everything kept, nothing but the turn makes the peak. */
remat_status flight_search_run(graph_search *search, const graph_plan_options *options)
{
    const remat_graph *graph = search->outline.graph;
    remat_graph heavy = *graph;
    const uint32_t turn = search->flight.turn;
    heavy.actions = remat_alloc(graph->context, graph->action_count, sizeof *heavy.actions);
    if (!heavy.actions)
        return REMAT_NO_MEMORY;
    memcpy(heavy.actions, graph->actions, graph->action_count * sizeof *heavy.actions);
    heavy.actions[turn].workspace_bytes =
        remat_add_saturated(heavy.actions[turn].workspace_bytes, search->base_run_peak_bytes);
    remat_status status = search_heavy(&heavy, options, &search->curve);
    remat_release(graph->context, heavy.actions, graph->action_count, sizeof *heavy.actions);
    return status;
}
