#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "model/program_builder.h"

static remat_status find_wanted(builder *b)
{
    const remat_network *network = b->network;
    b->activation_count = b->program->graph->tensor_count;
    b->gradient = remat_alloc(b->context, b->activation_count, sizeof *b->gradient);
    b->differentiable = remat_alloc_zeroed(b->context, b->activation_count, sizeof *b->differentiable);
    if (!b->gradient || !b->differentiable)
        return REMAT_NO_MEMORY;
    memset(b->gradient, 0xff, b->activation_count * sizeof *b->gradient);
    network_find_wanted(network, b->wanted);
    for (size_t n = 0; n < network->layer_count; n++)
        if (b->wanted[n] && b->program->outputs[n] != GRAPH_NONE)
            b->differentiable[b->program->outputs[n]] = true;
    return REMAT_OK;
}

remat_status builder_new_gradient(builder *b, uint32_t producer, uint32_t *number)
{
    const layer_node *node = &b->network->layers[producer].node;
    REMAT_TRY(builder_add_tensor(b, node->name, ".gradient", builder_output_size(node), number));
    size_t before = b->sharer_capacity;
    REMAT_TRY(remat_grow(b->context, (void **)&b->sharers, &b->sharer_capacity, *number + 1, sizeof *b->sharers));
    memset(b->sharers + before, 0, (b->sharer_capacity - before) * sizeof *b->sharers);
    b->sharers[*number] = 1;
    return REMAT_OK;
}

/* Says where the gradient of input i goes: a new tensor, a sum that exists, or a copy of one that is shared. */
static remat_status place_gradient(builder *b, const network_layer *layer, uint32_t i, action_draft *draft)
{
    uint32_t tensor = program_input_tensor(b->program, layer->inputs[i]);
    if (layer->inputs[i] == NETWORK_LABELS || !b->differentiable[tensor])
        return REMAT_OK;
    uint32_t *gradient = &b->gradient[tensor];
    uint32_t before = *gradient;
    if (before == GRAPH_NONE) {
        REMAT_TRY(builder_new_gradient(b, layer->inputs[i], gradient));
        link_list_add(&draft->writes, *gradient);
    } else {
        draft->binding.accumulate_inputs |= 1u << i;
        if (b->sharers[before] > 1) {
            b->sharers[before]--;
            REMAT_TRY(builder_new_gradient(b, layer->inputs[i], gradient));
            draft->binding.copied[i] = before;
            link_list_add(&draft->reads, before);
            link_list_add(&draft->writes, *gradient);
        } else {
            bool written_here = false; /* the same tensor twice among the inputs */
            for (size_t w = 0; w < draft->writes.count; w++)
                written_here |= draft->writes.items[w] == before;
            if (!written_here)
                link_list_add(&draft->updates, before);
        }
    }
    draft->binding.d_inputs[i] = *gradient;
    return REMAT_OK;
}

static void add_needs(builder *b, size_t n, uint32_t needs, uint32_t d_output, action_draft *draft)
{
    const network_layer *layer = &b->network->layers[n];
    for (uint32_t i = 0; i < layer->node.input_count; i++)
        if (needs & LAYER_NEEDS_INPUT(i)) {
            draft->binding.inputs[i] = program_input_tensor(b->program, layer->inputs[i]);
            link_list_add(&draft->reads, draft->binding.inputs[i]);
        }
    if (needs & LAYER_NEEDS_OUTPUT) {
        draft->binding.output = b->program->outputs[n];
        link_list_add(&draft->reads, draft->binding.output);
    }
    for (uint32_t s = 0; s < layer->node.saved_count && (needs & LAYER_NEEDS_SAVED); s++) {
        draft->binding.saved[s] = b->saved[n * LAYER_MAX_SAVED + s];
        link_list_add(&draft->reads, draft->binding.saved[s]);
    }
    draft->binding.d_output = d_output;
    link_list_add(&draft->reads, d_output);
}

