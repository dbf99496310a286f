/* A program whose weights are not all there: those of a layer are fetched for each of its passes and dropped after it. They are in
 * the workspace of the action, behind the layer's own, so every plan counts them. */
#include "base/checked.h"
#include "base/error.h"
#include "model/program.h"

/* The pass that makes the gradient of the weights reads none (layers/layer.h), and a sum passes its gradient on. Running
 * statistics are always there. */
bool program_reads(const remat_program *program, uint32_t action, uint32_t number)
{
    const program_action *about = &program->actions[action];
    const layer_node *node = &program->network->layers[about->layer].node;
    const bool idle = node->loss && node->flops[LAYER_FORWARD] == 0 && program->apply != PROGRAM_FORWARD_ONLY;
    if (node->parameters[number].statistic)
        return false;
    return (about->kind == ACTION_FORWARD && !idle) || (about->kind == ACTION_INPUT_GRADIENT && !node->passes_gradient);
}

bool program_fetches(const remat_program *program, uint32_t action, uint32_t number)
{
    return program->fetches && program_reads(program, action, number);
}

uint64_t program_fetched_bytes(const remat_program *program, uint32_t action)
{
    const network_layer *layer = &program->network->layers[program->actions[action].layer];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < layer->node.parameter_count; i++)
        if (program_fetches(program, action, i))
            bytes += (program->network->parameters[layer->parameters[i]].bytes + 63) & ~(uint64_t)63;
    return bytes;
}

remat_status program_fetch_weights(remat_program *program)
{
    program->fetches = true;
    for (uint32_t a = 0; a < program->graph->action_count; a++) {
        graph_action *action = &program->graph->actions[a];
        const uint64_t bytes = program_fetched_bytes(program, a);
        if (bytes == 0)
            continue;
        action->workspace_bytes = (action->workspace_bytes + 63) & ~(uint64_t)63;
        if (!remat_add(&action->workspace_bytes, bytes))
            return remat_fail(program->context, REMAT_INVALID, NULL, "the weights of a layer are too large");
        action->cost = remat_add_saturated(action->cost, program_modelled_cost(&program->speed, 0, bytes));
    }
    return REMAT_OK;
}
