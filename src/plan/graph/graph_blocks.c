#include "base/alloc.h"
#include "base/error.h"
#include "plan/graph/graph_outline.h"

typedef struct runner {
    const graph_outline *outline;
    const uint32_t *blocks;
    graph_sequence *sequence;
    bool *shared; /* by tensor: somebody outside of its block reads it */
    bool *needed; /* by forward action: it is recomputed */
    bool *done;   /* by block: it has been recomputed */
} runner;

static void find_shared(runner *r)
{
    const remat_graph *graph = r->outline->graph;
    for (uint32_t a = 0; a < graph->action_count; a++) {
        const uint32_t *needs = graph_reads(graph, &graph->actions[a]);
        for (size_t i = 0; i < graph_need_count(&graph->actions[a]); i++) {
            uint32_t maker = r->outline->uses[needs[i]].maker;
            if (maker != GRAPH_NONE && r->blocks[maker] != r->blocks[a])
                r->shared[needs[i]] = true;
        }
    }
}

/* Marks the makers of what an action needs, where the block has dropped it; makers come before their readers, so that
 * one pass from the block's last forward action to its first finds all. */
static void mark_needs(runner *r, uint32_t number, uint32_t block)
{
    const remat_graph *graph = r->outline->graph;
    const uint32_t *needs = graph_reads(graph, &graph->actions[number]);
    for (size_t i = 0; i < graph_need_count(&graph->actions[number]); i++) {
        const tensor_use *use = &r->outline->uses[needs[i]];
        if (use->maker != GRAPH_NONE && !tensor_stays(use) && !r->shared[needs[i]] && r->blocks[use->maker] == block)
            r->needed[use->maker] = true;
    }
}

static remat_status recompute(runner *r, uint32_t block)
{
    const remat_graph *graph = r->outline->graph;
    for (uint32_t a = r->outline->forward_count; a < graph->action_count; a++)
        if (r->blocks[a] == block)
            mark_needs(r, a, block);
    for (uint32_t a = r->outline->forward_count; a-- > 0;)
        if (r->needed[a])
            mark_needs(r, a, block);
    for (uint32_t a = 0; a < r->outline->forward_count; a++) {
        if (r->needed[a])
            REMAT_TRY(graph_sequence_add(graph->context, r->sequence, a));
        r->needed[a] = false;
    }
    r->done[block] = true;
    return REMAT_OK;
}

static remat_status run(runner *r)
{
    find_shared(r);
    for (uint32_t a = 0; a < r->outline->graph->action_count; a++) {
        uint32_t block = r->blocks[a];
        if (a >= r->outline->forward_count && block != GRAPH_NONE && !r->done[block])
            REMAT_TRY(recompute(r, block));
        REMAT_TRY(graph_sequence_add(r->outline->graph->context, r->sequence, a));
    }
    return REMAT_OK;
}

remat_status graph_blocks_sequence(const graph_outline *outline, const uint32_t *blocks, graph_sequence *sequence)
{
    const remat_graph *graph = outline->graph;
    runner r = {.outline = outline, .blocks = blocks, .sequence = sequence};
    size_t block_count = 0;
    for (size_t a = 0; a < graph->action_count; a++)
        if (blocks[a] != GRAPH_NONE && blocks[a] >= block_count)
            block_count = (size_t)blocks[a] + 1;
    sequence->count = 0;
    r.shared = remat_alloc_zeroed(graph->context, graph->tensor_count, sizeof *r.shared);
    r.needed = remat_alloc_zeroed(graph->context, graph->action_count, sizeof *r.needed);
    r.done = remat_alloc_zeroed(graph->context, block_count, sizeof *r.done);
    remat_status status = r.shared && r.needed && r.done ? run(&r) : REMAT_NO_MEMORY;
    remat_release(graph->context, r.shared, graph->tensor_count, sizeof *r.shared);
    remat_release(graph->context, r.needed, graph->action_count, sizeof *r.needed);
    remat_release(graph->context, r.done, block_count, sizeof *r.done);
    return status;
}
