#include "plan/graph/hold_graph.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "plan/graph/graph_needed.h"

void hold_graph_release(hold_graph *g)
{
    if (!g->graph)
        return;
    remat_context *context = g->graph->context;
    remat_release(context, g->actions, g->position_count, sizeof *g->actions);
    remat_release(context, g->tensors, g->tensor_count, sizeof *g->tensors);
    remat_release(context, g->gaps, g->gap_count, sizeof *g->gaps);
    remat_release(context, g->links, g->link_count, sizeof *g->links);
    remat_release(context, g->link_gaps, g->link_count, sizeof *g->link_gaps);
    remat_release(context, g->fixed_bytes, (size_t)g->position_count + 1, sizeof *g->fixed_bytes);
    *g = (hold_graph){0};
}

/* ---- what may be made again ---- */

/* REWRITTEN: by a second writer, so that its value depends on when it is read. */
enum { WRITTEN = 1, REWRITTEN = 2, READ = 4 };

typedef struct tensor_facts {
    uint8_t marks;
    uint32_t first_update; /* the action; GRAPH_NONE: none */
    uint32_t needed_until; /* the last position at which it may be needed, or what is made from it */
} tensor_facts;

static void mark_tensors(const remat_graph *graph, tensor_facts *facts)
{
    for (size_t t = 0; t < graph->tensor_count; t++)
        facts[t] = (tensor_facts){.first_update = GRAPH_NONE};
    for (size_t i = 0; i < graph->result_count; i++)
        facts[graph->results[i]] =
            (tensor_facts){.marks = READ, .first_update = GRAPH_NONE, .needed_until = (uint32_t)graph->action_count};
    for (uint32_t i = 0; i < graph->action_count; i++) {
        const graph_action *action = &graph->actions[i];
        const uint32_t *reads = graph_reads(graph, action), *writes = graph_writes(graph, action);
        const uint32_t *updates = graph_updates(graph, action);
        for (size_t k = 0; k < graph_need_count(action); k++)
            facts[reads[k]].marks |= READ;
        for (size_t k = 0; k < action->update_count; k++)
            facts[updates[k]].first_update = (uint32_t)remat_min(facts[updates[k]].first_update, i);
        for (size_t k = 0; k < action->write_count; k++)
            facts[writes[k]].marks |= facts[writes[k]].marks & WRITTEN ? REWRITTEN : WRITTEN;
    }
}

static uint32_t first_change(const remat_graph *graph, const graph_action *action, const tensor_facts *facts)
{
    const uint32_t *reads = graph_reads(graph, action);
    uint32_t first = GRAPH_NONE;
    for (size_t i = 0; i < action->read_count; i++)
        first = (uint32_t)remat_min(first, facts[reads[i]].first_update);
    return first;
}

/* Whether an action may run again wherever what it writes may be needed, up to `until`. What it reads must be the same there: a weight
 * may be updated behind the last position that needs what was made with it. */
static bool is_makable(const remat_graph *graph, const graph_action *action, const tensor_facts *facts, uint32_t until)
{
    const uint32_t *reads = graph_reads(graph, action), *writes = graph_writes(graph, action);
    if (action->once || first_change(graph, action, facts) < until)
        return false;
    for (size_t i = 0; i < action->write_count; i++)
        if (facts[writes[i]].marks & REWRITTEN || facts[writes[i]].first_update != GRAPH_NONE)
            return false;
    for (size_t i = 0; i < action->read_count; i++) {
        if (facts[reads[i]].marks & REWRITTEN)
            return false;
        for (size_t k = 0; k < action->write_count; k++)
            if (reads[i] == writes[k])
                return false;
    }
    return true;
}

