#include "plan/graph/graph_cut.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"

/* Every sum of figures that the graph planner forms stays below 2^63. */
#define SUM_LIMIT ((uint64_t)1 << 61)

/* Above this many tensors a piece is also cut where its neighbour's backward does not need the tensor that passes: the
 * chain model holds it all the same, but smaller pieces have better modes. */
enum { MOST_TENSORS = 14 };

/* ---- who makes and reads what ---- */

static remat_status invalid(const remat_graph *graph, const graph_action *action, uint32_t tensor, const char *what)
{
    const char *layer = action->layer < graph->layer_count ? graph->layers[action->layer].name : NULL;
    const char *name = graph->tensors[tensor].name;
    return remat_fail(graph->context, REMAT_INVALID, NULL, "layer %s, tensor %s: %s", layer ? layer : "?",
                      name ? name : "?", what);
}

static remat_status note_forward(const remat_graph *graph, uint32_t number, tensor_use *uses)
{
    const graph_action *action = &graph->actions[number];
    if (action->update_count)
        return invalid(graph, action, graph_updates(graph, action)[0],
                       "a forward action updates it; one that may run again can only write");
    for (size_t i = 0; i < action->read_count; i++)
        uses[graph_reads(graph, action)[i]].last_forward = number;
    for (size_t i = 0; i < action->write_count; i++) {
        tensor_use *use = &uses[graph_writes(graph, action)[i]];
        if (use->maker != GRAPH_NONE)
            return invalid(graph, action, graph_writes(graph, action)[i], "two forward actions write it");
        use->maker = number;
        use->loaded = action->kind == GRAPH_LOAD;
    }
    return REMAT_OK;
}

static remat_status note_backward(const remat_graph *graph, uint32_t number, tensor_use *uses)
{
    const graph_action *action = &graph->actions[graph->backward_begin + number];
    const uint32_t *reads = graph_reads(graph, action), *updates = graph_updates(graph, action);
    for (size_t i = 0; i < action->read_count + action->update_count; i++) {
        tensor_use *use = &uses[i < action->read_count ? reads[i] : updates[i - action->read_count]];
        if (action->kind == GRAPH_FINISH && use->maker != GRAPH_NONE) {
            use->finished = true;
            continue;
        }
        use->first_back = use->first_back == GRAPH_NONE ? number : use->first_back;
        use->last_back = number;
        use->updated |= i >= action->read_count;
    }
    for (size_t i = 0; i < action->write_count; i++)
        if (uses[graph_writes(graph, action)[i]].maker != GRAPH_NONE)
            return invalid(graph, action, graph_writes(graph, action)[i],
                           "both a forward and a backward action write it");
    return REMAT_OK;
}

static remat_status check_sums(const remat_graph *graph)
{
    uint64_t bytes = 0, cost = 0;
    bool fits = true;
    for (size_t t = 0; t < graph->tensor_count; t++)
        fits = fits && remat_add(&bytes, graph->tensors[t].bytes);
    for (size_t i = 0; i < graph->action_count; i++)
        fits = fits && remat_add(&bytes, graph->actions[i].workspace_bytes) && remat_add(&cost, graph->actions[i].cost);
    if (fits && bytes < SUM_LIMIT && cost < SUM_LIMIT)
        return REMAT_OK;
    return remat_fail(graph->context, REMAT_INVALID, NULL, "the bytes or the costs of all actions together reach 2^61");
}

remat_status graph_find_uses(const remat_graph *graph, tensor_use *uses)
{
    for (size_t t = 0; t < graph->tensor_count; t++)
        uses[t] = (tensor_use){GRAPH_NONE, GRAPH_NONE, GRAPH_NONE, GRAPH_NONE, false, false, false};
    for (uint32_t i = 0; i < graph->backward_begin; i++)
        REMAT_TRY(note_forward(graph, i, uses));
    for (uint32_t i = 0; graph->backward_begin + i < graph->action_count; i++)
        REMAT_TRY(note_backward(graph, i, uses));
    return check_sums(graph);
}

/* ---- where a single tensor passes ---- */

