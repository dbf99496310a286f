#include "plan/graph/graph_place.h"

#include "arena/placement.h"
#include "base/alloc.h"
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

static remat_status place(placed_graph *placed, remat_lifetime *lifetimes)
{
    const graph_liveness *liveness = &placed->liveness;
    for (size_t i = 0; i < liveness->buffer_count; i++) {
        const graph_buffer *buffer = &liveness->buffers[i];
        lifetimes[i] = (remat_lifetime){buffer->born, buffer->ends, buffer->bytes, 0};
    }
    bool searches = liveness->buffer_count <= MOST_SEARCHED;
    arena_options options = {.alignment = GRAPH_ALIGNMENT, .node_limit = searches ? MOST_NODES : 0};
    arena_result result;
    REMAT_TRY(arena_place(placed->context, lifetimes, liveness->buffer_count, &options, &result));
    for (size_t i = 0; i < liveness->buffer_count; i++)
        placed->offsets[i] = lifetimes[i].offset;
    placed->arena_bytes = result.height;
    return REMAT_OK;
}

remat_status graph_place(const remat_graph *graph, graph_sequence *sequence, placed_graph *placed)
{
    remat_context *context = graph->context;
    *placed = (placed_graph){.context = context, .sequence = *sequence};
    *sequence = (graph_sequence){0};
    remat_status status = graph_walk(graph, &placed->sequence, GRAPH_PLACED, &placed->liveness);
    if (status == REMAT_OK) {
        size_t count = placed->liveness.buffer_count;
        remat_lifetime *lifetimes = remat_alloc(context, count, sizeof *lifetimes);
        placed->offsets = remat_alloc(context, count, sizeof *placed->offsets);
        status = lifetimes && placed->offsets ? place(placed, lifetimes) : REMAT_NO_MEMORY;
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
