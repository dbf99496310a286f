#include "plan/graph/graph_modes.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

void graph_modes_release(graph_modes *modes)
{
    for (size_t i = 0; i < modes->count; i++) {
        remat_release(modes->context, modes->modes[i].keep, modes->inner_count, sizeof *modes->modes[i].keep);
        remat_release(modes->context, modes->modes[i].backward, modes->modes[i].backward_count,
                      sizeof *modes->modes[i].backward);
    }
    remat_release(modes->context, modes->modes, modes->capacity, sizeof *modes->modes);
    *modes = (graph_modes){0};
}

/* Evaluates the choice once more and takes all of it over. */
static remat_status add_mode(graph_modes *modes, piece_evaluator *evaluator, const uint8_t *keep)
{
    REMAT_TRY(
        remat_grow(modes->context, (void **)&modes->modes, &modes->capacity, modes->count + 1, sizeof *modes->modes));
    graph_mode *mode = &modes->modes[modes->count];
    *mode = (graph_mode){0};
    REMAT_TRY(piece_evaluate(evaluator, keep, &mode->figures));
    const uint32_t *actions = piece_backward_actions(evaluator, &mode->backward_count);
    mode->keep = remat_alloc(modes->context, modes->inner_count, sizeof *mode->keep);
    mode->backward = remat_alloc(modes->context, mode->backward_count, sizeof *mode->backward);
    modes->count++; /* from here on it is released with the others */
    if (!mode->keep || !mode->backward)
        return REMAT_NO_MEMORY;
    memcpy(mode->keep, keep, modes->inner_count);
    memcpy(mode->backward, actions, mode->backward_count * sizeof *actions);
    return REMAT_OK;
}

/* ---- which choices become modes ---- */

typedef struct ranking {
    const piece_choices *choices;
    uint32_t *wins; /* at how many rates a choice is the best */
    uint32_t *order;
} ranking;

/* The cheapest choice, if a byte of the peak in the backward counts as many quarters of one that is held. */
static size_t cheapest(const piece_choices *choices, exchange_rate rate, uint64_t quarters)
{
    size_t best = 0;
    wide_number least = 0;
    for (size_t i = 0; i < choices->count; i++) {
        const piece_figures *figures = &choices->list[i].figures;
        wide_number held = choice_bytes(choices, figures), peak = figures->backward_peak;
        wide_number now = exchange_price(rate, 4 * figures->recompute_cost, 4 * held + quarters * peak);
        if (i == 0 || now < least) {
            best = i;
            least = now;
        }
    }
    return best;
}

/* From a byte being worth little to it being worth much; with a peak in the backward being worth as much as what is
 * held, less, or nothing. */
static void count_wins(ranking *r)
{
    static const uint64_t quarters[] = {0, 1, 4};
    static const uint64_t factors[] = {65536, 77936, 92682, 110218}; /* 2^16 times 2^(i/4) */
    for (unsigned i = 0; i < 48; i++) {
        exchange_rate rate = piece_rate(r->choices->piece, factors[i % 4] << i / 4);
        for (size_t q = 0; q < sizeof quarters / sizeof quarters[0]; q++)
            r->wins[cheapest(r->choices, rate, quarters[q])]++;
    }
}

/* Whether (a, b) comes before (c, d): compared by the first, then by the second. */
static bool is_less(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return a < c || (a == c && b < d);
}

/* The one that holds least and the one that costs least have their place, but behind the best of those between: next to
 * `keep` and to running the piece again, a planner with few modes needs that one most. The lowest peak must not
 * miss. */
static void place_ends(ranking *r)
{
    enum { AHEAD = 10000 };
    size_t count = r->choices->count, smallest = 0, cheap = 0, lowest = 0, middle = count;
    const piece_choice *list = r->choices->list;
    for (size_t i = 1; i < count; i++) {
        const piece_figures *now = &list[i].figures, *small = &list[smallest].figures, *base = &list[cheap].figures;
        if (is_less(now->held_bytes, now->recompute_cost, small->held_bytes, small->recompute_cost))
            smallest = i;
        if (is_less(now->recompute_cost, now->held_bytes, base->recompute_cost, base->held_bytes))
            cheap = i;
        if (now->backward_peak < list[lowest].figures.backward_peak)
            lowest = i;
    }
    for (size_t i = 0; i < count; i++)
        if (i != smallest && i != cheap && (middle == count || r->wins[i] > r->wins[middle]))
            middle = i;
    r->wins[lowest] += 16;
    r->wins[cheap] += AHEAD;
    r->wins[smallest] += 2 * AHEAD;
    if (middle < count)
        r->wins[middle] += 4 * AHEAD;
}

