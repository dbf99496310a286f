#include "plan/graph/graph_cut.h"

#include "base/alloc.h"
#include "base/error.h"

/* A place for a cut, in front of a forward action. */
typedef struct cut_place {
    uint32_t passing;   /* how many tensors pass; wraps while it is summed up */
    uint32_t tensor;    /* the one, where it is one; likewise */
    uint32_t right_end; /* all backward actions from here on need nothing that was made on the right */
    uint32_t back;      /* the first backward action whose partner is on the left */
} cut_place;

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Whether the tensor belongs to the piece that makes it. */
static bool is_inner(const tensor_use *use)
{
    return use->maker != GRAPH_NONE && !tensor_stays(use);
}

static void find_places(const graph_outline *outline, cut_place *places)
{
    uint32_t count = outline->forward_count;
    for (uint32_t p = 0; p <= count; p++)
        places[p] = (cut_place){.back = outline->backward_count};
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
    for (uint32_t k = outline->backward_count; k-- > 0;)
        places[outline->partner[k] + 1].back = k;
    for (uint32_t p = 1; p <= count; p++) {
        places[p].passing += places[p - 1].passing;
        places[p].tensor += places[p - 1].tensor;
        places[p].back = least(places[p].back, places[p - 1].back);
    }
    for (uint32_t p = count; p-- > 0;)
        if (places[p + 1].right_end > places[p].right_end)
            places[p].right_end = places[p + 1].right_end;
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

/* A cut is worth it where the backward behind it reads the tensor that passes: the chain holds it all the same. Where it
 * writes in its place, the chain would count both. */
static bool is_cut(const graph_outline *outline, const cut_place *place, const first_needs *left)
{
    if (place->passing != 1 || outline->uses[place->tensor].overwritten)
        return false;
    uint32_t other = left->tensor == place->tensor ? left->second : left->first;
    return place->right_end <= place->back && other >= place->back &&
           outline->uses[place->tensor].first_back < place->back;
}

static void add_cut(graph_cut *cut, uint32_t forward, uint32_t backward, uint32_t input)
{
    cut->forward_begin[cut->piece_count] = forward;
    cut->backward_begin[cut->piece_count] = backward;
    cut->input[cut->piece_count++] = input;
}

static void find_cuts(const graph_outline *outline, const cut_place *places, bool whole, graph_cut *cut)
{
    const remat_graph *graph = outline->graph;
    first_needs left = {GRAPH_NONE, GRAPH_NONE, GRAPH_NONE};
    bool works = false; /* whether anything on the left may run again */
    if (graph->action_count > 0)
        add_cut(cut, 0, outline->backward_count, GRAPH_NONE);
    for (uint32_t p = 0; p < outline->forward_count && !whole; p++) {
        const graph_action *action = &graph->actions[p];
        if (works && is_cut(outline, &places[p], &left))
            add_cut(cut, p, places[p].back, places[p].tensor);
        works |= !action->once;
        for (size_t i = 0; i < action->write_count; i++)
            if (is_inner(&outline->uses[graph_writes(graph, action)[i]]))
                note_first(&left, graph_writes(graph, action)[i],
                           outline->uses[graph_writes(graph, action)[i]].first_back);
    }
    add_cut(cut, outline->forward_count, 0, GRAPH_NONE);
    cut->piece_count--; /* that was the end */
}

void graph_cut_release(remat_context *context, graph_cut *cut)
{
    remat_release(context, cut->forward_begin, cut->capacity, sizeof *cut->forward_begin);
    remat_release(context, cut->backward_begin, cut->capacity, sizeof *cut->backward_begin);
    remat_release(context, cut->input, cut->capacity, sizeof *cut->input);
    *cut = (graph_cut){0};
}

remat_status graph_cut_find(const graph_outline *outline, bool whole, graph_cut *cut)
{
    remat_context *context = outline->graph->context;
    size_t count = (size_t)outline->forward_count + 2;
    *cut = (graph_cut){.capacity = count};
    cut_place *places = remat_alloc(context, count, sizeof *places);
    cut->forward_begin = remat_alloc(context, count, sizeof *cut->forward_begin);
    cut->backward_begin = remat_alloc(context, count, sizeof *cut->backward_begin);
    cut->input = remat_alloc(context, count, sizeof *cut->input);
    remat_status status = REMAT_NO_MEMORY;
    if (places && cut->forward_begin && cut->backward_begin && cut->input) {
        find_places(outline, places);
        find_cuts(outline, places, whole, cut);
        status = REMAT_OK;
    }
    remat_release(context, places, count, sizeof *places);
    if (status != REMAT_OK)
        graph_cut_release(context, cut);
    return status;
}
