#include "plan/graph/hold_state.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"

/* An action that waits for what it needs: the next of its reads to look at. */
typedef struct waiting_maker {
    uint32_t action, read;
} waiting_maker;

/* Room that is needed while a change settles. A stamp is the number of the pass that set it. */
typedef struct hold_scratch {
    uint64_t *dirty;     /* a bit for each position whose cascade must be found again */
    uint32_t *unsettled; /* positions whose bytes must be counted again */
    uint32_t unsettled_count;
    uint8_t *is_unsettled;
    uint32_t lowest_dirty, highest_dirty;
    uint64_t *made, *seen; /* by tensor: stamps */
    uint64_t stamp, made_stamp;
    uint32_t *last; /* by tensor: where in the position's actions it is touched last */
    uint8_t *alive; /* by tensor */
    waiting_maker *stack;
    uint32_t *listed; /* the new cascade */
} hold_scratch;

remat_status hold_state_grow(hold_state *s, void **items, size_t *capacity, size_t needed, size_t size)
{
    if (s->lock)
        pthread_mutex_lock(s->lock);
    remat_status status = remat_grow(s->g->graph->context, items, capacity, needed, size);
    if (s->lock)
        pthread_mutex_unlock(s->lock);
    return status;
}

/* ---- bookkeeping ---- */

static void mark_dirty(hold_state *s, uint32_t position)
{
    hold_scratch *k = s->scratch;
    k->dirty[position / 64] |= (uint64_t)1 << position % 64;
    k->lowest_dirty = position < k->lowest_dirty ? position : k->lowest_dirty;
    k->highest_dirty = position > k->highest_dirty ? position : k->highest_dirty;
}

static void mark_unsettled(hold_state *s, uint32_t position)
{
    hold_scratch *k = s->scratch;
    if (position >= s->g->position_count || k->is_unsettled[position])
        return;
    k->is_unsettled[position] = 1;
    k->unsettled[k->unsettled_count++] = position;
}

/* Adds to what is held into the positions first .. last. Numbers wrap, and back. */
static void add_held(hold_state *s, uint32_t first, uint32_t last, uint64_t bytes)
{
    for (uint32_t i = first; i <= last; i++)
        s->held_bytes[i] += bytes;
    s->work += last < first ? 0 : (last - first) / 8;
}

static void move_end(hold_state *s, uint32_t tensor, uint32_t old, uint32_t now)
{
    uint64_t bytes = s->g->tensors[tensor].bytes;
    if (now == old)
        return;
    if (now > old)
        add_held(s, old + 1, now, bytes);
    else
        add_held(s, now + 1, old, -bytes);
}

static void mark_touches(hold_state *s, uint32_t tensor, uint32_t after, uint32_t to)
{
    const touch_list *list = &s->touches[tensor];
    for (uint32_t i = list->count; i-- > 0 && list->positions[i] > after;)
        if (list->positions[i] <= to)
            mark_dirty(s, list->positions[i]);
}

/* How long a tensor is held behind its last use. */
static void refresh_tail(hold_state *s, uint32_t tensor)
{
    const hold_tensor *t = &s->g->tensors[tensor];
    const touch_list *list = &s->touches[tensor];
    uint32_t from = t->last_use, to = from;
    if (t->maker != GRAPH_NONE) {
        from = s->held_from[t->first_gap + t->gap_count - 1];
        to = from;
    }
    if (from != HOLD_TAIL && list->count && list->positions[list->count - 1] > from)
        to = list->positions[list->count - 1];
    uint32_t old_from = s->tail_from[tensor], old_to = s->tail_to[tensor];
    if (from == old_from && to == old_to)
        return;
    if (from == old_from)
        move_end(s, tensor, old_to, to);
    else {
        move_end(s, tensor, old_to, old_from);
        move_end(s, tensor, from, to);
    }
    mark_unsettled(s, old_to);
    mark_unsettled(s, to);
    mark_unsettled(s, old_from);
    mark_unsettled(s, from);
    s->tail_from[tensor] = from;
    s->tail_to[tensor] = to;
}

