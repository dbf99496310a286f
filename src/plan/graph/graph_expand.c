#include "base/alloc.h"
#include "base/error.h"
#include "plan/graph/graph_pieces_object.h"

/* ---- what runs again for nothing ---- */

/* From the end to the front: a tensor is wanted while a read lies ahead and no write before it. */
static void mark_useless(const remat_graph *graph, graph_sequence *sequence, bool *wanted, const size_t *first_run)
{
    for (size_t position = sequence->count; position-- > 0;) {
        uint32_t number = sequence->actions[position];
        const graph_action *action = &graph->actions[number];
        const uint32_t *reads = graph_reads(graph, action), *writes = graph_writes(graph, action);
        const uint32_t *updates = graph_updates(graph, action);
        bool useful = number >= graph->backward_begin || first_run[number] == position;
        for (size_t i = 0; i < action->write_count; i++)
            useful |= wanted[writes[i]];
        if (!useful) {
            sequence->actions[position] = GRAPH_NONE;
            continue;
        }
        for (size_t i = 0; i < action->write_count; i++)
            wanted[writes[i]] = false;
        for (size_t i = 0; i < action->read_count; i++)
            wanted[reads[i]] = true;
        for (size_t i = 0; i < action->update_count; i++)
            wanted[updates[i]] = true;
    }
}

remat_status graph_sequence_prune(const remat_graph *graph, graph_sequence *sequence)
{
    remat_context *context = graph->context;
    bool *wanted = remat_alloc_zeroed(context, graph->tensor_count, sizeof *wanted);
    size_t *first_run = remat_alloc(context, graph->action_count, sizeof *first_run);
    if (wanted && first_run) {
        for (size_t position = sequence->count; position-- > 0;)
            first_run[sequence->actions[position]] = position;
        mark_useless(graph, sequence, wanted, first_run);
        size_t kept = 0;
        for (size_t position = 0; position < sequence->count; position++)
            if (sequence->actions[position] != GRAPH_NONE)
                sequence->actions[kept++] = sequence->actions[position];
        sequence->count = kept;
    }
    remat_status status = wanted && first_run ? REMAT_OK : REMAT_NO_MEMORY;
    remat_release(context, wanted, graph->tensor_count, sizeof *wanted);
    remat_release(context, first_run, graph->action_count, sizeof *first_run);
    return status;
}

/* ---- from steps to actions ---- */

remat_status graph_expansion_begin(const graph_pieces *pieces, graph_sequence *sequence, graph_expansion *expansion)
{
    remat_context *context = pieces->graph->context;
    *expansion = (graph_expansion){.pieces = pieces, .sequence = sequence};
    expansion->modes = remat_alloc_zeroed(context, pieces->cut.piece_count, sizeof *expansion->modes);
    expansion->ran = remat_alloc_zeroed(context, pieces->cut.piece_count, sizeof *expansion->ran);
    if (expansion->modes && expansion->ran)
        return REMAT_OK;
    graph_expansion_end(expansion);
    return REMAT_NO_MEMORY;
}

static remat_status expand_forward(graph_expansion *to, remat_step step)
{
    const graph_pieces *pieces = to->pieces;
    const remat_graph *graph = pieces->graph;
    for (uint32_t i = pieces->cut.forward_begin[step.layer]; i < pieces->cut.forward_begin[step.layer + 1]; i++)
        if (!to->ran[step.layer] || graph->actions[i].kind != GRAPH_LOAD)
            REMAT_TRY(graph_sequence_add(graph->context, to->sequence, i));
    to->ran[step.layer] = true;
    if (step.save != REMAT_NO_SAVE)
        to->modes[step.layer] = step.save;
    return REMAT_OK;
}

static remat_status expand_backward(graph_expansion *to, remat_step step)
{
    const graph_pieces *pieces = to->pieces;
    const piece_kind *kind = &pieces->kinds[pieces->kind_of[step.layer]];
    const graph_mode *mode = &kind->modes.modes[to->modes[step.layer]];
    uint32_t forward = pieces->cut.forward_begin[step.layer];
    uint32_t backward = (uint32_t)pieces->graph->backward_begin + pieces->cut.backward_begin[step.layer + 1];
    for (size_t i = 0; i < mode->backward_count; i++) {
        uint32_t action = mode->backward[i], count = (uint32_t)kind->piece.forward_count;
        REMAT_TRY(graph_sequence_add(pieces->graph->context, to->sequence,
                                     action < count ? forward + action : backward + action - count));
    }
    return REMAT_OK;
}

remat_status graph_expansion_step(void *expansion, remat_step step)
{
    switch ((remat_op)step.op) {
    case REMAT_FORWARD: return expand_forward(expansion, step);
    case REMAT_BACKWARD: return expand_backward(expansion, step);
    case REMAT_LOSS:   /* one of the last piece's actions */
    case REMAT_DROP_X: /* what is not read again is not held */
    case REMAT_DROP_STATE: /* likewise */ break;
    }
    return REMAT_OK;
}

remat_status graph_expansion_end(graph_expansion *expansion)
{
    const remat_graph *graph = expansion->pieces->graph;
    size_t count = expansion->pieces->cut.piece_count;
    remat_release(graph->context, expansion->modes, count, sizeof *expansion->modes);
    remat_release(graph->context, expansion->ran, count, sizeof *expansion->ran);
    expansion->modes = NULL;
    expansion->ran = NULL;
    return graph_sequence_prune(graph, expansion->sequence);
}

remat_status graph_pieces_expand(const graph_pieces *pieces, const remat_plan *plan, graph_sequence *sequence)
{
    graph_expansion expansion;
    sequence->count = 0;
    REMAT_TRY(graph_expansion_begin(pieces, sequence, &expansion));
    remat_status status = remat_plan_walk(plan, graph_expansion_step, &expansion);
    remat_status ended = graph_expansion_end(&expansion);
    return status != REMAT_OK ? status : ended;
}
