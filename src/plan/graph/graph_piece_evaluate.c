#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "plan/graph/graph_piece.h"

/* An action that waits for what it needs: the next of its needs to look at. */
typedef struct waiting_action {
    uint32_t action, need;
} waiting_action;

struct piece_evaluator {
    const graph_piece *piece;
    graph_walker walker; /* rewound to the turn before every choice */
    uint32_t *backward;  /* room for all actions: each forward one runs at most once more */
    size_t count;
    uint8_t *have; /* by inner tensor */
    waiting_action *stack;
};

remat_status piece_evaluator_create(const graph_piece *piece, piece_evaluator **made)
{
    remat_context *context = piece->graph->context;
    piece_evaluator *e = *made = remat_alloc_zeroed(context, 1, sizeof *e);
    if (!e)
        return REMAT_NO_MEMORY;
    e->piece = piece;
    e->backward = remat_alloc(context, piece->graph->action_count, sizeof *e->backward);
    e->have = remat_alloc(context, piece->inner_count, sizeof *e->have);
    e->stack = remat_alloc(context, (size_t)piece->forward_count + 1, sizeof *e->stack);
    remat_status status = e->backward && e->have && e->stack ? REMAT_OK : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        status = graph_walker_create(piece->graph, GRAPH_PLACED, &e->walker);
    /* The forward and the turn are the same for all choices: they run here. */
    for (uint32_t i = 0; status == REMAT_OK && i <= piece->forward_count; i++)
        status = graph_walker_run(&e->walker, &i, 1);
    if (status == REMAT_OK)
        status = graph_walker_mark(&e->walker);
    if (status != REMAT_OK) {
        piece_evaluator_destroy(e);
        *made = NULL;
    }
    return status;
}

void piece_evaluator_destroy(piece_evaluator *e)
{
    if (!e)
        return;
    remat_context *context = e->piece->graph->context;
    graph_walker_release(&e->walker);
    remat_release(context, e->backward, e->piece->graph->action_count, sizeof *e->backward);
    remat_release(context, e->have, e->piece->inner_count, sizeof *e->have);
    remat_release(context, e->stack, (size_t)e->piece->forward_count + 1, sizeof *e->stack);
    remat_release(context, e, 1, sizeof *e);
}

static void list_recompute(piece_evaluator *e, uint32_t maker)
{
    const graph_action *action = &e->piece->graph->actions[maker];
    const uint32_t *writes = graph_writes(e->piece->graph, action);
    e->backward[e->count++] = maker;
    for (size_t i = 0; i < action->write_count; i++)
        e->have[writes[i]] = 1;
}

/* Lists what makes an inner tensor, and before it all that needs in turn and is not there. */
static void list_makers(piece_evaluator *e, uint32_t tensor)
{
    const graph_piece *piece = e->piece;
    const remat_graph *graph = piece->graph;
    size_t depth = 0;
    e->stack[depth++] = (waiting_action){piece->tensors[tensor].maker, 0};
    while (depth > 0) {
        waiting_action *top = &e->stack[depth - 1];
        const graph_action *action = &graph->actions[top->action];
        const uint32_t *needs = graph_reads(graph, action);
        uint32_t need = top->need, count = (uint32_t)graph_need_count(action);
        while (need < count && (needs[need] >= piece->inner_count || e->have[needs[need]]))
            need++;
        top->need = need;
        if (need < count)
            e->stack[depth++] = (waiting_action){piece->tensors[needs[need]].maker, 0};
        else
            list_recompute(e, e->stack[--depth].action);
    }
}

/* The backward actions, each behind what it needs and does not have. */
static void list_backward(piece_evaluator *e, const uint8_t *keep)
{
    const graph_piece *piece = e->piece;
    const remat_graph *graph = piece->graph;
    const uint32_t inner_count = piece->inner_count;
    uint8_t *have = e->have;
    memcpy(have, keep, inner_count);
    e->count = 0;
    for (uint32_t i = piece->forward_count + 1; i < graph->action_count; i++) {
        const uint32_t *needs = graph_reads(graph, &graph->actions[i]);
        size_t count = graph_need_count(&graph->actions[i]);
        for (size_t k = 0; k < count; k++)
            if (needs[k] < inner_count && !have[needs[k]])
                list_makers(e, needs[k]);
        e->backward[e->count++] = i;
    }
}

static uint64_t greatest(const uint64_t *values, size_t count)
{
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++)
        most = remat_max(most, values[i]);
    return most;
}

static void take_figures(const piece_evaluator *e, piece_figures *figures)
{
    const graph_piece *piece = e->piece;
    const graph_liveness *found = &e->walker.found;
    size_t turn = piece->forward_count;
    *figures = (piece_figures){
        .forward_peak = greatest(found->live_bytes, turn),
        .backward_peak = greatest(found->live_bytes + turn + 1, found->position_count - turn - 1),
        .recompute_cost = found->cost - piece->forward_cost - piece->backward_cost,
    };
    for (size_t i = 0; i < found->range_count && found->ranges[i].born < turn; i++)
        if (found->ranges[i].ends > turn + 1) {
            figures->held_bytes += found->ranges[i].bytes;
            figures->holds_output |= found->ranges[i].tensor == piece->output;
        }
}

remat_status piece_evaluate(piece_evaluator *e, const uint8_t *keep, piece_figures *figures)
{
    list_backward(e, keep);
    graph_walker_rewind(&e->walker);
    REMAT_TRY(graph_walker_run(&e->walker, e->backward, e->count));
    REMAT_TRY(graph_walker_finish(&e->walker));
    take_figures(e, figures);
    return REMAT_OK;
}

const uint32_t *piece_backward_actions(const piece_evaluator *e, size_t *count)
{
    *count = e->count;
    return e->backward;
}
