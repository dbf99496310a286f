#include "plan/graph/graph_curve.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "plan/graph/graph_pieces_object.h"

/* A schedule may have this many times the actions of the plain one: beyond it nobody wants to wait. */
enum { LONGEST = 8 };

void graph_curve_begin(const remat_graph *graph, graph_curve *curve)
{
    *curve = (graph_curve){.graph = graph};
    curve->most_actions = LONGEST * graph->action_count + 64;
}

static void release_point(remat_context *context, graph_point *point)
{
    remat_release(context, point->steps, point->count, sizeof *point->steps);
    remat_release(context, point->actions, point->count, sizeof *point->actions);
}

void graph_curve_release(graph_curve *curve)
{
    remat_context *context = curve->graph->context;
    for (size_t i = 0; i < curve->count; i++)
        release_point(context, &curve->points[i]);
    remat_release(context, curve->points, curve->capacity, sizeof *curve->points);
    *curve = (graph_curve){.graph = curve->graph};
}

static remat_status expand(const graph_pieces *pieces, const remat_step *steps, size_t count, graph_sequence *sequence)
{
    graph_expansion expansion;
    sequence->count = 0;
    REMAT_TRY(graph_expansion_begin(pieces, sequence, &expansion));
    remat_status status = REMAT_OK;
    for (size_t i = 0; status == REMAT_OK && i < count; i++)
        status = graph_expansion_step(&expansion, steps[i]);
    remat_status ended = graph_expansion_end(&expansion);
    return status != REMAT_OK ? status : ended;
}

remat_status graph_point_expand(const graph_curve *curve, const graph_point *point, graph_sequence *sequence)
{
    if (point->pieces)
        return expand(point->pieces, point->steps, point->count, sequence);
    sequence->count = 0;
    for (size_t i = 0; i < point->count; i++)
        REMAT_TRY(graph_sequence_add(curve->graph->context, sequence, point->actions[i]));
    return REMAT_OK;
}

/* ---- the points ---- */

/* The first point that is dearer, or as dear with a higher peak. */
static size_t place_of(const graph_curve *curve, uint64_t peak, uint64_t cost)
{
    size_t low = 0, high = curve->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const graph_point *point = &curve->points[middle];
        if (point->cost < cost || (point->cost == cost && point->peak_bytes <= peak))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A copy of a list, or NULL with REMAT_NO_MEMORY on the context. */
static void *copy_list(remat_context *context, const void *list, size_t count, size_t size)
{
    void *copy = remat_alloc(context, count, size);
    if (copy && count)
        memcpy(copy, list, count * size);
    return copy;
}

/* Whether the curve has nothing as good. Peaks fall along it: what costs least within a peak is the first point
 * there. */
static bool is_welcome(const graph_curve *curve, const graph_point *point)
{
    size_t low = 0, high = curve->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (curve->points[middle].peak_bytes > point->peak_bytes)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == curve->count)
        return true;
    uint64_t cost = curve->points[low].cost;
    return point->cost < cost - cost / 1000 * curve->margin;
}

/* The lists of `point` are copied. */
static remat_status insert(graph_curve *curve, graph_point point)
{
    remat_context *context = curve->graph->context;
    if (!is_welcome(curve, &point))
        return REMAT_OK;
    size_t at = place_of(curve, point.peak_bytes, point.cost), beaten = at;
    REMAT_TRY(remat_grow(context, (void **)&curve->points, &curve->capacity, curve->count + 1, sizeof *curve->points));
    if (point.pieces)
        point.steps = copy_list(context, point.steps, point.count, sizeof *point.steps);
    else
        point.actions = copy_list(context, point.actions, point.count, sizeof *point.actions);
    if (!point.steps && !point.actions)
        return REMAT_NO_MEMORY;
    for (; beaten < curve->count && curve->points[beaten].peak_bytes >= point.peak_bytes; beaten++)
        release_point(context, &curve->points[beaten]);
    memmove(&curve->points[at + 1], &curve->points[beaten], (curve->count - beaten) * sizeof point);
    curve->points[at] = point;
    curve->count += 1 - (beaten - at);
    return REMAT_OK;
}

