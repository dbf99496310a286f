/* The program of one stage of a pipeline: what it receives and sends. Every stage finds out by itself, from the whole network, so that
 * all of them agree. */
#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include "model/program_builder.h"

/* ---- who reads what ---- */

static uint32_t stage_of(const program_stage *stage, uint32_t layer)
{
    uint32_t s = 0;
    while (s + 1 < stage->count && layer >= stage->starts[s + 1])
        s++;
    return s;
}

/* Notes that a layer of some stage reads a tensor, or has a parameter. */
static void note_use(const builder *b, uint32_t layer, uint32_t *lowest, uint32_t *from, uint32_t *next)
{
    const uint32_t here = b->stage->number, at = stage_of(b->stage, layer);
    if (at == here && *lowest == NETWORK_NONE)
        *lowest = layer;
    if (at > here && at < *next)
        *next = at;
    if (at < here && (*from == NETWORK_NONE || at > *from))
        *from = at;
}

static void find_uses(builder *b)
{
    const remat_network *network = b->network;
    for (uint32_t n = 0; n < network->layer_count; n++) {
        const network_layer *layer = &network->layers[n];
        stage_output *output = &b->stage_outputs[n];
        *output = (stage_output){n, NETWORK_NONE, NETWORK_NONE, NETWORK_NONE, false};
        if (layer->node.view) {
            output->base = b->stage_outputs[layer->inputs[0]].base;
            continue;
        }
        if (stage_of(b->stage, n) < b->stage->number)
            output->from = stage_of(b->stage, n);
        for (uint32_t i = 0; i < layer->node.input_count; i++) {
            if (layer->inputs[i] == NETWORK_LABELS)
                continue;
            stage_output *read = &b->stage_outputs[b->stage_outputs[layer->inputs[i]].base];
            note_use(b, n, &read->lowest, &read->from, &read->next);
        }
        for (uint32_t i = 0; i < layer->node.parameter_count; i++) {
            stage_weight *weight = &b->stage_weights[layer->parameters[i]];
            if (layer_parameter_is_trained(&layer->node.parameters[i]))
                note_use(b, n, &weight->lowest, &weight->from, &weight->next);
        }
    }
}

/* What the backward pass of the stages behind this one leaves. It follows add_backward_of, without making anything. */
static void find_flow(builder *b, const bool *wanted)
{
    const remat_network *network = b->network;
    for (uint32_t n = (uint32_t)network->layer_count; n-- > b->end;) {
        const network_layer *layer = &network->layers[n];
        const layer_node *node = &layer->node;
        if (node->input_count == 0 || node->view || !wanted[n] || (!node->loss && !b->stage_outputs[n].flows_back))
            continue;
        const bool passes = node->passes_gradient || node->type->input_gradient;
        for (uint32_t i = 0; i < node->input_count && passes; i++)
            if (layer->inputs[i] != NETWORK_LABELS && wanted[b->stage_outputs[layer->inputs[i]].base])
                b->stage_outputs[b->stage_outputs[layer->inputs[i]].base].flows_back = true;
        for (uint32_t i = 0; i < node->parameter_count; i++)
            if (layer_parameter_is_trained(&node->parameters[i]) &&
                (node->type->weight_gradient || node->type->input_gradient))
                b->stage_weights[layer->parameters[i]].flows_back = true;
    }
}

remat_status builder_find_stage(builder *b, const program_stage *stage)
{
    const remat_network *network = b->network;
    b->stage = stage;
    b->first = stage->starts[stage->number];
    b->end = stage->starts[stage->number + 1];
    b->stage_outputs = remat_alloc(b->context, network->layer_count, sizeof *b->stage_outputs);
    b->stage_weights = remat_alloc(b->context, network->parameter_count, sizeof *b->stage_weights);
    bool *wanted = remat_alloc(b->context, network->layer_count, sizeof *wanted);
    remat_status status = b->stage_outputs && b->stage_weights && wanted ? REMAT_OK : REMAT_NO_MEMORY;
    if (status == REMAT_OK) {
        for (size_t p = 0; p < network->parameter_count; p++)
            b->stage_weights[p] = (stage_weight){NETWORK_NONE, NETWORK_NONE, NETWORK_NONE, false};
        find_uses(b);
        network_find_wanted(network, wanted);
        find_flow(b, wanted);
    }
    remat_release(b->context, wanted, network->layer_count, sizeof *wanted);
    return status;
}

