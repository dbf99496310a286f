/* The work of an action, for timings: its arithmetic, and the bytes of tensors and parameters that it reads and
 * writes. */
#include "train/executor_object.h"

/* Parameters: a forward reads all of them, an input gradient the first, because none needs a bias. Gradients that live over
 * several runs are no tensors of the graph: they are added to. */
static uint64_t parameter_bytes(const remat_program *program, uint32_t action)
{
    const program_binding bound = program_binding_of(program, action), *binding = &bound;
    const network_layer *layer = &program->network->layers[binding->layer];
    bool makes_input_gradient = binding->kind == ACTION_INPUT_GRADIENT && !layer->node.passes_gradient;
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < layer->node.parameter_count; p++) {
        bool read = binding->kind == ACTION_FORWARD || (makes_input_gradient && p == 0);
        bool added = binding->gradients[p] == GRAPH_NONE && binding->accumulate_gradients >> p & 1u;
        const network_parameter *parameter = &program->network->parameters[layer->parameters[p]];
        bytes += read ? parameter->bytes : 0;
        bytes += added ? 2 * dtype_bytes(layer_gradient_dtype(&parameter->about), parameter->values) : 0;
    }
    return bytes;
}

/* Tensors read once, written once, updated twice. */
static uint64_t tensor_bytes(const remat_graph *graph, const graph_action *action)
{
    const uint32_t *links = graph_reads(graph, action);
    size_t updated = action->read_count, written = graph_need_count(action);
    uint64_t bytes = graph_placed_bytes(action->workspace_bytes);
    for (size_t i = 0; i < written + action->write_count; i++)
        bytes += graph_placed_bytes(graph->tensors[links[i]].bytes) * (i < updated || i >= written ? 1 : 2);
    return bytes;
}

layer_work executor_find_work(const remat_executor *executor, uint32_t number, const layer_call *call)
{
    static const layer_pass passes[] = {[ACTION_FORWARD] = LAYER_FORWARD,
                                        [ACTION_WEIGHT_GRADIENT] = LAYER_WEIGHT_GRADIENT,
                                        [ACTION_INPUT_GRADIENT] = LAYER_INPUT_GRADIENT};
    const remat_program *program = executor->options.program;
    const program_binding bound = program_binding_of(program, number), *binding = &bound;
    const layer_node *node = &program->network->layers[binding->layer].node;
    uint32_t output = binding->output;
    if (binding->kind == ACTION_LOAD || binding->kind >= ACTION_APPLY)
        return (layer_work){0};
    if (binding->kind == ACTION_FORWARD && node->loss && node->flops[LAYER_FORWARD] == 0)
        return (layer_work){0}; /* its input gradient does everything */
    layer_pass pass = passes[binding->kind];
    layer_work work = {.flops = node->flops[pass],
                       .bytes = tensor_bytes(program->graph, &program->graph->actions[number]) +
                                parameter_bytes(program, number)};
    if (pass == LAYER_FORWARD && output != GRAPH_NONE && !call->output.at)
        work.bytes -=
            graph_placed_bytes(program->graph->tensors[output].bytes); /* nobody reads it, so it is not made */
    work.gemm_flops = node->type->multiplies ? work.flops : 0;
    if (node->type->correct_work)
        node->type->correct_work(node, pass, call, &work);
    return work;
}
