#include "plan/graph/graph_bound.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "base/search.h"
#include "plan/graph/graph_needed.h"
#include "plan/graph/max_flow.h"

/* Positions and prices that are tried; the larger the graph, the fewer positions. */
enum { MOST_POSITIONS = 40, PRICES = 40, WORK = 5000000 };

/* The smallest cut at a price: what it costs, and the bytes that it holds. */
typedef struct priced_cut {
    uint64_t price, flow, held;
} priced_cut;

/* A position is the first run of an action, or the end, which reads the results. */
typedef struct bound_search {
    const hold_graph *g;
    bool *needed;          /* by position: no schedule does without it */
    uint32_t *last_reader; /* by tensor: the last `once` action that reads it; GRAPH_NONE */
    uint64_t *passing;     /* by position of a `once` action: bytes that those before it made for those behind it */
    uint32_t *met;         /* by tensor: the latest position looked at that reads or writes it */
    bool *before, *behind; /* by position: it runs before the one at hand, or behind it, whatever the schedule */
    bool *wanted;          /* by tensor: an action behind reads it */
    uint64_t made_cost, made_bytes; /* of all that is makable */
    bool one_budget;                /* cuts are not shared by several */
    uint64_t largest;               /* bytes of a tensor that may be held in the cuts at hand */
    flow_network network;
    priced_cut *cuts; /* of the position at hand, by rising prices */
    size_t cut_count, cut_capacity;
} bound_search;

static bool runs_once(const hold_graph *g, uint32_t position)
{
    return position == g->action_count || g->graph->actions[position].once;
}

/* The action without which a tensor does not exist; GRAPH_NONE where it is given or has several writers. */
static uint32_t only_writer(const hold_graph *g, uint32_t tensor)
{
    const hold_tensor *t = &g->tensors[tensor];
    return t->maker != GRAPH_NONE ? t->maker : t->rewritten ? GRAPH_NONE : t->born;
}

/* ---- what is live in any case ---- */

/* Whether a tensor lives at the position of a `once` action because others make it before and read it behind: these keep their
 * order. */
static bool passes(const bound_search *s, uint32_t tensor, uint32_t position)
{
    const uint32_t writer = only_writer(s->g, tensor), reader = s->last_reader[tensor];
    return writer != GRAPH_NONE && reader != GRAPH_NONE && runs_once(s->g, writer) && runs_once(s->g, position) &&
           writer < position && position < reader;
}

static void sum_passing(bound_search *s)
{
    const hold_graph *g = s->g;
    memset(s->last_reader, 0xff, g->tensor_count * sizeof *s->last_reader);
    for (uint32_t i = 0; i < g->position_count; i++)
        for (uint32_t k = 0; runs_once(g, i) && k < g->actions[i].read_count; k++)
            s->last_reader[g->actions[i].reads[k]] = i;
    for (uint32_t t = 0; t < g->tensor_count; t++) {
        const uint32_t writer = only_writer(g, t), reader = s->last_reader[t];
        if (writer == GRAPH_NONE || reader == GRAPH_NONE || !runs_once(g, writer) || reader <= writer)
            continue;
        s->passing[writer + 1] += g->tensors[t].bytes;
        s->passing[reader] -= g->tensors[t].bytes; /* numbers wrap, and back */
    }
    for (uint32_t i = 1; i < g->position_count; i++)
        s->passing[i] += s->passing[i - 1];
}

/* Before a position is looked at for the second time. */
static void forget_met(bound_search *s)
{
    memset(s->met, 0xff, s->g->tensor_count * sizeof *s->met);
}

/* The bytes of a tensor, the first time that it is met at a position. */
static uint64_t meet(bound_search *s, uint32_t tensor, uint32_t position)
{
    const bool counts = s->met[tensor] != position && !passes(s, tensor, position);
    s->met[tensor] = position;
    return counts ? s->g->tensors[tensor].bytes : 0;
}

/* What lives at a position whatever the schedule: what the action reads and writes, and what passes. */
static uint64_t bytes_at(bound_search *s, uint32_t position)
{
    const hold_action *action = &s->g->actions[position];
    uint64_t bytes = s->g->given_bytes + action->workspace_bytes;
    bytes += runs_once(s->g, position) ? s->passing[position] : 0;
    for (uint32_t i = 0; i < action->read_count; i++)
        bytes += meet(s, action->reads[i], position);
    for (uint32_t i = 0; i < action->write_count; i++) {
        const bool is_in_place = action->in_place_from != GRAPH_NONE && action->writes[i] == action->in_place_to;
        const uint64_t written = meet(s, action->writes[i], position);
        bytes += is_in_place ? 0 : written;
    }
    return bytes;
}

