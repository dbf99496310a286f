/* What is left to gain by exchanges of up to five gaps. In a net of many blocks a gap has counterparts in other blocks, so few kinds of
 * changes cover all: single changes ("flips") with the same figures are one kind. Sets of kinds that save are matched with sets that
 * pay for their bytes, as if figures added up; what looks best is tried.
 *
 *     flips     hold a3: saves 9, +4 bytes     drop b1: costs 2, -2 bytes     drop c7: costs 5, -2 bytes
 *     exchange  hold a3, drop b1 and c7: saves 2, +0 bytes
 *
 * Bytes count at a few positions: at first at that of the peak. Where exchanges fail because another one becomes too high, that one is
 * added. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "base/sort.h"
#include "plan/graph/hold_annealer.h"

enum { POSITIONS = 6, MOST_IN_SET = 3, MOST_OFFERS = 64, OFFERS_FOR_SAVING = 3, TRIES = 4 };
enum { MOST_FLIPS = 4096, MOST_KINDS = 256 };
/* Of the kinds that save and of those that pay, the best for their bytes; sets of up to two of the former and three of the latter. */
enum { MOST_SAVING = 40, MOST_PAYING = 32 };
enum { SAVING_SETS = MOST_SAVING + MOST_SAVING * (MOST_SAVING + 1) / 2 };
enum { PAYING_SETS = MOST_PAYING + MOST_PAYING * (MOST_PAYING + 1) / 2 * (MOST_PAYING + 2 + 3) / 3 };
/* Figures beyond this are left out, so that those of six flips add up. */
#define MOST_FIGURE ((int64_t)1 << 59)

/* What a change costs, and takes at the positions, more than before. */
typedef struct figures {
    int64_t cost, bytes[POSITIONS];
} figures;

typedef struct flip {
    uint32_t gap, from;
    uint32_t next; /* of the same kind; GRAPH_NONE behind the last */
} flip;

typedef struct flip_kind {
    figures of_each;
    uint32_t first, count;
} flip_kind;

typedef struct kind_list {
    flip_kind kinds[MOST_KINDS];
    uint32_t count;
} kind_list;

typedef struct flip_set {
    figures sum;
    uint8_t kinds[MOST_IN_SET], count;
} flip_set;

typedef struct offer {
    int64_t cost;
    const flip_set *saving, *paying;
} offer;

struct hold_exchange {
    uint32_t positions[POSITIONS], position_count;
    uint32_t too_high[POSITIONS], times[POSITIONS],
        too_high_count; /* positions at which exchanges failed, and how often */
    flip flips[MOST_FLIPS];
    uint32_t flip_count;
    kind_list saving, paying;
    flip_set saving_sets[SAVING_SETS], paying_sets[PAYING_SETS];
    uint32_t saving_count, paying_count, by_cost[PAYING_SETS];
    offer offers[MOST_OFFERS]; /* the best first */
    uint32_t offer_count;
};

remat_status hold_exchange_create(remat_context *context, hold_exchange **made)
{
    *made = remat_alloc(context, 1, sizeof **made);
    return *made ? REMAT_OK : REMAT_NO_MEMORY;
}

void hold_exchange_release(remat_context *context, hold_exchange *x)
{
    remat_release(context, x, 1, sizeof *x);
}

/* ---- flips and their kinds ---- */

static int64_t bytes_at(const hold_annealer *h, uint32_t position)
{
    return (int64_t)h->state.held_bytes[position] + h->state.extra_bytes[position];
}

static void measure(hold_annealer *h, const hold_exchange *x, figures *now)
{
    hold_state_count(&h->state);
    *now = (figures){.cost = (int64_t)h->state.cost};
    for (uint32_t i = 0; i < x->position_count; i++)
        now->bytes[i] = bytes_at(h, x->positions[i]);
}

static bool subtract(figures *from, const figures *before)
{
    from->cost -= before->cost;
    bool is_small = from->cost < MOST_FIGURE && from->cost > -MOST_FIGURE;
    for (int i = 0; i < POSITIONS; i++) {
        from->bytes[i] -= before->bytes[i];
        is_small = is_small && from->bytes[i] < MOST_FIGURE && from->bytes[i] > -MOST_FIGURE;
    }
    return is_small;
}

static void note_flip(hold_exchange *x, uint32_t gap, uint32_t from, const figures *change)
{
    kind_list *list = change->cost < 0 ? &x->saving : &x->paying;
    uint32_t i = 0;
    while (i < list->count && memcmp(&list->kinds[i].of_each, change, sizeof *change) != 0)
        i++;
    if (i == MOST_KINDS)
        return;
    if (i == list->count)
        list->kinds[list->count++] = (flip_kind){*change, GRAPH_NONE, 0};
    x->flips[x->flip_count] = (flip){gap, from, list->kinds[i].first};
    list->kinds[i].first = x->flip_count++;
    list->kinds[i].count++;
}

