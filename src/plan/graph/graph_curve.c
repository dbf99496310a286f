#include "plan/graph/graph_curve.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "plan/graph/graph_pieces_object.h"

/* A schedule may have this many times the actions of the plain one: beyond it nobody wants to wait. */
enum { LONGEST = 8 };

remat_status graph_curve_begin(const graph_outline *outline, graph_curve *curve)
{
    *curve = (graph_curve){.outline = outline, .most_actions = LONGEST * outline->graph->action_count + 64};
    return graph_walker_create(outline->graph, GRAPH_PLACED, &curve->walker);
}

static void release_point(remat_context *context, graph_point *point)
{
    remat_release(context, point->steps, point->count, sizeof *point->steps);
    remat_release(context, point->actions, point->count, sizeof *point->actions);
}

void graph_curve_release(graph_curve *curve)
{
    remat_context *context = curve->outline->graph->context;
    for (size_t i = 0; i < curve->count; i++)
        release_point(context, &curve->points[i]);
    remat_release(context, curve->points, curve->capacity, sizeof *curve->points);
    graph_walker_release(&curve->walker);
    graph_sequence_release(context, &curve->sequence);
    *curve = (graph_curve){.outline = curve->outline};
}

remat_status graph_point_expand(const graph_curve *curve, const graph_point *point, graph_sequence *sequence)
{
    if (point->pieces)
        return graph_pieces_expand_steps(point->pieces, point->steps, point->count, sequence);
    sequence->count = 0;
    for (size_t i = 0; i < point->count; i++)
        REMAT_TRY(graph_sequence_add(curve->outline->graph->context, sequence, point->actions[i]));
    return REMAT_OK;
}

/* ---- the points ---- */

/* A copy of a list, or NULL with REMAT_NO_MEMORY on the context. */
static void *copy_list(remat_context *context, const void *list, size_t count, size_t size)
{
    void *copy = remat_alloc(context, count, size);
    if (copy && count)
        memcpy(copy, list, count * size);
    return copy;
}

/* Peaks fall along the curve, costs rise. The first point within a peak is the cheapest there. */
static size_t first_within(const graph_curve *curve, uint64_t peak)
{
    size_t low = 0, high = curve->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (curve->points[middle].peak_bytes > peak)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds the point, unless the curve has one as good. The lists of `point` are copied. */
static remat_status insert(graph_curve *curve, graph_point point)
{
    remat_context *context = curve->outline->graph->context;
    graph_point *points = curve->points;
    size_t end = first_within(curve, point.peak_bytes), at = end;
    if (end < curve->count && point.cost >= points[end].cost - points[end].cost / 1000 * curve->margin)
        return REMAT_OK;
    REMAT_TRY(remat_grow(context, (void **)&curve->points, &curve->capacity, curve->count + 1, sizeof *points));
    points = curve->points;
    if (point.pieces)
        point.steps = copy_list(context, point.steps, point.count, sizeof *point.steps);
    else
        point.actions = copy_list(context, point.actions, point.count, sizeof *point.actions);
    if (!point.steps && !point.actions)
        return REMAT_NO_MEMORY;
    /* Beaten are those before it that are not cheaper, and one behind it with the same peak. */
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

static remat_status walk(graph_curve *curve, const graph_sequence *sequence)
{
    graph_walker_start(&curve->walker);
    REMAT_TRY(graph_walker_run(&curve->walker, sequence->actions, sequence->count));
    return graph_walker_finish(&curve->walker);
}

remat_status graph_curve_try_sequence(graph_curve *curve, const graph_sequence *sequence)
{
    REMAT_TRY(walk(curve, sequence));
    const graph_liveness *found = &curve->walker.found;
    return insert(curve, (graph_point){.peak_bytes = found->peak_bytes,
                                       .cost = found->cost,
                                       .actions = sequence->actions,
                                       .count = sequence->count});
}

remat_status graph_curve_try(graph_curve *curve, const graph_pieces *pieces, const remat_step *steps, size_t count)
{
    REMAT_TRY(graph_pieces_expand_steps(pieces, steps, count, &curve->sequence));
    if (curve->sequence.count > curve->most_actions)
        return REMAT_OK;
    REMAT_TRY(walk(curve, &curve->sequence));
    const graph_liveness *found = &curve->walker.found;
    return insert(curve, (graph_point){.peak_bytes = found->peak_bytes,
                                       .cost = found->cost,
                                       .pieces = pieces,
                                       .steps = (remat_step *)(uintptr_t)steps, /* which are copied */
                                       .count = count});
}

/* ---- what the points keep ---- */

void keep_sets_release(remat_context *context, keep_sets *sets)
{
    remat_release(context, sets->flags, sets->capacity, sizeof *sets->flags);
    *sets = (keep_sets){0};
}

static remat_status note_kept(graph_curve *curve, const graph_point *point, uint8_t *flags)
{
    graph_sequence *sequence = &curve->sequence;
    REMAT_TRY(graph_point_expand(curve, point, sequence));
    REMAT_TRY(walk(curve, sequence));
    size_t turn = graph_outline_turn(curve->outline, sequence);
    for (size_t i = 0; i < curve->walker.found.range_count; i++) {
        const live_range *range = &curve->walker.found.ranges[i];
        if (range->tensor != GRAPH_NONE && range->born < turn && range->ends > turn)
            flags[range->tensor] = 1;
    }
    return REMAT_OK;
}

remat_status graph_curve_keep_sets(graph_curve *curve, keep_sets *sets)
{
    const remat_graph *graph = curve->outline->graph;
    *sets = (keep_sets){.width = graph->tensor_count, .capacity = graph->tensor_count * curve->count};
    sets->flags = remat_alloc_zeroed(graph->context, sets->capacity, sizeof *sets->flags);
    remat_status status = sets->flags ? REMAT_OK : REMAT_NO_MEMORY;
    for (; status == REMAT_OK && sets->count < curve->count; sets->count++)
        status = note_kept(curve, &curve->points[sets->count], sets->flags + sets->count * sets->width);
    if (status != REMAT_OK)
        keep_sets_release(graph->context, sets);
    return status;
}

/* ---- all together ---- */

remat_status graph_curve_add(graph_curve *curve, const graph_pieces *pieces, unsigned threads)
{
    size_t count = graph_pieces_count(pieces);
    if (count == 0)
        return graph_curve_try(curve, pieces, NULL, 0);
    for (uint16_t mode = 0; count == 1 && mode < pieces->kinds[0].modes.count; mode++) {
        const remat_step steps[] = {
            {0, mode, REMAT_FORWARD}, {0, REMAT_NO_SAVE, REMAT_LOSS}, {0, REMAT_NO_SAVE, REMAT_BACKWARD}};
        REMAT_TRY(graph_curve_try(curve, pieces, steps, 3));
    }
    return count == 1 ? REMAT_OK : graph_curve_add_optimal(curve, pieces, threads);
}