/* ---- what runs before a position, and behind it ---- */

static void find_before(bound_search *s, uint32_t position)
{
    const hold_graph *g = s->g;
    bool has_once = runs_once(g, position);
    memset(s->before, 0, g->position_count * sizeof *s->before);
    for (uint32_t i = position + 1; i-- > 0;) {
        s->before[i] |= i == position || (has_once && runs_once(g, i));
        has_once |= s->before[i] && runs_once(g, i);
        for (uint32_t k = 0; s->before[i] && k < g->actions[i].read_count; k++) {
            const uint32_t writer = only_writer(g, g->actions[i].reads[k]);
            if (writer != GRAPH_NONE)
                s->before[writer] = true;
        }
    }
}

static bool reads_from_behind(const bound_search *s, uint32_t action)
{
    const hold_graph *g = s->g;
    for (uint32_t k = 0; k < g->actions[action].read_count; k++) {
        const uint32_t writer = only_writer(g, g->actions[action].reads[k]);
        if (writer != GRAPH_NONE && s->behind[writer])
            return true;
    }
    return false;
}

/* Wanted is what is read behind the position and no later than at `last`, which is the end or, as the position, a `once` action. Of
 * other actions it is not known whether they run before `last`. */
static void find_behind(bound_search *s, uint32_t position, uint32_t last)
{
    const hold_graph *g = s->g;
    bool has_once = runs_once(g, position);
    memset(s->behind, 0, g->position_count * sizeof *s->behind);
    memset(s->wanted, 0, g->tensor_count * sizeof *s->wanted);
    s->behind[position] = true; /* for those that read from it */
    for (uint32_t i = position + 1; i < g->position_count; i++) {
        s->behind[i] = i == g->action_count || (has_once && runs_once(g, i)) || reads_from_behind(s, i);
        has_once |= s->behind[i] && runs_once(g, i);
        const bool is_within = last == g->action_count || (i <= last && runs_once(g, i));
        for (uint32_t k = 0; is_within && s->behind[i] && s->needed[i] && k < g->actions[i].read_count; k++)
            s->wanted[g->actions[i].reads[k]] = true;
    }
}

/* ---- a cut ---- */

/* Nodes: the tensors, then the actions, the source, the sink. A tensor on the source's side is needed; an action there runs
 * behind the position: if it ran before, for the second time. What is too large to be held is made. Costs are in units of 2^-shift. */
static remat_status build(bound_search *s, uint32_t position, uint64_t price, unsigned shift)
{
    const hold_graph *g = s->g;
    const uint32_t source = g->tensor_count + g->action_count, sink = source + 1;
    flow_network *network = &s->network;
    flow_network_clear(network);
    for (uint32_t t = 0; t < g->tensor_count; t++) {
        const hold_tensor *tensor = &g->tensors[t];
        if (tensor->maker == GRAPH_NONE || s->met[t] == position)
            continue;
        if (s->wanted[t])
            REMAT_TRY(flow_network_add(network, source, t, FLOW_UNLIMITED));
        const uint64_t hold = tensor->bytes > s->largest ? FLOW_UNLIMITED : tensor->bytes * price;
        REMAT_TRY(flow_network_add(network, t, g->tensor_count + tensor->maker, hold));
    }
    for (uint32_t i = 0; i < g->action_count; i++) {
        const hold_action *action = &g->actions[i];
        if (!action->makable)
            continue;
        REMAT_TRY(flow_network_add(network, g->tensor_count + i, sink, s->before[i] ? action->cost << shift : 0));
        for (uint32_t k = 0; k < action->read_count; k++)
            if (g->tensors[action->reads[k]].maker != GRAPH_NONE && s->met[action->reads[k]] != position)
                REMAT_TRY(flow_network_add(network, g->tensor_count + i, action->reads[k], FLOW_UNLIMITED));
    }
    return REMAT_OK;
}

/* What is held in the cut: needed, and not made behind the position. */
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