static void set_held_from(hold_state *s, uint32_t number, uint32_t now)
{
    const hold_gap *gap = &s->g->gaps[number];
    uint32_t old = s->held_from[number];
    if (old == now)
        return;
    s->held_from[number] = now;
    uint32_t low = now < old ? now : old, high = now < old ? old : now;
    if (gap->end == HOLD_TAIL)
        refresh_tail(s, gap->tensor);
    else {
        add_held(s, low + 1, high, now < old ? s->g->tensors[gap->tensor].bytes : -s->g->tensors[gap->tensor].bytes);
        if (high == gap->end)
            mark_dirty(s, high);
    }
    mark_unsettled(s, old);
    mark_unsettled(s, now);
    mark_touches(s, gap->tensor, low, high);
}

static remat_status touch(hold_state *s, uint32_t tensor, uint32_t position)
{
    touch_list *list = &s->touches[tensor];
    size_t capacity = list->capacity;
    if (list->count == capacity) {
        REMAT_TRY(
            hold_state_grow(s, (void **)&list->positions, &capacity, (size_t)list->count + 1, sizeof *list->positions));
        list->capacity = (uint32_t)capacity;
    }
    uint32_t at = list->count++;
    for (; at > 0 && list->positions[at - 1] > position; at--)
        list->positions[at] = list->positions[at - 1];
    list->positions[at] = position;
    return REMAT_OK;
}

static void untouch(hold_state *s, uint32_t tensor, uint32_t position)
{
    touch_list *list = &s->touches[tensor];
    uint32_t at = list->count - 1;
    while (list->positions[at] != position)
        at--;
    memmove(list->positions + at, list->positions + at + 1, (list->count - at - 1) * sizeof *list->positions);
    list->count--;
}

/* ---- a position's cascade ---- */

static bool is_available(const hold_state *s, uint32_t tensor, uint32_t position)
{
    if (s->g->tensors[tensor].maker == GRAPH_NONE)
        return true;
    uint32_t gap = hold_gap_before(s->g, tensor, position);
    return gap != GRAPH_NONE && s->held_from[gap] < position;
}

static bool own_action_runs(const hold_state *s, uint32_t position)
{
    const hold_action *action = &s->g->actions[position];
    if (!action->makable)
        return true;
    for (uint32_t i = 0; i < action->write_count; i++) {
        uint32_t gap = s->g->tensors[action->writes[i]].first_gap;
        if (s->g->gaps[gap].end != HOLD_TAIL && s->from[gap] == position)
            return true;
    }
    return false;
}

/* Lists what makes a tensor, and before it all that needs in turn and is not there. Returns the new count. */
static uint32_t list_makers(hold_state *s, uint32_t tensor, uint32_t position, uint32_t count)
{
    const hold_graph *g = s->g;
    hold_scratch *k = s->scratch;
    size_t depth = 0;
    k->stack[depth++] = (waiting_maker){g->tensors[tensor].maker, 0};
    while (depth > 0) {
        waiting_maker *top = &k->stack[depth - 1];
        const hold_action *action = &g->actions[top->action];
        s->work += 2 + action->read_count / 2;
        while (top->read < action->read_count) {
            uint32_t need = action->reads[top->read];
            if (k->made[need] != k->made_stamp && !is_available(s, need, position))
                break;
            top->read++;
        }
        if (top->read < action->read_count) {
            k->stack[depth++] = (waiting_maker){g->tensors[action->reads[top->read]].maker, 0};
            continue;
        }
        k->listed[count++] = top->action;
        for (uint32_t i = 0; i < action->write_count; i++)
            k->made[action->writes[i]] = k->made_stamp;
        depth--;
    }
    return count;
}

/* A cascade that makes a tensor may begin to hold it, or stop to. */
static void note_made(hold_state *s, uint32_t tensor, uint32_t position)
{
    bool is_made = s->scratch->made[tensor] == s->scratch->made_stamp;
    uint32_t number = hold_gap_before(s->g, tensor, position);
    const hold_gap *gap = &s->g->gaps[number];
    if (gap->end == position)
        return;
    uint32_t held = s->held_from[number];
    if (is_made && position >= s->from[number] && held > position)
        set_held_from(s, number, position);
    else if (!is_made && held == position)
        set_held_from(s, number, gap->end);
}

