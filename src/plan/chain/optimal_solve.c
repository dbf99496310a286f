#include "plan/chain/optimal_solve.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "plan/chain/optimal_table.h"

#include <string.h>

/* The bitmap of intervals takes n^2/10 bytes, and longer chains minutes. */
enum { MOST_LAYERS = 50000 };

/* Below what the staircases reach, this many budgets are tried down to the least. */
enum { GUIDED_BUDGETS = 8 };

/* Chains of more layers than the first number get a second table for budgets up to FINE_REACH times the least: there
 * more cuts and finer staircases bring up to one percent, and are affordable. */
enum { FINE_FROM_LAYERS = 100, FINE_NEAR = 16, FINE_REACH = 2, FINE_CORNERS = 16, FINE_SUFFIX_CORNERS = 300 };
enum { FINE_SHORT_LAYERS = 400 }; /* longer ones get three quarters of the corners */

typedef struct curve_point {
    uint64_t peak, cost;
    uint64_t budget; /* what the walk is given; the peak may be less */
    size_t table;    /* which one it comes from */
} curve_point;

struct optimal_solution {
    remat_context *context;
    optimal_model model, tight_model; /* for the two tables */
    optimal_table tables[2];          /* of all budgets, and of small ones */
    size_t table_count;
    optimal_least least;
    bool has_least;
    curve_point *points;
    size_t count, capacity;
};

static bool point_before(const curve_point *a, const curve_point *b)
{
    return a->peak != b->peak ? a->peak < b->peak : a->cost < b->cost;
}

/* Adds a point behind all that belong before it or with it: curves come in order, so that this is mostly the end. */
static remat_status add_point(optimal_solution *solution, curve_point point)
{
    void *points = solution->points;
    REMAT_TRY(remat_grow(solution->context, &points, &solution->capacity, solution->count + 1, sizeof point));
    solution->points = points;
    size_t at = solution->count++;
    while (at > 0 && point_before(&point, &solution->points[at - 1]))
        at--;
    memmove(&solution->points[at + 1], &solution->points[at], (solution->count - 1 - at) * sizeof point);
    solution->points[at] = point;
    return REMAT_OK;
}

static remat_status add_curve(optimal_solution *solution, size_t table)
{
    staircase curve = optimal_table_curve(&solution->tables[table]);
    for (uint32_t k = 0; k < curve.count; k++) {
        uint64_t peak = curve.memory[k] + solution->model.x[0];
        REMAT_TRY(add_point(solution, (curve_point){peak, curve.cost[k], peak, table}));
    }
    return REMAT_OK;
}

/* ---- plans below the staircases ---- */

typedef struct cost_watch {
    remat_simulator *simulator;
    const remat_profile *chain;
    uint64_t cost, flops; /* of forwards */
    bool too_dear;
} cost_watch;

static remat_status replay_step(void *user, remat_step step)
{
    cost_watch *watch = user;
    if (step.op == REMAT_FORWARD) {
        const remat_layer *layer = &watch->chain->layers[step.layer];
        uint16_t mode = step.save == REMAT_NO_SAVE ? REMAT_KEEP : step.save;
        watch->too_dear = !remat_add(&watch->cost, layer->modes[mode].forward_cost) || watch->cost >= COST_LIMIT ||
                          !remat_add(&watch->flops, layer->recompute_flops);
    }
    return watch->too_dear ? REMAT_INFEASIBLE : remat_simulator_step(watch->simulator, step);
}

static const optimal_least *least_of(const optimal_solution *solution)
{
    return solution->has_least ? &solution->least : NULL;
}

/* What the plan for a budget really comes to; REMAT_INFEASIBLE where so much is recomputed that figures reach 2^62. */
static remat_status replay(const optimal_solution *solution, size_t table, uint64_t budget, remat_figures *figures)
{
    cost_watch watch = {.chain = solution->model.chain};
    REMAT_TRY(remat_simulator_create(solution->context, watch.chain, &watch.simulator));
    remat_status status = optimal_table_plan(solution->context, &solution->tables[table], least_of(solution), budget,
                                             replay_step, &watch);
    if (status == REMAT_OK)
        status = remat_simulator_finish(watch.simulator, figures);
    remat_simulator_destroy(watch.simulator);
    return status;
}

/* The sparse cuts do not reach the least budget: from there up to the first corner, plans that the least memories
 * guide. */
static remat_status add_guided(optimal_solution *solution)
{
    size_t table = solution->table_count - 1; /* the finest at this end */
    staircase curve = optimal_table_curve(&solution->tables[table]);
    uint64_t least = optimal_least_budget(&solution->least);
    uint64_t end = curve.count ? curve.memory[0] + solution->model.x[0] : least + 1;
    uint64_t stride = end > least ? (end - least + GUIDED_BUDGETS - 1) / GUIDED_BUDGETS : 1;
    for (uint64_t budget = least; budget < end; budget += stride) {
        remat_figures figures;
        remat_status status = replay(solution, table, budget, &figures);
        if (status == REMAT_INFEASIBLE)
            continue;
        REMAT_TRY(status);
        REMAT_TRY(add_point(solution, (curve_point){figures.peak_bytes, figures.total_cost, budget, table}));
    }
    return REMAT_OK;
}

