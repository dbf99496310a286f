/* Questions before training: the plan, and the curve of time over memory. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "base/output.h"
#include "base/output_file.h"
#include "plan/chain/curve_knee.h"
#include "plan/chain/plan_object.h"
#include "data/data.h"
#include "train/trainer_object.h"

const remat_profile *remat_trainer_chain(const remat_trainer *trainer)
{
    return trainer->plan->pieces ? trainer->plan->pieces->profile : NULL;
}

const remat_plan *remat_trainer_plan(const remat_trainer *trainer)
{
    return trainer->plan->chain_plan;
}

uint32_t remat_trainer_forwards(const remat_trainer *trainer, size_t layer)
{
    uint32_t action = layer < trainer->network->layer_count ? trainer->program->forwards[layer] : GRAPH_NONE;
    return action == GRAPH_NONE ? 0 : trainer->plan->runs[action];
}

/* ---- the plan as a file ---- */

typedef struct plan_file {
    const remat_trainer *trainer;
    bool with_schedule;
} plan_file;

static remat_status write_plan(const void *user, FILE *stream)
{
    const plan_file *file = user;
    const remat_trainer *trainer = file->trainer;
    uint64_t arena = trainer_arena_bytes(trainer);
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    plan_placement placement = {
        .arena_bytes = arena,
        .total_bytes = figures.total_bytes,
        .total_budget_bytes = figures.budget_bytes,
        .min_total_budget_bytes = figures.min_budget_bytes,
        .keep_all_total_bytes = figures.total_bytes - figures.arena_bytes + figures.keep_all_arena_bytes,
        .model_layers = figures.layers,
        .recomputed_model_layers = figures.recomputed_layers,
    };
    if (!trainer->plan->chain_plan)
        return remat_fail(
            trainer->context, REMAT_INVALID, NULL,
            trainer->options.graph_plan_path
                ? "a plan of the graph decides, and it is no plan of a chain; a strategy gives one"
                : "the blocks of the model decide, and they are no plan of a chain; a strategy gives one");
    REMAT_TRY(plan_object_find_bounds(trainer->plan->chain_plan, &placement.chain_min_budget_bytes,
                                      &placement.chain_lower_bound_cost));
    return plan_write_placed(trainer->plan->chain_plan, &placement, stream, file->with_schedule);
}

remat_status remat_trainer_write_plan(const remat_trainer *trainer, FILE *stream, bool with_schedule)
{
    const plan_file file = {trainer, with_schedule};
    return write_plan(&file, stream);
}

remat_status remat_trainer_save_plan(const remat_trainer *trainer, const char *path)
{
    const plan_file file = {trainer, true};
    return output_save(trainer->context, path, write_plan, &file);
}

/* ---- the curve ---- */

static remat_status take_points(remat_trainer *trainer, const graph_plan_curve *curve)
{
    remat_train_point *points = remat_alloc(trainer->context, curve->count, sizeof *points);
    if (!points)
        return REMAT_NO_MEMORY;
    uint64_t fixed = trainer_fixed_bytes(trainer), evaluation = trainer->evaluation_plan.arena_bytes;
    size_t first = 0; /* no arena is smaller than the evaluation's: of the points below, the cheapest is left */
    while (first + 1 < curve->count && curve->points[first + 1].arena_bytes <= evaluation)
        first++;
    for (size_t i = first; i < curve->count; i++) {
        const graph_plan_point *point = &curve->points[i];
        uint64_t arena = point->arena_bytes > evaluation ? point->arena_bytes : evaluation;
        points[i - first] = (remat_train_point){fixed + arena, arena, point->cost * trainer->settings.accumulate,
                                                point->recomputed_actions};
    }
    remat_release(trainer->context, trainer->points, trainer->point_capacity, sizeof *points);
    trainer->points = points;
    trainer->point_capacity = curve->count;
    trainer->point_count = curve->count - first;
    return REMAT_OK;
}

remat_status remat_trainer_find_curve(remat_trainer *trainer, size_t *count)
{
    graph_plan_options options;
    graph_plan_options_init(&options);
    options.hints = trainer->program->hints;
    options.threads = trainer->options.threads;
    options.flight = trainer_flight(trainer);
    graph_plan_curve curve;
    REMAT_TRY(graph_plan_curve_create(trainer->program->graph, &options, &curve));
    remat_status status = take_points(trainer, &curve);
    graph_plan_curve_release(&curve);
    *count = trainer->point_count;
    return status;
}

remat_status remat_trainer_get_point_sized(const remat_trainer *trainer, size_t position, remat_train_point *point,
                                           size_t point_size)
{
    if (position >= trainer->point_count)
        return remat_fail(trainer->context, REMAT_INVALID, NULL, "the curve has %zu points; there is no point %zu",
                          trainer->point_count, position);
    remat_struct_give(point, point_size, &trainer->points[position], sizeof *trainer->points);
    return REMAT_OK;
}

static remat_sweep_point point_at(const void *points, size_t position)
{
    const remat_train_point *point = (const remat_train_point *)points + position;
    return (remat_sweep_point){point->total_bytes, point->cost};
}

size_t remat_trainer_knee(const remat_trainer *trainer)
{
    return curve_knee(point_at, trainer->points, trainer->point_count);
}
