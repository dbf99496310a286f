/* Remat: plans of graphs.
 *
 * A plan of a graph is a schedule, i.e. a list of actions, some of which run more than once so that fewer tensors are
 * live at the same time. The plan also has a place in one arena for each instance of a tensor.
 *
 *     remat_graph_plan_options options;
 *     remat_graph_plan_options_init(&options);
 *     options.budget_bytes = 1 << 20;
 *     remat_graph_plan *plan;
 *     remat_status status = remat_graph_plan_create(graph, &options, &plan);
 *
 * A budget limits the peak of docs/memory-model.md ("Graphs"), given tensors included. A larger budget never costs
 * more.
 *
 * Threads: objects of the same context may be used by one thread at a time. */
#ifndef REMAT_GRAPH_PLANS_H
#define REMAT_GRAPH_PLANS_H

#include <remat/graph.h>
#include <remat/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- making a plan ---- */

typedef struct remat_graph_plan_options {
    size_t struct_size;
    /* NULL: `optimal` with a budget, `none` without one. Other strategies decide for the pieces of the graph, which is
     * cut where a single tensor passes. */
    const char *strategy;
    uint64_t budget_bytes; /* for the peak. REMAT_NO_BUDGET: no limit */
    unsigned threads;      /* 0: all cores. The plan does not depend on it */
} remat_graph_plan_options;
void remat_graph_plan_options_init_sized(remat_graph_plan_options *options, size_t size);
static inline void remat_graph_plan_options_init(remat_graph_plan_options *options)
{
    remat_graph_plan_options_init_sized(options, sizeof *options);
}

typedef struct remat_graph_plan remat_graph_plan;

/* Makes a plan. The graph must outlive the plan and must not change. `options` NULL: the defaults.
 *   REMAT_INFEASIBLE    no schedule that was found fits the budget. *plan is still set, to a plan without a schedule. Its
 *                       figures say which budget would be enough, and below which no schedule exists.
 *   REMAT_CHECK_FAILED  the order of the graph is not a legal schedule;
 *   REMAT_BAD_INPUT     a strategy of chains was asked for, and the graph is none: running an action again could change what a
 *                       tensor holds, because another action writes or updates that tensor too; or its schedule would run
 *                       an action again behind one that has changed what it reads;
 *   REMAT_INVALID       an option, or a strategy of chains and sums that reach 2^61; REMAT_NO_MEMORY. *plan is NULL. */
remat_status remat_graph_plan_create(const remat_graph *graph, const remat_graph_plan_options *options,
                                     remat_graph_plan **plan);
void remat_graph_plan_destroy(remat_graph_plan *plan);

/* ---- what a plan says ---- */

typedef struct remat_graph_plan_figures {
    bool feasible;
    bool has_budget;
    uint64_t budget_bytes;           /* if has_budget */
    uint64_t actions;                /* of the schedule; this and the next four are 0 if not feasible */
    uint64_t peak_bytes;             /* the most that is live at once; given tensors count */
    uint64_t peak_position;          /* the first position that reaches it */
    uint64_t total_cost;             /* of the schedule */
    uint64_t arena_bytes;            /* what the places need; given tensors have none */
    uint64_t base_cost;              /* with everything kept */
    uint64_t base_peak_bytes;        /* with everything kept */
    uint64_t lower_bound_cost;       /* proven: no legal schedule within the budget is cheaper */
    uint64_t min_budget_bytes;       /* the smallest budget for which a schedule was found */
    uint64_t min_budget_bound_bytes; /* proven: no legal schedule has a smaller peak */
} remat_graph_plan_figures;
void remat_graph_plan_get_figures_sized(const remat_graph_plan *plan, remat_graph_plan_figures *figures,
                                        size_t figures_size);
static inline void remat_graph_plan_get_figures(const remat_graph_plan *plan, remat_graph_plan_figures *figures)
{
    remat_graph_plan_get_figures_sized(plan, figures, sizeof *figures);
}

/* The strategy, or "file" for a plan that was read. */
const char *remat_graph_plan_strategy(const remat_graph_plan *plan);
/* Why the plan saves no memory, or why the budget is too small. "" if neither is the case. */
const char *remat_graph_plan_remark(const remat_graph_plan *plan);

