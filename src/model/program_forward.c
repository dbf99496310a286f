#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "model/program_builder.h"

void builder_release(builder *b)
{
    size_t layers = b->network->layer_count;
    remat_release(b->context, b->stage_outputs, layers, sizeof *b->stage_outputs);
    remat_release(b->context, b->stage_weights, b->network->parameter_count, sizeof *b->stage_weights);
    remat_release(b->context, b->saved, layers * LAYER_MAX_SAVED, sizeof *b->saved);
    remat_release(b->context, b->wanted, layers, sizeof *b->wanted);
    remat_release(b->context, b->gradient, b->activation_count, sizeof *b->gradient);
    remat_release(b->context, b->differentiable, b->activation_count, sizeof *b->differentiable);
    remat_release(b->context, b->sharers, b->sharer_capacity, sizeof *b->sharers);
}

/* The name of a layer serves as it is. */
static remat_status add_name(builder *b, const char *owner, const char *what, const char **name)
{
    *name = *what ? text_pool_join(&b->program->names, (const char *const[]){owner, what, NULL}) : owner;
    return *name ? REMAT_OK : REMAT_NO_MEMORY;
}

remat_status builder_add_tensor(builder *b, const char *owner, const char *what, tensor_size size, uint32_t *number)
{
    graph_tensor tensor = {.bytes = dtype_bytes(size.dtype, size.count), .dtype = size.dtype};
    REMAT_TRY(add_name(b, owner, what, &tensor.name));
    *number = (uint32_t)b->program->graph->tensor_count;
    return graph_add_tensor(b->program->graph, &tensor);
}

void link_list_add(link_list *list, uint32_t tensor)
{
    if (tensor == GRAPH_NONE)
        return;
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == tensor)
            return;
    list->items[list->count++] = tensor;
}

action_draft action_draft_start(action_kind kind, size_t layer)
{
    action_draft draft;
    memset(&draft, 0, sizeof draft);
    /* Every tensor of the binding starts as GRAPH_NONE, which is all ones. */
    memset(&draft.binding, 0xff, sizeof draft.binding);
    draft.binding.accumulate_inputs = draft.binding.accumulate_gradients = 0;
    draft.binding.kind = kind;
    draft.binding.layer = (uint32_t)layer;
    draft.action.once = kind != ACTION_FORWARD;
    draft.action.in_place_from = draft.action.in_place_to = GRAPH_NONE;
    return draft;
}

static uint64_t link_bytes(const remat_graph *graph, const link_list *list)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < list->count; i++)
        bytes += graph_placed_bytes(graph->tensors[list->items[i]].bytes);
    return bytes;
}

remat_status builder_add_action(builder *b, action_draft *draft)
{
    static const char *const suffixes[] = {".load", "",     ".weight_gradient", ".input_gradient", ".apply", ".receive",
                                           ".send", ".turn"};
    remat_program *program = b->program;
    remat_graph *graph = program->graph;
    const layer_node *node = &b->network->layers[draft->binding.layer].node;
    bool is_forward = draft->binding.kind == ACTION_FORWARD;
    REMAT_TRY(builder_add_binding(b, &draft->binding));
    if (program->apply != PROGRAM_FORWARD_ONLY) {
        REMAT_TRY(remat_grow(b->context, (void **)&program->hints, &program->hint_capacity, graph->action_count + 1,
                             sizeof *program->hints));
        program->hints[graph->action_count] =
            (graph_hint){node->type->hint, is_forward ? node->flops[LAYER_FORWARD] : 0};
    }
    if (is_forward || draft->binding.kind == ACTION_LOAD)
        program->forwards[draft->binding.layer] = (uint32_t)graph->action_count;
    REMAT_TRY(add_name(b, node->name, suffixes[draft->binding.kind], &draft->action.name));
    uint64_t bytes = link_bytes(graph, &draft->reads) + link_bytes(graph, &draft->writes) +
                     2 * link_bytes(graph, &draft->updates) + draft->action.workspace_bytes;
    if (draft->binding.kind != ACTION_LOAD)
        draft->action.cost = program_modelled_cost(&program->speed, draft->flops, bytes);
    const graph_links links = {draft->reads.items, draft->updates.items, draft->writes.items,
                               draft->reads.count, draft->updates.count, draft->writes.count};
    return graph_add_action(graph, &draft->action, &links);
}

tensor_size builder_output_size(const layer_node *node)
{
    return (tensor_size){node->dtype, layer_values(node->output) * node->batch};
}

uint32_t program_input_tensor(const remat_program *program, uint32_t input)
{
    return input == NETWORK_LABELS ? program->labels : program->outputs[input];
}

static remat_status add_load(builder *b, size_t layer, const char *what, tensor_size size, uint32_t *tensor)
{
    action_draft draft = action_draft_start(ACTION_LOAD, layer);
    REMAT_TRY(builder_add_tensor(b, b->network->layers[layer].node.name, what, size, tensor));
    draft.binding.output = *tensor;
    link_list_add(&draft.writes, *tensor);
    return builder_add_action(b, &draft);
}

static bool is_input(const layer_node *node)
{
    return node->input_count == 0;
}

