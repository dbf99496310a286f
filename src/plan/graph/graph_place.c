#include "plan/graph/graph_place.h"

#include <string.h>

#include "arena/placement.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"

/* Effort of the search; long schedules are left to the heuristics, which rarely miss there. */
enum { MOST_NODES = 20000, MOST_SEARCHED = 1500 };

void placed_graph_release(placed_graph *placed)
{
    if (!placed->context)
        return;
    remat_release(placed->context, placed->offsets, placed->liveness.buffer_count, sizeof *placed->offsets);
    graph_liveness_release(placed->context, &placed->liveness);
    graph_sequence_release(placed->context, &placed->sequence);
    *placed = (placed_graph){0};
}

remat_status placed_graph_fit(placed_graph *placed)
{
    graph_sequence *sequence = &placed->sequence;
    REMAT_TRY(remat_fit(placed->context, (void **)&sequence->actions, &sequence->capacity, sequence->count,
                        sizeof *sequence->actions));
    return graph_liveness_fit(placed->context, &placed->liveness);
}

/* ---- several runs ---- */

static size_t turn_position(const graph_sequence *sequence, uint32_t turn)
{
    size_t position = 0;
    while (position < sequence->count && sequence->actions[position] != turn)
        position++;
    return position;
}

static bool lives_over(uint32_t born, uint32_t ends, size_t position)
{
    return born < position && ends > position + 1;
}

uint64_t graph_flight_kept(const graph_liveness *liveness, const graph_sequence *sequence, uint32_t turn)
{
    const size_t position = turn_position(sequence, turn);
    uint64_t bytes = 0;
    for (size_t i = 0; i < liveness->range_count && position < sequence->count; i++)
        if (lives_over(liveness->ranges[i].born, liveness->ranges[i].ends, position))
            bytes += liveness->ranges[i].bytes;
    return bytes;
}

/* Places what is kept, one behind the other: all of it is live at the turn. */
static uint64_t place_kept(placed_graph *placed, size_t position)
{
    const graph_liveness *liveness = &placed->liveness;
    uint64_t bytes = 0;
    for (size_t i = 0; i < liveness->buffer_count; i++)
        if (lives_over(liveness->buffers[i].born, liveness->buffers[i].ends, position)) {
            placed->offsets[i] = bytes;
            bytes += graph_placed_bytes(liveness->buffers[i].bytes);
        }
    return bytes;
}

static bool is_kept(const placed_graph *placed, size_t buffer, graph_flight flight, size_t position)
{
    const graph_buffer *of = &placed->liveness.buffers[buffer];
    return flight.count > 1 && lives_over(of->born, of->ends, position);
}

static remat_status place(placed_graph *placed, graph_flight flight, remat_lifetime *lifetimes)
{
    const graph_liveness *liveness = &placed->liveness;
    const size_t position = flight.count > 1 ? turn_position(&placed->sequence, flight.turn) : 0;
    size_t count = 0;
    uint64_t kept = 0;
    if (flight.count > 1) {
        placed->kept_bytes = place_kept(placed, position);
        if (!remat_multiply(placed->kept_bytes, flight.count, &kept) || kept >= REMAT_LIMIT / 2)
            return remat_fail(placed->context, REMAT_INVALID, NULL, "what all runs keep reaches 2^62 bytes");
    }
    for (size_t i = 0; i < liveness->buffer_count; i++) {
        const graph_buffer *buffer = &liveness->buffers[i];
        if (!is_kept(placed, i, flight, position))
            lifetimes[count++] = (remat_lifetime){buffer->born, buffer->ends, buffer->bytes, 0};
    }
    bool searches = count <= MOST_SEARCHED;
    arena_options options = {.alignment = GRAPH_ALIGNMENT, .node_limit = searches ? MOST_NODES : 0};
    arena_result result;
    REMAT_TRY(arena_place(placed->context, lifetimes, count, &options, &result));
    count = 0;
    for (size_t i = 0; i < liveness->buffer_count; i++)
        if (!is_kept(placed, i, flight, position))
            placed->offsets[i] = kept + lifetimes[count++].offset;
    placed->arena_bytes = kept + result.height;
    return REMAT_OK;
}

static remat_status find_offsets(placed_graph *placed, graph_flight flight)
{
    const size_t count = placed->liveness.buffer_count;
    remat_lifetime *lifetimes = remat_alloc(placed->context, count, sizeof *lifetimes);
    placed->offsets = remat_alloc(placed->context, count, sizeof *placed->offsets);
    remat_status status = lifetimes && placed->offsets ? place(placed, flight, lifetimes) : REMAT_NO_MEMORY;
    remat_release(placed->context, lifetimes, count, sizeof *lifetimes);
    return status;
}

/* ---- all together ---- */

remat_status graph_place(const remat_graph *graph, graph_sequence *sequence, placed_graph *placed)
{
    return graph_place_flight(graph, sequence, (graph_flight){1, GRAPH_NONE}, placed);
}

