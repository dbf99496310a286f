#include "plan/chain/optimal_solve.h"

#include "base/alloc.h"
#include "plan/chain/optimal_table.h"

#include <string.h>

/* The bitmap of intervals takes n^2/10 bytes, and longer chains minutes. */
enum { MOST_LAYERS = 50000 };

/* Below what the staircases reach, this many budgets are tried down to the least. */
enum { GUIDED_BUDGETS = 8 };

/* Chains of more layers than the first number get a second table for budgets up to FINE_REACH times the least: there
 * more cuts and finer staircases bring up to some percent, and are affordable. */
enum { FINE_FROM_LAYERS = 100, FINE_TO_LAYERS = 400, FINE_NEAR = 16, FINE_REACH = 2, FINE_CORNERS = 16 };
enum { FINE_SUFFIX_CORNERS = 300 };

typedef struct curve_point {
    uint64_t peak, cost;
    size_t table; /* which one it comes from */
} curve_point;

struct optimal_solution {
    remat_context *context;
    optimal_model models[2];
    optimal_table tables[2]; /* of all budgets, and of small ones */
    size_t table_count;
    least_memory least;
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

static remat_status solve_table(optimal_solution *solution, const remat_profile *chain, const optimal_options *options,
                                bool tight, table_options how)
{
    size_t t = solution->table_count;
    how.threads = options->threads;
    REMAT_TRY(optimal_model_build(solution->context, chain, options->allow_lossy, tight, &solution->models[t]));
    REMAT_TRY(optimal_table_solve(solution->context, &solution->models[t], &how, &solution->tables[t]));
    solution->table_count++;
    staircase curve = optimal_table_curve(&solution->tables[t]);
    for (uint32_t k = 0; k < curve.count; k++)
        REMAT_TRY(add_point(solution, (curve_point){curve.memory[k] + chain->input_bytes, curve.cost[k], t}));
    return REMAT_OK;
}

static remat_status ignore_step(void *user, remat_step step)
{
    (void)user;
    (void)step;
    return REMAT_OK;
}

/* The sparse cuts do not reach the least budget: from there up to the first corner, plans that the least memories
 * guide. */
static remat_status add_guided(optimal_solution *solution, uint64_t least)
{
    size_t table = solution->table_count - 1; /* the finest at this end */
    uint64_t end = solution->count ? solution->points[0].peak : least + 1;
    uint64_t stride = end > least ? (end - least + GUIDED_BUDGETS - 1) / GUIDED_BUDGETS : 1;
    for (uint64_t budget = least; budget < end; budget += stride) {
        uint64_t cost;
        REMAT_TRY(optimal_table_plan(solution->context, &solution->tables[table], &solution->least, budget, ignore_step,
                                     NULL, &cost));
        if (cost < COST_LIMIT)
            REMAT_TRY(add_point(solution, (curve_point){budget, cost, table}));
    }
    return REMAT_OK;
}

/* Of all points those that are cheaper than everything with less memory. */
static void keep_falling(optimal_solution *solution)
{
    size_t kept = 0;
    for (size_t k = 0; k < solution->count; k++)
        if (kept == 0 || solution->points[k].cost < solution->points[kept - 1].cost)
            solution->points[kept++] = solution->points[k];
    solution->count = kept;
}

static remat_status solve(optimal_solution *solution, const remat_profile *chain, const optimal_options *options)
{
    size_t n = chain->layer_count;
    if (n > MOST_LAYERS)
        return remat_fail(solution->context, REMAT_INVALID, NULL,
                          "%zu layers are too many for the optimal planner, which takes up to %d; the strategy budget "
                          "takes any number",
                          n, MOST_LAYERS);
    if (n == 0)
        return add_point(solution, (curve_point){.peak = chain->input_bytes});
    REMAT_TRY(solve_table(solution, chain, options, false, (table_options){0}));
    const optimal_model *model = &solution->models[0];
    if (n > FINE_FROM_LAYERS && least_memory_applies(model)) { /* else all cuts were tried, or would take too long */
        REMAT_TRY(least_memory_build(solution->context, model, &solution->least));
        solution->has_least = true;
        uint64_t least = solution->least.loss[0] + chain->input_bytes;
        table_options fine = {FINE_REACH * least, FINE_NEAR, FINE_CORNERS, FINE_SUFFIX_CORNERS, 0};
        if (n <= FINE_TO_LAYERS && model->mode_limit == 1)
            REMAT_TRY(solve_table(solution, chain, options, true, fine));
        REMAT_TRY(add_guided(solution, least));
    }
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
    for (size_t t = 0; t < 2; t++) {
        optimal_table_free(solution->context, &solution->tables[t]);
        optimal_model_free(solution->context, &solution->models[t]);
    }
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
    *peak_bytes = solution->points[i].peak;
    *cost = solution->points[i].cost;
}

bool optimal_is_exact(const optimal_solution *solution)
{
    const optimal_table *table = &solution->tables[0];
    size_t n = solution->models[0].n;
    return n == 0 || (!table->thinned && !table->prunes && !solution->models[0].modes_left_out);
}

remat_status optimal_walk(const optimal_solution *solution, size_t point, remat_step_fn visit, void *user)
{
    if (solution->table_count == 0)
        return REMAT_OK;
    const curve_point *at = &solution->points[point];
    return optimal_table_plan(solution->context, &solution->tables[at->table],
                              solution->has_least ? &solution->least : NULL, at->peak, visit, user, NULL);
}