static void note_own(hold_state *s, uint32_t gap, uint32_t position, bool has)
{
    bool holds = has && s->from[gap] == position;
    if (holds != (s->held_from[gap] == position))
        set_held_from(s, gap, holds ? position : s->g->gaps[gap].end);
}

static void count_runs(hold_state *s, uint32_t position, bool adds)
{
    const hold_graph *g = s->g;
    const hold_cascade *cascade = &s->cascades[position];
    unsigned __int128 cost = cascade->runs ? g->actions[position].cost : 0;
    uint64_t runs = cascade->count + (cascade->runs && position < g->action_count);
    for (uint32_t i = 0; i < cascade->count; i++)
        cost += g->actions[cascade->actions[i]].cost;
    s->cost = adds ? s->cost + cost : s->cost - cost;
    s->run_count = adds ? s->run_count + runs : s->run_count - runs;
}

/* Takes the touches of the position's cascade away, or adds them. What it changes is refreshed later. */
static remat_status change_touches(hold_state *s, uint32_t position, bool adds)
{
    const hold_cascade *cascade = &s->cascades[position];
    hold_scratch *k = s->scratch;
    s->work += 2 * cascade->count;
    k->stamp++;
    for (uint32_t i = 0; i < cascade->count; i++) {
        const hold_action *action = &s->g->actions[cascade->actions[i]];
        for (uint32_t n = 0; n < action->read_count + action->write_count; n++) { /* the writes follow the reads */
            uint32_t tensor = action->reads[n];
            if (k->seen[tensor] == k->stamp)
                continue;
            k->seen[tensor] = k->stamp;
            if (adds)
                REMAT_TRY(touch(s, tensor, position));
            else
                untouch(s, tensor, position);
        }
    }
    return REMAT_OK;
}

static void refresh_cascade(hold_state *s, const uint32_t *actions, uint32_t count, uint32_t position)
{
    for (uint32_t i = 0; i < count; i++) {
        const hold_action *action = &s->g->actions[actions[i]];
        for (uint32_t n = 0; n < action->write_count; n++)
            note_made(s, action->writes[n], position);
        for (uint32_t n = 0; n < action->read_count + action->write_count; n++)
            refresh_tail(s, action->reads[n]);
    }
}

/* The new cascade is in scratch.listed; the old one goes there. */
static remat_status replace_cascade(hold_state *s, uint32_t position, uint32_t count)
{
    hold_cascade *cascade = &s->cascades[position];
    uint32_t *listed = s->scratch->listed, old_count = cascade->count;
    if (count == old_count && (!count || memcmp(listed, cascade->actions, count * sizeof *listed) == 0))
        return REMAT_OK;
    size_t capacity = cascade->capacity, needed = remat_max(count, old_count);
    if (needed > capacity) {
        REMAT_TRY(hold_state_grow(s, (void **)&cascade->actions, &capacity, needed, sizeof *cascade->actions));
        cascade->capacity = (uint32_t)capacity;
    }
    count_runs(s, position, false);
    REMAT_TRY(change_touches(s, position, false));
    for (uint32_t i = 0; i < needed; i++) {
        uint32_t old = cascade->actions[i];
        cascade->actions[i] = listed[i];
        listed[i] = old;
    }
    cascade->count = count;
    count_runs(s, position, true);
    REMAT_TRY(change_touches(s, position, true));
    refresh_cascade(s, listed, old_count, position);
    return REMAT_OK;
}

static remat_status find_cascade(hold_state *s, uint32_t position)
{
    const hold_action *action = &s->g->actions[position];
    hold_cascade *cascade = &s->cascades[position];
    bool runs = own_action_runs(s, position);
    uint32_t count = 0;
    s->scratch->made_stamp++;
    for (uint32_t i = 0; runs && i < action->read_count; i++)
        if (s->scratch->made[action->reads[i]] != s->scratch->made_stamp &&
            !is_available(s, action->reads[i], position))
            count = list_makers(s, action->reads[i], position, count);
    if (runs != cascade->runs) {
        count_runs(s, position, false);
        cascade->runs = runs;
        count_runs(s, position, true);
    }
    REMAT_TRY(replace_cascade(s, position, count));
    refresh_cascade(s, cascade->actions, cascade->count, position);
    for (uint32_t i = 0; i < action->read_count; i++) {
        uint32_t tensor = action->reads[i];
        if (s->g->tensors[tensor].maker != GRAPH_NONE)
            note_own(s, hold_gap_after(s->g, tensor, position), position, runs || is_available(s, tensor, position));
    }
    for (uint32_t i = 0; action->makable && i < action->write_count; i++)
        note_own(s, s->g->tensors[action->writes[i]].first_gap, position, runs);
    mark_unsettled(s, position);
    return REMAT_OK;
}