/* The schedule: numbers of actions. It belongs to the plan. *count is 0 if the plan is not feasible. */
const uint32_t *remat_graph_plan_schedule(const remat_graph_plan *plan, size_t *count);

/* How often an action runs. 0 for an action that the schedule leaves out or that does not exist. */
uint32_t remat_graph_plan_runs(const remat_graph_plan *plan, uint32_t action);

/* The bytes that are live at each position of the schedule; given tensors count. The list belongs to the plan. */
const uint64_t *remat_graph_plan_live_bytes(const remat_graph_plan *plan, size_t *count);

/* The place of an instance of a tensor, or of the workspace of an action, in the arena. It is live at the positions
 * from `born` to `ends` - 1. Instances of 0 bytes and given tensors have no place. */
typedef struct remat_graph_place {
    uint32_t tensor; /* REMAT_NO_TENSOR: a workspace */
    uint64_t born, ends;
    uint64_t offset, bytes; /* bytes are rounded up to 64 */
    uint64_t buffer;        /* a write in place, and what it replaced, have the same number */
} remat_graph_place;
size_t remat_graph_plan_place_count(const remat_graph_plan *plan);
/* The places in order of `born`. REMAT_INVALID: there is no such position. */
remat_status remat_graph_plan_get_place_sized(const remat_graph_plan *plan, size_t position, remat_graph_place *place,
                                              size_t place_size);
static inline remat_status remat_graph_plan_get_place(const remat_graph_plan *plan, size_t position,
                                                      remat_graph_place *place)
{
    return remat_graph_plan_get_place_sized(plan, position, place, sizeof *place);
}

/* ---- files ---- */

/* Writes a plan as JSON (docs/formats.md, "Graph plan"). `with_schedule` false: the figures only. `save` replaces the
 * file only when everything was written. REMAT_IO. */
remat_status remat_graph_plan_write(const remat_graph_plan *plan, FILE *stream, bool with_schedule);
remat_status remat_graph_plan_save(const remat_graph_plan *plan, const char *path);

/* Reads a plan for `graph`, from any program, and checks it as remat_graph_plan_check does. `name` stands for the
 * stream in messages. lower_bound_cost, min_budget_bytes and its bound are as the file states them. If the file has no
 * places, they are computed. The caller destroys the plan; the graph must outlive it. Errors are those of
 * remat_graph_plan_check. */
remat_status remat_graph_plan_load(const remat_graph *graph, const char *path, remat_graph_plan **plan);
remat_status remat_graph_plan_read(const remat_graph *graph, FILE *stream, const char *name, remat_graph_plan **plan);

/* ---- the curve ---- */

/* The curve of cost over memory. For the budget peak_bytes of a point, remat_graph_plan_create makes the plan of this
 * point or a cheaper one. Point 0 has the smallest peak, the last point the lowest cost. */
typedef struct remat_graph_sweep remat_graph_sweep;
typedef struct remat_graph_point {
    uint64_t peak_bytes, total_cost;
    uint64_t arena_bytes;
    uint64_t recomputed; /* runs of actions besides the first of each */
} remat_graph_point;

/* Finds the curve. Of the options only `threads` is used. The errors are those of remat_graph_plan_create. */
remat_status remat_graph_sweep_create(const remat_graph *graph, const remat_graph_plan_options *options,
                                      remat_graph_sweep **sweep);
void remat_graph_sweep_destroy(remat_graph_sweep *sweep);
size_t remat_graph_sweep_count(const remat_graph_sweep *sweep);
/* REMAT_INVALID past the end. */
remat_status remat_graph_sweep_get_point_sized(const remat_graph_sweep *sweep, size_t position,
                                               remat_graph_point *point, size_t point_size);
static inline remat_status remat_graph_sweep_get_point(const remat_graph_sweep *sweep, size_t position,
                                                       remat_graph_point *point)
{
    return remat_graph_sweep_get_point_sized(sweep, position, point, sizeof *point);
}
/* The point where the curve bends most. */
size_t remat_graph_sweep_knee(const remat_graph_sweep *sweep);
/* Cost and peak with everything kept. */
uint64_t remat_graph_sweep_base_cost(const remat_graph_sweep *sweep);
uint64_t remat_graph_sweep_base_peak_bytes(const remat_graph_sweep *sweep);

#ifdef __cplusplus
}
#endif
#endif
