/* Recording a run: every action of the schedule gets the addresses that its tensors have at its position, and its layer
 * records the operations. */
#include "train/executor_object.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* Where a tensor is, and until which position. */
typedef struct instance {
    char *at;
    size_t ends;
} instance;

typedef struct recorder {
    remat_executor *executor;
    recorded_run *run;
    layer_work *work;
    instance *latest;  /* of each tensor */
    bool *ran;         /* of each action */
    size_t next_range; /* the first that is born at this position or later */
    bool checks;
} recorder;

/* ---- addresses ---- */

static tensor_ref tensor_at(const recorder *r, uint32_t tensor, remat_dtype dtype)
{
    return tensor == GRAPH_NONE ? TENSOR_NONE : (tensor_ref){r->latest[tensor].at, dtype};
}

/* Whether anybody will read what this position makes. */
static bool is_read(const recorder *r, uint32_t tensor, size_t position)
{
    return r->latest[tensor].ends > position + 1;
}

/* Takes up the instances born at this position; returns the workspace, if there is one. Those that begin before their position are
 * remembered until then. */
static tensor_ref take_births(recorder *r, size_t position)
{
    const graph_liveness *liveness = r->executor->options.liveness;
    const executor_memory *memory = &r->executor->options.memory;
    fetch_place *fetched = r->executor->fetched;
    tensor_ref workspace = {fetched ? fetched[position].workspace : NULL, REMAT_UINT8};
    for (; r->next_range < liveness->range_count && liveness->ranges[r->next_range].born == position; r->next_range++) {
        const live_range *range = &liveness->ranges[r->next_range];
        char *at = memory->arena + memory->offsets[range->buffer];
        if (range->tensor == GRAPH_NONE && range->ends > position + 1)
            fetched[range->ends - 1] = (fetch_place){at, NULL, position};
        else if (range->tensor == GRAPH_NONE)
            workspace.at = at;
        else
            r->latest[range->tensor] = (instance){at, range->ends};
    }
    return workspace;
}

/* Weights that are fetched are at the end of the workspace. */
static char *fetched_at(const recorder *r, size_t position, tensor_ref workspace)
{
    const executor_options *options = &r->executor->options;
    const uint32_t action = options->sequence->actions[position];
    const uint64_t bytes = options->program->fetches ? program_fetched_bytes(options->program, action) : 0;
    char *at = bytes ? (char *)workspace.at + options->program->graph->actions[action].workspace_bytes - bytes : NULL;
    fetch_place *fetched = r->executor->fetched ? &r->executor->fetched[position] : NULL;
    if (fetched)
        *fetched = (fetch_place){workspace.at, at, fetched->workspace ? fetched->begins : position};
    return at;
}

static tensor_ref fetched_parameter(const recorder *r, uint32_t action, uint32_t number, uint32_t parameter, char **at)
{
    const executor_options *options = &r->executor->options;
    const network_parameter *about = &options->program->network->parameters[parameter];
    if (about->about.statistic)
        return (tensor_ref){options->weights.find(options->weights.user, parameter), about->about.dtype};
    if (!program_fetches(options->program, action, number))
        return TENSOR_NONE;
    const tensor_ref found = {*at, about->about.dtype};
    *at += (about->bytes + 63) & ~(uint64_t)63;
    return found;
}

static char *parameter_at(const recorder *r, uint32_t parameter)
{
    const executor_options *options = &r->executor->options;
    return options->weights.find ? options->weights.find(options->weights.user, parameter)
                                 : options->memory.parameters + options->program->network->parameters[parameter].offset;
}

static void bind_parameters(const recorder *r, size_t position, const network_layer *layer,
                            const program_binding *binding, layer_call *call)
{
    const remat_program *program = r->executor->options.program;
    const remat_network *network = program->network;
    char *fetched = fetched_at(r, position, call->workspace);
    for (uint32_t i = 0; i < layer->node.parameter_count; i++) {
        const network_parameter *parameter = &network->parameters[layer->parameters[i]];
        const remat_dtype dtype = layer_gradient_dtype(&parameter->about);
        call->parameters[i] = program->fetches
                                  ? fetched_parameter(r, r->executor->options.sequence->actions[position], i,
                                                      layer->parameters[i], &fetched)
                                  : (tensor_ref){parameter_at(r, layer->parameters[i]), parameter->about.dtype};
        call->gradients[i] = tensor_at(r, binding->gradients[i], dtype);
        call->accumulate_gradients[i] = binding->accumulate_gradients >> i & 1u;
    }
}

