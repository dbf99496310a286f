/* The cascade of a position, and what depends on it: who touches a tensor, and how long it is held. */
#include <string.h>

#include "base/error.h"
#include "base/min_max.h"
#include "base/search.h"
#include "plan/graph/hold_scratch.h"

/* Items of a list that move in the time of one piece of work. */
enum { MOVED_AT_ONCE = 256 };

/* ---- bookkeeping ---- */

void hold_mark_dirty(hold_state *s, uint32_t position)
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

/* A tensor may be touched at every position. Where the first of its touches is that lies behind one. */
static uint32_t find_touch(const touch_list *list, uint32_t after)
{
    return (uint32_t)REMAT_FIRST(i, 0, list->count, list->positions[i] > after);
}

void hold_mark_touches(hold_state *s, uint32_t tensor, uint32_t after, uint32_t to)
{
    const touch_list *list = &s->touches[tensor];
    for (uint32_t i = find_touch(list, after); i < list->count && list->positions[i] <= to; i++)
        hold_mark_dirty(s, list->positions[i]);
}

void hold_restore_tail(hold_state *s, uint32_t tensor, uint32_t from, uint32_t to)
{
    const uint32_t old_from = s->tail_from[tensor], old_to = s->tail_to[tensor];
    if (from == old_from)
        move_end(s, tensor, old_to, to);
    else {
        move_end(s, tensor, old_to, old_from);
        move_end(s, tensor, from, to);
    }
    s->tail_from[tensor] = from;
    s->tail_to[tensor] = to;
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
    hold_undo_note(s, UNDO_TAIL, tensor, (uint64_t)old_from << 32 | old_to);
    hold_restore_tail(s, tensor, from, to);
    mark_unsettled(s, old_to);
    mark_unsettled(s, to);
    mark_unsettled(s, old_from);
    mark_unsettled(s, from);
}

/* The bytes of a tail follow from its own begin and end. */
void hold_restore_held_from(hold_state *s, uint32_t number, uint32_t now)
{
    const hold_gap *gap = &s->g->gaps[number];
    const uint64_t bytes = s->g->tensors[gap->tensor].bytes;
    const uint32_t old = s->held_from[number];
    s->held_from[number] = now;
    if (gap->end == HOLD_TAIL)
        return;
    if (now < old)
        add_held(s, now + 1, old, bytes);
    else
        add_held(s, old + 1, now, -bytes);
}

void hold_set_held_from(hold_state *s, uint32_t number, uint32_t now)
{
    const hold_gap *gap = &s->g->gaps[number];
    uint32_t old = s->held_from[number];
    if (old == now)
        return;
    hold_undo_note(s, UNDO_HELD_FROM, number, old);
    hold_restore_held_from(s, number, now);
    uint32_t low = now < old ? now : old, high = now < old ? old : now;
    if (gap->end == HOLD_TAIL)
        refresh_tail(s, gap->tensor);
    else if (high == gap->end)
        hold_mark_dirty(s, high);
    mark_unsettled(s, old);
    mark_unsettled(s, now);
    hold_mark_touches(s, gap->tensor, low, high);
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
    const uint32_t at = find_touch(list, position), behind = list->count++ - at;
    memmove(list->positions + at + 1, list->positions + at, behind * sizeof *list->positions);
    list->positions[at] = position;
    s->work += behind / MOVED_AT_ONCE;
    return REMAT_OK;
}

static void untouch(hold_state *s, uint32_t tensor, uint32_t position)
{
    touch_list *list = &s->touches[tensor];
    const uint32_t at = find_touch(list, position), behind = list->count-- - at;
    memmove(list->positions + at - 1, list->positions + at, behind * sizeof *list->positions);
    s->work += behind / MOVED_AT_ONCE;
}

/* ---- a position's cascade ---- */

