#include "plan/graph/exact_search.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"

enum { MOST_STATES = 1 << 18, MOST_BITS = 20 };
#define NO_COST UINT64_MAX

typedef struct exact_action {
    uint32_t number;
    uint32_t until;         /* behind this action it does not run again; GRAPH_NONE: it always may */
    uint32_t reads, writes; /* sets of bits */
    uint32_t from;          /* the bit of a tensor whose bytes a write may take, if it ends here; or 0 */
    uint64_t shared_bytes;  /* of that write */
    uint64_t bytes;         /* that count besides the set: workspace, untracked writes */
    uint64_t cost;
} exact_action;

typedef struct exact_visit {
    uint64_t cost;
    uint32_t before; /* the state that led here */
    uint32_t action; /* that ran; GRAPH_NONE: something was dropped */
} exact_visit;

typedef struct exact_search {
    const hold_graph *g;
    remat_context *context;
    unsigned bits;
    uint32_t phase_count;
    uint32_t first_phase; /* no action runs again before it */
    uint64_t tensor_bytes[MOST_BITS];
    exact_action *makers, *fixed; /* those that may run again; the others, and the end, in order */
    uint64_t *untracked;          /* by phase: live bytes that are in no set */
    uint32_t maker_count, fixed_capacity, maker_capacity;
    exact_visit *visits; /* by state: phase << bits | set */
    size_t state_count;
    uint64_t *set_bytes; /* by set */
    item_heap heap;      /* states by their costs */
} exact_search;

/* ---- the graph in bits ---- */

/* Gives every tensor that a state must know its bit; GRAPH_NONE for the others. Returns how many there are. */
static unsigned number_bits(const hold_graph *g, uint32_t *bit_of)
{
    unsigned bits = 0;
    for (uint32_t t = 0; t < g->tensor_count; t++)
        bit_of[t] = GRAPH_NONE;
    for (uint32_t i = 0; i < g->action_count; i++) {
        const hold_action *action = &g->actions[i];
        if (!action->makable)
            continue;
        for (uint32_t n = 0; n < action->read_count; n++)
            if (bit_of[action->reads[n]] == GRAPH_NONE)
                bit_of[action->reads[n]] = bits++;
        for (uint32_t n = 0; n < action->write_count; n++)
            if (bit_of[action->writes[n]] == GRAPH_NONE && g->tensors[action->writes[n]].gap_count > 1)
                bit_of[action->writes[n]] = bits++;
    }
    return bits;
}

static uint32_t count_phases(const hold_graph *g)
{
    uint32_t count = 1; /* the end */
    for (uint32_t i = 0; i < g->action_count; i++)
        count += !g->actions[i].makable;
    return count;
}

/* Where memory is placed, the graph is that of a program, which copies its data in before anything runs: what comes before the
 * first action that may run again stays there. */
static uint32_t count_loads(const hold_graph *g)
{
    uint32_t count = 0;
    while (g->counting == GRAPH_PLACED && count < g->action_count && !g->actions[count].makable)
        count++;
    return count;
}

remat_status exact_search_fits(const hold_graph *g, bool *fits)
{
    remat_context *context = g->graph->context;
    *fits = false;
    if (g->makable_count > MOST_BITS)
        return REMAT_OK;
    uint32_t *bit_of = remat_alloc(context, g->tensor_count, sizeof *bit_of);
    if (!bit_of)
        return REMAT_NO_MEMORY;
    unsigned bits = number_bits(g, bit_of);
    remat_release(context, bit_of, g->tensor_count, sizeof *bit_of);
    *fits = bits <= MOST_BITS && ((uint64_t)count_phases(g) + 1) << bits <= MOST_STATES;
    return REMAT_OK;
}

static uint32_t set_of(const uint32_t *bit_of, const uint32_t *tensors, uint32_t count)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < count; i++)
        set |= bit_of[tensors[i]] == GRAPH_NONE ? 0 : (uint32_t)1 << bit_of[tensors[i]];
    return set;
}