/* ---- the bytes of a position ---- */

static bool is_held_out(const hold_state *s, uint32_t tensor, uint32_t position)
{
    const hold_tensor *t = &s->g->tensors[tensor];
    if (t->maker == GRAPH_NONE)
        return s->tail_to[tensor] > position;
    uint32_t gap = hold_gap_after(s->g, tensor, position);
    if (s->held_from[gap] > position)
        return false;
    return s->g->gaps[gap].end != HOLD_TAIL || s->tail_to[tensor] > position;
}

typedef struct position_sum {
    hold_state *s;
    uint32_t position, index;
    uint64_t stamp;
    int64_t live, most;
} position_sum;

static void note_touched(position_sum *sum, const hold_action *action)
{
    hold_scratch *k = sum->s->scratch;
    sum->s->work += action->read_count + action->write_count;
    for (uint32_t n = 0; n < action->read_count + action->write_count; n++) {
        uint32_t tensor = action->reads[n];
        k->last[tensor] = sum->index;
        if (k->seen[tensor] == sum->stamp)
            continue;
        k->seen[tensor] = sum->stamp;
        k->alive[tensor] = n < action->read_count && is_available(sum->s, tensor, sum->position);
        if (n >= action->read_count && sum->s->g->tensors[tensor].maker != GRAPH_NONE)
            k->alive[tensor] = is_available(sum->s, tensor, sum->position); /* a second output, which was held */
    }
    sum->index++;
}

/* A tensor with several writers ends where it ends in the base order; no cascade reads it. */
static bool ends_in_base(const hold_state *s, const hold_action *action)
{
    uint32_t from = action->in_place_from;
    return action->ends_in_place && s->g->tensors[from].maker == GRAPH_NONE && s->touches[from].count == 0;
}

static void run_action(position_sum *sum, const hold_action *action, bool is_own)
{
    hold_state *s = sum->s;
    hold_scratch *k = s->scratch;
    int64_t shared = 0;
    uint32_t from = action->in_place_from;
    bool in_place = from != GRAPH_NONE && k->last[from] == sum->index &&
                    (!is_held_out(s, from, sum->position) || (is_own && ends_in_base(s, action)));
    for (uint32_t i = 0; i < action->write_count; i++) {
        uint32_t tensor = action->writes[i];
        if (k->alive[tensor])
            continue;
        k->alive[tensor] = 1;
        sum->live += (int64_t)s->g->tensors[tensor].bytes;
        if (in_place && tensor == action->in_place_to)
            shared = (int64_t)s->g->tensors[tensor].bytes;
    }
    int64_t now = sum->live + (int64_t)action->workspace_bytes - shared;
    sum->most = now > sum->most ? now : sum->most;
    for (uint32_t n = 0; !is_own && n < action->read_count + action->write_count; n++) {
        uint32_t tensor = action->reads[n];
        if (k->last[tensor] == sum->index && k->alive[tensor] && !is_held_out(s, tensor, sum->position)) {
            k->alive[tensor] = 0;
            sum->live -= (int64_t)s->g->tensors[tensor].bytes;
        }
    }
    sum->index++;
}

static void count_position(hold_state *s, uint32_t position)
{
    const hold_graph *g = s->g;
    const hold_cascade *cascade = &s->cascades[position];
    position_sum sum = {.s = s, .position = position, .stamp = ++s->scratch->stamp};
    for (uint32_t i = 0; i < cascade->count; i++)
        note_touched(&sum, &g->actions[cascade->actions[i]]);
    if (cascade->runs)
        note_touched(&sum, &g->actions[position]);
    sum.index = 0;
    for (uint32_t i = 0; i < cascade->count; i++)
        run_action(&sum, &g->actions[cascade->actions[i]], false);
    if (cascade->runs)
        run_action(&sum, &g->actions[position], true);
    s->extra_bytes[position] = sum.most;
}

