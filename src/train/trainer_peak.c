/* What the arena holds, by kind: over time for reports, and at the peak for the table of where the bytes go. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "train/trainer_object.h"

/* By tensor: what it is. Whatever no forward action writes is a gradient. */
static void find_kinds(const remat_program *program, uint8_t *kinds)
{
    const remat_graph *graph = program->graph;
    memset(kinds, HOLDS_GRADIENT, graph->tensor_count);
    for (size_t a = 0; a < graph->backward_begin; a++) {
        const graph_action *action = &graph->actions[a];
        for (size_t i = 0; i < action->write_count; i++)
            kinds[graph_writes(graph, action)[i]] = action->kind == GRAPH_LOAD ? HOLDS_DATA : HOLDS_ACTIVATION;
    }
    for (size_t p = 0; p < program->network->parameter_count; p++)
        if (program->gradients[p] != GRAPH_NONE)
            kinds[program->gradients[p]] = HOLDS_WEIGHT_GRADIENT;
}

remat_status trainer_find_holdings(const remat_trainer *trainer, trainer_holding **holdings)
{
    remat_context *context = trainer->context;
    const graph_lives *lives = &trainer->plan->lives;
    size_t tensors = trainer->program->graph->tensor_count;
    uint8_t *kinds = remat_alloc(context, tensors, sizeof *kinds);
    uint64_t *next_born = remat_alloc(context, lives->buffer_count, sizeof *next_born); /* by buffer */
    *holdings = kinds && next_born ? remat_alloc(context, lives->life_count, sizeof **holdings) : NULL;
    if (*holdings) {
        find_kinds(trainer->program, kinds);
        memset(next_born, 0xff, lives->buffer_count * sizeof *next_born);
        for (size_t i = lives->life_count; i-- > 0;) {
            const graph_life *life = &lives->lives[i];
            uint64_t *next = &next_born[life->buffer];
            (*holdings)[i] = (trainer_holding){life->tensor == GRAPH_NONE ? HOLDS_WORKSPACE : kinds[life->tensor],
                                               life->ends < *next ? life->ends : *next};
            *next = life->born;
        }
    }
    remat_release(context, kinds, tensors, sizeof *kinds);
    remat_release(context, next_born, lives->buffer_count, sizeof *next_born);
    return *holdings ? REMAT_OK : REMAT_NO_MEMORY;
}

remat_status trainer_find_peak(remat_trainer *trainer)
{
    const graph_lives *lives = &trainer->plan->lives;
    trainer_holding *holdings;
    REMAT_TRY(trainer_find_holdings(trainer, &holdings));
    memset(trainer->peak, 0, sizeof trainer->peak);
    for (size_t i = 0; i < lives->life_count; i++)
        if (lives->lives[i].born <= lives->peak_position && lives->peak_position < holdings[i].ends)
            trainer->peak[holdings[i].kind] += lives->buffers[lives->lives[i].buffer].bytes;
    remat_release(trainer->context, holdings, lives->life_count, sizeof *holdings);
    return REMAT_OK;
}
