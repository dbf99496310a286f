#include "plan/graph/hold_search.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "base/parallel.h"

enum { SEARCHES = 2, LONGEST = 8 };

/* Large graphs have fewer bins, so that these take no more memory than so many decisions. */
enum { MOST_BINS = 1024, LEAST_BINS = 24, MOST_DECISIONS = 1000000 };

/* ---- chance ---- */

typedef struct dice {
    uint64_t state;
} dice;

static uint64_t dice_bits(dice *d)
{
    d->state ^= d->state << 13;
    d->state ^= d->state >> 7;
    d->state ^= d->state << 17;
    return d->state;
}

static uint32_t dice_below(dice *d, uint32_t bound)
{
    return (uint32_t)(((dice_bits(d) >> 32) * bound) >> 32);
}

/* -ln((i + 1/2) / CHANCES) in units of 2^-16, from the logarithms of neighbours: ln((1 + z) / (1 - z)) = 2 (z + z^3/3 + ...) */
enum { CHANCES = 1024 };
static void fill_logarithms(uint32_t *logarithms)
{
    const uint64_t one = (uint64_t)1 << 48;
    uint64_t value = 0;
    for (uint64_t i = CHANCES; i-- > 0;) {
        const uint64_t part = i == CHANCES - 1 ? 4 * CHANCES - 1 : 2 * i + 2; /* z is 1 / part */
        for (uint64_t k = 1, power = one / part; power > 0; k += 2, power /= part * part)
            value += 2 * (power / k);
        logarithms[i] = (uint32_t)(value >> 32);
    }
}

/* ---- what was found ---- */

typedef struct hold_bin {
    uint64_t peak;
    unsigned __int128 cost;
    uint32_t *from; /* the decisions; NULL: nothing yet */
    size_t capacity;
} hold_bin;

typedef struct hold_hunt {
    const hold_graph *g;
    const graph_sequence *seeds;
    size_t seed_count, number;
    uint64_t effort;
    const uint32_t *logarithms;
    unsigned __int128 least_cost; /* of the cheapest schedule: recomputation is what is above */
    uint64_t top, bottom;         /* limits of the ladder */
    unsigned shift;               /* of sums over the limit */
    hold_state state;
    hold_bin bins[MOST_BINS + 1]; /* the last one in use has the lowest peak of all */
    size_t bin_count;             /* besides that one */
    uint32_t *active;             /* the gaps worth deciding */
    uint32_t active_count;
    uint32_t *best; /* the decisions of the rung's best */
    dice dice;
    size_t ladder;
    bool by_tensor; /* only whole tensors are changed, from everything kept, at a high price of bytes */
    remat_status status;
} hold_hunt;

static hold_bin *bin_of(hold_hunt *h, uint64_t peak)
{
    uint64_t width = (h->top - h->bottom) / h->bin_count + 1;
    uint64_t bin = peak > h->bottom ? (peak - h->bottom + width - 1) / width : 0;
    return &h->bins[bin < h->bin_count ? bin : h->bin_count - 1];
}

static remat_status fill_bin(hold_hunt *h, hold_bin *bin, const hold_bin *with)
{
    size_t count = h->g->gap_count;
    size_t capacity = 0;
    if (!bin->from) {
        void *made = NULL;
        REMAT_TRY(hold_state_grow(&h->state, &made, &capacity, count + 1, sizeof *bin->from));
        bin->from = made;
        bin->capacity = capacity;
    }
    memcpy(bin->from, with->from, count * sizeof *bin->from);
    bin->peak = with->peak;
    bin->cost = with->cost;
    return REMAT_OK;
}

static bool is_cheaper(const hold_bin *a, const hold_bin *b)
{
    return !b->from || a->cost < b->cost || (a->cost == b->cost && a->peak < b->peak);
}

static bool is_lower(const hold_bin *a, const hold_bin *b)
{
    return !b->from || a->peak < b->peak || (a->peak == b->peak && a->cost < b->cost);
}

static remat_status keep(hold_hunt *h, uint64_t peak)
{
    hold_bin *bin = bin_of(h, peak), *lowest = &h->bins[h->bin_count];
    const hold_bin now = {peak, h->state.cost, h->state.from, 0};
    if (is_lower(&now, lowest))
        REMAT_TRY(fill_bin(h, lowest, &now));
    return is_cheaper(&now, bin) ? fill_bin(h, bin, &now) : REMAT_OK;
}

