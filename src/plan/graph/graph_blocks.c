#include "plan/graph/graph_blocks.h"

#include <stdbool.h>

#include "base/alloc.h"
#include "base/error.h"
#include "plan/graph/graph_cut.h"

typedef struct runner {
    const remat_graph *graph;
    const uint32_t *block_of_layer;
    graph_sequence *sequence;
    tensor_use *uses;
    bool *shared; /* by tensor: somebody outside of its block reads it */
    bool *needed; /* by forward action: runs again */
    bool *done;   /* by layer, for its block: has run again */
} runner;

static uint32_t block_of(const runner *r, uint32_t action)
{
    uint32_t layer = r->graph->actions[action].layer;
    return layer < r->graph->layer_count ? r->block_of_layer[layer] : GRAPH_NONE;
}

static size_t need_count(const graph_action *action)
{
    return (size_t)action->read_count + action->update_count;
}

/* Reads first, then updates. */
static uint32_t need(const remat_graph *graph, const graph_action *action, size_t i)
{
    return i < action->read_count ? graph_reads(graph, action)[i]
                                  : graph_updates(graph, action)[i - action->read_count];
}

static void find_shared(runner *r)
{
    for (uint32_t a = 0; a < r->graph->action_count; a++) {
        const graph_action *action = &r->graph->actions[a];
        for (size_t i = 0; i < need_count(action); i++) {
            uint32_t tensor = need(r->graph, action, i), maker = r->uses[tensor].maker;
            if (maker != GRAPH_NONE && block_of(r, maker) != block_of(r, a))
                r->shared[tensor] = true;
        }
    }
}

/* Marks the maker of what an action needs, where the block has dropped it; makers come before their readers, so that
 * one pass from the block's last forward action to its first finds all. */
static void mark_needs(runner *r, uint32_t number, uint32_t block)
{
    const graph_action *action = &r->graph->actions[number];
    for (size_t i = 0; i < need_count(action); i++) {
        uint32_t tensor = need(r->graph, action, i);
        const tensor_use *use = &r->uses[tensor];
        if (use->maker != GRAPH_NONE && !tensor_stays(use) && !r->shared[tensor] && block_of(r, use->maker) == block)
            r->needed[use->maker] = true;
    }
}

static remat_status run_again(runner *r, uint32_t block)
{
    const remat_graph *graph = r->graph;
    for (uint32_t a = (uint32_t)graph->backward_begin; a < graph->action_count; a++)
        if (block_of(r, a) == block)
            mark_needs(r, a, block);
    for (uint32_t a = (uint32_t)graph->backward_begin; a-- > 0;)
        if (r->needed[a])
            mark_needs(r, a, block);
    for (uint32_t a = 0; a < graph->backward_begin; a++) {
        if (r->needed[a])
            REMAT_TRY(graph_sequence_add(graph->context, r->sequence, a));
        r->needed[a] = false;
    }
    for (size_t l = 0; l < graph->layer_count; l++)
        r->done[l] |= r->block_of_layer[l] == block;
    return REMAT_OK;
}

static remat_status run(runner *r)
{
    const remat_graph *graph = r->graph;
    if (!r->uses || !r->shared || !r->needed || !r->done)
        return REMAT_NO_MEMORY;
    REMAT_TRY(graph_find_uses(graph, r->uses));
    find_shared(r);
    for (uint32_t a = 0; a < graph->action_count; a++) {
        uint32_t block = block_of(r, a);
        if (a >= graph->backward_begin && block != GRAPH_NONE && !r->done[graph->actions[a].layer])
            REMAT_TRY(run_again(r, block));
        REMAT_TRY(graph_sequence_add(graph->context, r->sequence, a));
    }
    return REMAT_OK;
}

remat_status graph_blocks_sequence(const remat_graph *graph, const uint32_t *block_of_layer, graph_sequence *sequence)
{
    remat_context *context = graph->context;
    runner r = {.graph = graph, .block_of_layer = block_of_layer, .sequence = sequence};
    sequence->count = 0;
    r.uses = remat_alloc(context, graph->tensor_count, sizeof *r.uses);
    r.shared = remat_alloc_zeroed(context, graph->tensor_count, sizeof *r.shared);
    r.needed = remat_alloc_zeroed(context, graph->action_count, sizeof *r.needed);
    r.done = remat_alloc_zeroed(context, graph->layer_count, sizeof *r.done);
    remat_status status = run(&r);
    remat_release(context, r.uses, graph->tensor_count, sizeof *r.uses);
    remat_release(context, r.shared, graph->tensor_count, sizeof *r.shared);
    remat_release(context, r.needed, graph->action_count, sizeof *r.needed);
    remat_release(context, r.done, graph->layer_count, sizeof *r.done);
    return status;
}
