#include "arena/placement.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/min_max.h"
#include "base/search.h"
#include "plan/graph/graph_plan_file.h"

#define NO_OFFSET UINT64_MAX

static remat_status wrong(const remat_graph *graph, size_t number, const instance_place *place, const char *what)
{
    char text[GRAPH_NAME_TEXT];
    remat_place where = REMAT_PLACE_NOWHERE;
    where.field = "places";
    const char *name = place->tensor == GRAPH_NONE            ? "a workspace"
                       : place->tensor >= graph->tensor_count ? "a tensor that does not exist"
                                                              : graph_tensor_name(graph, place->tensor, text);
    return remat_fail(graph->context, REMAT_CHECK_FAILED, &where, "number %zu, %.80s at position %llu: %s", number,
                      name, (unsigned long long)place->born, what);
}

/* The range that a place is for; the count of ranges if there is none. */
static size_t find_range(const graph_liveness *found, const instance_place *place)
{
    size_t i = REMAT_FIRST(r, 0, found->range_count, found->ranges[r].born >= place->born);
    while (i < found->range_count && found->ranges[i].born == place->born && found->ranges[i].tensor != place->tensor)
        i++;
    return i < found->range_count && found->ranges[i].born == place->born ? i : found->range_count;
}

/* By range: its offset, or NO_OFFSET. */
static remat_status take_offsets(const remat_graph *graph, const graph_plan_text *text, const graph_liveness *found,
                                 uint64_t *offsets, uint64_t *arena_bytes)
{
    for (size_t i = 0; i < found->range_count; i++)
        offsets[i] = NO_OFFSET;
    for (size_t i = 0; i < text->place_count; i++) {
        const instance_place *place = &text->places[i];
        size_t range = find_range(found, place);
        if (range == found->range_count)
            return wrong(graph, i, place, "nothing of that kind is written there");
        if (found->ranges[range].ends != place->ends)
            return wrong(graph, i, place, "it does not live to the position that is stated");
        if (offsets[range] != NO_OFFSET)
            return wrong(graph, i, place, "it has two places");
        uint64_t end = place->offset;
        if (!remat_add(&end, found->ranges[range].bytes))
            return wrong(graph, i, place, "it ends past 2^63");
        offsets[range] = place->offset;
        *arena_bytes = remat_max(*arena_bytes, end);
    }
    for (size_t i = 0; i < found->range_count; i++) {
        const live_range *range = &found->ranges[i];
        if (range->bytes && offsets[i] == NO_OFFSET)
            return wrong(graph, text->place_count, &(instance_place){range->tensor, range->born, range->ends, 0},
                         "it has no place");
    }
    return REMAT_OK;
}

/* A write in place counts from its second position on, if it lies within what it replaces. */
static uint64_t lower(const graph_liveness *found, const uint64_t *offsets, size_t i)
{
    const live_range *range = &found->ranges[i];
    if (range->in_place_of == GRAPH_NONE)
        return range->born;
    const live_range *from = &found->ranges[range->in_place_of];
    const uint64_t at = offsets[range->in_place_of];
    const bool within = offsets[i] >= at && offsets[i] - at <= from->bytes - range->bytes;
    return range->born + within;
}

/* The rows are the places in the order of the file. One that adds nothing has size 0. */
static remat_status check_pairs(const remat_graph *graph, const graph_plan_text *text, const graph_liveness *found,
                                const uint64_t *offsets, uint64_t arena_bytes)
{
    remat_context *context = graph->context;
    remat_lifetime *lifetimes = remat_alloc(context, text->place_count, sizeof *lifetimes);
    if (!lifetimes)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < text->place_count; i++) {
        size_t number = find_range(found, &text->places[i]);
        const live_range *range = &found->ranges[number];
        uint64_t from = lower(found, offsets, number);
        lifetimes[i] = from < range->ends ? (remat_lifetime){from, range->ends, range->bytes, offsets[number]}
                                          : (remat_lifetime){range->born, range->ends, 0, 0};
    }
    remat_status status = arena_check(context, lifetimes, text->place_count, 1, arena_bytes);
    remat_release(context, lifetimes, text->place_count, sizeof *lifetimes);
    if (status != REMAT_CHECK_FAILED)
        return status;
    return remat_fail(context, status, NULL, "places: %s (counted in the order of this list)",
                      remat_context_message(context));
}

remat_status graph_places_check(const remat_graph *graph, const graph_plan_text *text, uint64_t *arena_bytes)
{
    graph_liveness found;
    *arena_bytes = 0;
    REMAT_TRY(graph_walk(graph, &text->schedule, GRAPH_PLACED, &found));
    uint64_t *offsets = remat_alloc(graph->context, found.range_count, sizeof *offsets);
    remat_status status = offsets ? take_offsets(graph, text, &found, offsets, arena_bytes) : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        status = check_pairs(graph, text, &found, offsets, *arena_bytes);
    remat_release(graph->context, offsets, found.range_count, sizeof *offsets);
    graph_liveness_release(graph->context, &found);
    return status;
}

/* Whether the buffers, with the offsets of their ranges, are an arena as the executor expects it. */
static remat_status check_buffers(const remat_graph *graph, const placed_graph *placed, bool *usable)
{
    const graph_liveness *found = &placed->liveness;
    remat_lifetime *lifetimes = remat_alloc(graph->context, found->buffer_count, sizeof *lifetimes);
    if (!lifetimes)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < found->buffer_count; i++) {
        const graph_buffer *buffer = &found->buffers[i];
        lifetimes[i] = (remat_lifetime){buffer->born, buffer->ends, buffer->bytes, placed->offsets[i]};
    }
    remat_status status =
        arena_check(graph->context, lifetimes, found->buffer_count, GRAPH_ALIGNMENT, placed->arena_bytes);
    remat_release(graph->context, lifetimes, found->buffer_count, sizeof *lifetimes);
    *usable = status == REMAT_OK;
    return status == REMAT_CHECK_FAILED ? REMAT_OK : status;
}

remat_status graph_places_take(const remat_graph *graph, const graph_plan_text *text, placed_graph *placed,
                               bool *usable)
{
    const graph_liveness *found = &placed->liveness;
    for (size_t i = 0; i < found->buffer_count; i++)
        placed->offsets[i] = found->buffers[i].bytes ? NO_OFFSET : 0;
    placed->arena_bytes = 0;
    *usable = false;
    for (size_t i = 0; i < text->place_count; i++) {
        const live_range *range = &found->ranges[find_range(found, &text->places[i])];
        uint64_t *offset = &placed->offsets[range->buffer];
        if (!range->bytes)
            continue;
        if (*offset != NO_OFFSET && *offset != text->places[i].offset)
            return REMAT_OK;
        *offset = text->places[i].offset;
        placed->arena_bytes = remat_max(placed->arena_bytes, *offset + range->bytes);
    }
    return check_buffers(graph, placed, usable);
}
