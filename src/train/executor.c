#include "train/executor_object.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* ---- making ---- */

void executor_destroy(remat_executor *executor)
{
    if (!executor)
        return;
    remat_context *context = executor->context;
    poison_map_destroy(executor->poison);
    remat_release(context, executor->until, executor->count, sizeof *executor->until);
    remat_release(context, executor->fetched, executor->count, sizeof *executor->fetched);
    recorded_run_release(executor, &executor->fused);
    recorded_run_release(executor, &executor->plain);
    recorded_run_release(executor, &executor->checked);
    for (size_t i = 0; executor->events && i < executor->count + 2; i++)
        backend_event_destroy(executor->options.device, executor->events[i]);
    remat_release(context, executor->events, executor->count + 2, sizeof(backend_event *));
    remat_release(context, executor->work, executor->count, sizeof *executor->work);
    remat_release(context, executor->ran, executor->options.program->graph->action_count, sizeof *executor->ran);
    remat_release(context, executor->gradients, executor->options.program->network->parameter_count,
                  sizeof *executor->gradients);
    remat_release(context, executor, 1, sizeof *executor);
}

/* The arena can be poisoned where it is memory of the host. */
static remat_status make_poison(remat_executor *executor)
{
    const executor_options *options = &executor->options;
    const executor_memory *memory = &options->memory;
    if (!options->device->host_visible)
        return REMAT_OK;
    return poison_map_create(executor->context, options->liveness, memory->offsets, memory->arena, memory->arena_bytes,
                             &executor->poison);
}

static remat_status make_fetched(remat_executor *executor)
{
    if (!executor->options.program->fetches)
        return REMAT_OK;
    executor->fetched = remat_alloc_zeroed(executor->context, executor->count, sizeof *executor->fetched);
    return executor->fetched ? REMAT_OK : REMAT_NO_MEMORY;
}

static remat_status fill(remat_executor *executor)
{
    size_t parameters = executor->options.program->network->parameter_count;
    executor->gradients = remat_alloc_zeroed(executor->context, parameters, sizeof *executor->gradients);
    executor->until = remat_alloc(executor->context, executor->count, sizeof *executor->until);
    if (!executor->gradients || !executor->until)
        return REMAT_NO_MEMORY;
    REMAT_TRY(make_fetched(executor));
    for (size_t position = 0; position < executor->count; position++) {
        executor->until[position] = position;
        executor->forwards += executor_action(executor, position)->kind == ACTION_FORWARD;
    }
    REMAT_TRY(executor_record(executor, &executor->fused, NULL, false));
    REMAT_TRY(executor_fuse(executor, &executor->fused));
    return make_poison(executor);
}

remat_status executor_create(remat_context *context, const executor_options *options, remat_executor **made)
{
    *made = NULL;
    remat_executor *executor = remat_alloc_zeroed(context, 1, sizeof *executor);
    if (!executor)
        return REMAT_NO_MEMORY;
    executor->context = context;
    executor->options = *options;
    executor->count = options->sequence->count;
    remat_status status = fill(executor);
    if (status != REMAT_OK) {
        executor_destroy(executor);
        return status;
    }
    *made = executor;
    return REMAT_OK;
}

remat_status executor_measure(remat_context *context, const executor_options *options, uint64_t *bytes)
{
    remat_executor counted = {.context = context, .options = *options, .count = options->sequence->count};
    size_t parameters = options->program->network->parameter_count;
    counted.gradients = remat_alloc_zeroed(context, parameters, sizeof *counted.gradients);
    remat_status status = counted.gradients ? make_fetched(&counted) : REMAT_NO_MEMORY;
    if (status == REMAT_OK)
        status = executor_count(&counted, bytes);
    remat_release(context, counted.gradients, parameters, sizeof *counted.gradients);
    remat_release(context, counted.fetched, counted.count, sizeof *counted.fetched);
    if (status == REMAT_OK)
        *bytes += sizeof counted + (counted.count + 1) * sizeof *counted.fused.starts +
                  counted.count * sizeof *counted.until + parameters * sizeof *counted.gradients +
                  (options->program->fetches ? counted.count * sizeof *counted.fetched : 0);
    return status;
}

/* ---- asking ---- */

