/* The last part of the search: improves the schedules under round limits, where budgets often are. A short annealing changes a schedule,
 * and exchanges improve it, until they find nothing more. Then the next annealing begins there. */
#include "base/error.h"
#include "plan/graph/hold_annealer.h"

enum { LIMITS = 20, MOST_WEIGHT = 24 };

typedef struct round_limit {
    uint64_t bytes; /* 0: no schedule is within it */
    uint64_t weight, spent, tries;
    hold_bin last; /* what the last try ended with */
} round_limit;

/* Effort goes where the bound leaves something to gain, in ten-thousandths of the cost. */
static uint64_t weight_of(const hold_annealer *h, uint64_t limit)
{
    const unsigned __int128 best = hold_bins_cheapest(&h->bins, limit)->cost, bound = annealer_bound(h, limit);
    const unsigned __int128 gap = best > bound ? (best - bound) * 10000 / (h->least_cost + 1) : 0;
    return gap < MOST_WEIGHT - 4 ? 4 + (uint64_t)gap : MOST_WEIGHT;
}

/* The one that got the least for its weight. */
static round_limit *choose(const hold_annealer *h, round_limit *limits)
{
    round_limit *least = NULL;
    for (size_t i = 0; i < LIMITS; i++) {
        round_limit *now = &limits[i];
        if (!now->bytes)
            continue;
        now->weight = weight_of(h, now->bytes);
        if (!least || (unsigned __int128)now->spent * least->weight < (unsigned __int128)least->spent * now->weight)
            least = now;
    }
    return least;
}

/* Goes on from what a try ended with, unless that is half a percent above the best. */
static remat_status begin_try(hold_annealer *h, const round_limit *now)
{
    const hold_bin *best = hold_bins_cheapest(&h->bins, now->bytes);
    const bool goes_on = now->last.from && now->last.cost <= best->cost + h->least_cost / 200;
    return annealer_adopt(h, goes_on ? now->last.from : best->from);
}

/* By turns: nothing goes above the limit; what does has a price, for a short and for a long annealing. */
static remat_status shake(hold_annealer *h, const round_limit *now, bool *fits)
{
    const uint64_t turn = now->tries % 3;
    if (turn)
        REMAT_TRY(annealer_price(h, now->bytes));
    REMAT_TRY(begin_try(h, now));
    h->way = turn ? PRICED : FIRM;
    remat_status status = annealer_shake(h, now->bytes, h->effort / (turn == 2 ? 60 : 1000), turn ? 2000 : 3000, fits);
    h->way = SOFT;
    return status;
}

static remat_status try_limit(hold_annealer *h, round_limit *now)
{
    const uint64_t begin = h->state.work;
    hold_measure ended = {.limit = now->bytes};
    bool fits;
    REMAT_TRY(shake(h, now, &fits));
    now->tries++;
    if (fits) {
        REMAT_TRY(annealer_swap(h, now->bytes, h->effort / 160));
        REMAT_TRY(annealer_exchange(h, now->bytes, h->effort / 160));
        annealer_measure(h, &ended);
        REMAT_TRY(hold_bin_fill(&now->last, &h->state, ended.peak));
    }
    now->spent += h->state.work - begin;
    return REMAT_OK;
}

remat_status annealer_polish(hold_annealer *h, uint64_t effort)
{
    round_limit limits[LIMITS] = {{0}};
    const uint64_t end = h->state.work + effort;
    remat_status status = REMAT_OK;
    for (size_t i = h->number; i < LIMITS; i += ANNEALERS) {
        const uint64_t bytes = (uint64_t)((unsigned __int128)h->bins.top * i / LIMITS);
        limits[i].bytes = hold_bins_cheapest(&h->bins, bytes) ? bytes : 0;
    }
    for (round_limit *now; status == REMAT_OK && h->state.work < end && (now = choose(h, limits));)
        status = try_limit(h, now);
    pthread_mutex_lock(h->state.lock);
    for (size_t i = 0; i < LIMITS; i++)
        hold_bin_release(&limits[i].last, h->g->graph->context);
    pthread_mutex_unlock(h->state.lock);
    return status;
}
