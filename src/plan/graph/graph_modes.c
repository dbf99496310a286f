#include "plan/graph/graph_modes.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "base/sort.h"

enum { MOST_ENUMERATED = 12 }; /* tensors: 4096 choices */

typedef struct piece_choice {
    piece_figures figures;
    uint64_t rank; /* the highest become modes */
    bool explored; /* its neighbours have been looked at */
} piece_choice;

typedef struct finder {
    const graph_piece *piece;
    piece_evaluator *evaluator;
    bool alone;
    uint64_t output_bytes;
    uint8_t *keep;        /* by inner tensor: the choice at hand */
    uint32_t *candidates; /* inner tensors that anybody reads */
    size_t candidate_count;
    piece_choice *choices; /* those that no other beats in everything */
    size_t count, capacity;
    uint8_t *flags; /* what they keep: inner_count a choice */
    size_t flag_capacity;
} finder;

/* ---- choices ---- */

/* What the choice holds while the output is needed too; alone, its peak. */
static uint64_t choice_bytes(const finder *f, const piece_figures *figures)
{
    if (f->alone)
        return remat_max(figures->forward_peak, figures->backward_peak);
    return figures->held_bytes + (figures->holds_output ? 0 : f->output_bytes);
}

static bool as_good(const finder *f, const piece_figures *a, const piece_figures *b)
{
    if (a->recompute_cost > b->recompute_cost || choice_bytes(f, a) > choice_bytes(f, b))
        return false;
    return f->alone || (a->held_bytes <= b->held_bytes && a->backward_peak <= b->backward_peak);
}

/* Evaluates the choice at hand, and notes it unless another is as good. */
static remat_status evaluate(finder *f)
{
    remat_context *context = f->piece->graph->context;
    size_t width = f->piece->inner_count, kept = 0;
    piece_figures figures;
    REMAT_TRY(piece_evaluate(f->evaluator, f->keep, &figures));
    for (size_t i = 0; i < f->count; i++)
        if (as_good(f, &f->choices[i].figures, &figures))
            return REMAT_OK;
    for (size_t i = 0; i < f->count; i++) {
        if (as_good(f, &figures, &f->choices[i].figures))
            continue;
        f->choices[kept] = f->choices[i];
        memmove(f->flags + kept++ * width, f->flags + i * width, width);
    }
    f->count = kept;
    REMAT_TRY(remat_grow(context, (void **)&f->choices, &f->capacity, kept + 1, sizeof *f->choices));
    REMAT_TRY(remat_grow(context, (void **)&f->flags, &f->flag_capacity, (kept + 1) * width + 1, sizeof *f->flags));
    memcpy(f->flags + kept * width, f->keep, width);
    f->choices[f->count++] = (piece_choice){.figures = figures};
    return REMAT_OK;
}

/* ---- the search ---- */

static void find_candidates(finder *f)
{
    const graph_piece *piece = f->piece;
    for (size_t a = 0; a < piece->graph->action_count; a++) {
        const graph_action *action = &piece->graph->actions[a];
        for (size_t i = 0; i < graph_need_count(action) && a != piece->forward_count; i++) {
            uint32_t tensor = graph_reads(piece->graph, action)[i];
            if (tensor < piece->inner_count && !f->keep[tensor]) {
                f->keep[tensor] = 1;
                f->candidates[f->candidate_count++] = tensor;
            }
        }
    }
    memset(f->keep, 0, piece->inner_count);
}

static remat_status enumerate(finder *f)
{
    for (uint32_t mask = 0; mask < (uint32_t)1 << f->candidate_count; mask++) {
        for (size_t i = 0; i < f->candidate_count; i++)
            f->keep[f->candidates[i]] = mask >> i & 1;
        REMAT_TRY(evaluate(f));
    }
    return REMAT_OK;
}