/* From the last action to the first, because what is made from a tensor says how long it may be needed. */
static void find_makable(const remat_graph *graph, tensor_facts *facts, bool *makable)
{
    for (uint32_t i = (uint32_t)graph->action_count; i-- > 0;) {
        const graph_action *action = &graph->actions[i];
        const uint32_t *needs = graph_reads(graph, action), *writes = graph_writes(graph, action);
        uint32_t until = i;
        for (size_t k = 0; k < action->write_count; k++)
            until = (uint32_t)remat_max(until, facts[writes[k]].needed_until);
        makable[i] = is_makable(graph, action, facts, until);
        for (size_t k = 0; k < graph_need_count(action); k++)
            facts[needs[k]].needed_until = (uint32_t)remat_max(facts[needs[k]].needed_until, makable[i] ? until : i);
    }
}

/* ---- actions ---- */

/* An action that is not needed reads and writes nothing, and so never runs. */
static void add_action(hold_graph *g, uint32_t number, bool makable, bool needed)
{
    const remat_graph *graph = g->graph;
    const graph_action *from = &graph->actions[number];
    hold_action *to = &g->actions[number];
    const uint32_t *needs = graph_reads(graph, from);
    uint32_t *links = g->links + g->link_count;
    *to = (hold_action){.reads = links,
                        .writes = links,
                        .read_gaps = g->link_gaps + g->link_count,
                        .cost = from->cost,
                        .makable = makable || !needed,
                        .in_place_from = GRAPH_NONE,
                        .in_place_to = GRAPH_NONE};
    if (!needed)
        return;
    for (size_t i = 0; i < graph_need_count(from); i++)
        if (!graph->tensors[needs[i]].given)
            links[to->read_count++] = needs[i];
    to->writes = links + to->read_count;
    to->write_count = from->write_count;
    if (from->write_count)
        memcpy(links + to->read_count, graph_writes(graph, from), from->write_count * sizeof *links);
    g->link_count += (size_t)to->read_count + to->write_count;
    if (from->in_place_from != GRAPH_NONE && !graph->tensors[from->in_place_from].given &&
        graph->tensors[from->in_place_to].bytes <= graph->tensors[from->in_place_from].bytes) {
        to->in_place_from = from->in_place_from;
        to->in_place_to = from->in_place_to;
    }
    if (!makable)
        return;
    g->turn = number + 1;
    g->makable_count += to->write_count;
    for (size_t i = 0; i < to->write_count; i++)
        g->tensors[to->writes[i]].maker = number;
}

/* One whose writes nobody reads is not makable where it must run: nothing would ask for it. */
static bool is_read(const remat_graph *graph, const graph_action *action, const tensor_facts *facts)
{
    const uint32_t *writes = graph_writes(graph, action);
    for (size_t i = 0; i < action->write_count; i++)
        if (facts[writes[i]].marks & READ)
            return true;
    return false;
}

/* One that nobody needs may take the place of another that writes the same. */
static bool is_pinned(const remat_graph *graph, const graph_action *action, const tensor_facts *facts, bool makable,
                      bool needed)
{
    const uint32_t *writes = graph_writes(graph, action);
    bool has_rival = false;
    for (size_t i = 0; i < action->write_count; i++)
        has_rival |= (facts[writes[i]].marks & REWRITTEN) != 0;
    return !action->once && !makable && (needed || has_rival);
}

/* Where memory is placed, the graph is that of a program, in which every action has its purpose and runs. */
static void add_actions(hold_graph *g, const tensor_facts *facts, const bool *makable, const bool *needed)
{
    const remat_graph *graph = g->graph;
    const bool placed = g->counting == GRAPH_PLACED;
    for (uint32_t i = 0; i < g->action_count; i++) {
        const graph_action *action = &graph->actions[i];
        const bool runs_again = makable[i] && (!placed || is_read(graph, action, facts));
        add_action(g, i, runs_again, placed || needed[i]);
        g->has_pinned |= is_pinned(graph, action, facts, runs_again, placed || needed[i]);
        g->actions[i].unchanged_until = first_change(graph, action, facts);
        g->actions[i].workspace_bytes = placed ? graph_placed_bytes(action->workspace_bytes) : action->workspace_bytes;
    }
}