remat_status graph_curve_try_sequence(graph_curve *curve, const graph_sequence *sequence)
{
    graph_lives lives;
    REMAT_TRY(graph_walk(curve->graph, sequence, &lives));
    graph_point point = {.peak_bytes = lives.peak_bytes, .cost = lives.cost};
    point.actions = sequence->actions;
    point.count = sequence->count;
    graph_lives_release(curve->graph->context, &lives);
    return insert(curve, point);
}

remat_status graph_curve_try(graph_curve *curve, const graph_pieces *pieces, const remat_step *steps, size_t count,
                             uint64_t *peak_bytes, uint32_t *peak_action)
{
    remat_context *context = curve->graph->context;
    graph_sequence sequence = {0};
    graph_lives lives = {0};
    remat_status status = expand(pieces, steps, count, &sequence);
    if (status == REMAT_OK)
        status = graph_walk(curve->graph, &sequence, &lives);
    graph_point point = {lives.peak_bytes, lives.cost, pieces, (remat_step *)(uintptr_t)steps, NULL, count};
    if (status == REMAT_OK && sequence.count <= curve->most_actions)
        status = insert(curve, point); /* which copies the steps */
    if (status == REMAT_OK) {
        *peak_bytes = lives.peak_bytes;
        if (peak_action)
            *peak_action = sequence.count ? sequence.actions[lives.peak_position] : GRAPH_NONE;
    }
    graph_lives_release(context, &lives);
    graph_sequence_release(context, &sequence);
    return status;
}

/* ---- what the points keep ---- */

void keep_sets_release(remat_context *context, keep_sets *sets)
{
    remat_release(context, sets->flags, sets->capacity, sizeof *sets->flags);
    *sets = (keep_sets){0};
}

static remat_status note_kept(const graph_curve *curve, const graph_sequence *sequence, uint8_t *flags)
{
    graph_lives lives;
    size_t turn = 0; /* where the backward begins */
    while (turn < sequence->count && sequence->actions[turn] < curve->graph->backward_begin)
        turn++;
    REMAT_TRY(graph_walk(curve->graph, sequence, &lives));
    for (size_t i = 0; i < lives.life_count; i++) {
        const graph_life *life = &lives.lives[i];
        if (life->tensor != GRAPH_NONE && life->born < turn && life->ends > turn)
            flags[life->tensor] = 1;
    }
    graph_lives_release(curve->graph->context, &lives);
    return REMAT_OK;
}

remat_status graph_curve_keep_sets(const graph_curve *curve, keep_sets *sets)
{
    remat_context *context = curve->graph->context;
    graph_sequence sequence = {0};
    *sets = (keep_sets){.width = curve->graph->tensor_count};
    sets->capacity = sets->width * curve->count;
    sets->flags = remat_alloc_zeroed(context, sets->capacity, sizeof *sets->flags);
    remat_status status = sets->flags ? REMAT_OK : REMAT_NO_MEMORY;
    for (; status == REMAT_OK && sets->count < curve->count; sets->count++) {
        status = graph_point_expand(curve, &curve->points[sets->count], &sequence);
        if (status == REMAT_OK)
            status = note_kept(curve, &sequence, sets->flags + sets->count * sets->width);
    }
    graph_sequence_release(context, &sequence);
    if (status != REMAT_OK)
        keep_sets_release(context, sets);
    return status;
}

/* ---- all together ---- */

/* One piece: each of its modes. */
static remat_status add_modes(graph_curve *curve, const graph_pieces *pieces)
{
    uint64_t peak;
    for (uint16_t mode = 0; mode < pieces->kinds[0].modes.count; mode++) {
        remat_step steps[] = {
            {0, mode, REMAT_FORWARD}, {0, REMAT_NO_SAVE, REMAT_LOSS}, {0, REMAT_NO_SAVE, REMAT_BACKWARD}};
        REMAT_TRY(graph_curve_try(curve, pieces, steps, 3, &peak, NULL));
    }
    return REMAT_OK;
}

remat_status graph_curve_add(graph_curve *curve, const graph_pieces *pieces, unsigned threads)
{
    size_t count = graph_pieces_count(pieces);
    if (count == 1)
        return add_modes(curve, pieces);
    if (count == 0)
        return graph_curve_try(curve, pieces, NULL, 0, &(uint64_t){0}, NULL);
    REMAT_TRY(graph_curve_add_graded(curve, pieces));
    return graph_curve_add_optimal(curve, pieces, threads);
}