/* Whether what the position's own action reads is there before its cascade. */
static bool has_read(const hold_state *s, const hold_action *action, uint32_t read, uint32_t position)
{
    return s->g->tensors[action->reads[read]].maker == GRAPH_NONE || s->held_from[action->read_gaps[read]] < position;
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
        s->work += 3 + action->read_count / 2;
        while (top->read < action->read_count) {
            uint32_t need = action->reads[top->read];
            if (k->made[need] != k->made_stamp && !hold_is_available(s, need, position))
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
        hold_set_held_from(s, number, position);
    else if (!is_made && held == position)
        hold_set_held_from(s, number, gap->end);
}

static void note_own(hold_state *s, uint32_t gap, uint32_t position, bool has)
{
    bool holds = has && s->from[gap] == position;
    if (holds != (s->held_from[gap] == position))
        hold_set_held_from(s, gap, holds ? position : s->g->gaps[gap].end);
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

/* Marks what the actions of a cascade touch with a stamp. Each tensor that had none of the stamps from `first` on is touched. */
static remat_status touch_all(hold_state *s, uint32_t position, const uint32_t *actions, uint32_t count, uint64_t first)
{
    hold_scratch *k = s->scratch;
    for (uint32_t i = 0; i < count; i++) {
        const hold_action *action = &s->g->actions[actions[i]];
        for (uint32_t n = 0; n < action->read_count + action->write_count; n++) { /* the writes follow the reads */
            uint32_t tensor = action->reads[n];
            if (k->seen[tensor] < first)
                REMAT_TRY(touch(s, tensor, position));
            k->seen[tensor] = k->stamp;
        }
    }
    return REMAT_OK;
}

static void mark_all(hold_state *s, const uint32_t *actions, uint32_t count)
{
    hold_scratch *k = s->scratch;
    for (uint32_t i = 0; i < count; i++) {
        const hold_action *action = &s->g->actions[actions[i]];
        for (uint32_t n = 0; n < action->read_count + action->write_count; n++)
            k->seen[action->reads[n]] = k->stamp;
    }
}

/* What only the old cascade touched still has its stamp. */
static void untouch_old(hold_state *s, uint32_t position, const uint32_t *actions, uint32_t count, uint64_t stamp)
{
    hold_scratch *k = s->scratch;
    for (uint32_t i = 0; i < count; i++) {
        const hold_action *action = &s->g->actions[actions[i]];
        for (uint32_t n = 0; n < action->read_count + action->write_count; n++) {
            uint32_t tensor = action->reads[n];
            if (k->seen[tensor] == stamp)
                untouch(s, tensor, position);
            k->seen[tensor] = k->stamp;
        }
    }
}

/* The position has one cascade instead of another: most of what they touch is the same. What that changes is refreshed later. */
static remat_status change_touches(hold_state *s, uint32_t position, const uint32_t *old, uint32_t old_count,
                                   const uint32_t *now, uint32_t count)
{
    const uint64_t first = ++s->scratch->stamp;
    s->work += 3 * ((uint64_t)old_count + count);
    mark_all(s, old, old_count);
    s->scratch->stamp++;
    REMAT_TRY(touch_all(s, position, now, count, first));
    untouch_old(s, position, old, old_count, first);
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

/* Its list was as long before, and so were those of whom touches what. */
void hold_restore_cascade(hold_state *s, uint32_t position, const uint32_t *actions, uint32_t count)
{
    hold_cascade *cascade = &s->cascades[position];
    change_touches(s, position, cascade->actions, cascade->count, actions, count);
    if (count)
        memcpy(cascade->actions, actions, count * sizeof *actions);
    cascade->count = count;
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
    hold_undo_note_cascade(s, position);
    count_runs(s, position, false);
    REMAT_TRY(change_touches(s, position, cascade->actions, old_count, listed, count));
    for (uint32_t i = 0; i < needed; i++) {
        uint32_t old = cascade->actions[i];
        cascade->actions[i] = listed[i];
        listed[i] = old;
    }
    cascade->count = count;
    count_runs(s, position, true);
    refresh_cascade(s, listed, old_count, position);
    return REMAT_OK;
}

remat_status hold_find_cascade(hold_state *s, uint32_t position)
{
    const hold_action *action = &s->g->actions[position];
    hold_cascade *cascade = &s->cascades[position];
    bool runs = own_action_runs(s, position);
    uint32_t count = 0;
    s->scratch->made_stamp++;
    for (uint32_t i = 0; runs && i < action->read_count; i++)
        if (s->scratch->made[action->reads[i]] != s->scratch->made_stamp && !has_read(s, action, i, position))
            count = list_makers(s, action->reads[i], position, count);
    if (runs != cascade->runs) {
        hold_undo_note(s, UNDO_RUNS, position, cascade->runs);
        count_runs(s, position, false);
        cascade->runs = runs;
        count_runs(s, position, true);
    }
    REMAT_TRY(replace_cascade(s, position, count));
    refresh_cascade(s, cascade->actions, cascade->count, position);
    for (uint32_t i = 0; i < action->read_count; i++) {
        if (s->g->tensors[action->reads[i]].maker != GRAPH_NONE)
            note_own(s, action->read_gaps[i] + 1, position, runs || has_read(s, action, i, position));
    }
    for (uint32_t i = 0; action->makable && i < action->write_count; i++)
        note_own(s, s->g->tensors[action->writes[i]].first_gap, position, runs);
    mark_unsettled(s, position);
    return REMAT_OK;
}
