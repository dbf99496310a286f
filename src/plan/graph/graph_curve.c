#include "plan/graph/graph_curve.h"

#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/min_max.h"
#include "base/search.h"

/* A schedule may have this many times the actions of the plain one: beyond it nobody wants to wait. */
enum { LONGEST = 8 };

remat_status graph_curve_begin(const graph_outline *outline, graph_counting counting, graph_curve *curve)
{
    *curve = (graph_curve){.outline = outline, .most_actions = LONGEST * outline->graph->action_count + 64};
    REMAT_TRY(graph_values_create(outline->graph, &curve->values));
    return graph_walker_create(outline->graph, counting, &curve->walker);
}

static void release_point(remat_context *context, graph_point *point)
{
    step_runs_release(context, &point->steps);
    remat_release(context, point->actions, point->action_count, sizeof *point->actions);
}

void graph_curve_release(graph_curve *curve)
{
    if (!curve->outline)
        return;
    remat_context *context = curve->outline->graph->context;
    for (size_t i = 0; i < curve->count; i++)
        release_point(context, &curve->points[i]);
    remat_release(context, curve->points, curve->capacity, sizeof *curve->points);
    graph_walker_release(&curve->walker);
    graph_values_release(&curve->values);
    graph_sequence_release(context, &curve->sequence);
    *curve = (graph_curve){0};
}

/* ---- the points ---- */

/* What is at hand becomes the point's own: the steps of its pieces, or the actions of the sequence. */
static remat_status take_schedule(const graph_curve *curve, const remat_step *steps, size_t count, graph_point *point)
{
    remat_context *context = curve->outline->graph->context;
    const graph_sequence *sequence = &curve->sequence;
    if (point->pieces)
        return step_runs_make(context, steps, count, &point->steps);
    point->actions = remat_alloc(context, sequence->count, sizeof *point->actions);
    if (!point->actions)
        return REMAT_NO_MEMORY;
    point->action_count = sequence->count;
    if (sequence->count)
        memcpy(point->actions, sequence->actions, sequence->count * sizeof *point->actions);
    return REMAT_OK;
}

/* Adds the point with the schedule at hand, unless the curve has one as good. */
static remat_status insert(graph_curve *curve, graph_point point, const remat_step *steps, size_t count)
{
    remat_context *context = curve->outline->graph->context;
    graph_point *points = curve->points;
    /* Peaks fall along the curve: the first point within a peak is the cheapest there. */
    size_t end = REMAT_FIRST(i, 0, curve->count, points[i].peak_bytes <= point.peak_bytes);
    if (end < curve->count && point.cost >= points[end].cost - points[end].cost / 1000 * curve->margin)
        return REMAT_OK;
    REMAT_TRY(remat_grow(context, (void **)&curve->points, &curve->capacity, curve->count + 1, sizeof *points));
    points = curve->points;
    REMAT_TRY(take_schedule(curve, steps, count, &point));
    /* Beaten are those before it that are not cheaper, and one behind it with the same peak. */
    size_t at = end;
    while (at > 0 && points[at - 1].cost >= point.cost)
        at--;
    end += end < curve->count && points[end].peak_bytes == point.peak_bytes;
    for (size_t i = at; i < end; i++)
        release_point(context, &points[i]);
    memmove(&points[at + 1], &points[end], (curve->count - end) * sizeof point);
    points[at] = point;
    curve->count += 1 - (end - at);
    return REMAT_OK;
}

static remat_status walk(graph_walker *walker, const uint32_t *actions, size_t count)
{
    graph_walker_start(walker);
    REMAT_TRY(graph_walker_run(walker, actions, count));
    return graph_walker_finish(walker);
}

/* The arena takes less than 2^63 bytes in all, also of tensors that do not live at the same time. */
static bool has_places(const graph_liveness *found)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < found->range_count; i++)
        if (!remat_add(&sum, graph_placed_bytes(found->ranges[i].bytes)))
            return false;
    return true;
}

remat_status graph_curve_try(graph_curve *curve, const graph_pieces *pieces, const remat_step *steps, size_t count)
{
    const graph_sequence *sequence = &curve->sequence;
    graph_stale_read first;
    if (pieces)
        REMAT_TRY(graph_pieces_expand_steps(pieces, steps, count, &curve->sequence));
    if (sequence->count > curve->most_actions || !graph_values_agree(&curve->values, sequence, &first))
        return REMAT_OK;
    const remat_status status = walk(&curve->walker, sequence->actions, sequence->count);
    if (status == REMAT_INVALID || (status == REMAT_OK && !has_places(&curve->walker.found)))
        return REMAT_OK; /* its sums pass 2^63 */
    REMAT_TRY(status);
    graph_point point = {
        .peak_bytes = curve->walker.found.peak_bytes, .cost = curve->walker.found.cost, .pieces = pieces};
    if (curve->flight.count > 1)
        point.peak_bytes +=
            graph_flight_others(curve->flight, graph_flight_kept(&curve->walker.found, sequence, curve->flight.turn));
    return insert(curve, point, steps, count);
}

