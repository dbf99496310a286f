#include "plan/graph/graph_modes.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* ---- choices ---- */

enum { MOST_ENUMERATED = 12 }; /* tensors: 4096 choices */

typedef struct piece_choice {
    piece_figures figures;
    uint32_t keep; /* where its flags stand */
    bool explored; /* its neighbours have been looked at */
} piece_choice;

/* Those that no other beats in everything. */
typedef struct piece_choices {
    const graph_piece *piece;
    bool alone;
    uint64_t output_bytes;
    piece_choice *list;
    size_t count, capacity;
    uint8_t *flags; /* inner_count a choice */
    size_t flag_count, flag_capacity;
} piece_choices;

/* What the choice holds while the output is needed too; alone, its peak. */
static uint64_t choice_bytes(const piece_choices *choices, const piece_figures *figures)
{
    if (choices->alone)
        return figures->forward_peak > figures->backward_peak ? figures->forward_peak : figures->backward_peak;
    return figures->held_bytes + (figures->holds_output ? 0 : choices->output_bytes);
}

static const uint8_t *choice_keep(const piece_choices *choices, const piece_choice *choice)
{
    return choices->flags + choice->keep * choices->piece->inner_count;
}

static void piece_choices_release(piece_choices *choices)
{
    remat_context *context = choices->piece->graph->context;
    remat_release(context, choices->list, choices->capacity, sizeof *choices->list);
    remat_release(context, choices->flags, choices->flag_capacity, sizeof *choices->flags);
    *choices = (piece_choices){.piece = choices->piece};
}

static bool as_good(const piece_choices *choices, const piece_figures *a, const piece_figures *b)
{
    if (a->recompute_cost > b->recompute_cost || choice_bytes(choices, a) > choice_bytes(choices, b))
        return false;
    return choices->alone || (a->held_bytes <= b->held_bytes && a->backward_peak <= b->backward_peak);
}

static remat_status add_choice(piece_choices *choices, const uint8_t *keep, const piece_figures *figures)
{
    for (size_t i = 0; i < choices->count; i++)
        if (as_good(choices, &choices->list[i].figures, figures))
            return REMAT_OK;
    remat_context *context = choices->piece->graph->context;
    size_t width = choices->piece->inner_count, kept = 0;
    uint32_t room = GRAPH_NONE; /* of a choice that goes */
    for (size_t i = 0; i < choices->count; i++) {
        if (as_good(choices, figures, &choices->list[i].figures))
            room = choices->list[i].keep;
        else
            choices->list[kept++] = choices->list[i];
    }
    choices->count = kept;
    if (room == GRAPH_NONE) {
        room = (uint32_t)(width ? choices->flag_count / width : 0);
        REMAT_TRY(remat_grow(context, (void **)&choices->flags, &choices->flag_capacity,
                             choices->flag_count + width + 1, sizeof *choices->flags));
        choices->flag_count += width;
    }
    REMAT_TRY(
        remat_grow(context, (void **)&choices->list, &choices->capacity, choices->count + 1, sizeof *choices->list));
    memcpy(choices->flags + room * width, keep, width);
    choices->list[choices->count++] = (piece_choice){*figures, room, false};
    return REMAT_OK;
}

/* ---- the search ---- */

typedef struct search {
    const graph_piece *piece;
    piece_evaluator *evaluator;
    piece_choices *choices;
    uint8_t *keep;
    uint32_t *candidates; /* inner tensors that anybody reads */
    size_t candidate_count;
} search;

static remat_status evaluate(search *s)
{
    piece_figures figures;
    REMAT_TRY(piece_evaluate(s->evaluator, s->keep, &figures));
    return add_choice(s->choices, s->keep, &figures);
}

static void find_candidates(search *s)
{
    const graph_piece *piece = s->piece;
    for (size_t a = 0; a < piece->graph->action_count; a++) {
        const graph_action *action = &piece->graph->actions[a];
        for (size_t i = 0; i < graph_need_count(action) && a != piece->forward_count; i++) {
            uint32_t tensor = graph_reads(piece->graph, action)[i];
            if (tensor < piece->inner_count && !s->keep[tensor]) {
                s->keep[tensor] = 1;
                s->candidates[s->candidate_count++] = tensor;
            }
        }
    }
    memset(s->keep, 0, piece->inner_count);
}

static remat_status enumerate(search *s)
{
    for (uint32_t mask = 0; mask < (uint32_t)1 << s->candidate_count; mask++) {
        for (size_t i = 0; i < s->candidate_count; i++)
            s->keep[s->candidates[i]] = mask >> i & 1;
        REMAT_TRY(evaluate(s));
    }
    return REMAT_OK;
}

