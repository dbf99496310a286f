/* What the arena holds while its peak lasts, by kind: for people who want to know where the bytes go. */
#include <stdbool.h>

#include "base/alloc.h"
#include "train/trainer_object.h"

enum { KIND_GRADIENT, KIND_ACTIVATION, KIND_WEIGHT_GRADIENT, KIND_DATA };

/* By tensor: what it is. Whatever no forward action writes is a gradient. */
static void find_kinds(const remat_program *program, uint8_t *kinds)
{
    const remat_graph *graph = program->graph;
    for (size_t a = 0; a < graph->backward_begin; a++) {
        const graph_action *action = &graph->actions[a];
        for (size_t i = 0; i < action->write_count; i++)
            kinds[graph_writes(graph, action)[i]] = action->kind == GRAPH_LOAD ? KIND_DATA : KIND_ACTIVATION;
    }
    for (size_t p = 0; p < program->network->parameter_count; p++)
        if (program->gradients[p] != GRAPH_NONE)
            kinds[program->gradients[p]] = KIND_WEIGHT_GRADIENT;
}

/* At the position of the peak a buffer may pass from one tensor to the next: it counts as the new one's. */
static bool is_passed_on(const graph_lives *lives, const graph_life *life)
{
    for (const graph_life *next = life + 1; next < lives->lives + lives->life_count; next++) {
        if (next->born > lives->peak_position)
            return false;
        if (next->buffer == life->buffer)
            return true;
    }
    return false;
}

remat_status trainer_find_peak(remat_trainer *trainer)
{
    const remat_graph *graph = trainer->program->graph;
    const graph_lives *lives = &trainer->plan->lives;
    uint8_t *kinds = remat_alloc_zeroed(trainer->context, graph->tensor_count, sizeof *kinds);
    if (!kinds)
        return REMAT_NO_MEMORY;
    find_kinds(trainer->program, kinds);
    trainer_peak *peak = &trainer->peak;
    *peak = (trainer_peak){0};
    for (size_t i = 0; i < lives->life_count; i++) {
        const graph_life *life = &lives->lives[i];
        if (life->born > lives->peak_position)
            break;
        if (life->ends <= lives->peak_position || is_passed_on(lives, life))
            continue;
        uint64_t bytes = lives->buffers[life->buffer].bytes;
        if (life->tensor == GRAPH_NONE)
            peak->workspace += bytes;
        else if (kinds[life->tensor] == KIND_ACTIVATION)
            peak->activations += bytes;
        else if (kinds[life->tensor] == KIND_WEIGHT_GRADIENT)
            peak->weight_gradients += bytes;
        else if (kinds[life->tensor] == KIND_DATA)
            peak->data += bytes;
        else
            peak->gradients += bytes;
    }
    remat_release(trainer->context, kinds, graph->tensor_count, sizeof *kinds);
    return REMAT_OK;
}