/* ---- decisions ---- */

void hold_state_note(hold_state *s, uint32_t number, uint32_t from)
{
    const hold_gap *gap = &s->g->gaps[number];
    if (s->from[number] == from)
        return;
    s->from[number] = from;
    if (s->held_from[number] < from && s->held_from[number] != gap->begin)
        set_held_from(s, number, gap->end);
    mark_dirty(s, gap->begin);
    mark_touches(s, gap->tensor, gap->begin, gap->end == HOLD_TAIL ? HOLD_TAIL : gap->end - 1);
}

remat_status hold_state_settle(hold_state *s)
{
    hold_scratch *k = s->scratch;
    for (uint32_t word = k->lowest_dirty / 64; word <= k->highest_dirty / 64; word++)
        while (k->dirty[word]) {
            uint32_t position = word * 64 + (uint32_t)__builtin_ctzll(k->dirty[word]);
            k->dirty[word] &= k->dirty[word] - 1;
            REMAT_TRY(find_cascade(s, position));
        }
    k->lowest_dirty = UINT32_MAX;
    k->highest_dirty = 0;
    for (uint32_t i = 0; i < k->unsettled_count; i++) {
        k->is_unsettled[k->unsettled[i]] = 0;
        count_position(s, k->unsettled[i]);
    }
    k->unsettled_count = 0;
    return REMAT_OK;
}

uint64_t hold_state_peak(const hold_state *s, uint64_t limit, unsigned shift, uint64_t *over, uint32_t *position)
{
    uint64_t peak = 0, sum = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i < s->g->position_count; i++) {
        uint64_t now = s->held_bytes[i] + (uint64_t)s->extra_bytes[i];
        sum += now > limit ? (now - limit) >> shift : 0;
        at = now > peak ? i : at;
        peak = now > peak ? now : peak;
    }
    *over = sum;
    *position = at;
    return peak;
}

remat_status hold_state_sequence(const hold_state *s, graph_sequence *sequence)
{
    remat_context *context = s->g->graph->context;
    REMAT_TRY(
        remat_grow(context, (void **)&sequence->actions, &sequence->capacity, s->run_count, sizeof *sequence->actions));
    for (uint32_t i = 0; i < s->g->position_count; i++) {
        const hold_cascade *cascade = &s->cascades[i];
        if (cascade->count)
            memcpy(sequence->actions + sequence->count, cascade->actions, cascade->count * sizeof *cascade->actions);
        sequence->count += cascade->count;
        if (cascade->runs && i < s->g->action_count)
            sequence->actions[sequence->count++] = i;
    }
    return REMAT_OK;
}

/* ---- making and releasing ---- */

void hold_state_release(hold_state *s)
{
    if (!s->g)
        return;
    const hold_graph *g = s->g;
    remat_context *context = g->graph->context;
    hold_scratch *k = s->scratch;
    for (uint32_t i = 0; s->cascades && i < g->position_count; i++)
        remat_release(context, s->cascades[i].actions, s->cascades[i].capacity, sizeof *s->cascades[i].actions);
    for (uint32_t t = 0; s->touches && t < g->tensor_count; t++)
        remat_release(context, s->touches[t].positions, s->touches[t].capacity, sizeof *s->touches[t].positions);
    remat_release(context, s->from, g->gap_count, sizeof *s->from);
    remat_release(context, s->held_from, g->gap_count, sizeof *s->held_from);
    remat_release(context, s->cascades, g->position_count, sizeof *s->cascades);
    remat_release(context, s->held_bytes, g->position_count, sizeof *s->held_bytes);
    remat_release(context, s->extra_bytes, g->position_count, sizeof *s->extra_bytes);
    remat_release(context, s->touches, g->tensor_count, sizeof *s->touches);
    remat_release(context, s->tail_from, g->tensor_count, sizeof *s->tail_from);
    remat_release(context, s->tail_to, g->tensor_count, sizeof *s->tail_to);
    if (k) {
        remat_release(context, k->dirty, g->position_count / 64 + 1, sizeof *k->dirty);
        remat_release(context, k->unsettled, g->position_count, sizeof *k->unsettled);
        remat_release(context, k->is_unsettled, g->position_count, sizeof *k->is_unsettled);
        remat_release(context, k->made, g->tensor_count, sizeof *k->made);
        remat_release(context, k->seen, g->tensor_count, sizeof *k->seen);
        remat_release(context, k->last, g->tensor_count, sizeof *k->last);
        remat_release(context, k->alive, g->tensor_count, sizeof *k->alive);
        remat_release(context, k->stack, g->position_count, sizeof *k->stack);
        remat_release(context, k->listed, g->position_count, sizeof *k->listed);
    }
    remat_release(context, k, 1, sizeof *k);
    *s = (hold_state){0};
}