static remat_status adopt(hold_hunt *h, const uint32_t *from)
{
    for (uint32_t i = 0; i < h->g->gap_count; i++)
        hold_state_note(&h->state, i, from[i]);
    return hold_state_settle(&h->state);
}

/* The cheapest found whose peak is within the limit. */
static const hold_bin *cheapest_within(const hold_hunt *h, uint64_t limit)
{
    const hold_bin *best = NULL;
    for (size_t i = 0; i <= h->bin_count; i++)
        if (h->bins[i].from && h->bins[i].peak <= limit && (!best || h->bins[i].cost < best->cost))
            best = &h->bins[i];
    return best;
}

/* ---- changes ---- */

typedef struct change {
    uint32_t gaps[64], before[64];
    uint32_t count;
} change;

static void propose(hold_hunt *h, change *c, uint32_t gap, uint32_t from)
{
    if (h->state.from[gap] == from || c->count == sizeof c->gaps / sizeof *c->gaps)
        return;
    c->gaps[c->count] = gap;
    c->before[c->count++] = h->state.from[gap];
    hold_state_note(&h->state, gap, from);
}

static void take_back(hold_hunt *h, const change *c)
{
    for (uint32_t i = c->count; i-- > 0;)
        hold_state_note(&h->state, c->gaps[i], c->before[i]);
}

static uint32_t some_decision(hold_hunt *h, uint32_t number)
{
    const hold_gap *gap = &h->g->gaps[number];
    const touch_list *list = &h->state.touches[gap->tensor];
    uint32_t kind = dice_below(&h->dice, 8);
    if (kind < 3)
        return gap->begin;
    if (kind < 5)
        return gap->begin + 1;
    if (kind == 5 && list->count) {
        uint32_t position = list->positions[dice_below(&h->dice, list->count)];
        if (position > gap->begin && position < gap->end)
            return position;
    }
    return gap->end;
}

/* A gap that has to do with the trouble at hand: where the peak is too high, one that is held there; else one that is not
 * held at all. */
static uint32_t some_gap(hold_hunt *h, bool is_over, uint32_t position)
{
    uint32_t gap = h->active[dice_below(&h->dice, h->active_count)];
    for (int tries = 0; tries < 12; tries++) {
        const hold_gap *range = &h->g->gaps[gap];
        bool fits = is_over ? range->begin < position && position <= range->end && h->state.held_from[gap] < position
                            : h->state.from[gap] != range->begin;
        if (fits)
            break;
        gap = h->active[dice_below(&h->dice, h->active_count)];
    }
    return gap;
}

/* All gaps of a tensor behind the turn: kept, made again once and held, or made again for every reader. */
static void propose_tensor(hold_hunt *h, change *c, uint32_t tensor)
{
    const hold_tensor *t = &h->g->tensors[tensor];
    uint32_t kind = dice_below(&h->dice, 3), tail = h->by_tensor ? 0 : dice_below(&h->dice, 2), first = t->first_gap;
    while (first < t->first_gap + t->gap_count && h->g->gaps[first].end < h->g->turn)
        first++;
    for (uint32_t i = first; i < t->first_gap + t->gap_count; i++) {
        const hold_gap *gap = &h->g->gaps[i];
        uint32_t from = gap->begin;
        if (kind == 2)
            from = gap->end;
        else if (gap->end == HOLD_TAIL ? tail : kind == 1 && i == first)
            from = gap->begin + 1;
        propose(h, c, i, from);
    }
}

static void make_change(hold_hunt *h, change *c, bool is_over, uint32_t position)
{
    uint32_t kind = dice_below(&h->dice, 16);
    c->count = 0;
    if (h->by_tensor) {
        propose_tensor(h, c, h->g->gaps[h->active[dice_below(&h->dice, h->active_count)]].tensor);
        return;
    }
    uint32_t gap = kind < 10 ? some_gap(h, is_over, position) : h->active[dice_below(&h->dice, h->active_count)];
    if (kind % 2) {
        propose_tensor(h, c, h->g->gaps[gap].tensor);
        return;
    }
    propose(h, c, gap, some_decision(h, gap));
    if (kind == 2 || kind == 12) {
        gap = some_gap(h, !is_over, position);
        propose(h, c, gap, some_decision(h, gap));
    }
}