static remat_status choose_actions(hold_graph *g)
{
    const remat_graph *graph = g->graph;
    remat_context *context = graph->context;
    tensor_facts *facts = remat_alloc(context, graph->tensor_count, sizeof *facts);
    bool *makable = remat_alloc(context, graph->action_count, sizeof *makable);
    bool *needed = remat_alloc(context, graph->action_count, sizeof *needed);
    remat_status status = facts && makable && needed ? graph_needed_find(graph, NEEDS_ALL, needed) : REMAT_NO_MEMORY;
    if (status == REMAT_OK) {
        mark_tensors(graph, facts);
        find_makable(graph, facts, makable);
        add_actions(g, facts, makable, needed);
    }
    remat_release(context, facts, graph->tensor_count, sizeof *facts);
    remat_release(context, makable, graph->action_count, sizeof *makable);
    remat_release(context, needed, graph->action_count, sizeof *needed);
    return status;
}

/* The last position reads all results. */
static void add_end(hold_graph *g)
{
    hold_action *end = &g->actions[g->action_count];
    *end = (hold_action){
        .reads = g->links + g->link_count, .read_gaps = g->link_gaps + g->link_count, .in_place_from = GRAPH_NONE};
    for (size_t i = 0; i < g->graph->result_count; i++)
        if (!g->graph->tensors[g->graph->results[i]].given)
            g->links[g->link_count + end->read_count++] = g->graph->results[i];
    end->writes = end->reads + end->read_count;
    g->link_count += end->read_count;
}

/* ---- uses and gaps ---- */

/* Counts the gaps of every tensor, then fills them: both times the same walk. A second read at a position is no use. */
static void walk_uses(hold_graph *g, bool fills)
{
    for (uint32_t position = 0; position < g->position_count; position++) {
        const hold_action *action = &g->actions[position];
        for (size_t i = 0; i < action->read_count; i++) {
            hold_tensor *tensor = &g->tensors[action->reads[i]];
            if (tensor->maker == GRAPH_NONE)
                continue;
            if (tensor->last_use != position) {
                if (fills)
                    g->gaps[tensor->first_gap + tensor->gap_count] =
                        (hold_gap){action->reads[i], tensor->last_use, position};
                tensor->gap_count++;
                tensor->last_use = position;
            }
            g->link_gaps[(size_t)(action->read_gaps - g->link_gaps) + i] = tensor->first_gap + tensor->gap_count - 1;
        }
    }
    for (uint32_t t = 0; t < g->tensor_count; t++) {
        hold_tensor *tensor = &g->tensors[t];
        if (tensor->maker == GRAPH_NONE)
            continue;
        if (fills)
            g->gaps[tensor->first_gap + tensor->gap_count] = (hold_gap){t, tensor->last_use, HOLD_TAIL};
        tensor->gap_count++;
        tensor->last_use = tensor->maker;
    }
}

static remat_status find_gaps(hold_graph *g)
{
    for (uint32_t t = 0; t < g->tensor_count; t++)
        g->tensors[t].last_use = g->tensors[t].maker;
    walk_uses(g, false);
    size_t count = 0;
    for (uint32_t t = 0; t < g->tensor_count; t++) {
        g->tensors[t].first_gap = (uint32_t)count;
        count += g->tensors[t].gap_count;
        g->tensors[t].gap_count = 0;
    }
    g->gaps = remat_alloc(g->graph->context, count, sizeof *g->gaps);
    if (!g->gaps)
        return REMAT_NO_MEMORY;
    g->gap_count = (uint32_t)count;
    walk_uses(g, true);
    return REMAT_OK;
}

/* Where a tensor that is not makable is born and used last. The walk knows the instances of one that is written several times;
 * the use of another one ends with the last action that runs, so reads of what nobody needs do not count. */