/* The neighbours of a choice differ from it in one tensor or in two that follow one another. */
static remat_status look_around(finder *f, size_t choice)
{
    f->choices[choice].explored = true;
    memcpy(f->keep, f->flags + choice * f->piece->inner_count, f->piece->inner_count);
    for (size_t i = 0; i < f->candidate_count; i++) {
        uint8_t *side = &f->keep[f->candidates[i]];
        *side ^= 1;
        REMAT_TRY(evaluate(f));
        for (size_t k = i + 1; k < f->candidate_count && k < i + 3; k++) {
            f->keep[f->candidates[k]] ^= 1;
            REMAT_TRY(evaluate(f));
            f->keep[f->candidates[k]] ^= 1;
        }
        *side ^= 1;
    }
    return REMAT_OK;
}

/* Goes on from every choice that is not beaten yet, until all have been looked at or the time is over. */
static remat_status search_neighbours(finder *f, size_t evaluations)
{
    size_t each = 3 * f->candidate_count + 1;
    for (size_t i = 0; evaluations >= each;) {
        while (i < f->count && f->choices[i].explored)
            i++;
        if (i == f->count)
            break;
        REMAT_TRY(look_around(f, i));
        evaluations -= each;
        i = 0; /* the list has changed */
    }
    return REMAT_OK;
}

/* From everything kept and from nothing kept. Evaluations take longer in larger pieces. */
static remat_status search_some(finder *f)
{
    size_t most = 4000000 / (f->piece->graph->action_count + f->piece->forward_count);
    for (size_t t = 0; t < f->piece->inner_count; t++)
        f->keep[t] = f->piece->tensors[t].wanted;
    REMAT_TRY(evaluate(f));
    memset(f->keep, 0, f->piece->inner_count);
    REMAT_TRY(evaluate(f));
    return search_neighbours(f, most < 600 ? 600 : most > 12000 ? 12000 : most);
}

/* ---- modes ---- */