/* ---- annealing ---- */

enum { COST_SHIFT = 40 };
#define MOST_PRICE ((uint64_t)1 << 60)

typedef struct annealing {
    uint64_t limit, peak, over;
    uint32_t position;
    uint64_t price;  /* of a byte over the limit, in units of 2^-40 of a cost */
    __int128 energy; /* of the state, in the same units */
    unsigned __int128 best_cost;
    bool has_best;
} annealing;

/* Sums stay far below 2^127: costs below 2^66, bytes below 2^62. */
static __int128 energy_of(const hold_hunt *h, const annealing *a)
{
    return ((__int128)h->state.cost << COST_SHIFT) + (__int128)a->over * a->price;
}

/* So many thousandths of a cost, for so many bytes. */
static uint64_t price_of(unsigned __int128 cost, uint64_t thousandths, uint64_t bytes)
{
    unsigned __int128 price = (cost << COST_SHIFT) / 1000 * thousandths / bytes;
    return price >= MOST_PRICE ? MOST_PRICE : (uint64_t)price + 1;
}

static void measure(hold_hunt *h, annealing *a)
{
    a->peak = hold_state_peak(&h->state, a->limit, h->shift, &a->over, &a->position);
    a->energy = energy_of(h, a);
    h->state.work += h->g->position_count / 4 + 16;
}

static remat_status note_best(hold_hunt *h, annealing *a)
{
    REMAT_TRY(keep(h, a->peak));
    if (a->peak > a->limit || (a->has_best && h->state.cost >= a->best_cost))
        return REMAT_OK;
    a->has_best = true;
    a->best_cost = h->state.cost;
    memcpy(h->best, h->state.from, h->g->gap_count * sizeof *h->best);
    return REMAT_OK;
}

/* How hot it begins: a part of the cost, but where little is recomputed, of that. */
static __int128 begin_heat(const hold_hunt *h, uint64_t millionths)
{
    const unsigned __int128 cost = h->state.cost, recomputed = cost > h->least_cost ? cost - h->least_cost : 0;
    const unsigned __int128 share = 20 * recomputed + cost / 100;
    return (__int128)((share < cost && !h->by_tensor ? share : cost) << COST_SHIFT) / 1000000 * (__int128)millionths;
}

/* Anneals under one limit and ends with the best that fits it; where nothing did, as it is. */
static remat_status anneal(hold_hunt *h, uint64_t limit, uint64_t effort, uint64_t hot, bool *fits)
{
    annealing a = {.limit = limit};
    measure(h, &a);
    const uint64_t bytes = a.over ? a.over : ((h->top - h->bottom) >> h->shift) + 1;
    a.price = h->by_tensor ? price_of(h->state.cost, 20000, a.over + 1) : price_of(h->state.cost, 20, bytes);
    measure(h, &a);
    REMAT_TRY(note_best(h, &a));
    uint64_t end = h->state.work + effort, most_runs = (uint64_t)LONGEST * h->g->action_count + 64;
    __int128 heat = begin_heat(h, hot);
    enum { ROUNDS = 64 };
    uint64_t part = effort / ROUNDS, next_part = h->state.work + part;
    while (h->state.work < end) {
        change c;
        annealing next = a;
        make_change(h, &c, a.peak > limit, a.position);
        h->state.work++;
        if (c.count == 0)
            continue;
        REMAT_TRY(hold_state_settle(&h->state));
        measure(h, &next);
        __int128 worse = next.energy - a.energy;
        if (h->state.run_count <= most_runs && worse <= (heat >> 16) * h->logarithms[dice_bits(&h->dice) >> 54]) {
            a = next;
            if (worse != 0)
                REMAT_TRY(note_best(h, &a));
        } else {
            take_back(h, &c);
            REMAT_TRY(hold_state_settle(&h->state));
        }
        if (h->state.work >= next_part) {
            next_part += part;
            heat = heat / 100 * 92; /* to the power of ROUNDS: a 200th */
            if (!h->by_tensor)
                a.price = a.peak > limit ? remat_min(a.price / 5 * 6 + 1, MOST_PRICE) : a.price / 10 * 9 + 1;
            a.energy = energy_of(h, &a);
        }
    }
    *fits = a.has_best;
    return a.has_best ? adopt(h, h->best) : REMAT_OK;
}

/* ---- the greedy way down ---- */

