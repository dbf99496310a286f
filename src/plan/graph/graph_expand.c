#include "base/alloc.h"
#include "base/error.h"
#include "plan/graph/graph_pieces.h"

/* ---- what is recomputed for nothing ---- */

/* From the end to the front: a tensor is wanted while a read lies ahead and no write before it. */
static void mark_useless(const remat_graph *graph, graph_sequence *sequence, bool *wanted, const size_t *first_run)
{
    for (size_t position = sequence->count; position-- > 0;) {
        uint32_t number = sequence->actions[position];
        const graph_action *action = &graph->actions[number];
        const uint32_t *needs = graph_reads(graph, action), *writes = graph_writes(graph, action);
        bool useful = action->once || first_run[number] == position;
        for (size_t i = 0; i < action->write_count; i++)
            useful |= wanted[writes[i]];
        if (!useful) {
            sequence->actions[position] = GRAPH_NONE;
            continue;
        }
        for (size_t i = 0; i < action->write_count; i++)
            wanted[writes[i]] = false;
        for (size_t i = 0; i < graph_need_count(action); i++)
            wanted[needs[i]] = true;
    }
}

/* Leaves out every action that runs again although nobody reads what it makes. */
static remat_status prune(const remat_graph *graph, graph_sequence *sequence)
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

typedef struct expansion {
    const graph_pieces *pieces;
    graph_sequence *sequence;
    uint16_t *modes; /* by piece: how it is saved right now */
    bool *ran;       /* by piece: whether its forward ran already */
} expansion;

static remat_status expand_forward(expansion *to, remat_step step)
{
    const graph_pieces *pieces = to->pieces;
    const remat_graph *graph = pieces->outline->graph;
    const graph_modes *modes = &pieces->kinds[pieces->kind_of[step.layer]].modes;
    const graph_mode *mode = step.save == REMAT_NO_SAVE ? NULL : &modes->modes[step.save];
    for (size_t i = 0; mode && mode->forward && i < mode->forward_count; i++)
        if (!to->ran[step.layer] || !graph->actions[mode->forward[i]].once)
            REMAT_TRY(graph_sequence_add(graph->context, to->sequence, mode->forward[i]));
    uint32_t begin = pieces->cut.begins[step.layer].forward, end = pieces->cut.begins[step.layer + 1].forward;
    for (uint32_t i = begin; !(mode && mode->forward) && i < end; i++)
        if (!to->ran[step.layer] || !graph->actions[i].once)
            REMAT_TRY(graph_sequence_add(graph->context, to->sequence, i));
    to->ran[step.layer] = true;
    if (step.save != REMAT_NO_SAVE)
        to->modes[step.layer] = step.save;
    return REMAT_OK;
}

static remat_status expand_backward(expansion *to, remat_step step)
{
    const graph_pieces *pieces = to->pieces;
    const piece_kind *kind = &pieces->kinds[pieces->kind_of[step.layer]];
    const graph_mode *mode = &kind->modes.modes[to->modes[step.layer]];
    uint32_t turn = kind->piece.forward_count, forward = pieces->cut.begins[step.layer].forward;
    uint32_t backward = pieces->outline->forward_count + pieces->cut.begins[step.layer + 1].backward;
    for (size_t i = 0; i < mode->backward_count; i++) {
        uint32_t action = mode->backward[i];
        REMAT_TRY(graph_sequence_add(pieces->outline->graph->context, to->sequence,
                                     action < turn ? forward + action : backward + action - turn - 1));
    }
    return REMAT_OK;
}

static remat_status expand_step(void *to, remat_step step)
{
    switch ((remat_op)step.op) {
    case REMAT_FORWARD: return expand_forward(to, step);
    case REMAT_BACKWARD: return expand_backward(to, step);
    case REMAT_LOSS:   /* one of the last piece's actions */
    case REMAT_DROP_X: /* what is not read again is not held */
    case REMAT_DROP_STATE: /* likewise */ break;
    }
    return REMAT_OK;
}

/* The steps of a plan; where it is NULL, those that are listed. */
static remat_status expand(const graph_pieces *pieces, const remat_plan *plan, const remat_step *steps, size_t count,
                           graph_sequence *sequence)
{
    const remat_graph *graph = pieces->outline->graph;
    size_t piece_count = pieces->cut.piece_count;
    expansion to = {.pieces = pieces, .sequence = sequence};
    sequence->count = 0;
    to.modes = remat_alloc_zeroed(graph->context, piece_count, sizeof *to.modes);
    to.ran = remat_alloc_zeroed(graph->context, piece_count, sizeof *to.ran);
    remat_status status = to.modes && to.ran ? REMAT_OK : REMAT_NO_MEMORY;
    if (status == REMAT_OK && plan)
        status = remat_plan_walk(plan, expand_step, &to);
    for (size_t i = 0; status == REMAT_OK && i < count; i++)
        status = expand_step(&to, steps[i]);
    remat_release(graph->context, to.modes, piece_count, sizeof *to.modes);
    remat_release(graph->context, to.ran, piece_count, sizeof *to.ran);
    return status == REMAT_OK ? prune(graph, sequence) : status;
}

remat_status graph_pieces_expand(const graph_pieces *pieces, const remat_plan *plan, graph_sequence *sequence)
{
    return expand(pieces, plan, NULL, 0, sequence);
}

remat_status graph_pieces_expand_steps(const graph_pieces *pieces, const remat_step *steps, size_t count,
                                       graph_sequence *sequence)
{
    return expand(pieces, NULL, steps, count, sequence);
}
