#include "base/alloc.h"
#include "base/error.h"
#include "plan/graph/graph_curve.h"
#include "plan/chain/optimal_table.h"

enum { MOST_POINTS = 160 };

/* How finely a chain of up to so many pieces is solved: with how many modes a piece, and as in optimal_table.h. Modes
 * and cuts make the planner slow, the more so the longer the chain; these take some tenths of a second at most, and on
 * transformers finer ones bring less than a percent. */
static const struct effort {
    size_t pieces, modes, near, corners, suffix_corners;
} efforts[] = {
    {8, 16, 0, 0, 0},     {16, 12, 0, 0, 0},    {28, 4, 16, 32, 400},      {60, 3, 16, 32, 400},
    {120, 3, 8, 16, 200}, {400, 2, 8, 16, 200}, {SIZE_MAX, 1, 6, 12, 200},
};

typedef struct solver {
    graph_curve *curve;
    const graph_pieces *pieces;
    optimal_model model;
    optimal_table table;
    remat_step *steps; /* of the point at hand */
    size_t count, capacity, most;
} solver;

/* Stops with REMAT_INFEASIBLE where the schedule gets too long. */
static remat_status add_step(void *user, remat_step step)
{
    solver *s = user;
    if (s->count >= s->most)
        return REMAT_INFEASIBLE;
    REMAT_TRY(
        remat_grow(s->curve->outline->graph->context, (void **)&s->steps, &s->capacity, s->count + 1, sizeof step));
    s->steps[s->count++] = step;
    return REMAT_OK;
}

static remat_status add_points(solver *s)
{
    staircase curve = optimal_table_curve(&s->table);
    size_t taken = curve.count < MOST_POINTS ? curve.count : MOST_POINTS;
    for (size_t i = 0; i < taken; i++) {
        size_t point = taken > 1 ? i * (curve.count - 1) / (taken - 1) : 0;
        s->count = 0;
        remat_status status = optimal_table_plan(s->curve->outline->graph->context, &s->table, NULL,
                                                 curve.memory[point] + s->model.chain->input_bytes, add_step, s, NULL);
        if (status == REMAT_INFEASIBLE)
            continue;
        REMAT_TRY(status);
        REMAT_TRY(graph_curve_try(s->curve, s->pieces, s->steps, s->count));
    }
    return REMAT_OK;
}

static remat_status solve(solver *s, const remat_profile *lean, const struct effort *effort, unsigned threads)
{
    remat_context *context = s->curve->outline->graph->context;
    REMAT_TRY(optimal_model_build(context, lean, false, &s->model));
    table_options options = {
        .near = effort->near,
        .corners = effort->corners,
        .suffix_corners = effort->suffix_corners,
        .threads = threads,
    };
    remat_status status = optimal_table_solve(context, &s->model, &options, &s->table);
    if (status == REMAT_OK) {
        status = add_points(s);
        optimal_table_free(context, &s->table);
    }
    optimal_model_free(context, &s->model);
    return status;
}

remat_status graph_curve_add_optimal(graph_curve *curve, const graph_pieces *pieces, unsigned threads)
{
    const struct effort *effort = efforts;
    while (graph_pieces_count(pieces) > effort->pieces)
        effort++;
    /* each step is at least one action, or a drop of what a step made */
    solver s = {.curve = curve, .pieces = pieces, .most = 4 * curve->most_actions};
    remat_profile *lean;
    REMAT_TRY(graph_pieces_lean_profile(pieces, effort->modes, &lean));
    remat_status status = solve(&s, lean, effort, threads);
    remat_release(curve->outline->graph->context, s.steps, s.capacity, sizeof *s.steps);
    remat_profile_destroy(lean);
    return status;
}