/* The gradients of the layer's parameters: written by the first layer that has the parameter, added to by others. */
static remat_status place_parameter_gradients(builder *b, const network_layer *layer, uint32_t d_output,
                                              action_draft *draft)
{
    remat_program *program = b->program;
    for (uint32_t p = 0; p < layer->node.parameter_count; p++) {
        if (!layer_parameter_is_trained(&layer->node.parameters[p]))
            continue;
        uint32_t number = layer->parameters[p];
        REMAT_TRY(builder_receive_weight_gradient(b, number, d_output));
        if (program->gradients[number] == GRAPH_NONE) {
            const network_parameter *parameter = &b->network->parameters[number];
            REMAT_TRY(builder_add_tensor(b, parameter->name, ".gradient",
                                         (tensor_size){layer_gradient_dtype(&parameter->about), parameter->values},
                                         &program->gradients[number]));
            link_list_add(&draft->writes, program->gradients[number]);
        } else {
            draft->binding.accumulate_gradients |= 1u << p;
            link_list_add(&draft->updates, program->gradients[number]);
        }
        draft->binding.gradients[p] = program->gradients[number];
    }
    return REMAT_OK;
}

static remat_status add_weight_gradient(builder *b, size_t n, uint32_t d_output)
{
    const network_layer *layer = &b->network->layers[n];
    action_draft draft = action_draft_start(ACTION_WEIGHT_GRADIENT, n);
    add_needs(b, n, layer->node.needs[LAYER_WEIGHT_GRADIENT], d_output, &draft);
    REMAT_TRY(place_parameter_gradients(b, layer, d_output, &draft));
    draft.action.workspace_bytes = layer_workspace(&layer->node, LAYER_WEIGHT_GRADIENT, false);
    draft.flops = layer->node.flops[LAYER_WEIGHT_GRADIENT];
    return builder_add_action(b, &draft);
}

/* What the derivative of the joined activation reads. Its output gets no gradient, and so the activation has no backward pass. */
static void add_joined_needs(builder *b, const network_layer *layer, action_draft *draft)
{
    const network_layer *joined = &b->network->layers[layer->joined];
    draft->binding.inputs[0] = activation_reads_output(layer->node.joined)
                                   ? b->program->outputs[layer->joined]
                                   : program_input_tensor(b->program, joined->inputs[0]);
    link_list_add(&draft->reads, draft->binding.inputs[0]);
}

static remat_status add_input_gradient(builder *b, size_t n, uint32_t d_output)
{
    const network_layer *layer = &b->network->layers[n];
    const layer_node *node = &layer->node;
    const network_layer *joined = layer->joined == NETWORK_NONE ? NULL : &b->network->layers[layer->joined];
    action_draft draft = action_draft_start(ACTION_INPUT_GRADIENT, n);
    add_needs(b, n, node->needs[LAYER_INPUT_GRADIENT], d_output, &draft);
    if (joined)
        add_joined_needs(b, layer, &draft);
    bool makes_gradients = !node->type->weight_gradient && network_layer_is_trained(node);
    if (makes_gradients)
        REMAT_TRY(place_parameter_gradients(b, layer, d_output, &draft));
    for (uint32_t i = 0; i < node->input_count; i++)
        REMAT_TRY(place_gradient(b, joined ? joined : layer, i, &draft));
    bool wanted = makes_gradients || node->loss;
    for (uint32_t i = 0; i < node->input_count; i++)
        wanted |= draft.binding.d_inputs[i] != GRAPH_NONE;
    if (!wanted)
        return REMAT_OK;
    if (node->input_gradient_in_place && draft.binding.d_inputs[0] != GRAPH_NONE &&
        !(draft.binding.accumulate_inputs & 1u)) {
        draft.action.in_place_from = node->loss ? draft.binding.inputs[0] : d_output;
        draft.action.in_place_to = draft.binding.d_inputs[0];
    }
    draft.action.workspace_bytes = layer_workspace(node, LAYER_INPUT_GRADIENT, draft.binding.accumulate_inputs != 0);
    draft.flops = node->flops[LAYER_INPUT_GRADIENT] + (joined ? joined->node.flops[LAYER_INPUT_GRADIENT] : 0);
    return builder_add_action(b, &draft);
}