/* Held through the gap, from its first making again, or not at all. */
static remat_status try_flips(hold_annealer *h, hold_exchange *x, uint32_t gap, const figures *before)
{
    const hold_gap *range = &h->g->gaps[gap];
    const uint32_t was = h->state.from[gap], choices[] = {range->begin, range->begin + 1, range->end};
    for (int k = 0; k < 3; k++) {
        if (choices[k] == was || x->flip_count == MOST_FLIPS || (k && choices[k] == choices[k - 1]))
            continue;
        figures change;
        hold_mark mark;
        hold_state_mark(&h->state, &mark);
        hold_state_note(&h->state, gap, choices[k]);
        REMAT_TRY(hold_state_settle(&h->state));
        measure(h, x, &change);
        const bool is_small = h->state.cost <= INT64_MAX && subtract(&change, before);
        bool is_useful = change.cost < 0;
        for (int i = 0; i < POSITIONS; i++)
            is_useful |= change.bytes[i] < 0;
        if (is_small && is_useful)
            note_flip(x, gap, choices[k], &change);
        hold_state_revert(&h->state, &mark);
    }
    return REMAT_OK;
}

static remat_status list_flips(hold_annealer *h, hold_exchange *x, uint64_t end)
{
    figures before;
    measure(h, x, &before);
    x->flip_count = x->saving.count = x->paying.count = 0;
    for (uint32_t i = 0; i < h->active_count && h->state.work < end; i++)
        REMAT_TRY(try_flips(h, x, h->active[i], &before));
    return REMAT_OK;
}

/* ---- sets ---- */

/* The bytes that a flip takes, or frees (`sign` -1), over all positions. */
static uint64_t byte_sum(const figures *f, int sign)
{
    int64_t sum = 0;
    for (int i = 0; i < POSITIONS; i++)
        sum += sign * f->bytes[i];
    return sum > 0 ? (uint64_t)sum : 0;
}

/* Saving: more cost saved for a byte. Paying: less cost for a byte. */
static bool is_better(const figures *a, const figures *b)
{
    const bool saves = a->cost < 0;
    const uint64_t cost_a = (uint64_t)(saves ? -a->cost : a->cost), cost_b = (uint64_t)(saves ? -b->cost : b->cost);
    const unsigned __int128 a_for_b = (unsigned __int128)cost_a * (byte_sum(b, saves ? 1 : -1) + 1);
    const unsigned __int128 b_for_a = (unsigned __int128)cost_b * (byte_sum(a, saves ? 1 : -1) + 1);
    return saves ? a_for_b > b_for_a : a_for_b < b_for_a;
}

static void keep_best(kind_list *list, uint32_t most)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const flip_kind now = list->kinds[i];
        uint32_t at = kept < most ? kept++ : most;
        for (; at > 0 && is_better(&now.of_each, &list->kinds[at - 1].of_each); at--)
            if (at < most)
                list->kinds[at] = list->kinds[at - 1];
        if (at < most)
            list->kinds[at] = now;
    }
    list->count = kept;
}

static flip_set with_one_more(const flip_set *set, const kind_list *list, uint32_t kind)
{
    flip_set made = *set;
    made.kinds[made.count++] = (uint8_t)kind;
    made.sum.cost += list->kinds[kind].of_each.cost;
    for (int i = 0; i < POSITIONS; i++)
        made.sum.bytes[i] += list->kinds[kind].of_each.bytes[i];
    return made;
}

/* All sets of up to `most` flips: each set once, and no kind more often than it has flips. */
static uint32_t list_sets(const kind_list *list, uint8_t most, flip_set *made)
{
    uint32_t count = 0;
    const flip_set none = {0};
    for (uint32_t i = 0; i < list->count; i++)
        made[count++] = with_one_more(&none, list, i);
    for (uint32_t done = 0; done < count; done++) {
        const flip_set set = made[done];
        for (uint32_t i = set.kinds[set.count - 1]; i < list->count && set.count < most; i++) {
            uint32_t times = 1;
            for (uint8_t k = 0; k < set.count; k++)
                times += set.kinds[k] == i;
            if (times <= list->kinds[i].count)
                made[count++] = with_one_more(&set, list, i);
        }
    }
    return count;
}

/* ---- offers ---- */

static void note_offer(hold_exchange *x, const offer *now)
{
    uint32_t at = x->offer_count < MOST_OFFERS ? x->offer_count++ : MOST_OFFERS;
    for (; at > 0 && x->offers[at - 1].cost > now->cost; at--)
        if (at < MOST_OFFERS)
            x->offers[at] = x->offers[at - 1];
    if (at < MOST_OFFERS)
        x->offers[at] = *now;
}

static bool costs_less(const void *user, uint32_t a, uint32_t b)
{
    const hold_exchange *x = user;
    return x->paying_sets[a].sum.cost < x->paying_sets[b].sum.cost;
}

static remat_status sort_paying(hold_annealer *h, hold_exchange *x)
{
    for (uint32_t i = 0; i < x->paying_count; i++)
        x->by_cost[i] = i;
    pthread_mutex_lock(h->state.lock);
    remat_status status = remat_sort(h->g->graph->context, x->by_cost, x->paying_count, costs_less, x);
    pthread_mutex_unlock(h->state.lock);
    return status;
}