tensor_ref executor_input(const remat_executor *executor, uint32_t layer)
{
    const remat_network *network = executor->options.program->network;
    size_t number = 0;
    for (uint32_t n = 0; n < layer; n++)
        number += network->layers[n].node.input_count == 0;
    return executor->inputs[number];
}

tensor_ref executor_labels(const remat_executor *executor)
{
    return executor->labels;
}

tensor_ref executor_result(const remat_executor *executor, size_t i, uint32_t *layer)
{
    if (i >= LAYER_MAX_INPUTS || !executor->results[i].at)
        return TENSOR_NONE;
    *layer = executor->result_layers[i];
    return executor->results[i];
}

tensor_ref executor_gradient(const remat_executor *executor, uint32_t parameter)
{
    return executor->gradients[parameter];
}

uint64_t executor_forwards(const remat_executor *executor)
{
    return executor->forwards;
}

uint64_t executor_fused(const remat_executor *executor)
{
    return executor->fused_count;
}

layer_work executor_work(const remat_executor *executor, size_t position)
{
    return executor->work[position];
}

/* ---- running ---- */

/* For each parameter that an action fetches, with its address. */
typedef remat_status fetch_fn(const executor_weights *weights, uint32_t parameter, char *to, bool *done);

static remat_status fetch_one(const executor_weights *weights, uint32_t parameter, char *to, bool *done)
{
    *done = true;
    return weights->fetch(weights->user, parameter, to);
}

static remat_status prepare_one(const executor_weights *weights, uint32_t parameter, char *to, bool *done)
{
    return weights->prepare(weights->user, parameter, to, done);
}

static remat_status fetch_for(const remat_executor *executor, size_t position, fetch_fn *fetch, bool *done)
{
    const executor_options *options = &executor->options;
    const uint32_t action = options->sequence->actions[position];
    const network_layer *layer = &options->program->network->layers[options->program->actions[action].layer];
    char *to = executor->fetched[position].at;
    *done = true;
    for (uint32_t i = 0; i < layer->node.parameter_count && *done; i++) {
        const uint32_t parameter = layer->parameters[i];
        if (!program_fetches(options->program, action, i))
            continue;
        REMAT_TRY(fetch(&options->weights, parameter, to, done));
        to += (options->program->network->parameters[parameter].bytes + 63) & ~(uint64_t)63;
    }
    return REMAT_OK;
}

/* The host writes weights where other tensors were: their work must be over. A device writes them behind it. */
static remat_status settle(const remat_executor *executor, backend_queue *queue)
{
    return executor->options.device->host_visible ? backend_wait(queue) : REMAT_OK;
}

/* The weights of this position are there; those of the next ones begin to come, in the order of the positions. */
static remat_status fetch_weights(remat_executor *executor, size_t position, backend_queue *queue)
{
    bool done = true;
    if (!executor->fetched)
        return REMAT_OK;
    if (position == 0)
        executor->fetch_next = 0;
    if (executor->options.weights.advance)
        REMAT_TRY(executor->options.weights.advance(executor->options.weights.user));
    if (executor->fetched[position].at) {
        REMAT_TRY(settle(executor, queue));
        REMAT_TRY(fetch_for(executor, position, fetch_one, &done));
    }
    if (executor->fetch_next <= position)
        executor->fetch_next = position + 1;
    for (; executor->fetch_next < executor->count && executor->options.weights.prepare; executor->fetch_next++) {
        if (!executor->fetched[executor->fetch_next].at)
            continue;
        if (executor->fetched[executor->fetch_next].begins > position)
            break;
        REMAT_TRY(settle(executor, queue));
        REMAT_TRY(fetch_for(executor, executor->fetch_next, prepare_one, &done));
        if (!done)
            break;
    }
    return REMAT_OK;
}

static bool reads_weights(const remat_executor *executor, size_t position)
{
    const remat_program *program = executor->options.program;
    const uint32_t action = executor->options.sequence->actions[position];
    const layer_node *node = &program->network->layers[program->actions[action].layer].node;
    for (uint32_t i = 0; i < node->parameter_count; i++)
        if (program_reads(program, action, i))
            return true;
    return false;
}