/* A quotient, compared by products. */
typedef struct ratio {
    uint64_t above, below;
} ratio;

static bool is_less(ratio a, ratio b)
{
    return (unsigned __int128)a.above * b.below < (unsigned __int128)b.above * a.below;
}

typedef struct candidate {
    uint32_t gap;
    ratio price; /* cost for bytes */
} candidate;

enum { MOST_CANDIDATES = 48 };

/* The gaps that are held over a position and could be dropped there, the cheapest to make again for their bytes.
 * `held_only`: only those that are held from their begin. */
static uint32_t list_candidates(hold_hunt *h, uint32_t position, bool held_only, uint32_t most, candidate *list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < h->active_count; i++) {
        uint32_t number = h->active[i];
        const hold_gap *gap = &h->g->gaps[number];
        if (gap->begin >= position || gap->end <= position || h->state.held_from[number] >= position ||
            (gap->end == HOLD_TAIL && h->state.tail_to[gap->tensor] <= position) ||
            (held_only && h->state.from[number] != gap->begin))
            continue;
        const hold_tensor *tensor = &h->g->tensors[gap->tensor];
        const ratio price = {h->g->actions[tensor->maker].cost, tensor->bytes};
        uint32_t at = count < most ? count++ : most;
        for (; at > 0 && is_less(price, list[at - 1].price); at--)
            if (at < most)
                list[at] = list[at - 1];
        if (at < most)
            list[at] = (candidate){number, price};
    }
    h->state.work += h->active_count / 4;
    return count;
}

/* Changes the gap that takes most off the excess for its cost. Returns false in `changed` where none does. */
static remat_status drop_best(hold_hunt *h, annealing *a, uint32_t most, bool *changed)
{
    candidate list[MOST_CANDIDATES];
    uint32_t count = list_candidates(h, a->position, false, most, list), best = GRAPH_NONE, best_from = 0;
    ratio best_gain = {0, 1};
    for (uint32_t i = 0; i < count; i++) {
        const hold_gap *gap = &h->g->gaps[list[i].gap];
        const uint32_t before = h->state.from[list[i].gap], choices[] = {gap->begin + 1, a->position + 1, gap->end};
        for (int k = 0; k < 3; k++) {
            if (choices[k] <= before || choices[k] > gap->end || (k && choices[k] == choices[k - 1]))
                continue;
            annealing next = *a;
            const unsigned __int128 cost = h->state.cost;
            hold_state_note(&h->state, list[i].gap, choices[k]);
            REMAT_TRY(hold_state_settle(&h->state));
            measure(h, &next);
            REMAT_TRY(keep(h, next.peak));
            const uint64_t more = h->state.cost > cost ? (uint64_t)(h->state.cost - cost) : 0;
            const uint64_t saved = a->over > next.over ? a->over - next.over : 0;
            /* a millionth of the cost counts as nothing */
            ratio gain = {saved, more + (uint64_t)(h->state.cost / 1000000) + 1};
            if (h->number % 2)
                gain = (ratio){list[i].price.below, list[i].price.above + 1};
            if (saved && is_less(best_gain, gain)) {
                best_gain = gain;
                best = list[i].gap;
                best_from = choices[k];
            }
            hold_state_note(&h->state, list[i].gap, before);
            REMAT_TRY(hold_state_settle(&h->state));
        }
    }
    *changed = best != GRAPH_NONE;
    if (*changed)
        hold_state_note(&h->state, best, best_from);
    REMAT_TRY(hold_state_settle(&h->state));
    measure(h, a);
    return keep(h, a->peak);
}

static remat_status descend(hold_hunt *h, uint64_t limit, uint64_t effort)
{
    annealing a = {.limit = limit};
    uint64_t end = h->state.work + effort;
    uint64_t each = 3 * (uint64_t)(h->g->position_count / 2 + 100),
             most = effort / (each * (h->active_count + 1) / 16 + 1);
    bool changed = true;
    measure(h, &a);
    while (changed && a.peak > limit && h->state.work < end)
        REMAT_TRY(drop_best(h, &a, most < 6 ? 6 : most > MOST_CANDIDATES ? MOST_CANDIDATES : (uint32_t)most, &changed));
    return REMAT_OK;
}

/* ---- a hunt ---- */