/* What a cut in front of a forward action would be. */
typedef struct cut_place {
    uint32_t passing;    /* how many tensors pass */
    uint32_t tensor;     /* the one, where it is one */
    uint32_t back;       /* the first backward action of a layer on the left: from there on all belongs to the left */
    bool splits_a_layer; /* whose backward could not be on one side */
    bool allowed, natural;
} cut_place;

typedef struct finder {
    const remat_graph *graph;
    const tensor_use *uses;
    cut_place *places;             /* one a forward action */
    uint32_t *first, *last, *back; /* a layer's forward actions and its first backward one */
} finder;

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void span_layers(finder *f)
{
    const remat_graph *graph = f->graph;
    for (size_t l = 0; l < graph->layer_count; l++)
        f->first[l] = f->last[l] = f->back[l] = GRAPH_NONE;
    for (uint32_t i = 0; i < graph->action_count; i++) {
        uint32_t layer = graph->actions[i].layer;
        if (layer >= graph->layer_count ||
            graph->actions[i].kind == GRAPH_LOAD) /* labels come in long before the loss */
            continue;
        if (i < graph->backward_begin) {
            f->first[layer] = least(f->first[layer], i);
            f->last[layer] = i;
        } else {
            f->back[layer] = least(f->back[layer], i - (uint32_t)graph->backward_begin);
        }
    }
    for (size_t l = 0; l < graph->layer_count; l++) {
        if (f->last[l] == GRAPH_NONE)
            continue;
        for (uint32_t p = f->first[l] + 1; p <= f->last[l]; p++)
            f->places[p].splits_a_layer = true;
        if (f->last[l] + 1 < graph->backward_begin)
            f->places[f->last[l] + 1].back = least(f->places[f->last[l] + 1].back, f->back[l]);
    }
    for (size_t p = 1; p < graph->backward_begin; p++)
        f->places[p].back = least(f->places[p].back, f->places[p - 1].back);
}

static void span_tensors(finder *f)
{
    for (uint32_t t = 0; t < f->graph->tensor_count; t++) {
        const tensor_use *use = &f->uses[t];
        if (use->maker == GRAPH_NONE || tensor_stays(use) || use->last_forward == GRAPH_NONE)
            continue;
        for (uint32_t p = use->maker + 1; p <= use->last_forward; p++) {
            f->places[p].passing++;
            f->places[p].tensor = t;
        }
    }
}

/* Whether the backward reads nothing across the cut but the tensor that passes. */
static bool backward_allows(const finder *f, uint32_t at)
{
    const cut_place *place = &f->places[at];
    for (uint32_t t = 0; t < f->graph->tensor_count; t++) {
        const tensor_use *use = &f->uses[t];
        if (use->maker == GRAPH_NONE || tensor_stays(use) || use->first_back == GRAPH_NONE)
            continue;
        if (use->maker < at ? t != place->tensor && use->first_back < place->back : use->last_back >= place->back)
            return false;
    }
    return true;
}

static void judge(finder *f)
{
    bool works = false; /* whether anything but loads stands to the left */
    for (uint32_t p = 0; p < f->graph->backward_begin; p++) {
        cut_place *place = &f->places[p];
        if (works && place->passing == 1 && !place->splits_a_layer && !f->uses[place->tensor].updated)
            place->allowed = backward_allows(f, p);
        place->natural = place->allowed && f->uses[place->tensor].first_back < place->back;
        works |= f->graph->actions[p].kind != GRAPH_LOAD;
    }
}

/* ---- which cuts are made ---- */

static size_t count_tensors(const finder *f, uint32_t from, uint32_t to)
{
    size_t count = 0;
    for (uint32_t i = from; i < to; i++)
        if (f->graph->actions[i].kind != GRAPH_LOAD)
            count += f->graph->actions[i].write_count;
    return count;
}

static void add_cut(const finder *f, uint32_t at, graph_cut *cut)
{
    size_t n = cut->piece_count++;
    cut->forward_begin[n] = at;
    cut->backward_begin[n] = at ? f->places[at].back : GRAPH_NONE;
    cut->input[n] = at ? f->places[at].tensor : GRAPH_NONE;
}