/* The neighbours of a choice differ from it in one tensor or in two that follow one another. */
static remat_status look_around(search *s, size_t choice)
{
    s->choices->list[choice].explored = true;
    memcpy(s->keep, choice_keep(s->choices, &s->choices->list[choice]), s->piece->inner_count);
    for (size_t i = 0; i < s->candidate_count; i++) {
        uint8_t *side = &s->keep[s->candidates[i]];
        *side ^= 1;
        REMAT_TRY(evaluate(s));
        for (size_t k = i + 1; k < s->candidate_count && k < i + 3; k++) {
            s->keep[s->candidates[k]] ^= 1;
            REMAT_TRY(evaluate(s));
            s->keep[s->candidates[k]] ^= 1;
        }
        *side ^= 1;
    }
    return REMAT_OK;
}

/* Goes on from every choice that is not beaten yet, until all have been looked at or the time is over. */
static remat_status search_neighbours(search *s, size_t evaluations)
{
    size_t each = 3 * s->candidate_count + 1;
    for (size_t i = 0; evaluations >= each;) {
        while (i < s->choices->count && s->choices->list[i].explored)
            i++;
        if (i == s->choices->count)
            break;
        REMAT_TRY(look_around(s, i));
        evaluations -= each;
        i = 0; /* the list has changed */
    }
    return REMAT_OK;
}

/* From the seeds, from everything kept and from nothing kept. Evaluations take longer in larger pieces. */
static remat_status search_some(search *s, const keep_sets *seeds)
{
    size_t most = 4000000 / (s->piece->graph->action_count + s->piece->forward_count);
    for (size_t i = 0; seeds && i < seeds->count; i++) {
        for (size_t t = 0; t < s->piece->inner_count; t++)
            s->keep[t] = seeds->flags[i * seeds->width + s->piece->tensors[t].number];
        REMAT_TRY(evaluate(s));
    }
    for (size_t t = 0; t < s->piece->inner_count; t++)
        s->keep[t] = s->piece->tensors[t].wanted;
    REMAT_TRY(evaluate(s));
    memset(s->keep, 0, s->piece->inner_count);
    REMAT_TRY(evaluate(s));
    return search_neighbours(s, most < 600 ? 600 : most > 12000 ? 12000 : most);
}

static remat_status search_all(search *s, const keep_sets *seeds)
{
    if (!s->keep || !s->candidates)
        return REMAT_NO_MEMORY;
    find_candidates(s);
    return s->candidate_count <= MOST_ENUMERATED ? enumerate(s) : search_some(s, seeds);
}

/* All choices of a small piece; of a larger one those that a search comes by, which begins with the seeds (or NULL). */
static remat_status piece_choices_find(const graph_piece *piece, piece_evaluator *evaluator, bool alone,
                                       const keep_sets *seeds, piece_choices *choices)
{
    remat_context *context = piece->graph->context;
    *choices = (piece_choices){.piece = piece, .alone = alone};
    choices->output_bytes = piece->output == GRAPH_NONE ? 0 : piece_tensor_bytes(piece, piece->output);
    search s = {.piece = piece, .evaluator = evaluator, .choices = choices};
    s.keep = remat_alloc_zeroed(context, piece->inner_count, sizeof *s.keep);
    s.candidates = remat_alloc(context, piece->inner_count, sizeof *s.candidates);
    remat_status status = search_all(&s, seeds);
    remat_release(context, s.keep, piece->inner_count, sizeof *s.keep);
    remat_release(context, s.candidates, piece->inner_count, sizeof *s.candidates);
    if (status != REMAT_OK)
        piece_choices_release(choices);
    return status;
}

/* ---- modes ---- */

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

typedef unsigned __int128 wide_number;

/* So much cost for so many bytes; both below 2^62. */
typedef struct exchange_rate {
    uint64_t cost, bytes;
} exchange_rate;

/* A byte costs `factor`/2^16 times a 64th of what the bytes of the piece cost on average, if all of it is recomputed. */
static exchange_rate piece_rate(const graph_piece *piece, uint64_t factor)
{
    wide_number cost = ((wide_number)piece->forward_cost + 1) * factor, bytes = 1;
    for (uint32_t t = 0; t < piece->inner_count; t++)
        bytes += piece_tensor_bytes(piece, t);
    for (bytes = bytes * 64 << 16; (cost | bytes) >> 62; bytes >>= 1)
        cost >>= 1;
    return (exchange_rate){(uint64_t)cost, (uint64_t)bytes};
}