/* ---- cuts at all prices ----
 *
 * A choice of what is held costs its recomputation and its bytes times the price: a line over the price. The smallest cut is the
 * least of all these lines, so it is concave, and below the line of every cut that is known. Where a line meets it at two prices,
 * it is the smallest cut at every price between them. Such cuts are known without solving them:
 *
 *     flow |          ___----*  c
 *          |     b *--                  the line of b passes through c: all prices between
 *          |      /                     them have the flow of that line and hold what b holds
 *          |   a *
 *          +------------------------ price                                                    */

static uint64_t line_at(const priced_cut *cut, uint64_t price)
{
    return cut->flow + cut->held * (price - cut->price); /* may wrap below, and back */
}

/* The cut that is the smallest all the way between two neighbours; NULL: not known. */
static const priced_cut *line_between(const priced_cut *low, const priced_cut *high)
{
    if (line_at(low, high->price) == high->flow)
        return low;
    return line_at(high, low->price) == low->flow ? high : NULL;
}

static remat_status solve_cut(bound_search *s, uint32_t position, unsigned shift, uint64_t price, size_t at)
{
    const uint32_t source = s->g->tensor_count + s->g->action_count, sink = source + 1;
    REMAT_TRY(remat_grow(s->g->graph->context, (void **)&s->cuts, &s->cut_capacity, s->cut_count + 1, sizeof *s->cuts));
    REMAT_TRY(build(s, position, price, shift));
    const uint64_t flow = flow_network_solve(&s->network, source, sink);
    memmove(s->cuts + at + 1, s->cuts + at, (s->cut_count - at) * sizeof *s->cuts);
    s->cuts[at] = (priced_cut){price, flow, held_bytes(s)};
    s->cut_count++;
    return REMAT_OK;
}

static remat_status find_cut(bound_search *s, uint32_t position, unsigned shift, uint64_t price, priced_cut *cut)
{
    const size_t at = REMAT_FIRST(i, 0, s->cut_count, s->cuts[i].price >= price);
    const bool is_known = at < s->cut_count && s->cuts[at].price == price;
    const priced_cut *line =
        is_known || at == 0 || at == s->cut_count ? NULL : line_between(&s->cuts[at - 1], &s->cuts[at]);
    if (line) {
        *cut = (priced_cut){price, line_at(line, price), line->held};
        return REMAT_OK;
    }
    if (!is_known)
        REMAT_TRY(solve_cut(s, position, shift, price, at));
    *cut = s->cuts[at];
    return REMAT_OK;
}

/* The best price lies between `low`, at which too much is held, and `high`, at which it fits. Where their lines meet, no cut is known
 * to be smaller; if none is, that is the best price. A cut without a flow is not known: then a price between their powers of two. */
static uint64_t next_price(const priced_cut *low, const priced_cut *high)
{
    uint64_t price = low->price ? low->price << (remat_bits(high->price / low->price) / 2)
                                : (uint64_t)1 << (remat_bits(high->price) / 2);
    if (low->flow && high->flow && low->held > high->held) {
        const __int128 apart = (__int128)high->flow - low->flow - (__int128)high->held * (high->price - low->price);
        price = low->price + (uint64_t)(apart / (__int128)(low->held - high->held));
    }
    return price >= high->price ? high->price - 1 : price <= low->price ? low->price + 1 : price;
}

static remat_status recomputed_at(bound_search *s, uint32_t position, uint64_t room, uint64_t *recomputed)
{
    const unsigned cost_bits = remat_bits(s->made_cost), byte_bits = remat_bits(s->made_bytes);
    if (cost_bits > 60 || byte_bits > 60)
        return REMAT_OK; /* so large that prices would pass 64 bits: no bound beyond the simple one */
    s->largest = s->one_budget ? room : UINT64_MAX;
    s->cut_count = s->one_budget ? 0 : s->cut_count; /* known cuts are those of other rooms */
    /* Near the smallest peak a byte is worth much more than on average: some bits are left for that. */
    const unsigned spare = 60 - cost_bits, dearer = (60 - byte_bits) / 3, shift = spare > dearer ? spare - dearer : 0;
    priced_cut low = {0}, high = {.price = (uint64_t)1 << (60 - byte_bits)};
    high.price = remat_min(high.price, (s->made_cost << shift) + 1); /* no byte is worth more than all costs together */
    for (int i = 0; i < PRICES && high.price - low.price > 1; i++) {
        priced_cut cut;
        REMAT_TRY(find_cut(s, position, shift, next_price(&low, &high), &cut));
        const unsigned __int128 paid = (unsigned __int128)cut.price * room;
        if (cut.flow > paid) {
            const uint64_t bound = (cut.flow - (uint64_t)paid + (((uint64_t)1 << shift) - 1)) >> shift;
            *recomputed = remat_max(*recomputed, bound);
        }
        *(cut.held > room ? &low : &high) = cut;
    }
    return REMAT_OK;
}

