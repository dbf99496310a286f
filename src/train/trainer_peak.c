/* What the arena holds at the peak, by kind, for the table of where the bytes go. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "train/trainer_object.h"

/* Whatever no forward action writes is a gradient. */
remat_status trainer_find_kinds(const remat_trainer *trainer, uint8_t **kinds)
{
    const remat_program *program = trainer->program;
    const remat_graph *graph = program->graph;
    *kinds = remat_alloc(trainer->context, graph->tensor_count, sizeof **kinds);
    if (!*kinds)
        return REMAT_NO_MEMORY;
    memset(*kinds, HOLDS_GRADIENT, graph->tensor_count);
    for (size_t a = 0; a < graph->action_count; a++) {
        const graph_action *action = &graph->actions[a];
        action_kind kind = program->actions[a].kind;
        for (size_t i = 0; i < action->write_count && kind <= ACTION_FORWARD; i++)
            (*kinds)[graph_writes(graph, action)[i]] = kind == ACTION_LOAD ? HOLDS_DATA : HOLDS_ACTIVATION;
    }
    for (size_t n = 0; n < program->network->layer_count; n++) /* that other stages made, too */
        if (program->outputs[n] != GRAPH_NONE && program->network->layers[n].node.input_count)
            (*kinds)[program->outputs[n]] = HOLDS_ACTIVATION;
    for (size_t p = 0; p < program->network->parameter_count; p++)
        if (program->gradients[p] != GRAPH_NONE)
            (*kinds)[program->gradients[p]] = HOLDS_WEIGHT_GRADIENT;
    return REMAT_OK;
}

uint8_t trainer_range_kind(const uint8_t *kinds, const live_range *range)
{
    return range->tensor == GRAPH_NONE ? HOLDS_WORKSPACE : kinds[range->tensor];
}

remat_status trainer_find_peak(remat_trainer *trainer)
{
    const graph_liveness *liveness = &trainer->plan->liveness;
    uint8_t *kinds;
    REMAT_TRY(trainer_find_kinds(trainer, &kinds));
    memset(trainer->peak, 0, sizeof trainer->peak);
    for (size_t i = 0; i < liveness->range_count; i++) {
        const live_range *range = &liveness->ranges[i];
        if (live_range_counts_from(range) <= liveness->peak_position && liveness->peak_position < range->ends)
            trainer->peak[trainer_range_kind(kinds, range)] += range->bytes;
    }
    remat_release(trainer->context, kinds, trainer->program->graph->tensor_count, sizeof *kinds);
    return REMAT_OK;
}