bool builder_reads_labels(const builder *b)
{
    for (uint32_t n = b->first; n < b->end; n++)
        for (uint32_t i = 0; i < b->network->layers[n].node.input_count; i++)
            if (b->network->layers[n].inputs[i] == NETWORK_LABELS)
                return true;
    return false;
}

/* ---- transfers ---- */

static bool comes_from_data(const builder *b, uint32_t layer)
{
    return b->network->layers[layer].node.input_count == 0;
}

/* Outputs of earlier stages that this one reads; outputs that this stage has and a later one reads. */
static bool is_received(const builder *b, uint32_t n)
{
    const stage_output *output = &b->stage_outputs[n];
    return output->base == n && !comes_from_data(b, n) && n < b->first && output->lowest != NETWORK_NONE;
}

static bool is_sent(const builder *b, uint32_t n)
{
    const stage_output *output = &b->stage_outputs[n];
    return output->base == n && !comes_from_data(b, n) && output->next != NETWORK_NONE &&
           ((n >= b->first && n < b->end) || is_received(b, n));
}

/* Numbers of outputs, of their gradients, and of the gradients of weights. */
static uint32_t gradient_tag(const builder *b, uint32_t layer)
{
    return (uint32_t)b->network->layer_count + layer;
}

static uint32_t weight_tag(const builder *b, uint32_t parameter)
{
    return 2 * (uint32_t)b->network->layer_count + parameter;
}

/* A transfer of the next action of the graph. */
static remat_status add_transfer(builder *b, program_transfer transfer)
{
    remat_program *program = b->program;
    const graph_tensor *tensor = &program->graph->tensors[transfer.tensor];
    REMAT_TRY(remat_grow(b->context, (void **)&program->transfers, &program->transfer_capacity,
                         program->transfer_count + 1, sizeof transfer));
    transfer.action = (uint32_t)program->graph->action_count;
    transfer.dtype = tensor->dtype;
    transfer.bytes = tensor->bytes;
    transfer.offset = program->transfer_bytes;
    program->transfers[program->transfer_count++] = transfer;
    if (!remat_add(&program->transfer_bytes, graph_placed_bytes(tensor->bytes)))
        return remat_fail(b->context, REMAT_INVALID, NULL, "what stages send one another is too large");
    return REMAT_OK;
}

static remat_status add_receive(builder *b, uint32_t layer, program_transfer transfer, uint32_t read)
{
    action_draft draft = action_draft_start(ACTION_RECEIVE, layer);
    REMAT_TRY(add_transfer(b, transfer));
    link_list_add(&draft.reads, read);
    link_list_add(&draft.writes, transfer.tensor);
    return builder_add_action(b, &draft);
}

static uint64_t values_of(const layer_node *node)
{
    return builder_output_size(node).count;
}

remat_status builder_add_receives(builder *b)
{
    for (uint32_t n = 0; b->stage && n < b->first; n++) {
        const layer_node *node = &b->network->layers[n].node;
        uint32_t tensor;
        if (!is_received(b, n))
            continue;
        REMAT_TRY(builder_add_tensor(b, node->name, "", builder_output_size(node), &tensor));
        b->program->outputs[n] = tensor;
        REMAT_TRY(add_receive(b, n,
                              (program_transfer){.peer = b->stage_outputs[n].from,
                                                 .tag = n,
                                                 .tensor = tensor,
                                                 .is_forward = true,
                                                 .values = values_of(node)},
                              GRAPH_NONE));
    }
    return REMAT_OK;
}

