#include "graph/graph_walk.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/number_text.h"

/* ---- lists of actions ---- */

remat_status graph_sequence_add(remat_context *context, graph_sequence *sequence, uint32_t action)
{
    REMAT_TRY(remat_grow(context, (void **)&sequence->actions, &sequence->capacity, sequence->count + 1,
                         sizeof *sequence->actions));
    sequence->actions[sequence->count++] = action;
    return REMAT_OK;
}

void graph_sequence_release(remat_context *context, graph_sequence *sequence)
{
    remat_release(context, sequence->actions, sequence->capacity, sizeof *sequence->actions);
    *sequence = (graph_sequence){0};
}

remat_status graph_sequence_plain(const remat_graph *graph, graph_sequence *sequence)
{
    for (size_t i = 0; i < graph->action_count; i++) {
        remat_status status = graph_sequence_add(graph->context, sequence, (uint32_t)i);
        if (status != REMAT_OK) {
            graph_sequence_release(graph->context, sequence);
            return status;
        }
    }
    return REMAT_OK;
}

/* ---- a walker ---- */

/* The latest range of a given tensor; GRAPH_NONE: of one that has none yet. Ranges have lower numbers. */
#define RANGE_GIVEN (GRAPH_NONE - 1)
#define RANGE_LIMIT RANGE_GIVEN

void graph_liveness_release(remat_context *context, graph_liveness *liveness)
{
    remat_release(context, liveness->ranges, liveness->range_capacity, sizeof *liveness->ranges);
    remat_release(context, liveness->buffers, liveness->buffer_capacity, sizeof *liveness->buffers);
    remat_release(context, liveness->live_bytes, liveness->position_capacity, sizeof *liveness->live_bytes);
    *liveness = (graph_liveness){0};
}

remat_status graph_liveness_fit(remat_context *context, graph_liveness *liveness)
{
    REMAT_TRY(remat_fit(context, (void **)&liveness->ranges, &liveness->range_capacity, liveness->range_count,
                        sizeof *liveness->ranges));
    REMAT_TRY(remat_fit(context, (void **)&liveness->buffers, &liveness->buffer_capacity, liveness->buffer_count,
                        sizeof *liveness->buffers));
    return remat_fit(context, (void **)&liveness->live_bytes, &liveness->position_capacity, liveness->position_count,
                     sizeof *liveness->live_bytes);
}

void graph_walker_release(graph_walker *walker)
{
    if (!walker->graph)
        return;
    remat_context *context = walker->graph->context;
    remat_release(context, walker->bytes, walker->graph->tensor_count, sizeof *walker->bytes);
    remat_release(context, walker->latest, walker->graph->tensor_count, sizeof *walker->latest);
    remat_release(context, walker->mark.ends, walker->mark.capacity, sizeof *walker->mark.ends);
    graph_liveness_release(context, &walker->found);
    *walker = (graph_walker){0};
}

static uint64_t counted(const graph_walker *walker, uint64_t bytes)
{
    return walker->counting == GRAPH_PLACED ? graph_placed_bytes(bytes) : bytes;
}

/* At one position a tensor has at most two instances, one that is read and one that is written: if that fits below
 * 2^63, no sum of a walk passes it. */
static remat_status count_bytes(graph_walker *walker)
{
    const remat_graph *graph = walker->graph;
    uint64_t most = 0, workspace = 0;
    bool fits = true;
    for (size_t t = 0; t < graph->tensor_count; t++) {
        const graph_tensor *tensor = &graph->tensors[t];
        walker->bytes[t] = counted(walker, tensor->bytes);
        fits = fits && remat_add(&most, walker->bytes[t]) && remat_add(&most, walker->bytes[t]);
        if (tensor->given && walker->counting == GRAPH_EXACT)
            walker->given_bytes += tensor->bytes;
    }
    for (size_t i = 0; i < graph->action_count; i++)
        if (graph->actions[i].workspace_bytes > workspace)
            workspace = graph->actions[i].workspace_bytes;
    if (fits && remat_add(&most, workspace) && remat_add(&most, GRAPH_ALIGNMENT))
        return REMAT_OK;
    return remat_fail(graph->context, REMAT_INVALID, NULL, "the bytes of all tensors together are too many");
}

