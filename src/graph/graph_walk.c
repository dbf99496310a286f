#include "graph/graph_walk.h"

#include <stdbool.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"

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

void graph_lives_release(remat_context *context, graph_lives *lives)
{
    remat_release(context, lives->lives, lives->life_capacity, sizeof *lives->lives);
    remat_release(context, lives->buffers, lives->buffer_capacity, sizeof *lives->buffers);
    *lives = (graph_lives){0};
}

/* The latest life of every tensor; NO_LIFE before the first. */
#define NO_LIFE SIZE_MAX

static remat_status complain(const remat_graph *graph, uint64_t position, const graph_action *action, const char *what,
                             uint32_t tensor)
{
    static const char *const kinds[] = {"load", "forward", "gradient", "derivative", "apply", "finish"};
    const char *layer = action->layer < graph->layer_count ? graph->layers[action->layer].name : "";
    const char *name = tensor != GRAPH_NONE && graph->tensors[tensor].name ? graph->tensors[tensor].name : "";
    return remat_fail(graph->context, REMAT_CHECK_FAILED,
                      &(remat_place){NULL, REMAT_NOWHERE, REMAT_NOWHERE, position, NULL}, "%s of %s %s %s",
                      kinds[action->kind], layer, what, name);
}

static remat_status add_life(remat_context *context, graph_lives *lives, uint32_t tensor, uint64_t position)
{
    REMAT_TRY(remat_grow(context, (void **)&lives->lives, &lives->life_capacity, lives->life_count + 1,
                         sizeof *lives->lives));
    lives->lives[lives->life_count++] = (graph_life){tensor, GRAPH_NONE, position, position + 1};
    return REMAT_OK;
}

/* Stretches the latest instance of each tensor of a list to the position. */
static remat_status use(const remat_graph *graph, const graph_action *action, const uint32_t *list, size_t count,
                        const size_t *latest, uint64_t position, graph_lives *lives)
{
    for (size_t i = 0; i < count; i++) {
        if (latest[list[i]] == NO_LIFE)
            return complain(graph, position, action, "needs what nobody has made:", list[i]);
        lives->lives[latest[list[i]]].ends = position + 1;
    }
    return REMAT_OK;
}

/* Backward actions come once each and in order, loads once. */
static remat_status check_order(const remat_graph *graph, uint32_t number, uint64_t position, size_t *next_backward,
                                bool *loaded)
{
    const graph_action *action = &graph->actions[number];
    if (number >= graph->backward_begin) {
        if (number != *next_backward)
            return complain(graph, position, action, "is out of order", GRAPH_NONE);
        (*next_backward)++;
    } else if (action->kind == GRAPH_LOAD) {
        if (loaded[number])
            return complain(graph, position, action, "runs a second time", GRAPH_NONE);
        loaded[number] = true;
    }
    return REMAT_OK;
}

static remat_status find_lives(const remat_graph *graph, const graph_sequence *sequence, size_t *latest, bool *loaded,
                               graph_lives *lives)
{
    size_t next_backward = graph->backward_begin;
    for (size_t t = 0; t < graph->tensor_count; t++)
        latest[t] = NO_LIFE;
    for (size_t position = 0; position < sequence->count; position++) {
        uint32_t number = sequence->actions[position];
        if (number >= graph->action_count)
            return remat_fail(graph->context, REMAT_CHECK_FAILED, NULL, "position %zu names action %u of %zu", position,
                              number, graph->action_count);
        const graph_action *action = &graph->actions[number];
        REMAT_TRY(check_order(graph, number, position, &next_backward, loaded));
        REMAT_TRY(use(graph, action, graph_reads(graph, action), action->read_count, latest, position, lives));
        REMAT_TRY(use(graph, action, graph_updates(graph, action), action->update_count, latest, position, lives));
        const uint32_t *writes = graph_writes(graph, action);
        for (size_t i = 0; i < action->write_count; i++) {
            REMAT_TRY(add_life(graph->context, lives, writes[i], position));
            latest[writes[i]] = lives->life_count - 1;
        }
        if (action->workspace_bytes)
            REMAT_TRY(add_life(graph->context, lives, GRAPH_NONE, position));
        if (!remat_add(&lives->cost, action->cost))
            return remat_fail(graph->context, REMAT_INVALID, NULL, "the cost of the schedule passes 2^63");
    }
    if (next_backward != graph->action_count)
        return complain(graph, sequence->count, &graph->actions[next_backward], "is missing", GRAPH_NONE);
    return REMAT_OK;
}