/* Sends all outputs at once; in a training their gradients come back there. */
remat_status builder_add_turn(builder *b)
{
    remat_program *program = b->program;
    if (!b->stage || b->stage->number + 1 == b->stage->count)
        return REMAT_OK;
    action_draft draft = action_draft_start(ACTION_TURN, b->end - 1);
    for (uint32_t n = 0; n < b->end; n++) {
        if (!is_sent(b, n))
            continue;
        link_list_add(&draft.reads, program->outputs[n]);
        REMAT_TRY(add_transfer(b, (program_transfer){.peer = b->stage_outputs[n].next,
                                                     .tag = n,
                                                     .tensor = program->outputs[n],
                                                     .sends = true,
                                                     .is_forward = true,
                                                     .values = values_of(&b->network->layers[n].node)}));
    }
    for (uint32_t n = 0; n < b->end && program->apply != PROGRAM_FORWARD_ONLY; n++) {
        if (!is_sent(b, n) || !b->stage_outputs[n].flows_back)
            continue;
        uint32_t *gradient = &b->gradient[program->outputs[n]];
        REMAT_TRY(builder_new_gradient(b, n, gradient));
        link_list_add(&draft.writes, *gradient);
        REMAT_TRY(add_transfer(b, (program_transfer){.peer = b->stage_outputs[n].next,
                                                     .tag = gradient_tag(b, n),
                                                     .tensor = *gradient,
                                                     .values = values_of(&b->network->layers[n].node)}));
    }
    program->turn = (uint32_t)program->graph->action_count;
    return builder_add_action(b, &draft);
}

static remat_status add_send(builder *b, uint32_t layer, program_transfer transfer)
{
    action_draft draft = action_draft_start(ACTION_SEND, layer);
    transfer.sends = true;
    REMAT_TRY(add_transfer(b, transfer));
    link_list_add(&draft.reads, transfer.tensor);
    return builder_add_action(b, &draft);
}

/* A gradient is complete behind the first layer of the stage that reads the tensor, or has the parameter. */
remat_status builder_add_sends(builder *b, uint32_t layer)
{
    remat_program *program = b->program;
    for (uint32_t n = 0; b->stage && n < b->first; n++) {
        const uint32_t gradient =
            is_received(b, n) && b->stage_outputs[n].lowest == layer ? b->gradient[program->outputs[n]] : GRAPH_NONE;
        if (gradient == GRAPH_NONE)
            continue;
        REMAT_TRY(add_send(b, n,
                           (program_transfer){.peer = b->stage_outputs[n].from,
                                              .tag = gradient_tag(b, n),
                                              .tensor = gradient,
                                              .values = values_of(&b->network->layers[n].node)}));
        b->sharers[gradient]--;
    }
    for (uint32_t i = 0; b->stage && i < b->network->layers[layer].node.parameter_count; i++) {
        const uint32_t p = b->network->layers[layer].parameters[i];
        const stage_weight *weight = &b->stage_weights[p];
        if (weight->from != NETWORK_NONE && weight->lowest == layer && program->gradients[p] != GRAPH_NONE)
            REMAT_TRY(add_send(b, layer,
                               (program_transfer){.peer = weight->from,
                                                  .tag = weight_tag(b, p),
                                                  .tensor = program->gradients[p],
                                                  .values = b->network->parameters[p].values}));
    }
    return REMAT_OK;
}

/* It reads what is live there, so that no schedule receives it earlier. */
remat_status builder_receive_weight_gradient(builder *b, uint32_t parameter, uint32_t d_output)
{
    remat_program *program = b->program;
    const network_parameter *about = &b->network->parameters[parameter];
    if (!b->stage || !b->stage_weights[parameter].flows_back || program->gradients[parameter] != GRAPH_NONE)
        return REMAT_OK;
    REMAT_TRY(builder_add_tensor(b, about->name, ".gradient",
                                 (tensor_size){layer_gradient_dtype(&about->about), about->values},
                                 &program->gradients[parameter]));
    return add_receive(b, about->layer,
                       (program_transfer){.peer = b->stage_weights[parameter].next,
                                          .tag = weight_tag(b, parameter),
                                          .tensor = program->gradients[parameter],
                                          .values = about->values},
                       d_output);
}