/* The next weights come from the disk while this action runs. */
static void want_weights(const remat_executor *executor, size_t position)
{
    const executor_options *options = &executor->options;
    if (!options->weights.want || !reads_weights(executor, position))
        return;
    for (size_t next = position + 1; next < executor->count; next++)
        if (options->weights.want(options->weights.user, options->program, options->sequence->actions[next]))
            return;
}

static remat_status leave_weights(const remat_executor *executor, size_t position, backend_queue *queue)
{
    const executor_options *options = &executor->options;
    if (!options->weights.leave || !reads_weights(executor, position))
        return REMAT_OK;
    REMAT_TRY(backend_wait(queue));
    options->weights.leave(options->weights.user, options->program, options->sequence->actions[position]);
    return REMAT_OK;
}

/* The positions of a part: first .. end - 1. Both parts have the turn. */
typedef struct position_range {
    size_t first, end;
} position_range;

static position_range range_of(const remat_executor *executor, const recorded_run *run, executor_part part)
{
    const size_t turn = run->turn_position;
    return (position_range){part == EXECUTOR_BACKWARD ? turn : 0,
                            part == EXECUTOR_FORWARD && turn < executor->count ? turn + 1 : executor->count};
}

/* All ranks fetch before one of them waits for what another does at this position. */
static remat_status enter_position(remat_executor *executor, const recorded_run *run, size_t position,
                                   backend_queue *queue)
{
    poison_map_enter(executor->poison, position, run == &executor->fused ? executor->until[position] : position);
    want_weights(executor, position);
    return fetch_weights(executor, position, queue);
}

static remat_status run_position(remat_executor *executor, const recorded_run *run, size_t position, executor_part part,
                                 backend_queue *queue)
{
    const bool turns = position == run->turn_position;
    size_t first = turns && part == EXECUTOR_BACKWARD ? run->turn_sent : run->starts[position];
    const size_t end = turns && part == EXECUTOR_FORWARD ? run->turn_sent : run->starts[position + 1];
    remat_status status = REMAT_OK;
    if (run == &executor->plain && position == run->apply_position) { /* its time is not this layer's */
        status = backend_run(queue, &run->calls, first, run->apply_begun);
        if (status == REMAT_OK)
            status = backend_event_record(queue, executor->events[executor->count + 1]);
        first = run->apply_begun;
    }
    if (status == REMAT_OK)
        status = backend_run(queue, &run->calls, first, end);
    if (!turns || part != EXECUTOR_FORWARD)
        poison_map_leave(executor->poison, position);
    return status == REMAT_OK ? leave_weights(executor, position, queue) : status;
}

static remat_status run_positions(remat_executor *executor, const recorded_run *run, backend_queue *queue,
                                  const executor_hooks *hooks)
{
    const executor_part part = hooks ? hooks->part : EXECUTOR_WHOLE;
    const position_range range = range_of(executor, run, part);
    if (part == EXECUTOR_BACKWARD)
        poison_map_resume(executor->poison, range.first);
    for (size_t position = range.first; position < range.end; position++) {
        REMAT_TRY(enter_position(executor, run, position, queue));
        if (hooks && hooks->before)
            REMAT_TRY(hooks->before(hooks->user, position));
        REMAT_TRY(run_position(executor, run, position, part, queue));
        if (hooks && hooks->after)
            REMAT_TRY(hooks->after(hooks->user, position));
    }
    return REMAT_OK;
}

remat_status executor_run_watched(remat_executor *executor, backend_queue *queue, const executor_hooks *hooks)
{
    remat_status status = run_positions(executor, &executor->fused, queue, hooks);
    poison_map_open(executor->poison);
    return status;
}

remat_status executor_run(remat_executor *executor, backend_queue *queue)
{
    const recorded_run *run = &executor->fused;
    if (!executor->poison && !executor->fetched && !executor->options.weights.leave)
        return backend_run(queue, &run->calls, 0, run->calls.used);
    return executor_run_watched(executor, queue, NULL);
}

remat_status executor_run_checked(remat_executor *executor, backend_queue *queue, const executor_hooks *hooks)
{
    recorded_run *run = &executor->checked;
    if (!run->starts)
        REMAT_TRY(executor_record(executor, run, NULL, true));
    remat_status status = run_positions(executor, run, queue, hooks);
    poison_map_open(executor->poison);
    return status;
}

/* ---- observed runs ---- */

