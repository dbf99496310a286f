#include "plan/graph/graph_bound.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "plan/graph/hold_graph.h"
#include "plan/graph/max_flow.h"

/* Positions and prices that are tried; the larger the graph, the fewer. */
enum { MOST_POSITIONS = 24, PRICES = 14, WORK = 3000000 };

typedef struct bound_search {
    const hold_graph *g;
    uint32_t *last_reader; /* by tensor: the last fixed action that needs it; GRAPH_NONE */
    uint8_t *ran;          /* by action: it must have run by the position at hand */
    uint8_t *there;        /* by tensor: live at the position at hand in any case */
    uint64_t *passing; /* by position: bytes of what was written by a fixed action before and is read by one behind */
    uint32_t *stack;
    flow_network network;
    uint64_t total_cost; /* of all makable actions */
} bound_search;

/* ---- what is live in any case ---- */

static void find_readers(bound_search *s)
{
    const hold_graph *g = s->g;
    memset(s->last_reader, 0xff, g->tensor_count * sizeof *s->last_reader);
    for (uint32_t i = 0; i < g->position_count; i++)
        for (uint32_t k = 0; !g->actions[i].makable && k < g->actions[i].read_count; k++)
            s->last_reader[g->actions[i].reads[k]] = i;
}

/* Whether a tensor lives at a position because fixed actions before and behind it write and read it. One with several
 * instances is left out: it may be another one that is read. */
static bool passes(const bound_search *s, uint32_t number, uint32_t position)
{
    const hold_tensor *tensor = &s->g->tensors[number];
    return tensor->maker == GRAPH_NONE && tensor->born != GRAPH_NONE && !tensor->rewritten && tensor->born < position &&
           s->last_reader[number] != GRAPH_NONE && s->last_reader[number] > position;
}

static void sum_passing(bound_search *s)
{
    const hold_graph *g = s->g;
    for (uint32_t t = 0; t < g->tensor_count; t++) {
        uint32_t born = g->tensors[t].born;
        if (born == GRAPH_NONE || !passes(s, t, born + 1))
            continue;
        s->passing[born + 1] += g->tensors[t].bytes;
        s->passing[s->last_reader[t]] -= g->tensors[t].bytes; /* numbers wrap, and back */
    }
    for (uint32_t i = 1; i < g->position_count; i++)
        s->passing[i] += s->passing[i - 1];
}

/* Bytes that live at the position of a fixed action whatever the schedule: what it reads and writes, and what passes. */
static uint64_t bytes_at(const bound_search *s, uint32_t position)
{
    const hold_graph *g = s->g;
    const hold_action *action = &g->actions[position];
    uint64_t bytes = g->given_bytes + action->workspace_bytes + s->passing[position];
    for (uint32_t i = 0; i < action->read_count; i++) {
        bool is_first = true;
        for (uint32_t k = 0; k < i; k++)
            is_first &= action->reads[k] != action->reads[i];
        if (is_first && !passes(s, action->reads[i], position))
            bytes += g->tensors[action->reads[i]].bytes;
    }
    for (uint32_t i = 0; i < action->write_count; i++) {
        bool is_counted = action->writes[i] == action->in_place_to && action->in_place_from != GRAPH_NONE;
        for (uint32_t k = 0; k < action->read_count; k++)
            is_counted |= action->reads[k] == action->writes[i];
        bytes += is_counted ? 0 : g->tensors[action->writes[i]].bytes;
    }
    return bytes;
}

static void mark_there(bound_search *s, uint32_t position)
{
    const hold_action *action = &s->g->actions[position];
    memset(s->there, 0, s->g->tensor_count);
    for (uint32_t i = 0; i < action->read_count; i++)
        s->there[action->reads[i]] = 1;
}

/* ---- a cut ---- */

static void mark_run(bound_search *s, uint32_t action)
{
    const hold_graph *g = s->g;
    size_t depth = 0;
    if (s->ran[action])
        return;
    s->ran[action] = 1;
    s->stack[depth++] = action;
    while (depth > 0) {
        const hold_action *now = &g->actions[s->stack[--depth]];
        for (uint32_t i = 0; i < now->read_count; i++) {
            uint32_t maker = g->tensors[now->reads[i]].maker;
            if (maker != GRAPH_NONE && !s->ran[maker]) {
                s->ran[maker] = 1;
                s->stack[depth++] = maker;
            }
        }
    }
}

