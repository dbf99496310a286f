#include "support/slow_graph.h"

#include <stdlib.h>

/* A schedule at hand. */
typedef struct slow {
    const remat_graph *graph;
    const uint32_t *actions;
    size_t count;
    uint64_t unit;
} slow;

static bool contains(const uint32_t *list, size_t count, uint32_t tensor)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == tensor)
            return true;
    return false;
}

static const graph_action *action_at(const slow *s, size_t position)
{
    return &s->graph->actions[s->actions[position]];
}

static bool needs(const slow *s, size_t position, uint32_t tensor)
{
    const graph_action *a = action_at(s, position);
    return contains(graph_reads(s->graph, a), a->read_count, tensor) ||
           contains(graph_updates(s->graph, a), a->update_count, tensor);
}

static bool writes(const slow *s, size_t position, uint32_t tensor)
{
    const graph_action *a = action_at(s, position);
    return contains(graph_writes(s->graph, a), a->write_count, tensor);
}

static bool is_result(const slow *s, uint32_t tensor)
{
    return contains(s->graph->results, s->graph->result_count, tensor);
}

static uint64_t bytes_of(const slow *s, uint64_t bytes)
{
    return (bytes + s->unit - 1) / s->unit * s->unit;
}

/* ---- the verdict ---- */

static bool written_before(const slow *s, size_t position, uint32_t tensor)
{
    for (size_t p = 0; p < position; p++)
        if (writes(s, p, tensor))
            return true;
    return false;
}

/* Every action with `once` occurs once, and they occur in the order of the graph. */
static bool once_in_order(const slow *s)
{
    size_t position = 0;
    for (uint32_t a = 0; a < s->graph->action_count; a++) {
        if (!s->graph->actions[a].once)
            continue;
        while (position < s->count && !action_at(s, position)->once)
            position++;
        if (position == s->count || s->actions[position] != a)
            return false;
        position++;
    }
    while (position < s->count && !action_at(s, position)->once)
        position++;
    return position == s->count;
}

static bool is_legal(const slow *s)
{
    for (size_t p = 0; p < s->count; p++)
        if (s->actions[p] >= s->graph->action_count)
            return false;
    for (uint32_t t = 0; t < s->graph->tensor_count; t++) {
        for (size_t p = 0; p < s->count; p++)
            if (needs(s, p, t) && !s->graph->tensors[t].given && !written_before(s, p, t))
                return false;
        if (is_result(s, t) && !written_before(s, s->count, t))
            return false;
    }
    return once_in_order(s);
}

/* ---- bytes ---- */

/* The last position at which the instance of `tensor` that was written at `born` lives; s->count: it lives to the end. */
static size_t last_position(const slow *s, uint32_t tensor, size_t born)
{
    size_t last = born;
    for (size_t p = born + 1; p < s->count; p++) {
        if (needs(s, p, tensor))
            last = p;
        if (writes(s, p, tensor))
            return last; /* a read at that position was of this instance, what comes later is of the next */
    }
    return is_result(s, tensor) ? s->count : last;
}

/* Whether `w` takes the bytes of `r` at the position. */
static bool takes_place(const slow *s, size_t position)
{
    const graph_action *a = action_at(s, position);
    if (a->in_place_from == GRAPH_NONE || s->graph->tensors[a->in_place_from].given ||
        s->graph->tensors[a->in_place_to].bytes > s->graph->tensors[a->in_place_from].bytes)
        return false;
    for (size_t born = position; born-- > 0;)
        if (writes(s, born, a->in_place_from))
            return last_position(s, a->in_place_from, born) == position;
    return false;
}

/* The bytes at every position. */
static void sum_up(const slow *s, bool count_given, uint64_t *live)
{
    for (uint32_t t = 0; t < s->graph->tensor_count; t++) {
        uint64_t each = bytes_of(s, s->graph->tensors[t].bytes);
        bool given = s->graph->tensors[t].given && count_given;
        for (size_t p = 0; given && p < s->count; p++)
            live[p] += each;
        for (size_t born = 0; born < s->count; born++)
            if (writes(s, born, t))
                for (size_t p = born; p < s->count && p <= last_position(s, t, born); p++)
                    live[p] += each;
    }
    for (size_t p = 0; p < s->count; p++) {
        live[p] += bytes_of(s, action_at(s, p)->workspace_bytes);
        if (takes_place(s, p))
            live[p] -= bytes_of(s, s->graph->tensors[action_at(s, p)->in_place_to].bytes);
    }
}

slow_walk graph_slow_walk(const remat_graph *graph, const uint32_t *actions, size_t count, uint64_t unit,
                          bool count_given)
{
    slow s = {graph, actions, count, unit};
    slow_walk walk = {.legal = is_legal(&s)};
    if (!walk.legal)
        return walk;
    uint64_t *live = calloc(count + 1, sizeof *live);
    sum_up(&s, count_given, live);
    for (size_t p = 0; p < count; p++) {
        walk.peak = live[p] > walk.peak ? live[p] : walk.peak;
        walk.cost += graph->actions[actions[p]].cost;
    }
    free(live);
    return walk;
}