/* ---- the curve ---- */

/* Of all points those that are cheaper than everything with less memory. */
static void keep_falling(optimal_solution *solution)
{
    size_t kept = 0;
    for (size_t k = 0; k < solution->count; k++)
        if (kept == 0 || solution->points[k].cost < solution->points[kept - 1].cost)
            solution->points[kept++] = solution->points[k];
    solution->count = kept;
}

static remat_status solve_table(optimal_solution *solution, const optimal_model *model, const table_options *how)
{
    REMAT_TRY(optimal_table_solve(solution->context, model, how, &solution->tables[solution->table_count]));
    solution->table_count++;
    return REMAT_OK;
}

static remat_status solve_fine_table(optimal_solution *solution, const optimal_options *options)
{
    uint64_t least = optimal_least_budget(&solution->least), most = solution->model.keep_all_peak;
    return solve_table(solution, &solution->tight_model,
                       &(table_options){
                           .budget = least < most / FINE_REACH ? FINE_REACH * least : most,
                           .near = FINE_NEAR,
                           .corners = solution->model.n <= FINE_SHORT_LAYERS ? FINE_CORNERS : FINE_CORNERS * 3 / 4,
                           .suffix_corners = FINE_SUFFIX_CORNERS,
                           .threads = options->threads,
                       });
}

static remat_status solve_tables(optimal_solution *solution, const optimal_options *options)
{
    const optimal_model *model = &solution->model;
    bool fine = model->n > FINE_FROM_LAYERS && model->mode_limit == 1;
    table_options whole = {.budget = model->keep_all_peak, .threads = options->threads};
    REMAT_TRY(solve_table(solution, model, &whole));
    if (model->n <= FINE_FROM_LAYERS || !optimal_least_applies(model))
        return REMAT_OK; /* all cuts were tried: the curve begins at the least budget */
    if (fine)
        REMAT_TRY(
            optimal_model_build(solution->context, model->chain, options->allow_lossy, true, &solution->tight_model));
    REMAT_TRY(optimal_least_build(solution->context, fine ? &solution->tight_model : model, &solution->least));
    solution->has_least = true;
    return fine ? solve_fine_table(solution, options) : REMAT_OK;
}

static remat_status solve(optimal_solution *solution, const remat_profile *chain, const optimal_options *options)
{
    if (chain->layer_count > MOST_LAYERS)
        return remat_fail(solution->context, REMAT_INVALID, NULL,
                          "%zu layers are too many for the optimal planner, which takes up to %d; the strategy budget "
                          "takes any number",
                          chain->layer_count, MOST_LAYERS);
    REMAT_TRY(optimal_model_build(solution->context, chain, options->allow_lossy, false, &solution->model));
    if (chain->layer_count == 0)
        return add_point(solution, (curve_point){.peak = chain->input_bytes});
    REMAT_TRY(solve_tables(solution, options));
    for (size_t table = 0; table < solution->table_count; table++)
        REMAT_TRY(add_curve(solution, table));
    if (solution->has_least)
        REMAT_TRY(add_guided(solution));
    if (solution->count == 0)
        return remat_fail(solution->context, REMAT_INTERNAL, NULL, "the optimal planner found no plan at all");
    keep_falling(solution);
    return REMAT_OK;
}

remat_status optimal_solve(remat_context *context, const remat_profile *chain, const optimal_options *options,
                           optimal_solution **solution)
{
    optimal_solution *made = *solution = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    remat_status status = solve(made, chain, options);
    if (status != REMAT_OK) {
        optimal_solution_destroy(made);
        *solution = NULL;
    }
    return status;
}

void optimal_solution_destroy(optimal_solution *solution)
{
    if (!solution)
        return;
    for (size_t table = 0; table < solution->table_count; table++)
        optimal_table_free(solution->context, &solution->tables[table]);
    optimal_least_free(solution->context, &solution->least);
    optimal_model_free(solution->context, &solution->model);
    optimal_model_free(solution->context, &solution->tight_model);
    remat_release(solution->context, solution->points, solution->capacity, sizeof *solution->points);
    remat_release(solution->context, solution, 1, sizeof *solution);
}

size_t optimal_curve_count(const optimal_solution *solution)
{
    return solution->count;
}

void optimal_curve_point(const optimal_solution *solution, size_t i, uint64_t *peak_bytes, uint64_t *cost)
{
    *peak_bytes = solution->points[i].peak;
    *cost = solution->points[i].cost;
}

bool optimal_is_exact(const optimal_solution *solution)
{
    const optimal_table *table = &solution->tables[0];
    if (solution->model.n == 0)
        return true;
    return !table->thinned && !optimal_table_prunes(&solution->model) && table->intervals.near >= solution->model.n &&
           !solution->model.modes_left_out;
}

remat_status optimal_walk(const optimal_solution *solution, size_t point, remat_step_fn visit, void *user)
{
    if (solution->model.n == 0)
        return REMAT_OK;
    const curve_point *at = &solution->points[point];
    return optimal_table_plan(solution->context, &solution->tables[at->table], least_of(solution), at->budget, visit,
                              user);
}