static remat_status add_loads(builder *b)
{
    for (size_t n = 0; n < b->network->layer_count; n++)
        if (is_input(&b->network->layers[n].node) && (!b->stage || b->stage_outputs[n].lowest != NETWORK_NONE))
            REMAT_TRY(add_load(b, n, "", builder_output_size(&b->network->layers[n].node), &b->program->outputs[n]));
    if (!b->network->has_labels || (b->stage && !builder_reads_labels(b)))
        return REMAT_OK;
    const tensor_size size = {b->network->labels_dtype, layer_values(b->network->labels) * b->network->batch};
    return add_load(b, b->network->layer_count - 1, ".labels", size, &b->program->labels);
}

static remat_status add_outputs(builder *b, size_t n, action_draft *draft)
{
    const layer_node *node = &b->network->layers[n].node;
    if (!node->loss) {
        REMAT_TRY(builder_add_tensor(b, node->name, "", builder_output_size(node), &b->program->outputs[n]));
        link_list_add(&draft->writes, b->program->outputs[n]);
    }
    draft->binding.output = b->program->outputs[n];
    for (uint32_t s = 0; s < node->saved_count; s++) {
        char what[64];
        snprintf(what, sizeof what, ".%.38s", node->saved[s].name);
        REMAT_TRY(builder_add_tensor(b, node->name, what, (tensor_size){node->saved[s].dtype, node->saved[s].count},
                                     &b->saved[n * LAYER_MAX_SAVED + s]));
        draft->binding.saved[s] = b->saved[n * LAYER_MAX_SAVED + s];
        link_list_add(&draft->writes, draft->binding.saved[s]);
    }
    return REMAT_OK;
}

static remat_status add_layer(builder *b, size_t n)
{
    const network_layer *layer = &b->network->layers[n];
    const layer_node *node = &layer->node;
    remat_program *program = b->program;
    if (node->view) {
        program->outputs[n] = program->outputs[layer->inputs[0]];
        return REMAT_OK;
    }
    if (n < b->first || n >= b->end)
        return REMAT_OK;
    action_draft draft = action_draft_start(ACTION_FORWARD, n);
    for (uint32_t i = 0; i < node->input_count; i++) {
        draft.binding.inputs[i] = program_input_tensor(program, layer->inputs[i]);
        link_list_add(&draft.reads, draft.binding.inputs[i]);
    }
    REMAT_TRY(add_outputs(b, n, &draft));
    /* A loss without forward flops computes its loss in the backward pass; its forward is for evaluation. */
    bool idle = node->loss && node->flops[LAYER_FORWARD] == 0 && program->apply != PROGRAM_FORWARD_ONLY;
    draft.action.workspace_bytes = idle ? 0 : layer_workspace(node, LAYER_FORWARD, false);
    draft.flops = node->flops[LAYER_FORWARD];
    if (node->forward_in_place && !node->loss) {
        draft.action.in_place_from = draft.binding.inputs[0];
        draft.action.in_place_to = draft.binding.output;
    }
    return builder_add_action(b, &draft);
}

remat_status builder_add_forward(builder *b)
{
    size_t layers = b->network->layer_count;
    b->saved = remat_alloc(b->context, layers * LAYER_MAX_SAVED, sizeof *b->saved);
    b->wanted = remat_alloc_zeroed(b->context, layers, sizeof *b->wanted);
    if (!b->saved || !b->wanted)
        return REMAT_NO_MEMORY;
    memset(b->saved, 0xff, layers * LAYER_MAX_SAVED * sizeof *b->saved);
    REMAT_TRY(add_loads(b));
    REMAT_TRY(builder_add_receives(b));
    for (size_t n = 0; n < layers; n++)
        if (!is_input(&b->network->layers[n].node))
            REMAT_TRY(add_layer(b, n));
    return b->program->apply == PROGRAM_FORWARD_ONLY ? builder_add_turn(b) : REMAT_OK;
}

/* Outputs that nobody reads are the results: they live to the end. In an evaluation so does what a loss reads. */
remat_status builder_add_results(builder *b)
{
    const remat_network *network = b->network;
    bool *read = remat_alloc_zeroed(b->context, network->layer_count, sizeof *read);
    if (!read)
        return REMAT_NO_MEMORY;
    bool evaluates = network->options.purpose == NETWORK_EVALUATION;
    for (size_t n = 0; n < network->layer_count; n++)
        for (uint32_t i = 0; i < network->layers[n].node.input_count; i++)
            if (network->layers[n].inputs[i] != NETWORK_LABELS)
                read[network->layers[n].inputs[i]] = !evaluates || !network->layers[n].node.loss;
    remat_status status = REMAT_OK;
    remat_graph *graph = b->program->graph;
    for (size_t n = 0; status == REMAT_OK && n < network->layer_count && graph->result_count < LAYER_MAX_INPUTS; n++)
        if (!read[n] && b->program->outputs[n] != GRAPH_NONE)
            status = graph_add_result(graph, b->program->outputs[n]);
    remat_release(b->context, read, network->layer_count, sizeof *read);
    return status;
}
