/* A plan of a graph as the public calls know it. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_PLAN_OBJECT_H
#define REMAT_PLAN_GRAPH_GRAPH_PLAN_OBJECT_H

#include <remat/graph_plans.h>

#include "plan/graph/graph_plan_file.h"

struct remat_graph_plan {
    const remat_graph *graph;
    graph_plan *plan;
    char *strategy;
    uint64_t budget_bytes; /* REMAT_NO_BUDGET: none */
    uint64_t min_budget_bytes, lower_bound_cost;
    uint64_t *live_bytes; /* exact, by position; NULL where the plan is not feasible, like the places */
    size_t position_count;
    uint64_t peak_position;
    remat_graph_place *places;
    size_t place_count;
};

remat_status graph_plan_take_options(remat_context *context, const remat_graph_plan_options *options,
                                     remat_graph_plan_options *taken);

#endif
