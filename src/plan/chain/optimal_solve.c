#include "plan/chain/optimal_solve.h"

#include <remat/sweep.h>

#include "base/alloc.h"
#include "plan/chain/optimal_table.h"

/* The bitmap of intervals takes n^2/10 bytes, and longer chains minutes. */
enum { MOST_LAYERS = 50000 };

/* Below what the staircases reach, this many budgets are tried down to the least. */
enum { GUIDED_BUDGETS = 8 };

struct optimal_solution {
    remat_context *context;
    optimal_model model;
    optimal_table table;
    least_memory least; /* where has_least */
    bool has_least;
    remat_sweep_point *points;
    size_t count, capacity;
};

/* Peaks rise; a point that is no cheaper than the one before it is not part of the curve. */
static remat_status add_point(optimal_solution *solution, uint64_t peak, uint64_t cost)
{
    if (solution->count > 0 && cost >= solution->points[solution->count - 1].total_cost)
        return REMAT_OK;
    void *points = solution->points;
    REMAT_TRY(
        remat_grow(solution->context, &points, &solution->capacity, solution->count + 1, sizeof *solution->points));
    solution->points = points;
    solution->points[solution->count++] = (remat_sweep_point){peak, cost};
    return REMAT_OK;
}

static remat_status walk(const optimal_solution *solution, uint64_t budget, remat_step_fn visit, void *user,
                         uint64_t *cost)
{
    return optimal_table_plan(solution->context, &solution->table, solution->has_least ? &solution->least : NULL,
                              budget, visit, user, cost);
}

static remat_status ignore_step(void *user, remat_step step)
{
    (void)user;
    (void)step;
    return REMAT_OK;
}

/* Where not all cuts were tried, the staircases do not reach the least budget: from there up to their first corner, at
 * `end`, plans that the least memories guide. */
static remat_status add_guided(optimal_solution *solution, uint64_t end)
{
    REMAT_TRY(least_memory_build(solution->context, &solution->model, &solution->least));
    solution->has_least = true;
    uint64_t least = solution->least.loss[0] + solution->model.chain->input_bytes, cost;
    uint64_t stride = end > least ? (end - least + GUIDED_BUDGETS - 1) / GUIDED_BUDGETS : 1;
    for (uint64_t budget = least; budget < end; budget += stride) {
        REMAT_TRY(walk(solution, budget, ignore_step, NULL, &cost));
        if (cost < COST_LIMIT)
            REMAT_TRY(add_point(solution, budget, cost));
    }
    return REMAT_OK;
}

static remat_status solve(optimal_solution *solution, const remat_profile *chain, const optimal_options *options)
{
    optimal_model *model = &solution->model;
    size_t n = chain->layer_count;
    if (n > MOST_LAYERS)
        return remat_fail(solution->context, REMAT_INVALID, NULL,
                          "%zu layers are too many for the optimal planner, which takes up to %d; the strategy budget "
                          "takes any number",
                          n, MOST_LAYERS);
    if (n == 0)
        return add_point(solution, chain->input_bytes, 0);
    REMAT_TRY(optimal_model_build(solution->context, chain, options->allow_lossy, model));
    REMAT_TRY(
        optimal_table_solve(solution->context, model, &(table_options){.threads = options->threads}, &solution->table));
    staircase curve = optimal_table_curve(&solution->table);
    uint64_t end = curve.count ? curve.memory[0] + chain->input_bytes : chain->most_bytes;
    if (n > solution->table.intervals.near && n <= LEAST_MEMORY_LAYERS)
        REMAT_TRY(add_guided(solution, end));
    for (uint32_t k = 0; k < curve.count; k++)
        REMAT_TRY(add_point(solution, curve.memory[k] + chain->input_bytes, curve.cost[k]));
    return solution->count > 0
               ? REMAT_OK
               : remat_fail(solution->context, REMAT_INTERNAL, NULL, "the optimal planner found no plan");
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
    optimal_table_free(solution->context, &solution->table);
    optimal_model_free(solution->context, &solution->model);
    least_memory_free(solution->context, &solution->least);
    remat_release(solution->context, solution->points, solution->capacity, sizeof *solution->points);
    remat_release(solution->context, solution, 1, sizeof *solution);
}

size_t optimal_curve_count(const optimal_solution *solution)
{
    return solution->count;
}

void optimal_curve_point(const optimal_solution *solution, size_t i, uint64_t *peak_bytes, uint64_t *cost)
{
    *peak_bytes = solution->points[i].peak_bytes;
    *cost = solution->points[i].total_cost;
}

bool optimal_is_exact(const optimal_solution *solution)
{
    return !solution->table.thinned && !solution->table.prunes && !solution->model.modes_left_out;
}

remat_status optimal_walk(const optimal_solution *solution, size_t point, remat_step_fn visit, void *user)
{
    return solution->model.n ? walk(solution, solution->points[point].peak_bytes, visit, user, NULL) : REMAT_OK;
}