remat_status graph_walker_create(const remat_graph *graph, graph_counting counting, graph_walker *walker)
{
    *walker = (graph_walker){.graph = graph, .counting = counting};
    walker->bytes = remat_alloc(graph->context, graph->tensor_count, sizeof *walker->bytes);
    walker->latest = remat_alloc(graph->context, graph->tensor_count, sizeof *walker->latest);
    remat_status status = walker->bytes && walker->latest ? count_bytes(walker) : REMAT_NO_MEMORY;
    if (status != REMAT_OK)
        graph_walker_release(walker);
    else
        graph_walker_start(walker);
    return status;
}

static uint32_t next_once(const remat_graph *graph, size_t from)
{
    while (from < graph->action_count && !graph->actions[from].once)
        from++;
    return (uint32_t)from;
}

void graph_walker_start(graph_walker *walker)
{
    const remat_graph *graph = walker->graph;
    for (size_t t = 0; t < graph->tensor_count; t++)
        walker->latest[t] = graph->tensors[t].given ? RANGE_GIVEN : GRAPH_NONE;
    walker->found.range_count = walker->found.position_count = 0;
    walker->found.cost = 0;
    walker->next_once = next_once(graph, 0);
}

/* ---- one action after the other ---- */

__attribute__((format(printf, 3, 4))) static remat_status illegal(const graph_walker *walker, uint64_t position,
                                                                  const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    text_print_list(text, sizeof text, format, arguments);
    va_end(arguments);
    remat_place place = REMAT_PLACE_NOWHERE;
    place.step = position;
    return remat_fail(walker->graph->context, REMAT_CHECK_FAILED, &place, "%s", text);
}

static remat_status without_instance(const graph_walker *walker, uint64_t position, uint32_t action, uint32_t tensor)
{
    char a[GRAPH_NAME_TEXT], t[GRAPH_NAME_TEXT];
    return illegal(walker, position, "action %.80s needs tensor %.80s, which was never written",
                   graph_action_name(walker->graph, action, a), graph_tensor_name(walker->graph, tensor, t));
}

static remat_status out_of_order(const graph_walker *walker, uint64_t position, uint32_t action)
{
    char a[GRAPH_NAME_TEXT], b[GRAPH_NAME_TEXT];
    const char *name = graph_action_name(walker->graph, action, a);
    if (action < walker->next_once)
        return illegal(walker, position, "action %.80s runs a second time, but may run only once", name);
    return illegal(walker, position, "action %.80s is out of order: %.80s comes before it", name,
                   graph_action_name(walker->graph, walker->next_once, b));
}

/* The range whose bytes a write may take, if that turns out to end here. */
static uint32_t find_place(const graph_walker *walker, const graph_action *action)
{
    const graph_tensor *tensors = walker->graph->tensors;
    uint32_t from = action->in_place_from;
    if (tensors[from].given || tensors[action->in_place_to].bytes > tensors[from].bytes)
        return GRAPH_NONE;
    return walker->latest[from];
}

static remat_status run_action(graph_walker *walker, uint32_t number)
{
    const remat_graph *graph = walker->graph;
    const graph_action *action = &graph->actions[number];
    const uint32_t *needs = graph_reads(graph, action), *writes = graph_writes(graph, action);
    const size_t need_count = graph_need_count(action), write_count = action->write_count;
    const uint32_t position = (uint32_t)walker->found.position_count++;
    uint32_t *latest = walker->latest;
    live_range *ranges = walker->found.ranges, *next = ranges + walker->found.range_count;
    if (action->once) {
        if (number != walker->next_once)
            return out_of_order(walker, position, number);
        walker->next_once = next_once(graph, (size_t)number + 1);
    }
    for (size_t i = 0; i < need_count; i++) {
        uint32_t range = latest[needs[i]];
        if (range < RANGE_LIMIT)
            ranges[range].ends = position + 1;
        else if (range == GRAPH_NONE)
            return without_instance(walker, position, number, needs[i]);
    }
    uint32_t place = action->in_place_from == GRAPH_NONE ? GRAPH_NONE : find_place(walker, action);
    for (size_t i = 0; i < write_count; i++, next++) {
        uint32_t tensor = writes[i], in_place_of = tensor == action->in_place_to ? place : GRAPH_NONE;
        *next = (live_range){walker->bytes[tensor], tensor, position, position + 1, in_place_of, GRAPH_NONE};
        latest[tensor] = (uint32_t)(next - ranges);
    }
    if (action->workspace_bytes) {
        uint64_t bytes = counted(walker, action->workspace_bytes);
        *next++ = (live_range){bytes, GRAPH_NONE, position, position + 1, GRAPH_NONE, GRAPH_NONE};
    }
    walker->found.range_count = (size_t)(next - ranges);
    return REMAT_OK;
}