remat_status graph_curve_offer(graph_curve *curve, const graph_sequence *sequence)
{
    const size_t count = sequence->count;
    REMAT_TRY(remat_grow(curve->outline->graph->context, (void **)&curve->sequence.actions, &curve->sequence.capacity,
                         count, sizeof *sequence->actions));
    if (count)
        memcpy(curve->sequence.actions, sequence->actions, count * sizeof *sequence->actions);
    curve->sequence.count = count;
    return graph_curve_try(curve, NULL, NULL, 0);
}

remat_status graph_point_steps(const graph_curve *curve, const graph_point *point, remat_step **steps)
{
    *steps = remat_alloc(curve->outline->graph->context, point->steps.step_count, sizeof **steps);
    if (!*steps)
        return REMAT_NO_MEMORY;
    step_runs_read(&point->steps, *steps);
    return REMAT_OK;
}

remat_status graph_point_actions(const graph_curve *curve, const graph_point *point, graph_sequence *sequence)
{
    remat_context *context = curve->outline->graph->context;
    remat_step *steps;
    *sequence = (graph_sequence){0};
    if (!point->pieces) {
        REMAT_TRY(remat_grow(context, (void **)&sequence->actions, &sequence->capacity, point->action_count,
                             sizeof *sequence->actions));
        if (point->action_count)
            memcpy(sequence->actions, point->actions, point->action_count * sizeof *sequence->actions);
        sequence->count = point->action_count;
        return REMAT_OK;
    }
    REMAT_TRY(graph_point_steps(curve, point, &steps));
    remat_status status = graph_pieces_expand_steps(point->pieces, steps, point->steps.step_count, sequence);
    remat_release(context, steps, point->steps.step_count, sizeof *steps);
    if (status != REMAT_OK)
        graph_sequence_release(context, sequence);
    return status;
}

void graph_curve_thin(graph_curve *curve, size_t most)
{
    remat_context *context = curve->outline->graph->context;
    size_t whole = 0, seen = 0, kept = 0, taken = 0;
    for (size_t i = 0; i < curve->count; i++)
        whole += !curve->points[i].pieces;
    for (size_t i = 0; whole > most && i < curve->count; i++) {
        graph_point *point = &curve->points[i];
        bool stays = point->pieces || seen == taken * (whole - 1) / (most - 1);
        if (!point->pieces) {
            seen++;
            taken += stays;
        }
        if (stays)
            curve->points[kept++] = *point;
        else
            release_point(context, point);
    }
    curve->count = whole > most ? kept : curve->count;
}

remat_status graph_curve_give_pieces(graph_curve *curve, const graph_pieces *pieces)
{
    remat_context *context = curve->outline->graph->context;
    uint16_t mode = 1; /* 0 is `keep` */
    for (size_t i = 0; i < curve->count; i++) {
        graph_point *point = &curve->points[i];
        if (point->pieces)
            continue;
        const remat_step steps[] = {
            {0, mode++, REMAT_FORWARD}, {0, REMAT_NO_SAVE, REMAT_LOSS}, {0, REMAT_NO_SAVE, REMAT_BACKWARD}};
        REMAT_TRY(step_runs_make(context, steps, 3, &point->steps));
        remat_release(context, point->actions, point->action_count, sizeof *point->actions);
        point->actions = NULL;
        point->action_count = 0;
        point->pieces = pieces;
    }
    return REMAT_OK;
}

/* ---- the points of the optimal planner ---- */

enum { MOST_POINTS = 160 };

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
    size_t taken = remat_min(curve.count, MOST_POINTS);
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

static remat_status add_optimal(graph_curve *curve, const graph_pieces *pieces, unsigned threads)
{
    remat_context *context = curve->outline->graph->context;
    table_options options = pieces->effort->table;
    options.threads = threads;
    /* each step is at least one action, or a drop of what a step made */
    solver s = {.curve = curve, .pieces = pieces, .most = 4 * curve->most_actions};
    REMAT_TRY(optimal_model_build(context, pieces->profile, false, &s.model));
    remat_status status = optimal_table_solve(context, &s.model, &options, &s.table);
    if (status == REMAT_OK) {
        status = add_points(&s);
        optimal_table_free(context, &s.table);
    }
    optimal_model_free(context, &s.model);
    remat_release(context, s.steps, s.capacity, sizeof *s.steps);
    return status;
}

/* ---- all together ---- */

remat_status graph_curve_add(graph_curve *curve, const graph_pieces *pieces, unsigned threads)
{
    size_t count = pieces->cut.piece_count;
    if (count == 0)
        return graph_curve_try(curve, pieces, NULL, 0);
    for (uint16_t mode = 0; count == 1 && mode < pieces->kinds[0].modes.count; mode++) {
        const remat_step steps[] = {
            {0, mode, REMAT_FORWARD}, {0, REMAT_NO_SAVE, REMAT_LOSS}, {0, REMAT_NO_SAVE, REMAT_BACKWARD}};
        REMAT_TRY(graph_curve_try(curve, pieces, steps, 3));
    }
    return count == 1 ? REMAT_OK : add_optimal(curve, pieces, threads);
}