typedef struct ranking {
    const piece_choices *choices;
    uint64_t *ranks; /* of each choice */
    uint32_t *order; /* from the highest rank to the lowest */
} ranking;

/* The cheapest choice, if a byte of the peak in the backward counts as many quarters of one that is held. */
static size_t cheapest(const piece_choices *choices, exchange_rate rate, uint64_t quarters)
{
    size_t best = 0;
    wide_number least = 0;
    for (size_t i = 0; i < choices->count; i++) {
        const piece_figures *figures = &choices->list[i].figures;
        wide_number held = choice_bytes(choices, figures), peak = figures->backward_peak;
        wide_number now =
            (wide_number)4 * figures->recompute_cost * rate.bytes + (4 * held + quarters * peak) * rate.cost;
        if (i == 0 || now < least) {
            best = i;
            least = now;
        }
    }
    return best;
}

/* The rank is at how many rates a choice is the best: from a byte being worth little to it being worth much; with a peak
 * in the backward being worth as much as what is held, less, or nothing. */
static void count_wins(ranking *r)
{
    static const uint64_t quarters[] = {0, 1, 4};
    static const uint64_t factors[] = {65536, 77936, 92682, 110218}; /* 2^16 times 2^(i/4) */
    for (unsigned i = 0; i < 48; i++) {
        exchange_rate rate = piece_rate(r->choices->piece, factors[i % 4] << i / 4);
        for (size_t q = 0; q < sizeof quarters / sizeof quarters[0]; q++)
            r->ranks[cheapest(r->choices, rate, quarters[q])]++;
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
        if (i != smallest && i != cheap && (middle == count || r->ranks[i] > r->ranks[middle]))
            middle = i;
    r->ranks[lowest] += 16;
    r->ranks[cheap] += AHEAD;
    r->ranks[smallest] += 2 * AHEAD;
    if (middle < count)
        r->ranks[middle] += 4 * AHEAD;
}

static void sort(ranking *r)
{
    for (uint32_t i = 0; i < r->choices->count; i++) {
        size_t at = i;
        for (; at > 0 && r->ranks[r->order[at - 1]] < r->ranks[i]; at--)
            r->order[at] = r->order[at - 1];
        r->order[at] = i;
    }
}

static remat_status take(const ranking *r, size_t at, piece_evaluator *evaluator, graph_modes *modes)
{
    return add_mode(modes, evaluator, choice_keep(r->choices, &r->choices->list[r->order[at]]));
}

static remat_status take_best(ranking *r, piece_evaluator *evaluator, size_t most, graph_modes *modes)
{
    count_wins(r);
    place_ends(r);
    sort(r);
    for (size_t i = 0; i < r->choices->count && i < most && r->ranks[r->order[i]] > 0; i++)
        REMAT_TRY(take(r, i, evaluator, modes));
    return REMAT_OK;
}

/* A piece that is alone: from the cheapest choice to the one with the lowest peak, evenly. */
static remat_status take_evenly(ranking *r, piece_evaluator *evaluator, size_t most, graph_modes *modes)
{
    size_t count = r->choices->count, taken = count < most ? count : most;
    for (size_t i = 0; i < count; i++)
        r->ranks[i] = UINT64_MAX - r->choices->list[i].figures.recompute_cost;
    sort(r);
    for (size_t i = 0; i < taken; i++)
        REMAT_TRY(take(r, taken > 1 ? i * (count - 1) / (taken - 1) : count - 1, evaluator, modes));
    return REMAT_OK;
}

/* ---- all together ---- */

static remat_status take_choices(const piece_choices *choices, piece_evaluator *evaluator, size_t most,
                                 graph_modes *modes)
{
    ranking r = {.choices = choices};
    r.ranks = remat_alloc_zeroed(modes->context, choices->count, sizeof *r.ranks);
    r.order = remat_alloc(modes->context, choices->count, sizeof *r.order);
    remat_status status = REMAT_NO_MEMORY;
    if (r.ranks && r.order)
        status = choices->alone ? take_evenly(&r, evaluator, most, modes) : take_best(&r, evaluator, most, modes);
    remat_release(modes->context, r.ranks, choices->count, sizeof *r.ranks);
    remat_release(modes->context, r.order, choices->count, sizeof *r.order);
    return status;
}

static remat_status find(const graph_piece *piece, const piece_choices *choices, uint8_t *keep,
                         piece_evaluator *evaluator, size_t most, graph_modes *modes)
{
    piece_figures nothing_kept;
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