/* What is read has the address it had before this position; a write in place does not move it. copied[i]: what d_inputs[i]
 * begins as. */
static void bind(recorder *r, size_t position, const program_binding *binding, layer_call *call,
                 tensor_ref copied[LAYER_MAX_INPUTS])
{
    const executor_options *options = &r->executor->options;
    const network_layer *layer = &options->program->network->layers[binding->layer];
    const layer_node *node = &layer->node;
    *call = (layer_call){.calls = &r->run->calls,
                         .step = {options->memory.step, REMAT_UINT8},
                         .number = binding->layer,
                         .training = options->training,
                         .counts_correct = !options->training,
                         .loss_share = options->loss_share};
    call->d_output = tensor_at(r, binding->d_output, node->dtype);
    for (uint32_t i = 0; i < node->input_count; i++) {
        call->inputs[i] = tensor_at(r, binding->inputs[i], node->input_dtypes[i]);
        copied[i] = tensor_at(r, binding->copied[i], node->input_dtypes[i]);
    }
    call->workspace = take_births(r, position);
    call->output = tensor_at(r, binding->output, node->dtype);
    if (binding->kind == ACTION_FORWARD && node->type->may_skip_output && !is_read(r, binding->output, position))
        call->output = TENSOR_NONE;
    for (uint32_t s = 0; s < node->saved_count; s++)
        call->saved[s] = tensor_at(r, binding->saved[s], node->saved[s].dtype);
    for (uint32_t i = 0; i < node->input_count; i++) {
        call->d_inputs[i] = tensor_at(r, binding->d_inputs[i], node->input_dtypes[i]);
        call->accumulate_inputs[i] = binding->accumulate_inputs >> i & 1u;
    }
    bind_parameters(r, position, layer, binding, call);
}

/* Where tensors are converted, and how many bytes that may take: behind the layer's own workspace. */
static char *room_of(const layer_node *node, const program_binding *binding, tensor_ref workspace, uint64_t *bytes)
{
    const layer_pass pass = binding->kind == ACTION_FORWARD           ? LAYER_FORWARD
                            : binding->kind == ACTION_WEIGHT_GRADIENT ? LAYER_WEIGHT_GRADIENT
                                                                      : LAYER_INPUT_GRADIENT;
    const bool accumulates = pass == LAYER_INPUT_GRADIENT && binding->accumulate_inputs;
    *bytes = workspace.at ? node->room[pass] : 0;
    return *bytes ? (char *)workspace.at + layer_workspace(node, pass, accumulates) - *bytes : NULL;
}

/* ---- operations ---- */

/* A gradient that begins as a copy of another is copied first. A sum passes its gradient on by adding it. */
static remat_status record_input_gradient(const layer_node *node, const layer_call *call, const tensor_ref *copied)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (copied[i].at)
            REMAT_TRY(record_copy(call->calls, &(op_copy){.x = copied[i],
                                                          .y = call->d_inputs[i],
                                                          .count = layer_values(node->inputs[i]) * node->batch}));
    if (!node->passes_gradient)
        return node->type->input_gradient(node, call);
    for (uint32_t i = 0; i < node->input_count; i++)
        if (call->d_inputs[i].at)
            REMAT_TRY(
                record_accumulate(call->calls, &(op_accumulate){.x = call->d_output,
                                                                .y = call->d_inputs[i],
                                                                .count = layer_values(node->inputs[i]) * node->batch}));
    return REMAT_OK;
}

static remat_status record_apply(recorder *r, size_t position, const network_layer *layer,
                                 const program_binding *binding, const layer_call *call)
{
    const executor_optimizer *optimizer = &r->executor->options.optimizer;
    if (r->run->apply_position == r->executor->count) {
        if (optimizer->begin)
            REMAT_TRY(optimizer->begin(optimizer->user, call->calls, r->executor));
        r->run->apply_position = position;
        r->run->apply_begun = call->calls->used;
    }
    for (uint32_t i = 0; i < layer->node.parameter_count; i++)
        if (binding->gradients[i] != GRAPH_NONE)
            REMAT_TRY(optimizer->apply(optimizer->user, call->calls, layer->parameters[i], call->gradients[i]));
    return REMAT_OK;
}