/* Nodes: the tensors, then the actions, the source, the sink. A tensor on the source's side is needed; an action there runs
 * after the position. Costs are in units of 2^-shift. */
static remat_status build(bound_search *s, uint32_t position, uint64_t price, unsigned shift)
{
    const hold_graph *g = s->g;
    const uint32_t source = g->tensor_count + g->action_count, sink = source + 1;
    flow_network *network = &s->network;
    flow_network_clear(network);
    for (uint32_t t = 0; t < g->tensor_count; t++) {
        const hold_tensor *tensor = &g->tensors[t];
        if (tensor->maker == GRAPH_NONE || s->there[t])
            continue;
        if (s->last_reader[t] != GRAPH_NONE && s->last_reader[t] > position)
            REMAT_TRY(flow_network_add(network, source, t, FLOW_UNLIMITED));
        REMAT_TRY(flow_network_add(network, t, g->tensor_count + tensor->maker, tensor->bytes * price));
    }
    for (uint32_t i = 0; i < g->action_count; i++) {
        const hold_action *action = &g->actions[i];
        if (!action->makable)
            continue;
        REMAT_TRY(flow_network_add(network, g->tensor_count + i, sink, s->ran[i] ? action->cost << shift : 0));
        for (uint32_t k = 0; k < action->read_count; k++)
            if (g->tensors[action->reads[k]].maker != GRAPH_NONE && !s->there[action->reads[k]])
                REMAT_TRY(flow_network_add(network, g->tensor_count + i, action->reads[k], FLOW_UNLIMITED));
    }
    return REMAT_OK;
}

/* What is held in the cut: needed, and not made after the position. */
static uint64_t held_bytes(const bound_search *s)
{
    const hold_graph *g = s->g;
    uint64_t bytes = 0;
    for (uint32_t t = 0; t < g->tensor_count; t++)
        if (g->tensors[t].maker != GRAPH_NONE && flow_network_on_source_side(&s->network, t) &&
            !flow_network_on_source_side(&s->network, g->tensor_count + g->tensors[t].maker))
            bytes += g->tensors[t].bytes;
    return bytes;
}

/* The best price lies between one at which too much is held and one at which it fits. */
static remat_status bound_at(bound_search *s, uint32_t position, uint64_t room, uint64_t *recomputed)
{
    const hold_graph *g = s->g;
    const uint32_t source = g->tensor_count + g->action_count, sink = source + 1;
    uint64_t all_bytes = 0;
    for (uint32_t t = 0; t < g->tensor_count; t++)
        all_bytes += g->tensors[t].maker == GRAPH_NONE ? 0 : g->tensors[t].bytes;
    const unsigned cost_bits = remat_bits(s->total_cost), byte_bits = remat_bits(all_bytes);
    if (cost_bits > 60 || byte_bits > 60)
        return REMAT_OK; /* so large that prices would pass 64 bits: no bound beyond the simple one */
    const unsigned shift = 60 - cost_bits;
    uint64_t low = 0, high = ((uint64_t)1 << (60 - byte_bits));
    /* no byte is worth more than all costs together */
    high = remat_min(high, (s->total_cost << shift) + 1);
    for (int i = 0; i < PRICES && low < high; i++) {
        /* between powers at first, so that small prices are found, too */
        uint64_t price = low == 0 ? (uint64_t)1 << (remat_bits(high) / 2) : low + (high - low) / 2;
        if (low && high / low > 4)
            price = low << (remat_bits(high / low) / 2);
        price = price >= high ? high - 1 : price <= low ? low + 1 : price;
        if (price <= low || price >= high)
            break;
        REMAT_TRY(build(s, position, price, shift));
        uint64_t flow = flow_network_solve(&s->network, source, sink);
        unsigned __int128 paid = (unsigned __int128)price * room;
        if (flow > paid) {
            uint64_t bound = (uint64_t)((flow - (uint64_t)paid + (((uint64_t)1 << shift) - 1)) >> shift);
            *recomputed = remat_max(*recomputed, bound);
        }
        if (held_bytes(s) > room)
            low = price;
        else
            high = price;
    }
    return REMAT_OK;
}

