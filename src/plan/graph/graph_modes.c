#include "plan/graph/graph_modes.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "plan/graph/graph_choices.h"

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
static remat_status add_mode(graph_modes *modes, piece_scratch *scratch, const uint8_t *keep)
{
    REMAT_TRY(
        remat_grow(modes->context, (void **)&modes->modes, &modes->capacity, modes->count + 1, sizeof *modes->modes));
    graph_mode *mode = &modes->modes[modes->count];
    *mode = (graph_mode){0};
    piece_evaluate(scratch, keep, &mode->figures);
    const uint32_t *actions = piece_backward_actions(scratch, &mode->backward_count);
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

static double price(const piece_choices *choices, const piece_figures *figures, double rate, double weight)
{
    double bytes = (double)choice_bytes(choices, figures) + weight * (double)figures->backward_peak;
    return (double)figures->remake_cost + rate * bytes;
}

static size_t cheapest(const piece_choices *choices, double rate, double weight)
{
    size_t best = 0;
    for (size_t i = 1; i < choices->count; i++)
        if (price(choices, &choices->list[i].figures, rate, weight) <
            price(choices, &choices->list[best].figures, rate, weight))
            best = i;
    return best;
}

/* From a byte being worth little to it being worth much; with a peak in the backward being worth as much as what is
 * held, less, or nothing. */
static void count_wins(ranking *r)
{
    static const double weights[] = {0, 0.25, 1};
    const graph_piece *piece = r->choices->piece;
    double bytes = 1;
    for (size_t t = 0; t < piece->inner_count; t++)
        bytes += (double)piece->tensors[t].bytes;
    double rate = ((double)piece->forward_cost + 1) / bytes / 64;
    for (int i = 0; i < 48; i++, rate *= 1.189207115002721)
        for (size_t w = 0; w < sizeof weights / sizeof weights[0]; w++)
            r->wins[cheapest(r->choices, rate, weights[w])]++;
}

/* The one that holds least and the one that costs least have their place, but behind the best of those between: next to
 * `keep` and to running the piece again, a planner with few modes needs that one most. The lowest peak must not
 * miss. */
static void place_ends(ranking *r)
{
    enum { AHEAD = 10000 };
    size_t count = r->choices->count, least = 0, cheap = 0, lowest = 0, middle = count;
    const piece_choice *list = r->choices->list;
    for (size_t i = 1; i < count; i++) {
        const piece_figures *now = &list[i].figures, *best = &list[least].figures, *base = &list[cheap].figures;
        if (now->held_bytes < best->held_bytes ||
            (now->held_bytes == best->held_bytes && now->remake_cost < best->remake_cost))
            least = i;
        if (now->remake_cost < base->remake_cost ||
            (now->remake_cost == base->remake_cost && now->held_bytes < base->held_bytes))
            cheap = i;
        if (now->backward_peak < list[lowest].figures.backward_peak)
            lowest = i;
    }
    for (size_t i = 0; i < count; i++)
        if (i != least && i != cheap && (middle == count || r->wins[i] > r->wins[middle]))
            middle = i;
    r->wins[lowest] += 16;
    r->wins[cheap] += AHEAD;
    r->wins[least] += 2 * AHEAD;
    if (middle < count)
        r->wins[middle] += 4 * AHEAD;
}

static void sort_by_wins(ranking *r)
{
    for (uint32_t i = 0; i < r->choices->count; i++) {
        size_t at = i;
        for (; at > 0 && r->wins[r->order[at - 1]] < r->wins[i]; at--)
            r->order[at] = r->order[at - 1];
        r->order[at] = i;
    }
}

/* Whether no other choice has both a lower or equal peak and a lower or equal cost. */
static bool is_lowest(const piece_choices *choices, const piece_choice *choice)
{
    uint64_t peak = choice_bytes(choices, &choice->figures), cost = choice->figures.remake_cost;
    for (const piece_choice *other = choices->list; other < choices->list + choices->count; other++) {
        uint64_t now = choice_bytes(choices, &other->figures), price = other->figures.remake_cost;
        if (now <= peak && price <= cost && (now < peak || price < cost || other < choice))
            return false;
    }
    return true;
}

/* A piece that is alone: from the cheapest choice to the one with the lowest peak, evenly. */
static remat_status take_evenly(ranking *r, piece_scratch *scratch, size_t most, graph_modes *modes)
{
    size_t count = 0;
    for (uint32_t i = 0; i < r->choices->count; i++) {
        if (!is_lowest(r->choices, &r->choices->list[i]))
            continue;
        size_t at = count++;
        uint64_t cost = r->choices->list[i].figures.remake_cost;
        for (; at > 0 && r->choices->list[r->order[at - 1]].figures.remake_cost > cost; at--)
            r->order[at] = r->order[at - 1];
        r->order[at] = i;
    }
    size_t taken = count < most ? count : most;
    for (size_t i = 0; i < taken; i++) {
        size_t at = taken > 1 ? i * (count - 1) / (taken - 1) : count - 1;
        REMAT_TRY(add_mode(modes, scratch, choice_keep(r->choices, &r->choices->list[r->order[at]])));
    }
    return REMAT_OK;
}

static remat_status take_best(ranking *r, piece_scratch *scratch, size_t most, graph_modes *modes)
{
    count_wins(r);
    place_ends(r);
    sort_by_wins(r);
    for (size_t i = 0; i < r->choices->count && modes->count <= most && r->wins[r->order[i]] > 0; i++)
        REMAT_TRY(add_mode(modes, scratch, choice_keep(r->choices, &r->choices->list[r->order[i]])));
    return REMAT_OK;
}

static remat_status take_choices(const graph_piece *piece, piece_scratch *scratch, size_t most, bool alone,
                                 const keep_sets *seeds, graph_modes *modes)
{
    piece_choices choices;
    piece_leave_out_data(scratch, false);
    REMAT_TRY(piece_choices_find(piece, scratch, alone, seeds, &choices));
    piece_leave_out_data(scratch, true); /* what the modes say is for the chain */
    ranking r = {.choices = &choices};
    r.wins = remat_alloc_zeroed(piece->context, choices.count, sizeof *r.wins);
    r.order = remat_alloc(piece->context, choices.count, sizeof *r.order);
    remat_status status = REMAT_NO_MEMORY;
    if (r.wins && r.order)
        status = alone ? take_evenly(&r, scratch, most, modes) : take_best(&r, scratch, most, modes);
    remat_release(piece->context, r.wins, choices.count, sizeof *r.wins);
    remat_release(piece->context, r.order, choices.count, sizeof *r.order);
    piece_choices_release(&choices);
    return status;
}

static remat_status take_keep(const graph_piece *piece, piece_scratch *scratch, graph_modes *modes)
{
    uint8_t *keep = remat_alloc(piece->context, piece->inner_count, sizeof *keep);
    if (!keep)
        return REMAT_NO_MEMORY;
    for (size_t t = 0; t < piece->inner_count; t++)
        keep[t] = piece->tensors[t].wanted;
    remat_status status = add_mode(modes, scratch, keep);
    remat_release(piece->context, keep, piece->inner_count, sizeof *keep);
    return status;
}

remat_status graph_modes_find(const graph_piece *piece, size_t most, bool alone, const keep_sets *seeds,
                              graph_modes *modes)
{
    *modes = (graph_modes){.context = piece->context, .inner_count = piece->inner_count};
    piece_scratch *scratch;
    REMAT_TRY(piece_scratch_create(piece, &scratch));
    piece_leave_out_data(scratch, true);
    modes->plain_peak = piece_forward_peak(scratch);
    remat_status status = take_keep(piece, scratch, modes);
    if (status == REMAT_OK)
        status = take_choices(piece, scratch, most, alone, seeds, modes);
    piece_scratch_destroy(scratch);
    if (status != REMAT_OK)
        graph_modes_release(modes);
    return status;
}