/* Room for all ranges that the actions make. */
static remat_status make_room(graph_walker *walker, const uint32_t *actions, size_t count)
{
    const remat_graph *graph = walker->graph;
    graph_liveness *found = &walker->found;
    size_t needed = found->range_count + count;
    for (size_t i = 0; i < count; i++) {
        if (actions[i] >= graph->action_count)
            return illegal(walker, found->position_count + i, "there is no action %u", actions[i]);
        needed += graph->actions[actions[i]].write_count;
    }
    if (needed >= RANGE_LIMIT || found->position_count + count >= RANGE_LIMIT)
        return remat_fail(graph->context, REMAT_INVALID, NULL, "the schedule is too long");
    return remat_grow(graph->context, (void **)&found->ranges, &found->range_capacity, needed, sizeof *found->ranges);
}

remat_status graph_walker_run(graph_walker *walker, const uint32_t *actions, size_t count)
{
    uint64_t cost = walker->found.cost;
    REMAT_TRY(make_room(walker, actions, count));
    for (size_t i = 0; i < count; i++) {
        REMAT_TRY(run_action(walker, actions[i]));
        if (!remat_add(&cost, walker->graph->actions[actions[i]].cost))
            return remat_fail(walker->graph->context, REMAT_INVALID, NULL, "the cost of the schedule passes 2^63");
    }
    walker->found.cost = cost;
    return REMAT_OK;
}

/* ---- the whole ---- */

/* What lives to the end outlives the last position: nothing takes its place there. */
static remat_status keep_results(graph_walker *walker)
{
    const remat_graph *graph = walker->graph;
    size_t count = walker->found.position_count;
    char text[GRAPH_NAME_TEXT];
    if (walker->next_once < graph->action_count)
        return illegal(walker, count, "the schedule ends here, but action %.80s has not run",
                       graph_action_name(graph, walker->next_once, text));
    for (size_t i = 0; i < graph->result_count; i++) {
        uint32_t range = walker->latest[graph->results[i]];
        if (range >= RANGE_LIMIT)
            return illegal(walker, count, "the result %.80s was never written",
                           graph_tensor_name(graph, graph->results[i], text));
        walker->found.ranges[range].ends = (uint32_t)count + 1;
    }
    return REMAT_OK;
}

static bool is_in_place(const graph_liveness *found, const live_range *range)
{
    return range->in_place_of != GRAPH_NONE && found->ranges[range->in_place_of].ends == range->born + 1;
}

static void find_peak(graph_liveness *found, uint64_t given_bytes)
{
    uint64_t *live = found->live_bytes, now = given_bytes; /* at first changes, which wrap, and back; then their sums */
    memset(live, 0, (found->position_count + 2) * sizeof *live);
    for (size_t i = 0; i < found->range_count; i++) {
        const live_range *range = &found->ranges[i];
        live[range->born + is_in_place(found, range)] += range->bytes;
        live[range->ends] -= range->bytes;
    }
    found->peak_bytes = found->peak_position = 0;
    for (size_t position = 0; position < found->position_count; position++) {
        live[position] = now += live[position];
        if (now > found->peak_bytes) {
            found->peak_bytes = now;
            found->peak_position = (uint32_t)position;
        }
    }
}

remat_status graph_walker_finish(graph_walker *walker)
{
    graph_liveness *found = &walker->found;
    REMAT_TRY(keep_results(walker));
    if (found->position_count + 2 > found->position_capacity)
        REMAT_TRY(remat_grow(walker->graph->context, (void **)&found->live_bytes, &found->position_capacity,
                             found->position_count + 2, sizeof *found->live_bytes));
    find_peak(found, walker->given_bytes);
    return REMAT_OK;
}