remat_status graph_place_flight(const remat_graph *graph, graph_sequence *sequence, graph_flight flight,
                                placed_graph *placed)
{
    remat_context *context = graph->context;
    *placed = (placed_graph){.context = context, .sequence = *sequence};
    *sequence = (graph_sequence){0};
    remat_status status = graph_walk(graph, &placed->sequence, GRAPH_PLACED, &placed->liveness);
    if (status == REMAT_OK)
        status = find_offsets(placed, flight);
    if (status != REMAT_OK)
        placed_graph_release(placed);
    return status;
}

uint32_t placed_graph_peak_action(const placed_graph *placed)
{
    return placed->sequence.count ? placed->sequence.actions[placed->liveness.peak_position] : GRAPH_NONE;
}

/* ---- workspaces that begin earlier ---- */

static uint32_t early_birth(const live_range *range, const uint32_t *begins)
{
    return range->tensor == GRAPH_NONE ? begins[range->ends - 1] : range->born;
}

/* Where the ranges go, in the order of their births; those of one position keep their order. */
static void order_ranges(const graph_liveness *from, const uint32_t *begins, size_t *starts, uint32_t *places)
{
    for (size_t i = 0; i < from->range_count; i++)
        starts[early_birth(&from->ranges[i], begins) + 1]++;
    for (size_t p = 0; p < from->position_count; p++)
        starts[p + 1] += starts[p];
    for (size_t i = 0; i < from->range_count; i++)
        places[i] = (uint32_t)starts[early_birth(&from->ranges[i], begins)]++;
}

static void move_ranges(const graph_liveness *from, const uint32_t *begins, const uint32_t *places, graph_liveness *to)
{
    for (size_t i = 0; i < from->range_count; i++) {
        live_range *range = &to->ranges[places[i]];
        *range = from->ranges[i];
        range->born = early_birth(&from->ranges[i], begins);
        if (range->in_place_of != GRAPH_NONE)
            range->in_place_of = places[range->in_place_of];
        for (uint32_t p = range->born; p < from->ranges[i].born; p++)
            to->live_bytes[p] += range->bytes;
    }
    to->peak_bytes = to->peak_position = 0;
    for (uint32_t p = 0; p < to->position_count; p++)
        if (to->live_bytes[p] > to->peak_bytes) {
            to->peak_bytes = to->live_bytes[p];
            to->peak_position = p;
        }
}

/* Buffers get numbers in the order of their births, too. `numbers`: by old buffer, its new number. */
static void move_buffers(const graph_liveness *from, uint32_t *numbers, graph_liveness *to)
{
    for (size_t i = 0; i < from->buffer_count; i++)
        numbers[i] = GRAPH_NONE;
    to->buffer_count = 0;
    for (size_t i = 0; i < to->range_count; i++) {
        live_range *range = &to->ranges[i];
        const uint32_t old = range->buffer;
        if (numbers[old] == GRAPH_NONE) {
            numbers[old] = (uint32_t)to->buffer_count++;
            to->buffers[numbers[old]] = (graph_buffer){from->buffers[old].bytes, range->born, from->buffers[old].ends};
        }
        range->buffer = numbers[old];
    }
}

static remat_status make_liveness(remat_context *context, const graph_liveness *from, const uint32_t *begins,
                                  graph_liveness *to)
{
    const size_t ranges = from->range_count, buffers = from->buffer_count, positions = from->position_count;
    size_t *starts = remat_alloc_zeroed(context, positions + 1, sizeof *starts);
    uint32_t *places = remat_alloc(context, ranges, sizeof *places);
    uint32_t *numbers = remat_alloc(context, buffers, sizeof *numbers);
    *to = *from;
    to->ranges = remat_alloc(context, to->range_capacity = ranges, sizeof *to->ranges);
    to->buffers = remat_alloc(context, to->buffer_capacity = buffers, sizeof *to->buffers);
    to->live_bytes = remat_alloc(context, to->position_capacity = positions, sizeof *to->live_bytes);
    const bool has_memory = starts && places && numbers && to->ranges && to->buffers && to->live_bytes;
    if (has_memory) {
        memcpy(to->live_bytes, from->live_bytes, positions * sizeof *to->live_bytes);
        order_ranges(from, begins, starts, places);
        move_ranges(from, begins, places, to);
        move_buffers(from, numbers, to);
    }
    remat_release(context, starts, positions + 1, sizeof *starts);
    remat_release(context, places, ranges, sizeof *places);
    remat_release(context, numbers, buffers, sizeof *numbers);
    return has_memory ? REMAT_OK : REMAT_NO_MEMORY;
}

remat_status graph_place_early(const placed_graph *from, const uint32_t *begins, placed_graph *placed)
{
    remat_context *context = from->context;
    *placed = (placed_graph){.context = context};
    remat_status status = REMAT_OK;
    for (size_t i = 0; i < from->sequence.count && status == REMAT_OK; i++)
        status = graph_sequence_add(context, &placed->sequence, from->sequence.actions[i]);
    if (status == REMAT_OK)
        status = make_liveness(context, &from->liveness, begins, &placed->liveness);
    if (status == REMAT_OK)
        status = find_offsets(placed, (graph_flight){1, GRAPH_NONE});
    if (status != REMAT_OK)
        placed_graph_release(placed);
    return status;
}