static remat_status record_check(const layer_node *node, const layer_call *call)
{
    if (!call->output.at)
        return REMAT_OK;
    return record_check_finite(call->calls, &(op_check_finite){.x = call->output,
                                                               .step = call->step,
                                                               .count = layer_values(node->output) * node->batch,
                                                               .number = call->number});
}

/* Copies what an action sends to the area of the transfers, or what it receives from there. */
static remat_status record_transfers(const recorder *r, uint32_t action, const layer_call *call, bool sends)
{
    const executor_options *options = &r->executor->options;
    for (size_t i = 0; i < options->program->transfer_count; i++) {
        const program_transfer *transfer = &options->program->transfers[i];
        if (transfer->action != action || transfer->sends != sends)
            continue;
        const tensor_ref tensor = tensor_at(r, transfer->tensor, transfer->dtype);
        const tensor_ref place = {options->memory.transfers + transfer->offset, transfer->dtype};
        REMAT_TRY(record_copy(
            call->calls,
            &(op_copy){.x = sends ? tensor : place, .y = sends ? place : tensor, .count = transfer->values}));
    }
    return REMAT_OK;
}

static remat_status record_turn(const recorder *r, size_t position, uint32_t action, const layer_call *call)
{
    REMAT_TRY(record_transfers(r, action, call, true));
    r->run->turn_position = position;
    r->run->turn_sent = call->calls->used;
    return record_transfers(r, action, call, false);
}

/* ---- what others ask for ---- */

static void note_load(recorder *r, const program_binding *binding)
{
    uint32_t tensor = binding->output;
    remat_executor *executor = r->executor;
    const remat_program *program = executor->options.program;
    const remat_network *network = program->network;
    size_t number = 0;
    for (uint32_t n = 0; n < network->layer_count; n++) {
        if (network->layers[n].node.input_count != 0)
            continue;
        if (program->outputs[n] == tensor && n == binding->layer)
            executor->inputs[number] = tensor_at(r, tensor, network->layers[n].node.dtype);
        number++;
    }
    if (tensor == program->labels)
        executor->labels = tensor_at(r, tensor, network->labels_dtype);
}

static void note_results(recorder *r)
{
    remat_executor *executor = r->executor;
    const remat_program *program = executor->options.program;
    const uint32_t *results = program->graph->results;
    for (size_t i = 0; i < program->graph->result_count; i++)
        for (uint32_t n = 0; n < program->network->layer_count; n++)
            if (program->outputs[n] == results[i]) {
                executor->results[i] = tensor_at(r, results[i], program->network->layers[n].node.dtype);
                executor->result_layers[i] = n;
            }
}

static void note_gradients(const recorder *r, const network_layer *layer, const program_binding *binding,
                           const layer_call *call)
{
    for (uint32_t i = 0; i < layer->node.parameter_count; i++)
        if (binding->gradients[i] != GRAPH_NONE)
            r->executor->gradients[layer->parameters[i]] = call->gradients[i];
}

/* ---- the whole run ---- */

/* Records the calls of a position; `room`: what is planned for tensors that are converted. */
static remat_status record_calls(recorder *r, size_t position, uint64_t *room)
{
    const executor_options *options = &r->executor->options;
    uint32_t number = options->sequence->actions[position];
    const program_binding bound = program_binding_of(options->program, number), *binding = &bound;
    const network_layer *layer = &options->program->network->layers[binding->layer];
    const layer_node *node = &layer->node;
    layer_call call;
    tensor_ref copied[LAYER_MAX_INPUTS];
    r->run->starts[position] = r->run->calls.used;
    bind(r, position, binding, &call, copied);
    call.calls->room = room_of(node, binding, call.workspace, room);
    call.calls->room_bytes = 0;
    call.is_recompute = r->ran[number];
    r->ran[number] = true;
    if (r->work)
        r->work[position] = executor_find_work(r->executor, number, &call);
    switch (binding->kind) {
    case ACTION_LOAD: note_load(r, binding); return REMAT_OK; /* data is copied in before a run */
    case ACTION_FORWARD:
        REMAT_TRY(node->type->forward(node, &call));
        return r->checks ? record_check(node, &call) : REMAT_OK;
    case ACTION_WEIGHT_GRADIENT:
        note_gradients(r, layer, binding, &call);
        return node->type->weight_gradient(node, &call);
    case ACTION_INPUT_GRADIENT:
        note_gradients(r, layer, binding, &call);
        return record_input_gradient(node, &call, copied);
    case ACTION_APPLY: return record_apply(r, position, layer, binding, &call);
    case ACTION_RECEIVE: return record_transfers(r, number, &call, false);
    case ACTION_SEND: return record_transfers(r, number, &call, true);
    case ACTION_TURN: return record_turn(r, position, number, &call);
    }
    return REMAT_OK;
}