/* ---- all together ---- */

static void release(bound_search *s)
{
    remat_context *context = s->g->graph->context;
    remat_release(context, s->last_reader, s->g->tensor_count, sizeof *s->last_reader);
    remat_release(context, s->ran, s->g->position_count, sizeof *s->ran);
    remat_release(context, s->there, s->g->tensor_count, sizeof *s->there);
    remat_release(context, s->passing, s->g->position_count, sizeof *s->passing);
    remat_release(context, s->stack, s->g->position_count, sizeof *s->stack);
    flow_network_release(&s->network);
}

static remat_status begin(bound_search *s, const hold_graph *g)
{
    remat_context *context = g->graph->context;
    *s = (bound_search){.g = g};
    s->last_reader = remat_alloc(context, g->tensor_count, sizeof *s->last_reader);
    s->ran = remat_alloc_zeroed(context, g->position_count, sizeof *s->ran);
    s->there = remat_alloc(context, g->tensor_count, sizeof *s->there);
    s->passing = remat_alloc_zeroed(context, g->position_count, sizeof *s->passing);
    s->stack = remat_alloc(context, g->position_count, sizeof *s->stack);
    remat_status status = s->last_reader && s->ran && s->there && s->passing && s->stack ? REMAT_OK : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        status = flow_network_create(context, g->tensor_count + g->action_count + 2, &s->network);
    if (status != REMAT_OK) {
        release(s);
        return status;
    }
    find_readers(s);
    sum_passing(s);
    for (uint32_t i = 0; i < g->action_count; i++)
        s->total_cost += g->actions[i].makable ? g->actions[i].cost : 0;
    return REMAT_OK;
}

static remat_status walk_positions(bound_search *s, uint64_t budget, uint64_t least_cost, uint64_t *bound)
{
    const hold_graph *g = s->g;
    uint64_t count = WORK / ((uint64_t)g->link_count + g->tensor_count + g->action_count + 1), fixed = 0, seen = 0;
    count = count > MOST_POSITIONS ? MOST_POSITIONS : count + 1;
    for (uint32_t i = 0; i < g->action_count; i++)
        fixed += !g->actions[i].makable;
    for (uint32_t i = 0; i < g->action_count; i++) {
        if (g->actions[i].makable)
            continue;
        mark_run(s, i);
        seen++;
        /* evenly, behind the turn: before it little is to be made again */
        if (i + 1 < g->turn ||
            (fixed > count && seen * count / fixed == (seen - 1) * count / fixed && i + 1 != g->turn))
            continue;
        uint64_t bytes = bytes_at(s, i), recomputed = 0;
        if (bytes > budget)
            continue; /* nothing fits at all: the smallest budget says so */
        mark_there(s, i);
        REMAT_TRY(bound_at(s, i, budget - bytes, &recomputed));
        *bound = remat_max(*bound, least_cost + recomputed);
    }
    return REMAT_OK;
}

remat_status graph_bound_cost(const remat_graph *graph, graph_counting counting, uint64_t budget, uint64_t least_cost,
                              uint64_t *bound)
{
    hold_graph g;
    bound_search s;
    *bound = least_cost;
    REMAT_TRY(hold_graph_create(graph, counting, &g));
    remat_status status = begin(&s, &g);
    if (status == REMAT_OK) {
        status = walk_positions(&s, budget, least_cost, bound);
        release(&s);
    }
    hold_graph_release(&g);
    return status;
}

remat_status graph_bound_peak(const remat_graph *graph, graph_counting counting, uint64_t *bound)
{
    hold_graph g;
    bound_search s;
    *bound = 0;
    REMAT_TRY(hold_graph_create(graph, counting, &g));
    remat_status status = begin(&s, &g);
    if (status == REMAT_OK) {
        for (uint32_t i = 0; i < g.action_count; i++)
            if (!g.actions[i].makable)
                *bound = remat_max(*bound, bytes_at(&s, i));
        release(&s);
    }
    hold_graph_release(&g);
    return status;
}