/* A sum: its inputs share the gradient of its output; where one of them has a gradient already, it is added there. */
static remat_status pass_gradient(builder *b, size_t n, uint32_t d_output)
{
    const network_layer *layer = &b->network->layers[n];
    action_draft draft = action_draft_start(ACTION_INPUT_GRADIENT, n);
    for (uint32_t i = 0; i < layer->node.input_count; i++) {
        uint32_t tensor = program_input_tensor(b->program, layer->inputs[i]);
        if (!b->differentiable[tensor])
            continue;
        if (b->gradient[tensor] == GRAPH_NONE) {
            b->gradient[tensor] = d_output;
            b->sharers[d_output]++;
        } else {
            REMAT_TRY(place_gradient(b, layer, i, &draft));
        }
    }
    if (!draft.binding.accumulate_inputs)
        return REMAT_OK; /* nothing to do but to share */
    draft.action.workspace_bytes = layer_workspace(&layer->node, LAYER_INPUT_GRADIENT, false);
    draft.binding.d_output = d_output;
    link_list_add(&draft.reads, d_output);
    return builder_add_action(b, &draft);
}

/* Finds for each parameter the layer whose backward comes last: its apply step changes the parameter. */
static void find_applied(builder *b)
{
    const remat_network *network = b->network;
    for (size_t n = network->layer_count; n-- > 0;)
        for (uint32_t p = 0; p < network->layers[n].node.parameter_count; p++)
            if (layer_parameter_is_trained(&network->layers[n].node.parameters[p]))
                b->program->applied[network->layers[n].parameters[p]] =
                    n >= b->first && n < b->end ? (uint32_t)n : NETWORK_NONE;
}

static remat_status add_apply(builder *b, size_t n)
{
    remat_program *program = b->program;
    action_draft draft = action_draft_start(ACTION_APPLY, n);
    uint64_t values = 0;
    for (uint32_t p = 0; p < b->network->layers[n].node.parameter_count; p++) {
        uint32_t number = b->network->layers[n].parameters[p];
        if (program->applied[number] != n || program->gradients[number] == GRAPH_NONE)
            continue;
        draft.binding.gradients[p] = program->gradients[number];
        link_list_add(&draft.reads, program->gradients[number]);
        values += b->network->parameters[number].values;
    }
    /* Weight and moments move through memory as well, or the sum. */
    draft.flops = values * (program->apply == PROGRAM_ADD_AT_ONCE ? 80 : 10 * 25);
    return draft.reads.count ? builder_add_action(b, &draft) : REMAT_OK;
}

static remat_status add_backward_of(builder *b, size_t n)
{
    const layer_node *node = &b->network->layers[n].node;
    uint32_t output = b->program->outputs[n];
    uint32_t d_output = node->loss ? GRAPH_NONE : b->gradient[output];
    if (!node->loss && d_output == GRAPH_NONE)
        return REMAT_OK; /* the loss does not depend on it */
    if (node->type->weight_gradient && network_layer_is_trained(node))
        REMAT_TRY(add_weight_gradient(b, n, d_output));
    if (node->passes_gradient)
        REMAT_TRY(pass_gradient(b, n, d_output));
    else if (node->type->input_gradient)
        REMAT_TRY(add_input_gradient(b, n, d_output));
    if (d_output != GRAPH_NONE)
        b->sharers[d_output]--;
    const bool at_once = b->program->apply == PROGRAM_APPLY_AT_ONCE || b->program->apply == PROGRAM_ADD_AT_ONCE;
    return at_once ? add_apply(b, n) : REMAT_OK;
}

remat_status builder_add_backward(builder *b)
{
    REMAT_TRY(find_wanted(b));
    find_applied(b);
    size_t layers = b->network->layer_count;
    REMAT_TRY(builder_add_turn(b));
    for (uint32_t n = b->end; n-- > b->first;) {
        if (b->network->layers[n].node.input_count && !b->network->layers[n].node.view && b->wanted[n])
            REMAT_TRY(add_backward_of(b, n));
        REMAT_TRY(builder_add_sends(b, n));
    }
    if (b->program->apply == PROGRAM_APPLY_AT_END)
        for (size_t n = layers; n-- > 0;)
            REMAT_TRY(add_apply(b, n));
    return REMAT_OK;
}