static remat_status record_position(recorder *r, size_t position)
{
    uint64_t room;
    REMAT_TRY(record_calls(r, position, &room));
    if (r->run->calls.room_bytes > room)
        return remat_fail(r->executor->context, REMAT_INTERNAL, NULL, "more tensors are converted than was planned");
    return REMAT_OK;
}

static remat_status record_all(recorder *r)
{
    const remat_executor *executor = r->executor;
    for (size_t position = 0; position < executor->count; position++) {
        remat_status status = record_position(r, position);
        if (status == REMAT_INVALID) { /* no kernel for its types: say whose */
            uint32_t layer = executor_action(executor, position)->layer;
            return remat_fail(executor->context, status, NULL, "layer '%.80s': %s",
                              executor->options.program->network->layers[layer].node.name,
                              remat_context_message(executor->context));
        }
        REMAT_TRY(status);
    }
    r->run->starts[executor->count] = r->run->calls.used;
    note_results(r);
    return REMAT_OK;
}

void recorded_run_release(remat_executor *executor, recorded_run *run)
{
    remat_release(executor->context, run->starts, executor->count + 1, sizeof *run->starts);
    recording_end(&run->calls);
    run->starts = NULL;
}

/* Records all calls, or only counts them. */
static remat_status record_pass(recorder *r, bool counts)
{
    const remat_executor *executor = r->executor;
    const remat_graph *graph = executor->options.program->graph;
    memset(r->latest, 0, graph->tensor_count * sizeof *r->latest);
    memset(r->ran, 0, graph->action_count * sizeof *r->ran);
    r->next_range = 0;
    r->run->apply_position = r->run->turn_position = executor->count;
    r->run->calls.counts = counts;
    return record_all(r);
}

/* Counted first, so that a recording has no room to spare. */
static remat_status record(recorder *r, bool counts_only)
{
    REMAT_TRY(record_pass(r, true));
    if (counts_only)
        return REMAT_OK;
    REMAT_TRY(recording_reserve(&r->run->calls));
    return record_pass(r, false);
}

static remat_status make_run(remat_executor *executor, recorded_run *run, layer_work *work, bool checks,
                             bool counts_only)
{
    remat_context *context = executor->context;
    const remat_graph *graph = executor->options.program->graph;
    recording_begin(&run->calls, executor->options.device);
    run->starts = remat_alloc(context, executor->count + 1, sizeof *run->starts);
    instance *latest = remat_alloc(context, graph->tensor_count, sizeof *latest);
    bool *ran = remat_alloc(context, graph->action_count, sizeof *ran);
    remat_status status = REMAT_NO_MEMORY;
    if (run->starts && latest && ran) {
        recorder r = {.executor = executor, .run = run, .work = work, .latest = latest, .ran = ran, .checks = checks};
        status = record(&r, counts_only);
    }
    remat_release(context, latest, graph->tensor_count, sizeof *latest);
    remat_release(context, ran, graph->action_count, sizeof *ran);
    if (status != REMAT_OK)
        recorded_run_release(executor, run);
    return status;
}

remat_status executor_record(remat_executor *executor, recorded_run *run, layer_work *work, bool checks)
{
    return make_run(executor, run, work, checks, false);
}

remat_status executor_count(remat_executor *executor, uint64_t *bytes)
{
    recorded_run run = {0};
    REMAT_TRY(make_run(executor, &run, NULL, false, true));
    *bytes = run.calls.used;
    recorded_run_release(executor, &run);
    return REMAT_OK;
}