remat_status graph_walker_mark(graph_walker *walker)
{
    graph_liveness *found = &walker->found;
    walker->mark.positions = found->position_count;
    walker->mark.ranges = found->range_count;
    walker->mark.next_once = walker->next_once;
    walker->mark.cost = found->cost;
    REMAT_TRY(remat_grow(walker->graph->context, (void **)&walker->mark.ends, &walker->mark.capacity,
                         found->range_count, sizeof *walker->mark.ends));
    for (size_t i = 0; i < found->range_count; i++)
        walker->mark.ends[i] = found->ranges[i].ends;
    return REMAT_OK;
}

void graph_walker_rewind(graph_walker *walker)
{
    graph_liveness *found = &walker->found;
    for (size_t i = walker->mark.ranges; i < found->range_count; i++)
        if (found->ranges[i].tensor != GRAPH_NONE)
            walker->latest[found->ranges[i].tensor] = GRAPH_NONE;
    found->position_count = walker->mark.positions;
    found->range_count = walker->mark.ranges;
    found->cost = walker->mark.cost;
    walker->next_once = walker->mark.next_once;
    for (uint32_t i = 0; i < found->range_count; i++) {
        live_range *range = &found->ranges[i];
        range->ends = walker->mark.ends[i];
        if (range->tensor != GRAPH_NONE)
            walker->latest[range->tensor] = i;
    }
}

/* ---- buffers ---- */

static remat_status add_buffer(remat_context *context, graph_liveness *found, live_range *range)
{
    REMAT_TRY(remat_grow(context, (void **)&found->buffers, &found->buffer_capacity, found->buffer_count + 1,
                         sizeof *found->buffers));
    range->buffer = (uint32_t)found->buffer_count;
    found->buffers[found->buffer_count++] = (graph_buffer){range->bytes, range->born, range->ends};
    return REMAT_OK;
}

/* Gives every range its buffer: that of the range whose bytes it takes, where both have the same size, or its own. A
 * smaller one that stayed in a larger buffer would hold all of it. */
static remat_status find_buffers(remat_context *context, graph_liveness *found)
{
    for (size_t i = 0; i < found->range_count; i++) {
        live_range *range = &found->ranges[i];
        if (!is_in_place(found, range))
            range->in_place_of = GRAPH_NONE;
        const live_range *from = range->in_place_of == GRAPH_NONE ? NULL : &found->ranges[range->in_place_of];
        if (from && from->bytes == range->bytes)
            found->buffers[range->buffer = from->buffer].ends = range->ends;
        else
            REMAT_TRY(add_buffer(context, found, range));
    }
    uint32_t end = (uint32_t)found->position_count;
    for (size_t i = 0; i < found->range_count; i++)
        if (found->ranges[i].ends > end)
            found->ranges[i].ends = end;
    for (size_t i = 0; i < found->buffer_count; i++)
        if (found->buffers[i].ends > end)
            found->buffers[i].ends = end;
    return REMAT_OK;
}

remat_status graph_walk(const remat_graph *graph, const graph_sequence *sequence, graph_counting counting,
                        graph_liveness *found)
{
    graph_walker walker;
    *found = (graph_liveness){0};
    REMAT_TRY(graph_walker_create(graph, counting, &walker));
    remat_status status = graph_walker_run(&walker, sequence->actions, sequence->count);
    if (status == REMAT_OK)
        status = graph_walker_finish(&walker);
    if (status == REMAT_OK)
        status = find_buffers(graph->context, &walker.found);
    if (status == REMAT_OK) {
        *found = walker.found;
        walker.found = (graph_liveness){0};
    }
    graph_walker_release(&walker);
    return status;
}

remat_status graph_walk_peak(const remat_graph *graph, const graph_sequence *sequence, graph_counting counting,
                             uint64_t *bytes)
{
    graph_liveness found;
    REMAT_TRY(graph_walk(graph, sequence, counting, &found));
    *bytes = found.peak_bytes;
    graph_liveness_release(graph->context, &found);
    return REMAT_OK;
}