/* ---- all together ---- */

static void release(bound_search *s)
{
    remat_context *context = s->g->graph->context;
    const size_t tensors = s->g->tensor_count, positions = s->g->position_count;
    remat_release(context, s->needed, positions, sizeof *s->needed);
    remat_release(context, s->before, positions, sizeof *s->before);
    remat_release(context, s->behind, positions, sizeof *s->behind);
    remat_release(context, s->passing, positions + 1, sizeof *s->passing);
    remat_release(context, s->last_reader, tensors, sizeof *s->last_reader);
    remat_release(context, s->met, tensors, sizeof *s->met);
    remat_release(context, s->wanted, tensors, sizeof *s->wanted);
    remat_release(context, s->cuts, s->cut_capacity, sizeof *s->cuts);
    flow_network_release(&s->network);
}

static remat_status begin(bound_search *s, const hold_graph *g)
{
    remat_context *context = g->graph->context;
    const size_t tensors = g->tensor_count, positions = g->position_count;
    *s = (bound_search){.g = g};
    s->needed = remat_alloc(context, positions, sizeof *s->needed);
    s->before = remat_alloc(context, positions, sizeof *s->before);
    s->behind = remat_alloc(context, positions, sizeof *s->behind);
    s->passing = remat_alloc_zeroed(context, positions + 1, sizeof *s->passing);
    s->last_reader = remat_alloc(context, tensors, sizeof *s->last_reader);
    s->met = remat_alloc(context, tensors, sizeof *s->met);
    s->wanted = remat_alloc(context, tensors, sizeof *s->wanted);
    const bool has_all = s->needed && s->before && s->behind && s->passing && s->last_reader && s->met && s->wanted;
    remat_status status = has_all ? graph_needed_find(g->graph, NEEDS_NONE, s->needed) : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        status = flow_network_create(context, g->tensor_count + g->action_count + 2, &s->network);
    if (status != REMAT_OK) {
        release(s);
        return status;
    }
    /* If nothing has to run, the schedule may be empty, and then there is no end at which something lives. */
    s->needed[g->action_count] = g->actions[g->action_count].read_count > 0;
    for (uint32_t i = 0; i < g->action_count; i++)
        s->needed[g->action_count] |= s->needed[i];
    forget_met(s);
    sum_passing(s);
    for (uint32_t i = 0; i < g->action_count; i++)
        s->made_cost += g->actions[i].makable ? g->actions[i].cost : 0;
    for (uint32_t t = 0; t < g->tensor_count; t++)
        s->made_bytes += g->tensors[t].maker != GRAPH_NONE ? g->tensors[t].bytes : 0;
    return REMAT_OK;
}

static uint32_t find_tightest(bound_search *s, uint64_t *bytes)
{
    uint32_t position = 0;
    *bytes = 0;
    for (uint32_t i = 0; s->g->action_count && i < s->g->position_count; i++) {
        const uint64_t now = s->needed[i] ? bytes_at(s, i) : 0;
        position = now > *bytes ? i : position;
        *bytes = remat_max(*bytes, now);
    }
    forget_met(s);
    return position;
}

/* Some positions, evenly; also the one that leaves least room, and in a training the turn from forward to backward, where most is
 * held. */
static remat_status try_positions(bound_search *s, const uint64_t *budgets, size_t count, uint64_t *recomputed)
{
    const hold_graph *g = s->g;
    const uint64_t work = (uint64_t)g->link_count + g->tensor_count + g->action_count + 1;
    const uint64_t tries = remat_min(WORK / work + 1, MOST_POSITIONS), actions = g->action_count;
    uint64_t most;
    const uint32_t tightest = find_tightest(s, &most);
    for (uint32_t i = 0; i < actions; i++) {
        const bool is_tried =
            i + 1 == g->turn || i == tightest || actions <= tries || i * tries / actions != (i + 1) * tries / actions;
        if (!s->needed[i] || !is_tried)
            continue;
        const uint64_t bytes = bytes_at(s, i);
        find_before(s, i);
        find_behind(s, i, g->action_count);
        s->cut_count = 0;
        for (size_t k = 0; k < count; k++)
            if (bytes <= budgets[k]) /* else nothing fits at all: the smallest budget says so */
                REMAT_TRY(recomputed_at(s, i, budgets[k] - bytes, &recomputed[k]));
    }
    return REMAT_OK;
}