/* From everything kept down: of what lives at the peak, what is cheapest to make again for its bytes is made again, once or
 * (`each`) for every reader. In large graphs several at a time. */
static remat_status try_greedy(hold_hunt *h, bool each)
{
    annealing a = {.limit = UINT64_MAX};
    const hold_graph *g = h->g;
    const uint32_t most = g->position_count / 4000 + 1;
    const uint64_t end = h->state.work + h->effort / 8;
    for (uint32_t i = 0; i < g->gap_count; i++)
        h->best[i] = g->gaps[i].begin;
    REMAT_TRY(adopt(h, h->best));
    for (;;) {
        candidate list[MOST_CANDIDATES];
        measure(h, &a);
        REMAT_TRY(keep(h, a.peak));
        if (h->state.run_count > (uint64_t)LONGEST * g->action_count || h->state.work > end)
            return REMAT_OK;
        uint32_t count = list_candidates(h, a.position, true, most < MOST_CANDIDATES ? most : MOST_CANDIDATES, list);
        if (count == 0)
            return REMAT_OK;
        for (uint32_t k = 0; k < count; k++) {
            const hold_tensor *t = &g->tensors[g->gaps[list[k].gap].tensor];
            for (uint32_t i = list[k].gap; i < t->first_gap + t->gap_count; i++)
                hold_state_note(&h->state, i, each ? g->gaps[i].end : g->gaps[i].begin + (i == list[k].gap));
        }
        REMAT_TRY(hold_state_settle(&h->state));
    }
}

static remat_status try_seeds(hold_hunt *h)
{
    annealing a = {.limit = UINT64_MAX};
    measure(h, &a);
    REMAT_TRY(keep(h, a.peak));
    REMAT_TRY(try_greedy(h, false));
    REMAT_TRY(try_greedy(h, true));
    for (size_t i = 0; i < h->seed_count; i++) {
        REMAT_TRY(hold_state_decide_like(h->g, h->seeds[i].actions, h->seeds[i].count, h->best));
        REMAT_TRY(adopt(h, h->best));
        measure(h, &a);
        REMAT_TRY(keep(h, a.peak));
    }
    return REMAT_OK;
}

typedef struct ladder {
    bool down;
    uint32_t rungs;
    uint64_t share, heat; /* thousandths of the effort; millionths of the cost */
} ladder;
static const ladder ladders[] = {
    {true, 9, 350, 3000}, {false, 12, 200, 2000}, {true, 24, 150, 700}, {false, 48, 100, 300}};
enum { LADDERS = sizeof ladders / sizeof *ladders };
/* Thousandths of the effort that look for the lowest peak, and for what is left to gain in each bin. */
enum { SINKING = 100, POLISHING = 100 };

/* The rungs of the searches interleave. */
static uint64_t rung_limit(const hold_hunt *h, uint64_t rung, uint64_t rungs)
{
    const uint64_t fine = rung * SEARCHES - h->number;
    const uint64_t floor = h->ladder ? h->bins[h->bin_count].peak : h->bottom;
    return h->top - (uint64_t)((unsigned __int128)(h->top - floor) * fine / (rungs * SEARCHES));
}

static remat_status hunt(hold_hunt *h)
{
    const ladder *now = &ladders[h->ladder];
    const uint64_t each = h->effort / 1000 * now->share / now->rungs;
    for (uint64_t i = 1; i <= now->rungs && h->active_count; i++) {
        uint64_t limit = rung_limit(h, now->down ? i : now->rungs + 1 - i, now->rungs);
        const uint64_t before = now->down && i > 1 ? rung_limit(h, i - 1, now->rungs) : limit;
        const hold_bin *bin = cheapest_within(h, before);
        bool fits;
        h->by_tensor = h->ladder == 0 && h->number % 2;
        if (h->by_tensor) {
            for (uint32_t k = 0; k < h->g->gap_count; k++)
                h->best[k] = h->g->gaps[k].begin;
            REMAT_TRY(adopt(h, h->best));
        } else if (bin)
            REMAT_TRY(adopt(h, bin->from));
        else if (h->ladder)
            continue;
        if (now->down && !h->by_tensor)
            REMAT_TRY(descend(h, limit, each / 4));
        REMAT_TRY(anneal(h, limit, each, h->by_tensor ? 20000 : now->heat, &fits));
        h->by_tensor = false;
        if (now->down && !fits && !cheapest_within(h, limit))
            break;
    }
    return REMAT_OK;
}