static remat_status take_best(ranking *r, piece_evaluator *evaluator, size_t most, graph_modes *modes)
{
    count_wins(r);
    place_ends(r);
    for (uint32_t i = 0; i < r->choices->count; i++) {
        size_t at = i;
        for (; at > 0 && r->wins[r->order[at - 1]] < r->wins[i]; at--)
            r->order[at] = r->order[at - 1];
        r->order[at] = i;
    }
    for (size_t i = 0; i < r->choices->count && modes->count <= most && r->wins[r->order[i]] > 0; i++)
        REMAT_TRY(add_mode(modes, evaluator, choice_keep(r->choices, &r->choices->list[r->order[i]])));
    return REMAT_OK;
}

/* Whether no other choice has both a lower or equal peak and a lower or equal cost. */
static bool is_lowest(const piece_choices *choices, const piece_choice *choice)
{
    uint64_t peak = choice_bytes(choices, &choice->figures), cost = choice->figures.recompute_cost;
    for (const piece_choice *other = choices->list; other < choices->list + choices->count; other++) {
        uint64_t now = choice_bytes(choices, &other->figures), price = other->figures.recompute_cost;
        if (now <= peak && price <= cost && (now < peak || price < cost || other < choice))
            return false;
    }
    return true;
}

/* A piece that is alone: from the cheapest choice to the one with the lowest peak, evenly. */
static remat_status take_evenly(ranking *r, piece_evaluator *evaluator, size_t most, graph_modes *modes)
{
    size_t count = 0;
    for (uint32_t i = 0; i < r->choices->count; i++) {
        if (!is_lowest(r->choices, &r->choices->list[i]))
            continue;
        size_t at = count++;
        uint64_t cost = r->choices->list[i].figures.recompute_cost;
        for (; at > 0 && r->choices->list[r->order[at - 1]].figures.recompute_cost > cost; at--)
            r->order[at] = r->order[at - 1];
        r->order[at] = i;
    }
    size_t taken = count < most ? count : most;
    for (size_t i = 0; i < taken; i++) {
        size_t at = taken > 1 ? i * (count - 1) / (taken - 1) : count - 1;
        REMAT_TRY(add_mode(modes, evaluator, choice_keep(r->choices, &r->choices->list[r->order[at]])));
    }
    return REMAT_OK;
}

/* ---- all together ---- */

static remat_status take_choices(const piece_choices *choices, piece_evaluator *evaluator, size_t most,
                                 graph_modes *modes)
{
    ranking r = {.choices = choices};
    r.wins = remat_alloc_zeroed(modes->context, choices->count, sizeof *r.wins);
    r.order = remat_alloc(modes->context, choices->count, sizeof *r.order);
    remat_status status = REMAT_NO_MEMORY;
    if (r.wins && r.order)
        status = choices->alone ? take_evenly(&r, evaluator, most, modes) : take_best(&r, evaluator, most, modes);
    remat_release(modes->context, r.wins, choices->count, sizeof *r.wins);
    remat_release(modes->context, r.order, choices->count, sizeof *r.order);
    return status;
}

/* What the modes say is for the chain, to which data lives all through. */
static remat_status find(const graph_piece *piece, const piece_choices *choices, uint8_t *keep,
                         piece_evaluator *evaluator, size_t most, graph_modes *modes)
{
    piece_figures nothing_kept;
    REMAT_TRY(piece_evaluator_count_data(evaluator, false));
    REMAT_TRY(piece_evaluate(evaluator, keep, &nothing_kept));
    modes->plain_peak = nothing_kept.forward_peak;
    for (size_t t = 0; t < piece->inner_count; t++)
        keep[t] = piece->tensors[t].wanted;
    REMAT_TRY(add_mode(modes, evaluator, keep));
    return take_choices(choices, evaluator, most, modes);
}

remat_status graph_modes_find(const graph_piece *piece, size_t most, bool alone, const keep_sets *seeds,
                              graph_modes *modes)
{
    *modes = (graph_modes){.context = piece->graph->context, .inner_count = piece->inner_count};
    piece_evaluator *evaluator;
    piece_choices choices;
    REMAT_TRY(piece_evaluator_create(piece, &evaluator));
    remat_status status = piece_choices_find(piece, evaluator, alone, seeds, &choices);
    if (status == REMAT_OK) {
        uint8_t *keep = remat_alloc_zeroed(modes->context, piece->inner_count, sizeof *keep);
        status = keep ? find(piece, &choices, keep, evaluator, most, modes) : REMAT_NO_MEMORY;
        remat_release(modes->context, keep, piece->inner_count, sizeof *keep);
        piece_choices_release(&choices);
    }
    piece_evaluator_destroy(evaluator);
    if (status != REMAT_OK)
        graph_modes_release(modes);
    return status;
}