/* ---- windows ----
 *
 * Between two `once` actions lies a window: what is read there and does not live at the first of them is made within it. Windows do
 * not overlap, so that what is made again in one of them comes to what is made again in the others. The best row of windows, each
 * from one of some positions to another or to the end, is found from the last position to the first. */

enum { MOST_ENDS = 16 };

/* The tightest `once` action of every part behind the turn, with what it needs. Returns their number. */
static size_t choose_ends(bound_search *s, size_t most, uint32_t *ends, uint64_t *bytes)
{
    const hold_graph *g = s->g;
    const uint64_t range = g->action_count - g->turn;
    size_t count = 0, part = SIZE_MAX;
    forget_met(s);
    for (uint32_t i = g->turn; i < g->action_count; i++) {
        const uint64_t now = runs_once(g, i) ? bytes_at(s, i) : 0;
        const size_t own = (size_t)((i - g->turn) * most / range);
        if (now == 0 || (own == part && now <= bytes[count - 1]))
            continue;
        count += own != part;
        part = own;
        ends[count - 1] = i;
        bytes[count - 1] = now;
    }
    forget_met(s);
    return count;
}

static remat_status try_windows(bound_search *s, uint64_t budget, uint64_t *recomputed)
{
    const hold_graph *g = s->g;
    const uint64_t work = (uint64_t)g->link_count + g->tensor_count + g->action_count + 1;
    uint32_t ends[MOST_ENDS];
    uint64_t bytes[MOST_ENDS], best[MOST_ENDS + 1] = {0};
    size_t most = MOST_ENDS;
    while (most > 2 && most * most / 2 > WORK / work)
        most--;
    const size_t count = choose_ends(s, most, ends, bytes);
    for (size_t i = count; i-- > 0;) {
        if (bytes_at(s, ends[i]) > budget)
            return REMAT_OK; /* nothing fits at all */
        find_before(s, ends[i]);
        for (size_t k = i + 1; k <= count; k++) {
            uint64_t within = 0;
            find_behind(s, ends[i], k < count ? ends[k] : g->action_count);
            s->cut_count = 0;
            REMAT_TRY(recomputed_at(s, ends[i], budget - bytes[i], &within));
            const uint64_t behind = k < count ? best[k] : 0;
            best[i] = remat_max(best[i], within + behind);
        }
        *recomputed = remat_max(*recomputed, best[i]);
    }
    return REMAT_OK;
}

/* ---- what all offer ---- */

static remat_status bound_costs(const hold_graph *g, const uint64_t *budgets, size_t count, bool has_windows,
                                uint64_t *costs)
{
    bound_search s;
    uint64_t cost = 0;
    memset(costs, 0, count * sizeof *costs);
    REMAT_TRY(begin(&s, g));
    s.one_budget = has_windows;
    for (uint32_t i = 0; i < g->action_count; i++)
        cost += s.needed[i] ? g->graph->actions[i].cost : 0;
    const bool is_bounded = count > 1 || budgets[0] != UINT64_MAX;
    remat_status status = is_bounded ? try_positions(&s, budgets, count, costs) : REMAT_OK;
    for (size_t k = 0; status == REMAT_OK && is_bounded && has_windows && k < count; k++)
        status = try_windows(&s, budgets[k], &costs[k]);
    for (size_t k = 0; k < count; k++)
        costs[k] += cost;
    release(&s);
    return status;
}

remat_status graph_bound_costs(const hold_graph *g, const uint64_t *budgets, size_t count, uint64_t *costs)
{
    return bound_costs(g, budgets, count, false, costs);
}

remat_status graph_bound_cost(const hold_graph *g, uint64_t budget, uint64_t *cost)
{
    return bound_costs(g, &budget, 1, true, cost);
}

remat_status graph_bound_tightest(const hold_graph *g, uint64_t *bytes, uint32_t *position)
{
    bound_search s;
    REMAT_TRY(begin(&s, g));
    *position = find_tightest(&s, bytes);
    release(&s);
    return REMAT_OK;
}

remat_status graph_bound_peak(const hold_graph *g, uint64_t *bytes)
{
    uint32_t position;
    return graph_bound_tightest(g, bytes, &position);
}