/* Goes on from the lowest peak, to lower ones. */
static remat_status sink(hold_hunt *h)
{
    enum { TRIES = 8 };
    const uint64_t each = h->effort / 1000 * SINKING / TRIES;
    for (int i = 0; i < TRIES && h->active_count && h->bins[h->bin_count].peak > h->bottom; i++) {
        const hold_bin *lowest = &h->bins[h->bin_count];
        uint64_t limit = lowest->peak - (lowest->peak - h->bottom + 63) / 64;
        bool fits;
        REMAT_TRY(adopt(h, lowest->from));
        if (i % 2 == 0)
            REMAT_TRY(descend(h, limit, each / 2));
        REMAT_TRY(anneal(h, limit, each, 10000, &fits));
    }
    return REMAT_OK;
}

/* Every gap that is not held in the best of a bin is held, if that is cheaper and still in the bin. */
static remat_status polish_bin(hold_hunt *h, size_t number)
{
    const uint64_t width = (h->top - h->bottom) / h->bin_count + 1, limit = h->bottom + width * number;
    annealing a = {.limit = limit};
    REMAT_TRY(adopt(h, h->bins[number].from));
    for (uint32_t i = 0; i < h->active_count; i++) {
        const uint32_t gap = h->active[i], begin = h->g->gaps[gap].begin, before = h->state.from[gap];
        const unsigned __int128 cost = h->state.cost;
        if (before == begin)
            continue;
        hold_state_note(&h->state, gap, begin);
        REMAT_TRY(hold_state_settle(&h->state));
        if (h->state.cost < cost) {
            measure(h, &a);
            REMAT_TRY(keep(h, a.peak));
            if (a.peak <= limit)
                continue;
        }
        hold_state_note(&h->state, gap, before);
        REMAT_TRY(hold_state_settle(&h->state));
    }
    return REMAT_OK;
}

/* Each search has its share of the bins, and goes over them several times, so that no part of the curve is left out. */
static remat_status polish(hold_hunt *h)
{
    enum { PASSES = 8 };
    const uint64_t end = h->state.work + h->effort / 1000 * POLISHING;
    for (size_t pass = 0; pass < PASSES; pass++)
        for (size_t i = h->number + SEARCHES * pass; i < h->bin_count && h->state.work < end; i += SEARCHES * PASSES)
            if (h->bins[i].from)
                REMAT_TRY(polish_bin(h, i));
    return REMAT_OK;
}

/* Every search goes on with the best of all. */
static remat_status share_bins(hold_hunt *hunts)
{
    const size_t bins = hunts->bin_count;
    for (size_t i = 0; i <= bins; i++) {
        const hold_bin *best = &hunts[0].bins[i];
        for (size_t k = 1; k < SEARCHES; k++) {
            const hold_bin *bin = &hunts[k].bins[i];
            if (bin->from && (i < bins ? is_cheaper(bin, best) : is_lower(bin, best)))
                best = bin;
        }
        for (size_t k = 0; best->from && k < SEARCHES; k++)
            if (&hunts[k].bins[i] != best)
                REMAT_TRY(fill_bin(&hunts[k], &hunts[k].bins[i], best));
    }
    return REMAT_OK;
}

static void hunt_release(hold_hunt *h)
{
    remat_context *context = h->g->graph->context;
    for (size_t i = 0; i <= h->bin_count; i++)
        remat_release(context, h->bins[i].from, h->bins[i].capacity, sizeof *h->bins[i].from);
    remat_release(context, h->active, h->g->gap_count, sizeof *h->active);
    remat_release(context, h->best, h->g->gap_count, sizeof *h->best);
    hold_state_release(&h->state);
}

