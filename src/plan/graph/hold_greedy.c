#include "base/error.h"
#include "plan/graph/hold_annealer.h"

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
static uint32_t list_candidates(hold_annealer *h, uint32_t position, bool held_only, uint32_t most, candidate *list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < h->active_count; i++) {
        uint32_t number = h->active[i];
        const hold_gap *gap = &h->g->gaps[number];
        if (gap->begin >= position || gap->end <= position || h->state.held_from[number] > position ||
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
static remat_status drop_best(hold_annealer *h, hold_measure *a, uint32_t most, bool *changed)
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
            hold_measure next = *a;
            hold_mark mark;
            const unsigned __int128 cost = h->state.cost;
            hold_state_mark(&h->state, &mark);
            hold_state_note(&h->state, list[i].gap, choices[k]);
            REMAT_TRY(hold_state_settle(&h->state));
            annealer_measure(h, &next);
            REMAT_TRY(annealer_keep(h, next.peak));
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
            hold_state_revert(&h->state, &mark);
        }
    }
    *changed = best != GRAPH_NONE;
    if (*changed)
        hold_state_note(&h->state, best, best_from);
    REMAT_TRY(hold_state_settle(&h->state));
    annealer_measure(h, a);
    return annealer_keep(h, a->peak);
}

remat_status annealer_descend(hold_annealer *h, uint64_t limit, uint64_t effort)
{
    hold_measure a = {.limit = limit};
    uint64_t end = h->state.work + effort;
    uint64_t each = 3 * (uint64_t)(h->g->position_count / 2 + 100),
             most = effort / (each * (h->active_count + 1) / 16 + 1);
    bool changed = true;
    annealer_measure(h, &a);
    while (changed && a.peak > limit && h->state.work < end)
        REMAT_TRY(drop_best(h, &a, most < 6 ? 6 : most > MOST_CANDIDATES ? MOST_CANDIDATES : (uint32_t)most, &changed));
    return REMAT_OK;
}

/* In large graphs several at a time. */
remat_status annealer_go_down(hold_annealer *h, bool each)
{
    hold_measure a = {.limit = UINT64_MAX};
    const hold_graph *g = h->g;
    const uint32_t most = g->position_count / 4000 + 1;
    const uint64_t end = h->state.work + h->effort / 8;
    REMAT_TRY(annealer_hold_all(h));
    for (;;) {
        candidate list[MOST_CANDIDATES];
        annealer_measure(h, &a);
        REMAT_TRY(annealer_keep(h, a.peak));
        if (h->state.run_count > h->most_runs || h->state.work > end)
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