/* All memory is had before the first operation runs: a step that fails must not have changed the weights. What an earlier
 * call made before it ran out of memory is still there. */
static remat_status prepare_observed(remat_executor *executor)
{
    if (executor->plain.starts)
        return REMAT_OK;
    if (!executor->work)
        executor->work = remat_alloc_zeroed(executor->context, executor->count, sizeof *executor->work);
    if (!executor->events)
        executor->events = remat_alloc_zeroed(executor->context, executor->count + 2, sizeof(backend_event *));
    if (!executor->ran)
        executor->ran = remat_alloc(executor->context, executor->options.program->graph->action_count, sizeof(bool));
    if (!executor->work || !executor->events || !executor->ran)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < executor->count + 2; i++)
        if (!executor->events[i])
            REMAT_TRY(backend_event_create(executor->options.device, &executor->events[i]));
    return executor_record(executor, &executor->plain, executor->work, false);
}

static remat_status call_before_apply(remat_executor *executor, size_t position, backend_queue *queue,
                                      const executor_hooks *hooks)
{
    if (!hooks->before_apply || executor_action(executor, position)->kind != ACTION_APPLY)
        return REMAT_OK;
    const executor_options *options = &executor->options;
    const program_binding binding = program_binding_of(options->program, options->sequence->actions[position]);
    REMAT_TRY(backend_wait(queue));
    poison_map_open(executor->poison);
    const network_layer *layer = &options->program->network->layers[binding.layer];
    for (uint32_t i = 0; i < layer->node.parameter_count; i++)
        if (binding.gradients[i] != GRAPH_NONE)
            REMAT_TRY(
                hooks->before_apply(hooks->user, layer->parameters[i], executor->gradients[layer->parameters[i]]));
    return REMAT_OK;
}

static remat_status run_observed(remat_executor *executor, backend_queue *queue, const executor_hooks *hooks)
{
    const position_range range = range_of(executor, &executor->plain, hooks->part);
    if (hooks->part == EXECUTOR_BACKWARD)
        poison_map_resume(executor->poison, range.first);
    REMAT_TRY(backend_event_record(queue, executor->events[range.first]));
    for (size_t position = range.first; position < range.end; position++) {
        REMAT_TRY(call_before_apply(executor, position, queue, hooks));
        REMAT_TRY(enter_position(executor, &executor->plain, position, queue));
        if (hooks->before)
            REMAT_TRY(hooks->before(hooks->user, position));
        REMAT_TRY(run_position(executor, &executor->plain, position, hooks->part, queue));
        REMAT_TRY(backend_event_record(queue, executor->events[position + 1]));
        if (hooks->after)
            REMAT_TRY(hooks->after(hooks->user, position));
    }
    return backend_wait(queue);
}

static remat_status report_times(const remat_executor *executor, const executor_hooks *hooks)
{
    backend *device = executor->options.device;
    const position_range range = range_of(executor, &executor->plain, hooks->part);
    const uint32_t *actions = executor->options.sequence->actions;
    bool *ran = executor->ran;
    uint64_t began, ended;
    memset(ran, 0, executor->options.program->graph->action_count * sizeof *ran);
    for (size_t position = 0; position < range.first; position++)
        ran[actions[position]] = true;
    REMAT_TRY(backend_event_wait(device, executor->events[range.first], &began));
    for (size_t position = range.first; position < range.end; position++, began = ended) {
        uint32_t action = actions[position];
        if (position == executor->plain.apply_position) {
            REMAT_TRY(backend_event_wait(device, executor->events[executor->count + 1], &ended));
            if (hooks->observe_begin)
                hooks->observe_begin(hooks->user, position, began, ended);
            began = ended;
        }
        REMAT_TRY(backend_event_wait(device, executor->events[position + 1], &ended));
        hooks->observe(hooks->user, position, ran[action], began, ended);
        ran[action] = true;
    }
    return REMAT_OK;
}

remat_status executor_run_observed(remat_executor *executor, backend_queue *queue, const executor_hooks *hooks)
{
    REMAT_TRY(prepare_observed(executor));
    remat_status status = run_observed(executor, queue, hooks);
    poison_map_open(executor->poison);
    return status == REMAT_OK && hooks->observe ? report_times(executor, hooks) : status;
}
