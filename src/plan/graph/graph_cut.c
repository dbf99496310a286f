#include "plan/graph/graph_cut.h"

#include "base/alloc.h"
#include "base/error.h"

/* A place for a cut, in front of a forward action. */
typedef struct cut_place {
    uint32_t passing;   /* how many tensors pass; wraps while it is summed up */
    uint32_t tensor;    /* the one, where it is one; likewise */
    uint32_t right_end; /* all backward actions from here on need nothing that was made on the right */
} cut_place;

typedef struct cutter {
    const graph_outline *outline;
    cut_place *places;      /* forward_count + 2 */
    uint64_t *passing_back; /* backward_count + 2: bytes of gradients that live across, in front of a backward action */
    graph_cut *cut;
} cutter;

/* Whether the tensor belongs to the piece that makes it. */
static bool is_inner(const tensor_use *use)
{
    return use->maker != GRAPH_NONE && !tensor_stays(use);
}

static void find_places(const cutter *c)
{
    const graph_outline *outline = c->outline;
    cut_place *places = c->places;
    uint32_t count = outline->forward_count;
    for (uint32_t t = 0; t < outline->graph->tensor_count; t++) {
        const tensor_use *use = &outline->uses[t];
        if (!is_inner(use))
            continue;
        if (use->last_forward != GRAPH_NONE) { /* it passes at maker + 1 ... last_forward */
            places[use->maker + 1].passing++;
            places[use->maker + 1].tensor += t;
            places[use->last_forward + 1].passing--;
            places[use->last_forward + 1].tensor -= t;
        }
        if (use->last_back != GRAPH_NONE && use->last_back >= places[use->maker].right_end)
            places[use->maker].right_end = use->last_back + 1;
    }
    for (uint32_t p = 1; p <= count; p++) {
        places[p].passing += places[p - 1].passing;
        places[p].tensor += places[p - 1].tensor;
    }
    for (uint32_t p = count; p-- > 0;)
        if (places[p + 1].right_end > places[p].right_end)
            places[p].right_end = places[p + 1].right_end;
}

/* A gradient lives from the action that writes it to the last that needs it. */
static void find_passing_back(const cutter *c)
{
    const graph_outline *outline = c->outline;
    const remat_graph *graph = outline->graph;
    uint64_t *passing = c->passing_back; /* at first changes, which wrap, and back; then their sums */
    for (uint32_t k = 0; k < outline->backward_count; k++) {
        const graph_action *action = &graph->actions[outline->forward_count + k];
        for (size_t i = 0; i < action->write_count; i++) {
            uint32_t tensor = graph_writes(graph, action)[i];
            uint32_t last = outline->uses[tensor].last_back;
            if (last != GRAPH_NONE && last > k) {
                passing[k + 1] += graph_placed_bytes(graph->tensors[tensor].bytes);
                passing[last + 1] -= graph_placed_bytes(graph->tensors[tensor].bytes);
            }
        }
    }
    for (uint32_t k = 1; k <= outline->backward_count; k++)
        passing[k] += passing[k - 1];
}

/* Two tensors of the left that the backward needs first. */
typedef struct first_needs {
    uint32_t tensor, first, second; /* whose it is; backward actions */
} first_needs;

static void note_first(first_needs *needs, uint32_t tensor, uint32_t first)
{
    if (first < needs->first) {
        needs->second = needs->first;
        needs->first = first;
        needs->tensor = tensor;
    } else if (first < needs->second) {
        needs->second = first;
    }
}

/* Cuts here, if a single tensor passes and the backward pass can be cut as well: behind all that needs what the right
 * made, and in front of all that needs what the left made or loaded, apart from the tensor that passes. Of these places it takes the
 * first one where the fewest bytes of gradients pass.
 *
 * The chain holds the tensor that passes until the backward pass gets here, so a cut is worth it only where the right
 * reads it. Where the backward pass may write in its place, the chain would count both. */
static void try_cut(const cutter *c, uint32_t forward, const first_needs *left)
{
    const cut_place *place = &c->places[forward];
    const tensor_use *use = place->passing == 1 ? &c->outline->uses[place->tensor] : NULL;
    if (!use || use->overwritten || use->first_back == GRAPH_NONE)
        return;
    uint32_t end = c->cut->begins[c->cut->piece_count - 1].backward;
    uint32_t other = left->tensor == place->tensor ? left->second : left->first;
    uint32_t back = use->first_back < place->right_end ? place->right_end : use->first_back + 1;
    for (uint32_t k = back; k <= other && k <= end; k++)
        if (c->passing_back[k] < c->passing_back[back])
            back = k;
    if (back <= other && back <= end)
        c->cut->begins[c->cut->piece_count++] = (piece_begin){forward, back, place->tensor};
}

static void find_cuts(const cutter *c)
{
    const graph_outline *outline = c->outline;
    const remat_graph *graph = outline->graph;
    first_needs left = {GRAPH_NONE, GRAPH_NONE, GRAPH_NONE};
    bool works = false; /* whether anything on the left may run again */
    for (uint32_t p = 0; p < outline->forward_count; p++) {
        const graph_action *action = &graph->actions[p];
        if (works)
            try_cut(c, p, &left);
        works |= !action->once;
        for (size_t i = 0; i < graph_need_count(action); i++) { /* data that nobody on the right reads is the left's */
            const tensor_use *use = &outline->uses[graph_reads(graph, action)[i]];
            if (use->made_once && use->last_forward == p)
                note_first(&left, GRAPH_NONE, use->first_back);
        }
        for (size_t i = 0; i < action->write_count; i++) {
            uint32_t tensor = graph_writes(graph, action)[i];
            if (is_inner(&outline->uses[tensor]))
                note_first(&left, tensor, outline->uses[tensor].first_back);
        }
    }
}

void graph_cut_release(remat_context *context, graph_cut *cut)
{
    remat_release(context, cut->begins, cut->capacity, sizeof *cut->begins);
    *cut = (graph_cut){0};
}

remat_status graph_cut_find(const graph_outline *outline, bool whole, graph_cut *cut)
{
    remat_context *context = outline->graph->context;
    size_t count = (size_t)outline->forward_count + 2, back_count = (size_t)outline->backward_count + 2;
    *cut = (graph_cut){.capacity = count};
    cutter c = {.outline = outline, .cut = cut};
    c.places = remat_alloc_zeroed(context, count, sizeof *c.places);
    c.passing_back = remat_alloc_zeroed(context, back_count, sizeof *c.passing_back);
    cut->begins = remat_alloc(context, count, sizeof *cut->begins);
    remat_status status = REMAT_NO_MEMORY;
    if (c.places && c.passing_back && cut->begins) {
        find_places(&c);
        find_passing_back(&c);
        if (outline->graph->action_count > 0)
            cut->begins[cut->piece_count++] = (piece_begin){0, outline->backward_count, GRAPH_NONE};
        if (!whole)
            find_cuts(&c);
        cut->begins[cut->piece_count] = (piece_begin){outline->forward_count, 0, GRAPH_NONE}; /* the end */
        status = REMAT_OK;
    }
    remat_release(context, c.places, count, sizeof *c.places);
    remat_release(context, c.passing_back, back_count, sizeof *c.passing_back);
    if (status != REMAT_OK)
        graph_cut_release(context, cut);
    return status;
}