/* The next natural cut behind `from`, or the end. */
static uint32_t next_natural(const finder *f, uint32_t from)
{
    uint32_t p = from + 1, end = (uint32_t)f->graph->backward_begin;
    while (p < end && !f->places[p].natural)
        p++;
    return p < end ? p : end;
}

/* Adds the piece up to the next natural cut; where that is large, all cuts in between as well. */
static uint32_t add_piece(const finder *f, uint32_t begin, graph_cut *cut)
{
    uint32_t stop = next_natural(f, begin);
    bool is_large = count_tensors(f, begin, stop) > MOST_TENSORS;
    add_cut(f, begin, cut);
    for (uint32_t p = begin + 1; is_large && p < stop; p++)
        if (f->places[p].allowed)
            add_cut(f, p, cut);
    return stop;
}

static void choose(const finder *f, bool whole, graph_cut *cut)
{
    const remat_graph *graph = f->graph;
    uint32_t end = (uint32_t)graph->backward_begin, back_end = (uint32_t)(graph->action_count - graph->backward_begin);
    if (whole && end > 0)
        add_cut(f, 0, cut);
    for (uint32_t begin = 0; !whole && begin < end;)
        begin = add_piece(f, begin, cut);
    cut->forward_begin[cut->piece_count] = end;
    cut->input[cut->piece_count] = GRAPH_NONE;
    cut->backward_begin[cut->piece_count] = 0;
    for (size_t i = 0; i < cut->piece_count; i++) /* nothing on the left has a backward */
        cut->backward_begin[i] = least(cut->backward_begin[i], back_end);
}

void graph_cut_release(remat_context *context, graph_cut *cut)
{
    remat_release(context, cut->forward_begin, cut->capacity, sizeof *cut->forward_begin);
    remat_release(context, cut->backward_begin, cut->capacity, sizeof *cut->backward_begin);
    remat_release(context, cut->input, cut->capacity, sizeof *cut->input);
    *cut = (graph_cut){0};
}

static remat_status find(finder *f, bool whole, graph_cut *cut)
{
    remat_context *context = f->graph->context;
    cut->capacity = f->graph->backward_begin + 2;
    cut->forward_begin = remat_alloc_zeroed(context, cut->capacity, sizeof *cut->forward_begin);
    cut->backward_begin = remat_alloc_zeroed(context, cut->capacity, sizeof *cut->backward_begin);
    cut->input = remat_alloc_zeroed(context, cut->capacity, sizeof *cut->input);
    if (!f->places || !f->first || !f->last || !f->back || !cut->forward_begin || !cut->backward_begin || !cut->input)
        return REMAT_NO_MEMORY;
    for (size_t p = 0; p < f->graph->backward_begin; p++)
        f->places[p] = (cut_place){.tensor = GRAPH_NONE, .back = GRAPH_NONE};
    span_layers(f);
    span_tensors(f);
    judge(f);
    choose(f, whole, cut);
    return REMAT_OK;
}

remat_status graph_cut_find(const remat_graph *graph, const tensor_use *uses, bool whole, graph_cut *cut)
{
    remat_context *context = graph->context;
    size_t layers = graph->layer_count, places = graph->backward_begin;
    *cut = (graph_cut){0};
    finder f = {.graph = graph, .uses = uses};
    f.places = remat_alloc(context, places, sizeof *f.places);
    f.first = remat_alloc(context, layers, sizeof *f.first);
    f.last = remat_alloc(context, layers, sizeof *f.last);
    f.back = remat_alloc(context, layers, sizeof *f.back);
    remat_status status = find(&f, whole, cut);
    remat_release(context, f.places, places, sizeof *f.places);
    remat_release(context, f.first, layers, sizeof *f.first);
    remat_release(context, f.last, layers, sizeof *f.last);
    remat_release(context, f.back, layers, sizeof *f.back);
    if (status != REMAT_OK)
        graph_cut_release(context, cut);
    return status;
}