static exact_action make_action(const exact_search *s, const uint32_t *bit_of, uint32_t number)
{
    const hold_action *from = &s->g->actions[number];
    exact_action made = {.number = number,
                         .until = from->unchanged_until,
                         .cost = from->cost,
                         .bytes = from->workspace_bytes,
                         .reads = set_of(bit_of, from->reads, from->read_count),
                         .writes = set_of(bit_of, from->writes, from->write_count)};
    for (uint32_t i = 0; i < from->write_count; i++)
        if (bit_of[from->writes[i]] == GRAPH_NONE)
            made.bytes += s->g->tensors[from->writes[i]].bytes;
    if (from->in_place_from == GRAPH_NONE)
        return made;
    made.shared_bytes = s->g->tensors[from->in_place_to].bytes;
    made.from = set_of(bit_of, &from->in_place_from, 1);
    if (!made.from &&
        from->ends_in_place) /* an untracked tensor ends where it ends in the base order; numbers may wrap */
        made.bytes -= made.shared_bytes;
    return made;
}

static void fill_graph(exact_search *s, const uint32_t *bit_of)
{
    const hold_graph *g = s->g;
    uint32_t phase = 0;
    for (uint32_t t = 0; t < g->tensor_count; t++)
        if (bit_of[t] != GRAPH_NONE)
            s->tensor_bytes[bit_of[t]] = g->tensors[t].bytes;
    for (uint32_t i = 0; i < g->position_count; i++) {
        if (g->actions[i].makable) {
            if (g->actions[i].write_count && set_of(bit_of, g->actions[i].writes, g->actions[i].write_count))
                s->makers[s->maker_count++] = make_action(s, bit_of, i);
            continue;
        }
        uint64_t bytes = g->given_bytes + g->fixed_bytes[i];
        for (uint32_t t = 0; t < g->tensor_count; t++) {
            const hold_tensor *tensor = &g->tensors[t];
            if (bit_of[t] != GRAPH_NONE && tensor->maker == GRAPH_NONE && tensor->born != GRAPH_NONE &&
                tensor->born < i && i <= tensor->last_use)
                bytes -= tensor->bytes;
        }
        s->untracked[phase] = bytes;
        s->fixed[phase++] = make_action(s, bit_of, i);
    }
    for (uint32_t set = 1; set < (uint32_t)1 << s->bits; set++)
        s->set_bytes[set] = s->set_bytes[set & (set - 1)] + s->tensor_bytes[__builtin_ctz(set)];
}

/* ---- shortest paths ---- */

/* A schedule may cost less than 2^63. */
static remat_status reach(exact_search *s, uint64_t cost, uint32_t state, uint32_t before, uint32_t action)
{
    if (cost >= s->visits[state].cost || cost > INT64_MAX)
        return REMAT_OK;
    s->visits[state] = (exact_visit){cost, before, action};
    return heap_push(s->context, &s->heap, (heap_item){.key = cost, .value = state});
}

/* Runs an action where all it reads is there, and the limit allows it. A tensor that it writes anew must be gone. */
static remat_status run(exact_search *s, uint64_t limit, heap_item from, const exact_action *action, uint32_t phase,
                        uint32_t next_phase)
{
    uint32_t set = from.value & (((uint32_t)1 << s->bits) - 1);
    if ((action->reads & ~set) || (action->writes & set))
        return REMAT_OK;
    uint64_t bytes = s->untracked[phase] + s->set_bytes[set | action->writes] + action->bytes;
    if (action->from && bytes - action->shared_bytes <= limit)
        REMAT_TRY(reach(s, from.key + action->cost, next_phase << s->bits | ((set & ~action->from) | action->writes),
                        from.value, action->number));
    if (bytes > limit)
        return REMAT_OK;
    return reach(s, from.key + action->cost, next_phase << s->bits | set | action->writes, from.value, action->number);
}

static remat_status expand(exact_search *s, uint64_t limit, heap_item from)
{
    uint32_t phase = from.value >> s->bits, set = from.value & (((uint32_t)1 << s->bits) - 1);
    for (uint32_t left = set; left; left &= left - 1)
        REMAT_TRY(reach(s, from.key, from.value & ~(left & -left), from.value, GRAPH_NONE));
    for (uint32_t i = 0; i < s->maker_count && phase >= s->first_phase; i++)
        if (s->fixed[phase].number <= s->makers[i].until)
            REMAT_TRY(run(s, limit, from, &s->makers[i], phase, phase));
    bool is_end = phase + 1 == s->phase_count;
    return run(s, is_end ? UINT64_MAX : limit, from, &s->fixed[phase], phase, phase + 1);
}

