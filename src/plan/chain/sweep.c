#include <remat/sweep.h>

#include "base/alloc.h"
#include "base/options.h"
#include "plan/chain/curve_knee.h"
#include "plan/chain/exhaustive.h"
#include "plan/chain/optimal_solve.h"

#include <string.h>

struct remat_sweep {
    remat_context *context;
    const remat_profile *chain;
    remat_plan_options options;
    optimal_method method;
    remat_sweep_point *points;
    size_t count, capacity;
};

void remat_sweep_destroy(remat_sweep *sweep)
{
    if (!sweep)
        return;
    remat_release(sweep->context, sweep->points, sweep->capacity, sizeof *sweep->points);
    remat_release(sweep->context, sweep, 1, sizeof *sweep);
}

static remat_status add_point(remat_sweep *sweep, uint64_t peak, uint64_t cost)
{
    REMAT_TRY(
        remat_grow(sweep->context, (void **)&sweep->points, &sweep->capacity, sweep->count + 1, sizeof *sweep->points));
    sweep->points[sweep->count++] = (remat_sweep_point){peak, cost};
    return REMAT_OK;
}

/* The cheapest schedule within `budget` and its peak. */
static remat_status solve_once(const remat_sweep *sweep, uint64_t budget, bool *feasible, remat_sweep_point *point)
{
    plan_draft draft = {0};
    remat_figures figures = {0};
    remat_status status = exhaustive_solve(sweep->context, sweep->chain, budget, sweep->options.allow_lossy, &draft,
                                           feasible, &point->total_cost);
    if (status == REMAT_OK && *feasible)
        status = plan_draft_play(sweep->context, sweep->chain, &draft, &figures);
    point->peak_bytes = figures.peak_bytes;
    plan_draft_clear(sweep->context, sweep->chain->layer_count, &draft);
    return status;
}

/* From the cheapest plan down, each time one byte below the last peak. A schedule of the same cost with a smaller peak
 * takes the place of the one before. */
static remat_status sweep_exhaustive(remat_sweep *sweep)
{
    uint64_t budget = REMAT_NO_BUDGET;
    for (;;) {
        remat_sweep_point point;
        bool feasible;
        REMAT_TRY(solve_once(sweep, budget, &feasible, &point));
        if (!feasible)
            break;
        if (sweep->count == 0 || sweep->points[0].total_cost != point.total_cost) {
            REMAT_TRY(add_point(sweep, 0, 0));
            memmove(&sweep->points[1], &sweep->points[0], (sweep->count - 1) * sizeof point);
        }
        sweep->points[0] = point;
        if (point.peak_bytes == 0)
            break;
        budget = point.peak_bytes - 1;
    }
    return REMAT_OK;
}

static remat_status sweep_intervals(remat_sweep *sweep)
{
    optimal_solution *solution;
    optimal_options options = {sweep->options.allow_lossy, sweep->options.threads};
    REMAT_TRY(optimal_solve(sweep->context, sweep->chain, &options, &solution));
    remat_status status = REMAT_OK;
    for (size_t i = 0; status == REMAT_OK && i < optimal_curve_count(solution); i++) {
        uint64_t peak, cost;
        optimal_curve_point(solution, i, &peak, &cost);
        status = add_point(sweep, peak, cost);
    }
    optimal_solution_destroy(solution);
    return status;
}

remat_status remat_sweep_create(remat_context *context, const remat_profile *profile, const remat_plan_options *options,
                                remat_sweep **sweep)
{
    remat_sweep *made = *sweep = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    made->chain = profile;
    remat_plan_options_init(&made->options);
    remat_status status =
        remat_options_copy(context, &made->options, sizeof made->options, options, "remat_plan_options_init");
    made->options.strategy = "optimal";
    if (status == REMAT_OK)
        status = optimal_method_choose(context, profile, &made->options, &made->method);
    if (status == REMAT_OK)
        status = made->method == METHOD_EXHAUSTIVE ? sweep_exhaustive(made) : sweep_intervals(made);
    if (status == REMAT_OK)
        return REMAT_OK;
    remat_sweep_destroy(made);
    *sweep = NULL;
    return status;
}

size_t remat_sweep_count(const remat_sweep *sweep)
{
    return sweep->count;
}

static remat_status no_point(const remat_sweep *sweep, size_t position)
{
    return remat_fail(sweep->context, REMAT_INVALID, NULL, "the curve has %zu points; there is no point %zu",
                      sweep->count, position);
}

remat_status remat_sweep_get_point_sized(const remat_sweep *sweep, size_t position, remat_sweep_point *point,
                                         size_t point_size)
{
    if (position >= sweep->count)
        return no_point(sweep, position);
    remat_struct_give(point, point_size, &sweep->points[position], sizeof *sweep->points);
    return REMAT_OK;
}

const char *remat_sweep_method(const remat_sweep *sweep)
{
    return optimal_method_name(sweep->method);
}

static remat_sweep_point point_at(const void *sweep, size_t position)
{
    return ((const remat_sweep *)sweep)->points[position];
}

size_t remat_sweep_knee(const remat_sweep *sweep)
{
    return curve_knee(point_at, sweep, sweep->count);
}

remat_status remat_sweep_plan(const remat_sweep *sweep, size_t position, remat_plan **plan)
{
    *plan = NULL;
    if (position >= sweep->count)
        return no_point(sweep, position);
    remat_plan_options options = sweep->options;
    options.budget_bytes = sweep->points[position].peak_bytes;
    return remat_plan_create(sweep->context, sweep->chain, &options, plan);
}
