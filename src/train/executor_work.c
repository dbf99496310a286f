/* The work of an action, for timings: its arithmetic, and the bytes of tensors and parameters that it reads and
 * writes. */
#include "train/executor_object.h"

/* Parameters: a forward reads all of them, an input gradient the first, because none needs a bias. Gradients that live over
 * several runs are no tensors of the graph: they are added to. */
static uint64_t parameter_bytes(const remat_program *program, uint32_t action)
{
    const program_binding *binding = &program->bindings[action];
    graph_kind kind = program->graph->actions[action].kind;
    const network_layer *layer = &program->network->layers[program->graph->actions[action].layer];
    bool makes_input_gradient = kind == GRAPH_DERIVATIVE && !layer->node.passes_gradient;
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < layer->node.parameter_count; p++) {
        bool read = kind == GRAPH_FORWARD || (makes_input_gradient && p == 0);
        bool added = binding->gradients[p] == GRAPH_NONE && binding->accumulate_gradients >> p & 1u;
        bytes += (uint64_t)(read + 2 * added) * program->network->parameters[layer->parameters[p]].bytes;
    }
    return bytes;
}

/* Tensors read once, written once, updated twice. */
static uint64_t tensor_bytes(const remat_graph *graph, const graph_action *action)
{
    const uint32_t *links = graph_reads(graph, action);
    size_t once = (size_t)action->read_count + action->write_count;
    uint64_t bytes = action->workspace_bytes;
    for (size_t i = 0; i < once + action->update_count; i++)
        bytes += graph->tensors[links[i]].bytes * (i < once ? 1 : 2);
    return bytes;
}

layer_work executor_find_work(const remat_executor *executor, uint32_t number, const layer_call *call)
{
    static const layer_pass passes[] = {[GRAPH_FORWARD] = LAYER_FORWARD,
                                        [GRAPH_GRADIENT] = LAYER_WEIGHT_GRADIENT,
                                        [GRAPH_DERIVATIVE] = LAYER_INPUT_GRADIENT};
    const remat_program *program = executor->options.program;
    const graph_action *action = &program->graph->actions[number];
    const layer_node *node = &program->network->layers[action->layer].node;
    uint32_t output = program->bindings[number].output;
    if (action->kind == GRAPH_LOAD || action->kind == GRAPH_FINISH || action->kind == GRAPH_APPLY)
        return (layer_work){0};
    if (action->kind == GRAPH_FORWARD && node->loss && node->flops[LAYER_FORWARD] == 0)
        return (layer_work){0}; /* its input gradient does everything */
    layer_pass pass = passes[action->kind];
    layer_work work = {.flops = node->flops[pass],
                       .bytes = tensor_bytes(program->graph, action) + parameter_bytes(program, number)};
    if (pass == LAYER_FORWARD && output != GRAPH_NONE && !call->output.at)
        work.bytes -= program->graph->tensors[output].bytes; /* nobody reads it, so it is not made */
    work.gemm_flops = node->type->multiplies ? work.flops : 0;
    if (node->type->correct_work)
        node->type->correct_work(node, pass, call, &work);
    return work;
}