static remat_status add_buffer(remat_context *context, graph_lives *lives, graph_life *life, uint64_t bytes)
{
    REMAT_TRY(remat_grow(context, (void **)&lives->buffers, &lives->buffer_capacity, lives->buffer_count + 1,
                         sizeof *lives->buffers));
    life->buffer = (uint32_t)lives->buffer_count;
    lives->buffers[lives->buffer_count++] = (graph_buffer){bytes, life->born, life->ends};
    return REMAT_OK;
}

/* Gives every life its buffer: a new one, or that of the instance whose place it takes. Walks the births a second time,
 * now that every end is known. */
static remat_status find_buffers(const remat_graph *graph, const graph_sequence *sequence, size_t *latest,
                                 graph_lives *lives)
{
    for (size_t t = 0; t < graph->tensor_count; t++)
        latest[t] = NO_LIFE;
    size_t next = 0;
    for (size_t position = 0; position < sequence->count; position++) {
        const graph_action *action = &graph->actions[sequence->actions[position]];
        size_t from = action->in_place_from == GRAPH_NONE ? NO_LIFE : latest[action->in_place_from];
        if (from != NO_LIFE && lives->lives[from].ends != position + 1)
            from = NO_LIFE; /* somebody reads it later */
        for (; next < lives->life_count && lives->lives[next].born == position; next++) {
            graph_life *life = &lives->lives[next];
            uint64_t bytes = life->tensor == GRAPH_NONE ? action->workspace_bytes : graph->tensors[life->tensor].bytes;
            if (life->tensor != GRAPH_NONE && life->tensor == action->in_place_to && from != NO_LIFE &&
                lives->buffers[lives->lives[from].buffer].bytes == bytes) {
                life->buffer = lives->lives[from].buffer;
                lives->buffers[life->buffer].ends = life->ends;
            } else {
                REMAT_TRY(add_buffer(graph->context, lives, life, bytes));
            }
            if (life->tensor != GRAPH_NONE)
                latest[life->tensor] = next;
        }
    }
    return REMAT_OK;
}

static remat_status find_peak(const remat_graph *graph, size_t positions, graph_lives *lives)
{
    uint64_t *change = remat_alloc_zeroed(graph->context, positions + 1, sizeof *change); /* wraps, and back */
    if (!change)
        return REMAT_NO_MEMORY;
    uint64_t total = 0, now = 0;
    remat_status status = REMAT_OK;
    for (size_t b = 0; b < lives->buffer_count; b++) {
        const graph_buffer *buffer = &lives->buffers[b];
        if (!remat_add(&total, buffer->bytes))
            status = remat_fail(graph->context, REMAT_INVALID, NULL, "the bytes of all tensors together pass 2^63");
        change[buffer->born] += buffer->bytes;
        change[buffer->ends] -= buffer->bytes;
    }
    for (size_t position = 0; position < positions; position++) {
        now += change[position];
        if (now > lives->peak_bytes) {
            lives->peak_bytes = now;
            lives->peak_position = position;
        }
    }
    remat_release(graph->context, change, positions + 1, sizeof *change);
    return status;
}

remat_status graph_walk(const remat_graph *graph, const graph_sequence *sequence, graph_lives *lives)
{
    *lives = (graph_lives){0};
    remat_context *context = graph->context;
    size_t *latest = remat_alloc(context, graph->tensor_count, sizeof *latest);
    bool *loaded = remat_alloc_zeroed(context, graph->action_count, sizeof *loaded);
    remat_status status = latest && loaded ? REMAT_OK : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        status = find_lives(graph, sequence, latest, loaded, lives);
    if (status == REMAT_OK)
        status = find_buffers(graph, sequence, latest, lives);
    if (status == REMAT_OK)
        status = find_peak(graph, sequence->count, lives);
    remat_release(context, latest, graph->tensor_count, sizeof *latest);
    remat_release(context, loaded, graph->action_count, sizeof *loaded);
    if (status != REMAT_OK)
        graph_lives_release(context, lives);
    return status;
}
