#include "plan/graph/graph_choices.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

enum { MOST_ENUMERATED = 12 }; /* tensors: 4096 choices */

uint64_t choice_bytes(const piece_choices *choices, const piece_figures *figures)
{
    if (choices->alone)
        return figures->forward_peak > figures->backward_peak ? figures->forward_peak : figures->backward_peak;
    return figures->held_bytes + (figures->holds_output ? 0 : choices->output_bytes);
}

const uint8_t *choice_keep(const piece_choices *choices, const piece_choice *choice)
{
    return choices->flags + choice->keep * choices->piece->inner_count;
}

void piece_choices_release(piece_choices *choices)
{
    remat_context *context = choices->piece->graph->context;
    remat_release(context, choices->list, choices->capacity, sizeof *choices->list);
    remat_release(context, choices->flags, choices->flag_capacity, sizeof *choices->flags);
    *choices = (piece_choices){.piece = choices->piece};
}

exchange_rate piece_rate(const graph_piece *piece, uint64_t factor)
{
    wide_number bytes = 1;
    for (uint32_t t = 0; t < piece->inner_count; t++)
        bytes += piece_tensor_bytes(piece, t);
    return exchange_rate_of(((wide_number)piece->forward_cost + 1) * factor, bytes * 64 << 16);
}

static bool as_good(const piece_choices *choices, const piece_figures *a, const piece_figures *b)
{
    if (a->recompute_cost > b->recompute_cost || choice_bytes(choices, a) > choice_bytes(choices, b))
        return false;
    return a->held_bytes <= b->held_bytes && (choices->alone || a->backward_peak <= b->backward_peak);
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

static remat_status evaluate(search *s, piece_figures *figures)
{
    REMAT_TRY(piece_evaluate(s->evaluator, s->keep, figures));
    return add_choice(s->choices, s->keep, figures);
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
        piece_figures figures;
        for (size_t i = 0; i < s->candidate_count; i++)
            s->keep[s->candidates[i]] = mask >> i & 1;
        REMAT_TRY(evaluate(s, &figures));
    }
    return REMAT_OK;
}

/* A peak in the backward counts half of what is held. */
static wide_number price(const search *s, const piece_figures *figures, exchange_rate rate)
{
    wide_number bytes = (wide_number)choice_bytes(s->choices, figures) + figures->held_bytes;
    return exchange_price(rate, 2 * figures->recompute_cost, 2 * bytes + figures->backward_peak);
}

/* Tensors change sides one by one while that lowers the price. */
static remat_status descend(search *s, exchange_rate rate, size_t evaluations)
{
    piece_figures figures;
    REMAT_TRY(evaluate(s, &figures));
    wide_number best = price(s, &figures, rate);
    for (bool better = true; better && evaluations > 0;) {
        better = false;
        for (size_t i = 0; i < s->candidate_count && evaluations > 0; i++, evaluations--) {
            uint8_t *side = &s->keep[s->candidates[i]];
            *side ^= 1;
            REMAT_TRY(evaluate(s, &figures));
            wide_number now = price(s, &figures, rate);
            if (now < best) {
                best = now;
                better = true;
            } else {
                *side ^= 1;
            }
        }
    }
    return REMAT_OK;
}

static remat_status search_rates(search *s, size_t evaluations)
{
    enum { RATES = 10 };
    const graph_piece *piece = s->piece;
    uint64_t factor = 1 << 16;
    for (size_t t = 0; t < piece->inner_count; t++)
        s->keep[t] = piece->tensors[t].wanted;
    for (size_t i = 0; i < RATES; i++, factor = factor * 5 / 2)
        REMAT_TRY(descend(s, piece_rate(piece, factor), evaluations / RATES));
    memset(s->keep, 0, piece->inner_count);
    piece_figures figures;
    return evaluate(s, &figures);
}

/* The neighbours of a choice differ from it in one tensor or in two that follow one another. */
static remat_status look_around(search *s, size_t choice)
{
    piece_figures figures;
    s->choices->list[choice].explored = true;
    memcpy(s->keep, choice_keep(s->choices, &s->choices->list[choice]), s->piece->inner_count);
    for (size_t i = 0; i < s->candidate_count; i++) {
        uint8_t *side = &s->keep[s->candidates[i]];
        *side ^= 1;
        REMAT_TRY(evaluate(s, &figures));
        for (size_t k = i + 1; k < s->candidate_count && k < i + 3; k++) {
            s->keep[s->candidates[k]] ^= 1;
            REMAT_TRY(evaluate(s, &figures));
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

/* Evaluations take longer in larger pieces. */
static remat_status search_some(search *s)
{
    size_t most = 4000000 / (s->piece->graph->action_count + s->piece->forward_count);
    most = most < 600 ? 600 : most > 12000 ? 12000 : most;
    REMAT_TRY(search_rates(s, most / 4));
    return search_neighbours(s, most - most / 4);
}

static remat_status try_seeds(search *s, const keep_sets *seeds)
{
    piece_figures figures;
    for (size_t i = 0; i < seeds->count; i++) {
        for (size_t t = 0; t < s->piece->inner_count; t++)
            s->keep[t] = seeds->flags[i * seeds->width + s->piece->tensors[t].number];
        REMAT_TRY(evaluate(s, &figures));
    }
    return REMAT_OK;
}

static remat_status find(search *s, const keep_sets *seeds)
{
    if (!s->keep || !s->candidates)
        return REMAT_NO_MEMORY;
    find_candidates(s);
    if (seeds && s->candidate_count > MOST_ENUMERATED)
        REMAT_TRY(try_seeds(s, seeds));
    return s->candidate_count <= MOST_ENUMERATED ? enumerate(s) : search_some(s);
}

remat_status piece_choices_find(const graph_piece *piece, piece_evaluator *evaluator, bool alone,
                                const keep_sets *seeds, piece_choices *choices)
{
    remat_context *context = piece->graph->context;
    *choices = (piece_choices){.piece = piece, .alone = alone};
    choices->output_bytes = piece->output == GRAPH_NONE ? 0 : piece_tensor_bytes(piece, piece->output);
    search s = {.piece = piece, .evaluator = evaluator, .choices = choices};
    s.keep = remat_alloc_zeroed(context, piece->inner_count, sizeof *s.keep);
    s.candidates = remat_alloc(context, piece->inner_count, sizeof *s.candidates);
    remat_status status = find(&s, seeds);
    remat_release(context, s.keep, piece->inner_count, sizeof *s.keep);
    remat_release(context, s.candidates, piece->inner_count, sizeof *s.candidates);
    if (status != REMAT_OK)
        piece_choices_release(choices);
    return status;
}