static remat_status hunt_begin(hold_hunt *h)
{
    const hold_graph *g = h->g;
    remat_context *context = g->graph->context;
    const uint64_t bins = MOST_DECISIONS / ((uint64_t)g->gap_count + 1);
    h->bin_count = bins > MOST_BINS ? MOST_BINS : bins < LEAST_BINS ? LEAST_BINS : (size_t)bins;
    h->active = remat_alloc(context, g->gap_count, sizeof *h->active);
    h->best = remat_alloc(context, g->gap_count, sizeof *h->best);
    if (!h->active || !h->best)
        return REMAT_NO_MEMORY;
    for (uint32_t i = 0; i < g->gap_count; i++)
        if (g->tensors[g->gaps[i].tensor].bytes && g->tensors[g->gaps[i].tensor].gap_count > 1)
            h->active[h->active_count++] = i;
    REMAT_TRY(hold_state_create(g, &h->state));
    uint64_t over;
    uint32_t position;
    h->top = hold_state_peak(&h->state, UINT64_MAX, 0, &over, &position);
    h->least_cost = h->state.cost;
    /* below this nothing is possible: what an action needs is there when it runs */
    for (uint32_t i = 0; i < g->action_count; i++) {
        const hold_action *action = &g->actions[i];
        uint64_t needs = g->given_bytes + action->workspace_bytes;
        for (uint32_t k = 0; k < action->read_count; k++)
            needs += g->tensors[action->reads[k]].bytes;
        h->bottom = remat_max(h->bottom, action->makable ? 0 : needs);
    }
    h->bottom = remat_min(h->bottom, h->top);
    unsigned bits = remat_bits(h->top) + remat_bits(g->position_count);
    h->shift = bits > 62 ? bits - 62 : 0;
    h->dice.state = 0x9e3779b97f4a7c15 * (h->number + 1);
    return try_seeds(h);
}

/* ---- all together ---- */

uint64_t hold_search_effort(const hold_graph *g)
{
    const uint64_t gaps = g->gap_count, more = g->position_count > 2500 ? g->position_count - 2500 : 0;
    const uint64_t full = 320000000 + 40000 * more, most = 1500000000;
    return remat_min(1000000 + 4000 * gaps * gaps, remat_min(full, most));
}

static void hunt_part(const void *args, parallel_range range)
{
    for (size_t i = range.begin; i < range.end; i++) {
        hold_hunt *h = &((hold_hunt *)(uintptr_t)args)[i];
        h->status = h->ladder < LADDERS ? hunt(h) : polish(h);
        if (h->status == REMAT_OK && h->ladder == 0)
            h->status = sink(h);
    }
}

static remat_status report(hold_hunt *h, hold_found *found, void *user)
{
    for (size_t i = 0; i <= h->bin_count; i++) {
        if (!h->bins[i].from)
            continue;
        graph_sequence sequence = {0};
        REMAT_TRY(adopt(h, h->bins[i].from));
        remat_status status = hold_state_sequence(&h->state, &sequence);
        if (status == REMAT_OK)
            status = found(user, &sequence);
        graph_sequence_release(h->g->graph->context, &sequence);
        REMAT_TRY(status);
    }
    return REMAT_OK;
}

remat_status hold_search_run(const hold_graph *g, const hold_search_options *options, hold_found *found, void *user)
{
    remat_context *context = g->graph->context;
    uint32_t logarithms[CHANCES];
    fill_logarithms(logarithms);
    hold_hunt *hunts = remat_alloc_zeroed(context, SEARCHES, sizeof *hunts);
    if (!hunts)
        return REMAT_NO_MEMORY;
    remat_status status = REMAT_OK;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    for (size_t i = 0; i < SEARCHES; i++) {
        hunts[i] = (hold_hunt){.g = g,
                               .seeds = options->seeds,
                               .seed_count = options->seed_count,
                               .number = i,
                               .logarithms = logarithms,
                               .effort = (options->effort ? options->effort : hold_search_effort(g)) / SEARCHES};
        if (status == REMAT_OK)
            status = hunt_begin(&hunts[i]);
        hunts[i].state.lock = &lock;
    }
    if (status == REMAT_OK) {
        int threads = options->threads ? (int)options->threads : parallel_default_threads();
        for (size_t step = 0; step <= LADDERS && status == REMAT_OK; step++) {
            for (size_t i = 0; i < SEARCHES; i++)
                hunts[i].ladder = step;
            parallel_dynamic(threads, SEARCHES, 1, hunt_part, hunts);
            for (size_t i = 0; i < SEARCHES && status == REMAT_OK; i++)
                status = hunts[i].status;
            if (status == REMAT_OK)
                status = share_bins(hunts);
        }
    }
    if (status == REMAT_OK)
        status = report(hunts, found, user);
    for (size_t i = 0; i < SEARCHES; i++)
        hunt_release(&hunts[i]);
    remat_release(context, hunts, SEARCHES, sizeof *hunts);
    return status;
}