static remat_status allocate(hold_state *s)
{
    const hold_graph *g = s->g;
    remat_context *context = g->graph->context;
    hold_scratch *k = s->scratch = remat_alloc_zeroed(context, 1, sizeof *k);
    s->from = remat_alloc(context, g->gap_count, sizeof *s->from);
    s->held_from = remat_alloc(context, g->gap_count, sizeof *s->held_from);
    s->cascades = remat_alloc_zeroed(context, g->position_count, sizeof *s->cascades);
    s->held_bytes = remat_alloc(context, g->position_count, sizeof *s->held_bytes);
    s->extra_bytes = remat_alloc_zeroed(context, g->position_count, sizeof *s->extra_bytes);
    s->touches = remat_alloc_zeroed(context, g->tensor_count, sizeof *s->touches);
    s->tail_from = remat_alloc(context, g->tensor_count, sizeof *s->tail_from);
    s->tail_to = remat_alloc(context, g->tensor_count, sizeof *s->tail_to);
    if (!k || !s->from || !s->held_from || !s->cascades || !s->held_bytes || !s->extra_bytes || !s->touches ||
        !s->tail_from || !s->tail_to)
        return REMAT_NO_MEMORY;
    k->dirty = remat_alloc_zeroed(context, g->position_count / 64 + 1, sizeof *k->dirty);
    k->unsettled = remat_alloc(context, g->position_count, sizeof *k->unsettled);
    k->is_unsettled = remat_alloc_zeroed(context, g->position_count, sizeof *k->is_unsettled);
    k->made = remat_alloc_zeroed(context, g->tensor_count, sizeof *k->made);
    k->seen = remat_alloc_zeroed(context, g->tensor_count, sizeof *k->seen);
    k->last = remat_alloc(context, g->tensor_count, sizeof *k->last);
    k->alive = remat_alloc(context, g->tensor_count, sizeof *k->alive);
    k->stack = remat_alloc(context, g->position_count, sizeof *k->stack);
    k->listed = remat_alloc(context, g->position_count, sizeof *k->listed);
    return k->dirty && k->unsettled && k->is_unsettled && k->made && k->seen && k->last && k->alive && k->stack &&
                   k->listed
               ? REMAT_OK
               : REMAT_NO_MEMORY;
}

remat_status hold_state_create(const hold_graph *g, hold_state *s)
{
    *s = (hold_state){.g = g};
    remat_status status = allocate(s);
    if (status == REMAT_OK) {
        for (uint32_t i = 0; i < g->position_count; i++)
            s->held_bytes[i] = g->fixed_bytes[i] + g->given_bytes;
        for (uint32_t i = 0; i < g->gap_count; i++) {
            s->from[i] = g->gaps[i].begin + (g->gaps[i].end == HOLD_TAIL);
            s->held_from[i] = g->gaps[i].end;
        }
        for (uint32_t t = 0; t < g->tensor_count; t++)
            s->tail_from[t] = s->tail_to[t] = g->tensors[t].maker == GRAPH_NONE ? g->tensors[t].last_use : HOLD_TAIL;
        s->scratch->lowest_dirty = UINT32_MAX;
        for (uint32_t i = 0; i < g->position_count; i++)
            mark_dirty(s, i);
        status = hold_state_settle(s);
    }
    if (status != REMAT_OK)
        hold_state_release(s);
    return status;
}