static void find_lives(hold_graph *g, const graph_liveness *base)
{
    for (uint32_t t = 0; t < g->tensor_count; t++)
        g->tensors[t].last_use = g->tensors[t].maker == GRAPH_NONE ? 0 : g->tensors[t].last_use;
    for (uint32_t i = 0; i < g->position_count; i++)
        for (uint32_t k = 0; k < g->actions[i].read_count; k++)
            if (g->tensors[g->actions[i].reads[k]].maker == GRAPH_NONE)
                g->tensors[g->actions[i].reads[k]].last_use = i;
    for (size_t i = 0; i < base->range_count; i++) {
        const live_range *range = &base->ranges[i];
        if (range->tensor == GRAPH_NONE || g->tensors[range->tensor].maker != GRAPH_NONE)
            continue;
        hold_tensor *tensor = &g->tensors[range->tensor];
        tensor->rewritten = tensor->born != GRAPH_NONE;
        tensor->born = range->born;
        tensor->last_use = tensor->rewritten                ? range->ends - 1
                           : tensor->last_use < range->born ? range->born
                                                            : tensor->last_use;
    }
}

/* What the base order holds of all that is not makable: changes at first, which wrap, then their sums. */
static void sum_fixed(hold_graph *g, const graph_liveness *base)
{
    find_lives(g, base);
    for (size_t i = 0; i < base->range_count; i++) {
        const live_range *range = &base->ranges[i];
        if (range->in_place_of != GRAPH_NONE) {
            const live_range *from = &base->ranges[range->in_place_of];
            const hold_tensor *taken = &g->tensors[from->tensor];
            const uint32_t last = taken->rewritten ? from->ends - 1 : taken->last_use;
            g->actions[range->born].ends_in_place = last == range->born;
        }
        if (range->tensor == GRAPH_NONE || g->tensors[range->tensor].maker != GRAPH_NONE)
            continue;
        const hold_tensor *tensor = &g->tensors[range->tensor];
        g->fixed_bytes[range->born + 1] += tensor->bytes;
        g->fixed_bytes[tensor->rewritten ? range->ends : tensor->last_use + 1] -= tensor->bytes;
    }
    for (uint32_t i = 1; i <= g->position_count; i++)
        g->fixed_bytes[i] += g->fixed_bytes[i - 1];
}

static remat_status fill(hold_graph *g, graph_counting counting)
{
    graph_walker walker;
    REMAT_TRY(graph_walker_create(g->graph, counting, &walker));
    g->given_bytes = walker.given_bytes;
    for (uint32_t t = 0; t < g->tensor_count; t++)
        g->tensors[t] = (hold_tensor){
            .bytes = g->graph->tensors[t].given ? 0 : walker.bytes[t], .maker = GRAPH_NONE, .born = GRAPH_NONE};
    remat_status status = choose_actions(g);
    if (status == REMAT_OK) {
        add_end(g);
        status = find_gaps(g);
    }
    for (uint32_t i = 0; status == REMAT_OK && i < g->action_count; i++)
        status = graph_walker_run(&walker, &i, 1);
    if (status == REMAT_OK)
        status = graph_walker_finish(&walker);
    if (status == REMAT_OK)
        sum_fixed(g, &walker.found);
    graph_walker_release(&walker);
    return status;
}

remat_status hold_graph_create(const remat_graph *graph, graph_counting counting, hold_graph *g)
{
    *g = (hold_graph){.graph = graph,
                      .counting = counting,
                      .action_count = (uint32_t)graph->action_count,
                      .tensor_count = (uint32_t)graph->tensor_count,
                      .position_count = (uint32_t)graph->action_count + 1};
    g->actions = remat_alloc(graph->context, g->position_count, sizeof *g->actions);
    g->tensors = remat_alloc(graph->context, g->tensor_count, sizeof *g->tensors);
    g->fixed_bytes = remat_alloc_zeroed(graph->context, (size_t)g->position_count + 1, sizeof *g->fixed_bytes);
    size_t links = graph->link_count + graph->result_count;
    g->links = remat_alloc(graph->context, links, sizeof *g->links);
    g->link_gaps = remat_alloc(graph->context, links, sizeof *g->link_gaps);
    const bool has_room = g->actions && g->tensors && g->fixed_bytes && g->links && g->link_gaps;
    remat_status status = has_room ? fill(g, counting) : REMAT_NO_MEMORY;
    g->link_count = links; /* what was allocated; given tensors took no room */
    if (status != REMAT_OK)
        hold_graph_release(g);
    return status;
}
