#include "plan/graph/hold_annealer.h"

void annealer_propose(hold_annealer *h, hold_change *c, uint32_t gap, uint32_t from)
{
    if (h->state.from[gap] == from)
        return;
    c->first = c->count++ ? c->first : gap;
    hold_state_note(&h->state, gap, from);
}

static uint32_t some_decision(hold_annealer *h, uint32_t number)
{
    const hold_gap *gap = &h->g->gaps[number];
    const touch_list *list = &h->state.touches[gap->tensor];
    uint32_t kind = random_below(h, 8);
    if (kind < 3)
        return gap->begin;
    if (kind < 5)
        return gap->begin + 1;
    if (kind == 5 && list->count) {
        uint32_t position = list->positions[random_below(h, list->count)];
        if (position > gap->begin && position < gap->end)
            return position;
    }
    return gap->end;
}

/* A gap that has to do with the trouble at hand: where the peak is too high, one that is held there; else one that is not
 * held at all. */
static uint32_t some_gap(hold_annealer *h, bool is_over, uint32_t position)
{
    uint32_t gap = h->active[random_below(h, h->active_count)];
    for (int tries = 0; tries < 12; tries++) {
        const hold_gap *range = &h->g->gaps[gap];
        bool fits = is_over ? range->begin < position && position <= range->end &&
                                  h->state.held_from[gap] <= position && h->state.held_from[gap] < range->end
                            : h->state.from[gap] != range->begin;
        if (fits)
            break;
        gap = h->active[random_below(h, h->active_count)];
    }
    return gap;
}

/* All gaps of a tensor behind the turn: kept, made again once and held, or made again for every reader. */
static void propose_tensor(hold_annealer *h, hold_change *c, uint32_t tensor)
{
    const hold_tensor *t = &h->g->tensors[tensor];
    uint32_t kind = random_below(h, 3), tail = h->way == BY_TENSOR ? 0 : random_below(h, 2), first = t->first_gap;
    while (first < t->first_gap + t->gap_count && h->g->gaps[first].end < h->g->turn)
        first++;
    for (uint32_t i = first; i < t->first_gap + t->gap_count; i++) {
        const hold_gap *gap = &h->g->gaps[i];
        uint32_t from = gap->begin;
        if (kind == 2)
            from = gap->end;
        else if (gap->end == HOLD_TAIL ? tail : kind == 1 && i == first)
            from = gap->begin + 1;
        annealer_propose(h, c, i, from);
    }
}

/* One that is held over the peak and reaches beyond it, and that the change did not begin with. */
bool annealer_make_room(hold_annealer *h, const hold_measure *now, hold_change *c)
{
    enum { TRIES = 24 };
    const uint32_t peak = now->position;
    for (int tries = 0; tries < TRIES; tries++) {
        const uint32_t gap = h->active[random_below(h, h->active_count)], kind = random_below(h, 3);
        const hold_gap *range = &h->g->gaps[gap];
        const uint32_t end = range->end == HOLD_TAIL ? h->state.tail_to[range->tensor] : range->end;
        if (gap == c->first || range->begin >= peak || end <= peak || h->state.held_from[gap] > peak)
            continue;
        const uint32_t count = c->count;
        annealer_propose(h, c, gap, kind == 0 ? range->begin + 1 : kind == 1 ? peak + 1 : range->end);
        if (c->count > count)
            return true;
    }
    return false;
}

void annealer_change(hold_annealer *h, const hold_measure *now, hold_change *c)
{
    const bool is_over = now->peak > now->limit;
    const uint32_t kind = random_below(h, 16);
    uint32_t gap = h->active[random_below(h, h->active_count)];
    c->count = 0;
    if (h->twins->count && random_below(h, 4) == 0) {
        annealer_exchange_twins(h, c);
        if (c->count)
            return;
    }
    if (h->way != BY_TENSOR && kind < 10)
        gap = some_gap(h, is_over, now->position);
    if (h->way == BY_TENSOR || kind % 2) {
        propose_tensor(h, c, h->g->gaps[gap].tensor);
        return;
    }
    annealer_propose(h, c, gap, some_decision(h, gap));
    if (kind == 2 || kind == 12) {
        gap = some_gap(h, !is_over, now->position);
        annealer_propose(h, c, gap, some_decision(h, gap));
    }
}
