/* From a graph and a budget to a schedule with every byte in its place: what the executor runs.
 *
 * The budget binds what the caller runs in. For the executor that is the arena: of all schedules that the planner knows
 * (graph_curve.h), the plan is the cheapest whose arena fits. For graphs in files it is the exact peak of
 * docs/memory-model.md. Which arena and peak a schedule has does not depend on the budget, so that more budget is never
 * slower. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_PLAN_H
#define REMAT_PLAN_GRAPH_GRAPH_PLAN_H

#include "plan/graph/graph_pieces.h"
#include "plan/graph/graph_place.h"

typedef struct graph_plan_options {
    uint64_t budget_bytes;  /* REMAT_NO_BUDGET: none */
    graph_counting binds;   /* what the budget limits. GRAPH_PLACED (default): the arena; GRAPH_EXACT: the exact peak */
    const char *strategy;   /* applied to the chain of pieces; NULL or "optimal": the cheapest that fits */
    const char *plan_path;  /* a plan file of the chain of pieces: it is the plan */
    const uint32_t *blocks; /* by action: its block, or GRAPH_NONE; declared by the user, or NULL. Without strategy and
                                budget they are the plan; with a budget they are one of the schedules to choose from */
    const graph_hint *hints; /* by action, or NULL */
    unsigned threads;        /* 0: all there are; the plan is the same with any number */
    bool describes_least;    /* also find least_cost and least_peak_action */
    uint64_t floor_bytes;    /* for these: a budget below this is this, for the arena takes it in any case */
    graph_flight flight;     /* several runs under way: the arena is that of all of them */
    unsigned effort;         /* of the search over the whole graph, in thousandths of the usual; 0: the usual */
    bool chain_only;         /* leave that search out: the schedules of the chain of pieces are found in milliseconds */
} graph_plan_options;
void graph_plan_options_init(graph_plan_options *options);

/* Bytes are as they are placed: rounded up to 64, without given tensors; those called exact are counted by GRAPH_EXACT. */
typedef struct graph_plan {
    const remat_graph *graph;
    bool feasible;
    graph_sequence sequence;
    graph_liveness liveness;
    uint64_t *offsets; /* of liveness.buffers */
    uint64_t arena_bytes, peak_bytes, cost;
    uint64_t kept_bytes;                                   /* as in placed_graph */
    uint64_t base_arena_bytes, base_peak_bytes, base_cost; /* everything kept */
    uint64_t exact_peak_bytes, exact_base_peak_bytes;
    uint64_t min_budget_bytes;  /* the smallest found of what binds; of a fixed strategy, blocks or a file: its own */
    uint64_t least_bound_bytes; /* proven: no schedule has less of what binds */
    uint64_t lower_bound_cost;  /* proven: no schedule within the budget costs less */
    uint32_t peak_action;       /* that makes the peak (where not feasible: of the smallest arena); GRAPH_NONE */
    uint64_t least_cost;        /* of the plan within min_budget_bytes, if it was asked for and is not fixed; 0 */
    uint32_t least_peak_action; /* that makes its peak; GRAPH_NONE */
    uint32_t *runs;             /* by action: how often it runs */
    const graph_pieces *pieces; /* the chain that chain_plan belongs to */
    remat_plan *chain_plan;     /* NULL: blocks */
    char remark[512];           /* why nothing was saved, or what was not needed; "" */
    struct graph_search *search;
} graph_plan;

/* Plans. The graph and the hints must outlive the plan. REMAT_INFEASIBLE: nothing fits the budget; *plan is set then too,
 * without a schedule: min_budget_bytes and peak_action say what would do and what needs it. On any other failure *plan
 * is NULL. */
remat_status graph_plan_create(const remat_graph *graph, const graph_plan_options *options, graph_plan **plan);
void graph_plan_destroy(graph_plan *plan);

/* The whole curve: from the smallest of what binds to the cheapest schedule. What binds rises, costs fall. */
typedef struct graph_plan_point {
    uint64_t arena_bytes, peak_bytes, exact_peak_bytes, cost;
    uint64_t recomputed_actions; /* actions that run again, each run counted */
} graph_plan_point;
typedef struct graph_plan_curve {
    remat_context *context;
    graph_plan_point *points;
    size_t count, capacity;
    uint64_t base_arena_bytes, base_exact_peak_bytes, base_cost;
} graph_plan_curve;
/* Of the options it uses what binds, blocks, hints and threads. */
remat_status graph_plan_curve_create(const remat_graph *graph, const graph_plan_options *options,
                                     graph_plan_curve *curve);
void graph_plan_curve_release(graph_plan_curve *curve);

#endif
