#include "plan/graph/graph_place.h"

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
    if (status == REMAT_OK) {
        size_t count = placed->liveness.buffer_count;
        remat_lifetime *lifetimes = remat_alloc(context, count, sizeof *lifetimes);
        placed->offsets = remat_alloc(context, count, sizeof *placed->offsets);
        status = lifetimes && placed->offsets ? place(placed, flight, lifetimes) : REMAT_NO_MEMORY;
        remat_release(context, lifetimes, count, sizeof *lifetimes);
    }
    if (status != REMAT_OK)
        placed_graph_release(placed);
    return status;
}

uint32_t placed_graph_peak_action(const placed_graph *placed)
{
    return placed->sequence.count ? placed->sequence.actions[placed->liveness.peak_position] : GRAPH_NONE;
}
