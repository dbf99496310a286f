#include <string.h>

#include "base/error.h"
#include "base/min_max.h"
#include "plan/graph/hold_annealer.h"

/* -ln((i + 1/2) / CHANCES) in units of 2^-16, from the logarithms of neighbours: ln((1 + z) / (1 - z)) = 2 (z + z^3/3 + ...) */
enum { CHANCES = 1024 };
static void fill_logarithms(uint32_t logarithms[CHANCES])
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

/* ---- energies ---- */

enum { COST_SHIFT = 40 };
#define MOST_PRICE ((uint64_t)1 << 60)

typedef struct annealing {
    hold_measure now;
    uint64_t price;  /* of a byte over the limit, in units of 2^-40 of a cost */
    __int128 energy; /* of the schedule, in the same units */
    unsigned __int128 best_cost;
    bool has_best;
} annealing;

/* Sums stay far below 2^127: costs below 2^66, bytes below 2^62. */
static __int128 energy_of(const hold_annealer *h, const annealing *a)
{
    return ((__int128)h->state.cost << COST_SHIFT) + (__int128)a->now.over * a->price;
}

/* So many thousandths of a cost, for so many bytes. */
static uint64_t price_of(unsigned __int128 cost, uint64_t thousandths, uint64_t bytes)
{
    unsigned __int128 price = (cost << COST_SHIFT) / 1000 * thousandths / bytes;
    return price >= MOST_PRICE ? MOST_PRICE : (uint64_t)price + 1;
}

static void measure(hold_annealer *h, annealing *a)
{
    annealer_measure(h, &a->now);
    a->energy = energy_of(h, a);
}

static remat_status note_best(hold_annealer *h, annealing *a)
{
    if (h->state.run_count <= h->most_runs)
        REMAT_TRY(annealer_keep(h, a->now.peak));
    if (a->now.peak > a->now.limit || (a->has_best && h->state.cost >= a->best_cost))
        return REMAT_OK;
    a->has_best = true;
    a->best_cost = h->state.cost;
    memcpy(h->decisions, h->state.from, h->g->gap_count * sizeof *h->decisions);
    return REMAT_OK;
}

/* How hot it begins: a part of the cost, but where little is recomputed, of that. */
static __int128 begin_heat(const hold_annealer *h, uint64_t millionths)
{
    const unsigned __int128 cost = h->state.cost, recomputed = cost > h->least_cost ? cost - h->least_cost : 0;
    const unsigned __int128 share = 20 * recomputed + cost / 100;
    const bool is_of_all = h->way == BY_TENSOR || h->way == PRICED;
    return (__int128)((share < cost && !is_of_all ? share : cost) << COST_SHIFT) / 1000000 * (__int128)millionths;
}

/* ---- the way down ---- */

/* A byte over the limit costs as much as the schedule, in so many thousandths, for all bytes over it. */
static uint64_t begin_price(const hold_annealer *h, const hold_measure *now)
{
    if (h->way == PRICED)
        return price_of(h->least_cost, 20000, h->most_over + 1);
    if (h->way == BY_TENSOR)
        return price_of(h->state.cost, 20000, now->over + 1);
    if (h->way == FIRM)
        return price_of(h->state.cost, 300000, (h->bins.top >> h->shift) + 1);
    return price_of(h->state.cost, 20, now->over ? now->over : ((h->bins.top - h->bins.bottom) >> h->shift) + 1);
}

/* One change, which stays or is taken back: at once where its cost alone is too high. Under a firm limit, a change that is above it
 * drops up to so much more. */
enum { MOST_ROOM = 2 };
static remat_status try_change(hold_annealer *h, annealing *a, __int128 heat, const uint32_t *logarithms)
{
    hold_change change;
    hold_mark mark;
    annealing next = *a;
    const uint64_t runs = h->state.run_count;
    hold_state_mark(&h->state, &mark);
    annealer_change(h, &a->now, &change);
    h->state.work++;
    REMAT_TRY(hold_state_settle(&h->state));
    const __int128 most = a->energy + (heat >> 16) * logarithms[random_bits(h) >> 54];
    if (change.count == 0 || (__int128)h->state.cost << COST_SHIFT > most) {
        hold_state_revert(&h->state, &mark);
        return REMAT_OK;
    }
    measure(h, &next);
    for (int i = 0; i < MOST_ROOM && h->way == FIRM && next.now.peak > next.now.limit; i++) {
        if (!annealer_make_room(h, &next.now, &change))
            break;
        REMAT_TRY(hold_state_settle(&h->state));
        measure(h, &next);
    }
    const bool is_short = h->state.run_count <= h->most_runs || h->state.run_count <= runs;
    if (!is_short || next.energy > most) {
        hold_state_revert(&h->state, &mark);
        return REMAT_OK;
    }
    hold_state_accept(&h->state);
    const bool is_other = next.energy != a->energy;
    *a = next;
    return is_other ? note_best(h, a) : REMAT_OK;
}

/* From hot to cold. The schedule it begins with is the caller's, and no result. */
static remat_status cool_down(hold_annealer *h, annealing *a, uint64_t effort, uint64_t heat)
{
    enum { ROUNDS = 64 };
    uint32_t logarithms[CHANCES];
    fill_logarithms(logarithms);
    annealer_measure(h, &a->now);
    a->price = begin_price(h, &a->now);
    a->energy = energy_of(h, a);
    __int128 warmth = begin_heat(h, heat);
    const uint64_t begin = h->state.work;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        while (h->state.work < begin + effort / ROUNDS * round)
            REMAT_TRY(try_change(h, a, warmth, logarithms));
        warmth = warmth / 100 * 92; /* to the power of ROUNDS: a 200th */
        if (h->way == SOFT)
            a->price = a->now.peak > a->now.limit ? remat_min(a->price / 5 * 6 + 1, MOST_PRICE) : a->price / 10 * 9 + 1;
        a->energy = energy_of(h, a);
    }
    return REMAT_OK;
}

remat_status annealer_anneal(hold_annealer *h, uint64_t limit, uint64_t effort, uint64_t heat, bool *fits)
{
    annealing a = {.now = {.limit = limit}};
    annealer_measure(h, &a.now);
    REMAT_TRY(note_best(h, &a));
    REMAT_TRY(cool_down(h, &a, effort, heat));
    *fits = a.has_best;
    return a.has_best ? annealer_adopt(h, h->decisions) : REMAT_OK;
}

remat_status annealer_shake(hold_annealer *h, uint64_t limit, uint64_t effort, uint64_t heat, bool *fits)
{
    annealing a = {.now = {.limit = limit}};
    REMAT_TRY(cool_down(h, &a, effort, heat));
    *fits = a.now.peak <= limit || a.has_best;
    return a.now.peak > limit && a.has_best ? annealer_adopt(h, h->decisions) : REMAT_OK;
}