/* For a set that saves, the cheapest ones that make room for it. */
static void find_payers(hold_annealer *h, hold_exchange *x, const flip_set *saving, const figures *room)
{
    int found = 0;
    for (uint32_t i = 0; i < x->paying_count && found < OFFERS_FOR_SAVING; i++) {
        const flip_set *paying = &x->paying_sets[x->by_cost[i]];
        const offer now = {saving->sum.cost + paying->sum.cost, saving, paying};
        h->state.work += i % 8 == 0;
        if (now.cost >= (x->offer_count == MOST_OFFERS ? x->offers[MOST_OFFERS - 1].cost : 0))
            return;
        bool fits = true;
        for (int k = 0; k < POSITIONS; k++)
            fits &= saving->sum.bytes[k] + paying->sum.bytes[k] <= room->bytes[k];
        if (!fits)
            continue;
        note_offer(x, &now);
        found++;
    }
}

static remat_status find_offers(hold_annealer *h, hold_exchange *x, uint64_t limit)
{
    figures room;
    measure(h, x, &room);
    for (uint32_t i = 0; i < x->position_count; i++)
        room.bytes[i] = (int64_t)limit - room.bytes[i];
    keep_best(&x->saving, MOST_SAVING);
    keep_best(&x->paying, MOST_PAYING);
    x->saving_count = list_sets(&x->saving, 2, x->saving_sets);
    x->paying_count = list_sets(&x->paying, MOST_IN_SET, x->paying_sets);
    h->state.work += 2 * (x->saving_count + x->paying_count);
    REMAT_TRY(sort_paying(h, x));
    x->offer_count = 0;
    for (uint32_t i = 0; i < x->saving_count; i++)
        find_payers(h, x, &x->saving_sets[i], &room);
    return REMAT_OK;
}

/* ---- exchanges ---- */

static void note_too_high(hold_exchange *x, uint32_t position)
{
    uint32_t i = 0;
    for (uint32_t k = 0; k < x->position_count; k++)
        if (x->positions[k] == position)
            return;
    while (i < x->too_high_count && x->too_high[i] != position)
        i++;
    if (i == POSITIONS)
        return;
    if (i == x->too_high_count) {
        x->too_high[x->too_high_count++] = position;
        x->times[i] = 0;
    }
    x->times[i]++;
}

static bool add_position(hold_exchange *x)
{
    uint32_t most = 0;
    for (uint32_t i = 1; i < x->too_high_count; i++)
        most = x->times[i] > x->times[most] ? i : most;
    if (!x->too_high_count || x->position_count == POSITIONS)
        return false;
    x->positions[x->position_count++] = x->too_high[most];
    return true;
}

/* Some flips of the kinds of a set. */
static void decide(hold_annealer *h, const hold_exchange *x, const kind_list *list, const flip_set *set)
{
    for (uint8_t i = 0; i < set->count; i++) {
        const flip_kind *kind = &list->kinds[set->kinds[i]];
        uint32_t number = kind->first;
        for (uint32_t skip = random_below(h, kind->count); skip > 0; skip--)
            number = x->flips[number].next;
        hold_state_note(&h->state, x->flips[number].gap, x->flips[number].from);
    }
}

static remat_status attempt(hold_annealer *h, hold_exchange *x, const offer *what, uint64_t limit, bool *done)
{
    hold_measure now = {.limit = limit};
    const unsigned __int128 cost = h->state.cost;
    hold_mark mark;
    hold_state_mark(&h->state, &mark);
    decide(h, x, &x->saving, what->saving);
    decide(h, x, &x->paying, what->paying);
    REMAT_TRY(hold_state_settle(&h->state));
    if (h->state.cost < cost && h->state.run_count <= h->most_runs) {
        annealer_measure(h, &now);
        REMAT_TRY(annealer_keep(h, now.peak));
        *done = now.peak <= limit;
        if (!*done)
            note_too_high(x, now.position);
    }
    if (*done)
        hold_state_accept(&h->state);
    else
        hold_state_revert(&h->state, &mark);
    return REMAT_OK;
}

remat_status annealer_exchange(hold_annealer *h, uint64_t limit, uint64_t effort)
{
    hold_exchange *x = h->exchange;
    const uint64_t end = h->state.work + effort;
    hold_measure now = {.limit = limit};
    annealer_measure(h, &now);
    x->positions[0] = now.position;
    x->position_count = 1;
    for (bool goes_on = true; goes_on && h->state.work < end && h->state.cost <= INT64_MAX;) {
        bool done = false;
        annealer_measure(h, &now);
        if (now.peak > limit)
            return REMAT_OK;
        REMAT_TRY(list_flips(h, x, end));
        REMAT_TRY(find_offers(h, x, limit));
        x->too_high_count = 0;
        for (uint32_t i = 0; i < x->offer_count * TRIES && !done; i++)
            REMAT_TRY(attempt(h, x, &x->offers[i / TRIES], limit, &done));
        goes_on = done || add_position(x);
    }
    return REMAT_OK;
}
