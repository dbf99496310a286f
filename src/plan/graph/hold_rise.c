/* From nothing held up: what saves most is held, as long as the limit is met. Near the smallest peak little of what is held fits, and
 * from this side it is found one by one. */
#include "base/error.h"
#include "plan/graph/hold_annealer.h"

static uint64_t saved_for_bytes(unsigned __int128 saved, uint64_t bytes)
{
    const unsigned __int128 gain = (saved << 20) / (bytes + 1) + 1;
    return gain < UINT64_MAX ? (uint64_t)gain : UINT64_MAX;
}

/* Held through the gap, or from where it is made again for the first time. */
static remat_status find_gain(hold_annealer *h, uint64_t limit, uint32_t gap, hold_gain *gain)
{
    const hold_gap *range = &h->g->gaps[gap];
    const uint32_t before = h->state.from[gap];
    const unsigned __int128 cost = h->state.cost;
    *gain = (hold_gain){0};
    for (uint32_t from = range->begin; from <= range->begin + 1 && from < before; from++) {
        hold_measure next = {.limit = limit};
        hold_mark mark;
        hold_state_mark(&h->state, &mark);
        hold_state_note(&h->state, gap, from);
        REMAT_TRY(hold_state_settle(&h->state));
        if (h->state.cost < cost) {
            annealer_measure(h, &next);
            const uint64_t saved = saved_for_bytes(cost - h->state.cost, h->g->tensors[range->tensor].bytes);
            if (next.peak <= limit && saved > gain->saved)
                *gain = (hold_gain){saved, from};
        }
        hold_state_revert(&h->state, &mark);
    }
    return REMAT_OK;
}

static void find_best_two(const hold_annealer *h, const hold_gain *gains, uint32_t *best, uint64_t *second)
{
    *best = 0;
    *second = 0;
    for (uint32_t i = 1; i < h->active_count; i++) {
        const uint64_t lesser = gains[i].saved > gains[*best].saved ? gains[*best].saved : gains[i].saved;
        *best = gains[i].saved > gains[*best].saved ? i : *best;
        *second = lesser > *second ? lesser : *second;
    }
}

/* Gains are those of an earlier state: the largest is found again, and counts if it is still the largest. */
static remat_status hold_gains(hold_annealer *h, uint64_t limit, uint64_t end, bool *held)
{
    hold_gain *gains = h->gains;
    *held = false;
    while (h->state.work < end) {
        hold_measure now = {.limit = limit};
        uint32_t best;
        uint64_t second;
        find_best_two(h, gains, &best, &second);
        h->state.work += h->active_count / 4;
        if (!gains[best].saved)
            return REMAT_OK;
        REMAT_TRY(find_gain(h, limit, h->active[best], &gains[best]));
        if (!gains[best].saved || gains[best].saved < second)
            continue;
        hold_state_note(&h->state, h->active[best], gains[best].from);
        REMAT_TRY(hold_state_settle(&h->state));
        *held = true;
        annealer_measure(h, &now);
        if (h->state.run_count <= h->most_runs)
            REMAT_TRY(annealer_keep(h, now.peak));
        gains[best].saved = 0;
    }
    return REMAT_OK;
}

remat_status annealer_rise(hold_annealer *h, uint64_t limit, uint64_t effort)
{
    const uint64_t end = h->state.work + effort;
    hold_measure now = {.limit = limit};
    REMAT_TRY(annealer_drop_all(h));
    annealer_measure(h, &now);
    for (bool held = now.peak <= limit; held && h->state.work < end;) {
        for (uint32_t i = 0; i < h->active_count; i++) {
            h->gains[i] = (hold_gain){0};
            if (h->state.work < end)
                REMAT_TRY(find_gain(h, limit, h->active[i], &h->gains[i]));
        }
        REMAT_TRY(hold_gains(h, limit, end, &held));
    }
    return REMAT_OK;
}