/* The cheapest way to the end with no position above the limit; the last state, or GRAPH_NONE. */
static remat_status solve(exact_search *s, uint64_t limit, uint32_t *end)
{
    for (size_t i = 0; i < s->state_count; i++)
        s->visits[i].cost = NO_COST;
    s->heap.count = 0;
    *end = GRAPH_NONE;
    REMAT_TRY(reach(s, 0, 0, GRAPH_NONE, GRAPH_NONE));
    while (s->heap.count) {
        heap_item now = heap_pop(&s->heap);
        if (now.key > s->visits[now.value].cost)
            continue;
        if (now.value >> s->bits == s->phase_count) {
            *end = now.value;
            return REMAT_OK;
        }
        REMAT_TRY(expand(s, limit, now));
    }
    return REMAT_OK;
}

static remat_status write_path(const exact_search *s, uint32_t end, graph_sequence *sequence)
{
    for (uint32_t state = end; state != GRAPH_NONE; state = s->visits[state].before) {
        uint32_t action = s->visits[state].action;
        if (action != GRAPH_NONE && action < s->g->action_count)
            REMAT_TRY(graph_sequence_add(s->context, sequence, action));
    }
    for (size_t i = 0; i < sequence->count / 2; i++) {
        uint32_t swapped = sequence->actions[i];
        sequence->actions[i] = sequence->actions[sequence->count - 1 - i];
        sequence->actions[sequence->count - 1 - i] = swapped;
    }
    return REMAT_OK;
}

/* ---- the curve ---- */

static remat_status walk_curve(exact_search *s, graph_counting counting, hold_found *found, void *user)
{
    uint64_t limit = UINT64_MAX;
    for (;;) {
        uint32_t end;
        graph_sequence sequence = {0};
        graph_liveness liveness;
        REMAT_TRY(solve(s, limit, &end));
        if (end == GRAPH_NONE)
            return REMAT_OK;
        remat_status status = write_path(s, end, &sequence);
        if (status == REMAT_OK)
            status = graph_walk(s->g->graph, &sequence, counting, &liveness);
        if (status == REMAT_OK) {
            limit = liveness.peak_bytes - 1;
            bool is_last = liveness.peak_bytes == 0;
            graph_liveness_release(s->context, &liveness);
            status = found(user, &sequence);
            if (is_last)
                limit = 0;
            graph_sequence_release(s->context, &sequence);
            if (status == REMAT_OK && is_last)
                return REMAT_OK;
        } else
            graph_sequence_release(s->context, &sequence);
        REMAT_TRY(status);
    }
}

remat_status exact_search_run(const hold_graph *g, hold_found *found, void *user)
{
    remat_context *context = g->graph->context;
    exact_search s = {.g = g,
                      .context = context,
                      .phase_count = count_phases(g),
                      .maker_capacity = g->action_count,
                      .fixed_capacity = g->position_count};
    uint32_t *bit_of = remat_alloc(context, g->tensor_count, sizeof *bit_of);
    remat_status status = bit_of ? REMAT_OK : REMAT_NO_MEMORY;
    if (status == REMAT_OK) {
        s.bits = number_bits(g, bit_of);
        s.state_count = ((size_t)s.phase_count + 1) << s.bits;
        s.makers = remat_alloc(context, s.maker_capacity, sizeof *s.makers);
        s.fixed = remat_alloc(context, s.fixed_capacity, sizeof *s.fixed);
        s.untracked = remat_alloc(context, s.phase_count, sizeof *s.untracked);
        s.visits = remat_alloc(context, s.state_count, sizeof *s.visits);
        s.set_bytes = remat_alloc_zeroed(context, (size_t)1 << s.bits, sizeof *s.set_bytes);
        if (!s.makers || !s.fixed || !s.untracked || !s.visits || !s.set_bytes)
            status = REMAT_NO_MEMORY;
    }
    if (status == REMAT_OK) {
        fill_graph(&s, bit_of);
        s.first_phase = count_loads(g);
        status = walk_curve(&s, g->counting, found, user);
    }
    remat_release(context, bit_of, g->tensor_count, sizeof *bit_of);
    remat_release(context, s.makers, s.maker_capacity, sizeof *s.makers);
    remat_release(context, s.fixed, s.fixed_capacity, sizeof *s.fixed);
    remat_release(context, s.untracked, s.phase_count, sizeof *s.untracked);
    remat_release(context, s.visits, s.state_count, sizeof *s.visits);
    remat_release(context, s.set_bytes, (size_t)1 << s.bits, sizeof *s.set_bytes);
    heap_end(context, &s.heap);
    return status;
}
