#include "support/graph_brute_force.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ACTIONS = 256, MOST_MADE = 16 };

static bool contains(const uint32_t *list, size_t count, uint32_t tensor)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == tensor)
            return true;
    return false;
}

static bool reads(const remat_graph *graph, uint32_t action, uint32_t tensor)
{
    const graph_action *a = &graph->actions[action];
    return contains(graph_reads(graph, a), a->read_count, tensor) ||
           contains(graph_updates(graph, a), a->update_count, tensor);
}

static bool writes(const remat_graph *graph, uint32_t action, uint32_t tensor)
{
    const graph_action *a = &graph->actions[action];
    return contains(graph_writes(graph, a), a->write_count, tensor);
}

/* Behind the last action that may run again. */
static uint32_t backward_begin(const remat_graph *graph)
{
    uint32_t begin = 0;
    for (uint32_t i = 0; i < graph->action_count; i++)
        begin = graph->actions[i].once ? begin : i + 1;
    return begin;
}

/* ---- every set ---- */

typedef struct trial {
    const remat_graph *graph;
    bool there[1024];
    uint32_t actions[MOST_ACTIONS];
    size_t count;
} trial;

static void run(trial *t, uint32_t action)
{
    const graph_action *a = &t->graph->actions[action];
    t->actions[t->count++] = action;
    for (size_t i = 0; i < a->write_count; i++)
        t->there[graph_writes(t->graph, a)[i]] = true;
}

/* Makes what an action reads. */
static void prepare(trial *t, uint32_t action)
{
    for (uint32_t tensor = 0; tensor < t->graph->tensor_count; tensor++) {
        if (!reads(t->graph, action, tensor) || t->there[tensor])
            continue;
        for (uint32_t maker = 0; maker < backward_begin(t->graph); maker++)
            if (writes(t->graph, maker, tensor)) {
                prepare(t, maker);
                run(t, maker);
                break;
            }
    }
}

static slow_walk try_set(const remat_graph *graph, const uint32_t *made, size_t made_count, uint32_t kept)
{
    trial t = {.graph = graph};
    for (uint32_t i = 0; i < backward_begin(graph); i++)
        run(&t, i);
    for (size_t i = 0; i < made_count; i++)
        t.there[made[i]] = kept >> i & 1;
    for (uint32_t i = backward_begin(graph); i < graph->action_count; i++) {
        prepare(&t, i);
        run(&t, i);
    }
    return graph_slow_walk(graph, t.actions, t.count, GRAPH_ALIGNMENT, false);
}

static size_t list_made(const remat_graph *graph, uint32_t made[MOST_MADE])
{
    size_t count = 0;
    for (uint32_t t = 0; t < graph->tensor_count; t++)
        for (uint32_t i = 0; i < backward_begin(graph); i++)
            if (!graph->actions[i].once && writes(graph, i, t)) {
                if (made && count < MOST_MADE)
                    made[count] = t;
                count++;
            }
    return count;
}

size_t graph_made_count(const remat_graph *graph)
{
    return list_made(graph, NULL);
}

static int by_cost(const void *a, const void *b)
{
    const slow_walk *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return x->peak < y->peak ? -1 : x->peak > y->peak;
}

brute_curve graph_brute_force(const remat_graph *graph)
{
    uint32_t made[MOST_MADE];
    size_t count = list_made(graph, made), sets = (size_t)1 << count;
    brute_curve curve = {malloc(sets * sizeof *curve.points), 0};
    for (uint32_t kept = 0; kept < sets; kept++)
        curve.points[kept] = try_set(graph, made, count, kept);
    qsort(curve.points, sets, sizeof *curve.points, by_cost);
    for (size_t i = 0; i < sets; i++)
        if (curve.count == 0 || curve.points[i].peak < curve.points[curve.count - 1].peak)
            curve.points[curve.count++] = curve.points[i];
    return curve;
}

uint64_t brute_cost(const brute_curve *curve, uint64_t budget)
{
    for (size_t i = 0; i < curve->count; i++)
        if (curve->points[i].peak <= budget)
            return curve->points[i].cost;
    return UINT64_MAX;
}
