/* Exchanges what two stretches of a net decide where their actions are alike: blocks, or parts of them. Which block keeps its output and
 * which keeps what is inside takes many single changes to turn around, and those between cost more or do not fit. */
#include "plan/graph/hold_twins.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/sort.h"
#include "plan/graph/hold_annealer.h"

/* ---- which actions are alike ---- */

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_actions(const hold_graph *g, uint32_t a, uint32_t b)
{
    const hold_action *x = &g->actions[a], *y = &g->actions[b];
    int order = compare_numbers(x->cost, y->cost);
    order = order ? order : compare_numbers(x->workspace_bytes, y->workspace_bytes);
    order = order ? order : compare_numbers(x->write_count, y->write_count);
    for (uint32_t i = 0; !order && i < x->write_count; i++) {
        const hold_tensor *s = &g->tensors[x->writes[i]], *t = &g->tensors[y->writes[i]];
        order = compare_numbers(s->bytes, t->bytes);
        order = order ? order : compare_numbers(s->gap_count, t->gap_count);
    }
    return order;
}

static bool is_before(const void *user, uint32_t a, uint32_t b)
{
    return compare_actions(user, a, b) < 0;
}

remat_status hold_twins_create(const hold_graph *g, hold_twins *made)
{
    remat_context *context = g->graph->context;
    *made = (hold_twins){.actions = remat_alloc(context, g->action_count, sizeof *made->actions),
                         .kinds = remat_alloc(context, g->action_count, sizeof *made->kinds),
                         .firsts = remat_alloc(context, (size_t)g->action_count + 1, sizeof *made->firsts)};
    if (!made->actions || !made->kinds || !made->firsts)
        return REMAT_NO_MEMORY;
    for (uint32_t i = 0; i < g->action_count; i++) {
        made->kinds[i] = GRAPH_NONE;
        if (g->actions[i].makable && g->actions[i].write_count)
            made->actions[made->count++] = i;
    }
    REMAT_TRY(remat_sort(context, made->actions, made->count, is_before, g));
    for (uint32_t i = 0; i < made->count; i++) {
        if (i == 0 || compare_actions(g, made->actions[i - 1], made->actions[i]) != 0)
            made->firsts[made->kind_count++] = i;
        made->kinds[made->actions[i]] = made->kind_count - 1;
    }
    made->firsts[made->kind_count] = made->count;
    return REMAT_OK;
}

void hold_twins_release(const hold_graph *g, hold_twins *twins)
{
    remat_context *context = g->graph->context;
    remat_release(context, twins->actions, g->action_count, sizeof *twins->actions);
    remat_release(context, twins->kinds, g->action_count, sizeof *twins->kinds);
    remat_release(context, twins->firsts, (size_t)g->action_count + 1, sizeof *twins->firsts);
}

/* ---- the change ---- */

typedef enum hold_way { HELD, HELD_LATER, DROPPED } hold_way;

static hold_way way_of(const hold_annealer *h, uint32_t gap)
{
    const hold_gap *range = &h->g->gaps[gap];
    const uint32_t from = h->state.from[gap];
    return from == range->begin ? HELD : from == range->end ? DROPPED : HELD_LATER;
}

static void decide(hold_annealer *h, hold_change *c, uint32_t gap, hold_way way)
{
    const hold_gap *range = &h->g->gaps[gap];
    annealer_propose(h, c, gap, way == HELD ? range->begin : way == DROPPED ? range->end : range->begin + 1);
}

/* `a` decides as `b` did, and the other way round unless it only copies. */
static void exchange_decisions(hold_annealer *h, hold_change *c, uint32_t a, uint32_t b, bool copies)
{
    const hold_action *x = &h->g->actions[a], *y = &h->g->actions[b];
    for (uint32_t i = 0; i < x->write_count; i++) {
        const hold_tensor *s = &h->g->tensors[x->writes[i]], *t = &h->g->tensors[y->writes[i]];
        for (uint32_t k = 0; k < s->gap_count; k++) {
            const hold_way way_a = way_of(h, s->first_gap + k), way_b = way_of(h, t->first_gap + k);
            if (way_a == way_b)
                continue;
            decide(h, c, s->first_gap + k, way_b);
            if (!copies)
                decide(h, c, t->first_gap + k, way_a);
        }
    }
}

/* Two stretches of up to MOST_LENGTH actions that are alike one by one, and do not overlap. */
void annealer_exchange_twins(hold_annealer *h, hold_change *c)
{
    enum { MOST_LENGTH = 16, COPIES = 4 };
    const hold_twins *twins = h->twins;
    const uint32_t one = twins->actions[random_below(h, twins->count)], *firsts = &twins->firsts[twins->kinds[one]];
    const uint32_t other = twins->actions[firsts[0] + random_below(h, firsts[1] - firsts[0])];
    const uint32_t a = one < other ? one : other, b = one < other ? other : one;
    const uint32_t length = 1 + random_below(h, MOST_LENGTH);
    const bool copies = random_below(h, COPIES) == 0;
    for (uint32_t i = 0; i < length && a + i < b && b + i < h->g->action_count; i++) {
        if (twins->kinds[a + i] == GRAPH_NONE || twins->kinds[a + i] != twins->kinds[b + i])
            return;
        exchange_decisions(h, c, a + i, b + i, copies);
    }
}