void graph_modes_release(graph_modes *modes)
{
    for (size_t i = 0; i < modes->count; i++) {
        remat_release(modes->context, modes->modes[i].keep, modes->inner_count, sizeof *modes->modes[i].keep);
        remat_release(modes->context, modes->modes[i].backward, modes->modes[i].backward_count,
                      sizeof *modes->modes[i].backward);
        remat_release(modes->context, modes->modes[i].forward, modes->modes[i].forward_count,
                      sizeof *modes->modes[i].forward);
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
        bytes += graph_placed_bytes(piece->graph->tensors[t].bytes);
    for (bytes = bytes * 64 << 16; (cost | bytes) >> 62; bytes >>= 1)
        cost >>= 1;
    return (exchange_rate){(uint64_t)cost, (uint64_t)bytes};
}

/* The cheapest choice, if a byte of the peak in the backward counts as many quarters of one that is held. */
static size_t cheapest(const finder *f, exchange_rate rate, uint64_t quarters)
{
    size_t best = 0;
    wide_number least = 0;
    for (size_t i = 0; i < f->count; i++) {
        const piece_figures *figures = &f->choices[i].figures;
        wide_number held = choice_bytes(f, figures), peak = figures->backward_peak;
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
static void count_wins(finder *f)
{
    static const uint64_t quarters[] = {0, 1, 4};
    static const uint64_t factors[] = {65536, 77936, 92682, 110218}; /* 2^16 times 2^(i/4) */
    for (unsigned i = 0; i < 48; i++) {
        exchange_rate rate = piece_rate(f->piece, factors[i % 4] << i / 4);
        for (size_t q = 0; q < sizeof quarters / sizeof quarters[0]; q++)
            f->choices[cheapest(f, rate, quarters[q])].rank++;
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
static void place_ends(finder *f)
{
    enum { AHEAD = 10000 };
    size_t count = f->count, smallest = 0, cheap = 0, lowest = 0, middle = count;
    const piece_choice *list = f->choices;
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
        if (i != smallest && i != cheap && (middle == count || f->choices[i].rank > f->choices[middle].rank))
            middle = i;
    f->choices[lowest].rank += 16;
    f->choices[cheap].rank += AHEAD;
    f->choices[smallest].rank += 2 * AHEAD;
    if (middle < count)
        f->choices[middle].rank += 4 * AHEAD;
}

static bool ranks_higher(const void *choices, uint32_t a, uint32_t b)
{
    return ((const piece_choice *)choices)[a].rank > ((const piece_choice *)choices)[b].rank;
}

/* Of a piece that is alone: from the cheapest choice to the one with the lowest peak, evenly. Else the highest ranks. */
static remat_status take_choices(finder *f, size_t most, graph_modes *modes)
{
    size_t count = f->count, taken = remat_min(count, most);
    uint32_t *order;
    if (f->alone) {
        for (size_t i = 0; i < count; i++)
            f->choices[i].rank = UINT64_MAX - f->choices[i].figures.recompute_cost;
    } else {
        count_wins(f);
        place_ends(f);
    }
    REMAT_TRY(remat_order(modes->context, count, ranks_higher, f->choices, &order));
    remat_status status = REMAT_OK;
    for (size_t i = 0; status == REMAT_OK && i < taken; i++) {
        size_t at = !f->alone ? i : taken > 1 ? i * (count - 1) / (taken - 1) : count - 1;
        if (f->choices[order[at]].rank > 0)
            status = add_mode(modes, f->evaluator, f->flags + order[at] * modes->inner_count);
    }
    remat_release(modes->context, order, count, sizeof *order);
    return status;
}

/* ---- all together ---- */

static remat_status find(finder *f, size_t most, graph_modes *modes)
{
    const graph_piece *piece = f->piece;
    piece_figures nothing_kept;
    if (!f->keep || !f->candidates)
        return REMAT_NO_MEMORY;
    REMAT_TRY(piece_evaluate(f->evaluator, f->keep, &nothing_kept));
    modes->plain_peak = nothing_kept.forward_peak;
    find_candidates(f);
    REMAT_TRY(f->candidate_count <= MOST_ENUMERATED ? enumerate(f) : search_some(f));
    for (size_t t = 0; t < piece->inner_count; t++)
        f->keep[t] = piece->tensors[t].wanted;
    REMAT_TRY(add_mode(modes, f->evaluator, f->keep));
    return take_choices(f, most, modes);
}

remat_status graph_modes_find(const graph_piece *piece, size_t most, bool alone, graph_modes *modes)
{
    remat_context *context = piece->graph->context;
    *modes = (graph_modes){.context = context, .inner_count = piece->inner_count};
    finder f = {.piece = piece, .alone = alone};
    if (piece->output != GRAPH_NONE)
        f.output_bytes = graph_placed_bytes(piece->graph->tensors[piece->output].bytes);
    REMAT_TRY(piece_evaluator_create(piece, &f.evaluator));
    f.keep = remat_alloc_zeroed(context, piece->inner_count, sizeof *f.keep);
    f.candidates = remat_alloc(context, piece->inner_count, sizeof *f.candidates);
    remat_status status = find(&f, most, modes);
    remat_release(context, f.keep, piece->inner_count, sizeof *f.keep);
    remat_release(context, f.candidates, piece->inner_count, sizeof *f.candidates);
    remat_release(context, f.choices, f.capacity, sizeof *f.choices);
    remat_release(context, f.flags, f.flag_capacity, sizeof *f.flags);
    piece_evaluator_destroy(f.evaluator);
    if (status != REMAT_OK)
        graph_modes_release(modes);
    return status;
}

/* ---- modes that are schedules ---- */

/* The same schedule of the piece's graph, which has one more action: the turn. Returns where that is. */
static remat_status translate(const graph_piece *piece, const graph_sequence *schedule, graph_sequence *local,
                              size_t *turn)
{
    remat_context *context = piece->graph->context;
    const uint32_t forward = piece->forward_count;
    bool turned = false;
    for (size_t i = 0; i <= schedule->count; i++) {
        if (!turned && (i == schedule->count || schedule->actions[i] >= forward)) {
            *turn = local->count;
            turned = true;
            REMAT_TRY(graph_sequence_add(context, local, forward));
        }
        if (i < schedule->count)
            REMAT_TRY(graph_sequence_add(context, local, schedule->actions[i] + (schedule->actions[i] >= forward)));
    }
    return REMAT_OK;
}

static remat_status copy_actions(remat_context *context, const uint32_t *from, size_t count, uint32_t **to)
{
    *to = remat_alloc(context, count, sizeof **to);
    if (!*to)
        return REMAT_NO_MEMORY;
    if (count)
        memcpy(*to, from, count * sizeof **to);
    return REMAT_OK;
}

static remat_status fill_taken(const graph_piece *piece, const graph_sequence *local, size_t turn, graph_mode *mode)
{
    remat_context *context = piece->graph->context;
    graph_liveness found;
    mode->keep = remat_alloc_zeroed(context, piece->inner_count, sizeof *mode->keep);
    if (!mode->keep)
        return REMAT_NO_MEMORY;
    REMAT_TRY(copy_actions(context, local->actions, turn, &mode->forward));
    mode->forward_count = turn;
    REMAT_TRY(copy_actions(context, local->actions + turn + 1, local->count - turn - 1, &mode->backward));
    mode->backward_count = local->count - turn - 1;
    REMAT_TRY(graph_walk(piece->graph, local, GRAPH_PLACED, &found));
    for (size_t i = 0; i < local->count; i++) {
        uint64_t *peak = i < turn ? &mode->figures.forward_peak : &mode->figures.backward_peak;
        *peak = i == turn ? *peak : remat_max(*peak, found.live_bytes[i]);
    }
    mode->figures.recompute_cost = found.cost - piece->forward_cost - piece->backward_cost;
    for (size_t i = 0; i < found.range_count && found.ranges[i].born < turn; i++)
        if (found.ranges[i].ends > turn + 1) {
            mode->figures.held_bytes += found.ranges[i].bytes;
            if (found.ranges[i].tensor < piece->inner_count)
                mode->keep[found.ranges[i].tensor] = 1;
        }
    graph_liveness_release(context, &found);
    return REMAT_OK;
}

static remat_status take_schedule(const graph_piece *piece, const graph_sequence *schedule, graph_modes *modes)
{
    graph_sequence local = {0};
    size_t turn = 0;
    REMAT_TRY(
        remat_grow(modes->context, (void **)&modes->modes, &modes->capacity, modes->count + 1, sizeof *modes->modes));
    graph_mode *mode = &modes->modes[modes->count++];
    *mode = (graph_mode){0};
    remat_status status = translate(piece, schedule, &local, &turn);
    if (status == REMAT_OK)
        status = fill_taken(piece, &local, turn, mode);
    graph_sequence_release(modes->context, &local);
    return status;
}

static remat_status keep_wanted(const graph_piece *piece, graph_modes *modes)
{
    piece_evaluator *evaluator;
    piece_figures nothing_kept;
    uint8_t *keep = remat_alloc_zeroed(modes->context, piece->inner_count, sizeof *keep);
    if (!keep)
        return REMAT_NO_MEMORY;
    remat_status status = piece_evaluator_create(piece, &evaluator);
    if (status == REMAT_OK) {
        status = piece_evaluate(evaluator, keep, &nothing_kept);
        modes->plain_peak = nothing_kept.forward_peak;
        for (size_t t = 0; t < piece->inner_count; t++)
            keep[t] = piece->tensors[t].wanted;
        if (status == REMAT_OK)
            status = add_mode(modes, evaluator, keep);
        piece_evaluator_destroy(evaluator);
    }
    remat_release(modes->context, keep, piece->inner_count, sizeof *keep);
    return status;
}

remat_status graph_modes_take(const graph_piece *piece, const graph_sequence *schedules, size_t count,
                              graph_modes *modes)
{
    *modes = (graph_modes){.context = piece->graph->context, .inner_count = piece->inner_count};
    remat_status status = keep_wanted(piece, modes);
    for (size_t i = 0; status == REMAT_OK && i < count; i++)
        status = take_schedule(piece, &schedules[i], modes);
    if (status != REMAT_OK)
        graph_modes_release(modes);
    return status;
}
