/* Many schedules of one graph, from everything kept to as little as can be: each a list of actions whose peak and cost
 * are known from a walk.
 *
 * They come from chains of pieces: the points of the optimal planner's curve; and from searches over the whole graph. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_CURVE_H
#define REMAT_PLAN_GRAPH_GRAPH_CURVE_H

#include "graph/graph_values.h"
#include "plan/graph/graph_pieces.h"
#include "plan/graph/graph_place.h"
#include "plan/graph/step_runs.h"

typedef struct graph_point {
    uint64_t peak_bytes, cost;  /* of the walk */
    const graph_pieces *pieces; /* whose steps made it, or NULL */
    step_runs steps;            /* with pieces */
    uint32_t *actions;          /* without */
    size_t action_count;
} graph_point;

/* Points in order of cost; with the same cost the lower peak comes first. None is beaten by another in both. */
typedef struct graph_curve {
    const graph_outline *outline;
    graph_point *points;
    size_t count, capacity;
    size_t most_actions;     /* longer schedules are left out */
    uint64_t margin;         /* a new point must be so many thousandths cheaper than what is there; 0 at first */
    graph_flight flight;     /* several runs: peaks count what the others keep */
    graph_walker walker;     /* of every schedule that is tried */
    graph_values values;     /* those that compute something else are left out */
    graph_sequence sequence; /* the one at hand */
} graph_curve;

/* `counting` is what peaks count. The outline must outlive the curve. */
remat_status graph_curve_begin(const graph_outline *outline, graph_counting counting, graph_curve *curve);
/* An empty curve is fine. */
void graph_curve_release(graph_curve *curve);

/* Adds the schedules of a chain of pieces, which must outlive the curve. */
remat_status graph_curve_add(graph_curve *curve, const graph_pieces *pieces, unsigned threads);

/* Adds one schedule, if it is worth keeping: steps of a chain of pieces; or, with NULL, the actions in curve.sequence. */
remat_status graph_curve_try(graph_curve *curve, const graph_pieces *pieces, const remat_step *steps, size_t count);

/* The same with actions that are somebody else's. */
remat_status graph_curve_offer(graph_curve *curve, const graph_sequence *sequence);

/* The steps of a point with pieces, and the actions of any point. The caller releases them: `steps` has
 * point->steps.step_count items. */
remat_status graph_point_steps(const graph_curve *curve, const graph_point *point, remat_step **steps);
remat_status graph_point_actions(const graph_curve *curve, const graph_point *point, graph_sequence *sequence);

/* Leaves at most so many of the points without pieces: the cheapest, the lowest, and others between. */
void graph_curve_thin(graph_curve *curve, size_t most);

/* The points without pieces get these: one piece, whose modes are their schedules, in order. */
remat_status graph_curve_give_pieces(graph_curve *curve, const graph_pieces *pieces);

#endif
