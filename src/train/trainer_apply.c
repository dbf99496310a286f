/* Records what is done with gradients: the global norm for clipping, and the update of every parameter.
 *
 * Without accumulation, these operations are part of the executor's recording. With accumulation over micro-batches, the
 * executor's recording adds each gradient to a sum as soon as it is complete, so that a sum over micro-batches is
 * ((g0 + g1) + g2) + ... whoever computes them. The rest is a separate recording:
 *
 *     | clear all gradients | restore | their squares | the norm, where they are clipped | update of parameter 0 | ...
 *
 * Running statistics have no gradient. Their place in the area of the gradients holds them as they were when the step began,
 * and "restore", which only a failed step runs, copies them back.
 */
#include "train/trainer_object.h"

#include "base/alloc.h"
#include "base/error.h"
#include "train/optimizer.h"

enum {
    CLEAR,
    RESTORE,
    SQUARES,
    NORM,
    UPDATES
}; /* and behind the updates, where ranks share gradients: squares of each parameter */

static tensor_ref step_of(const remat_trainer *trainer)
{
    return (tensor_ref){trainer->block.at, REMAT_UINT8};
}

/* Where the gradient of a parameter is when it is applied; none for those that have none. */
static tensor_ref gradient_of(const remat_trainer *trainer, const remat_executor *executor, uint32_t parameter)
{
    if (!layer_parameter_is_trained(&trainer->network->parameters[parameter].about))
        return TENSOR_NONE;
    return trainer_adds(trainer) ? trainer_gradient(trainer, parameter) : executor_gradient(executor, parameter);
}

/* Clipping: the norm over all gradients, parameter after parameter, so that the sum has one order. */
static remat_status record_all_squares(const remat_trainer *trainer, recording *calls, const remat_executor *executor)
{
    if (trainer->settings.clip_norm <= 0)
        return REMAT_OK;
    for (uint32_t p = 0; p < trainer->network->parameter_count && !trainer_scatters(trainer); p++) {
        const tensor_ref gradient = gradient_of(trainer, executor, p);
        if (gradient.at)
            REMAT_TRY(record_add_squares(calls, &(op_add_squares){.x = gradient,
                                                                  .step = step_of(trainer),
                                                                  .count = trainer->network->parameters[p].values}));
    }
    return REMAT_OK;
}

static remat_status record_clipping(const remat_trainer *trainer, recording *calls)
{
    if (trainer->settings.clip_norm <= 0)
        return REMAT_OK;
    return record_clip(calls, &(op_clip){.step = step_of(trainer), .clip_norm = trainer->settings.clip_norm});
}

static remat_status record_norm(void *user, recording *calls, const remat_executor *executor)
{
    REMAT_TRY(record_all_squares(user, calls, executor));
    return record_clipping(user, calls);
}

static remat_status record_update(void *user, recording *calls, uint32_t parameter, tensor_ref gradient)
{
    const remat_trainer *trainer = user;
    const network_parameter *about = &trainer->network->parameters[parameter];
    const shard_part part = trainer_part(trainer, parameter, REMAT_SHARD_OPTIMIZER);
    optimizer_update update = {.about = &about->about,
                               .values = part.values,
                               .number = parameter,
                               .offset = part.first,
                               .step = step_of(trainer),
                               .gradient = gradient,
                               .weight = trainer_updated(trainer, parameter)};
    for (unsigned i = 0; i < OPTIMIZER_STATES; i++)
        update.states[i] = trainer_state(trainer, parameter, i);
    return optimizer_record(&trainer->optimizer, calls, &update);
}

/* ---- with accumulation ---- */

static remat_status record_sum(void *user, recording *calls, uint32_t parameter, tensor_ref gradient)
{
    const remat_trainer *trainer = user;
    if (trainer->settings.accumulate == 1) /* a stage of a pipeline; -0 stays what it is */
        return record_copy(calls, &(op_copy){.x = gradient,
                                             .y = trainer_gradient(trainer, parameter),
                                             .count = trainer->network->parameters[parameter].values});
    return record_accumulate(calls, &(op_accumulate){.x = gradient,
                                                     .y = trainer_gradient(trainer, parameter),
                                                     .count = trainer->network->parameters[parameter].values});
}

/* The ranks add it before the action. */
static remat_status record_nothing(void *user, recording *calls, uint32_t parameter, tensor_ref gradient)
{
    (void)user, (void)calls, (void)parameter, (void)gradient;
    return REMAT_OK;
}

executor_optimizer trainer_optimizer(remat_trainer *trainer)
{
    if (trainer_scatters(trainer))
        return (executor_optimizer){NULL, record_nothing, trainer};
    return trainer_adds(trainer) ? (executor_optimizer){NULL, record_sum, trainer}
                                 : (executor_optimizer){record_norm, record_update, trainer};
}

/* Clears all gradients and copies all statistics to where their gradients would be; with `restore`: back. */
static remat_status record_begin(const remat_trainer *trainer, recording *calls, bool restore)
{
    for (uint32_t p = 0; p < trainer->network->parameter_count; p++) {
        const network_parameter *about = &trainer->network->parameters[p];
        if (about->about.frozen || !trainer_has(trainer, p, REMAT_SHARD_GRADIENTS))
            continue; /* it does not change, and has no place there */
        const tensor_ref gradient = trainer_gradient(trainer, p);
        const tensor_ref statistic = trainer_parameter(trainer, p);
        if (about->about.statistic)
            REMAT_TRY(record_copy(calls, &(op_copy){.x = restore ? gradient : statistic,
                                                    .y = restore ? statistic : gradient,
                                                    .count = about->values}));
        else if (!restore)
            REMAT_TRY(record_fill(
                calls, &(op_fill){.y = gradient, .count = trainer_part(trainer, p, REMAT_SHARD_GRADIENTS).values}));
    }
    return REMAT_OK;
}

/* The norm of gradients that ranks share: each makes the sums of its blocks. */
static bool adds_squares(const remat_trainer *trainer)
{
    return trainer_scatters(trainer) && trainer->settings.clip_norm > 0;
}

static size_t squares_start(const remat_trainer *trainer)
{
    return UPDATES + trainer->network->parameter_count + 1;
}

static remat_status record_squares(const remat_trainer *trainer, recording *calls, size_t *starts)
{
    for (uint32_t p = 0; p < trainer->network->parameter_count; p++) {
        const shard_part part = trainer_part(trainer, p, REMAT_SHARD_GRADIENTS);
        const tensor_ref sums = {trainer_squares(trainer) + part.first / SHARD_BLOCK, REMAT_UINT8};
        starts[p] = calls->used;
        if (layer_parameter_is_trained(&trainer->network->parameters[p].about))
            REMAT_TRY(record_block_squares(
                calls, &(op_block_squares){.x = trainer_gradient(trainer, p), .sums = sums, .count = part.values}));
    }
    starts[trainer->network->parameter_count] = calls->used;
    return REMAT_OK;
}

static remat_status record_all(const remat_trainer *trainer, recording *calls, size_t *starts)
{
    starts[CLEAR] = calls->used;
    REMAT_TRY(record_begin(trainer, calls, false));
    starts[RESTORE] = calls->used;
    REMAT_TRY(record_begin(trainer, calls, true));
    starts[SQUARES] = calls->used;
    REMAT_TRY(record_all_squares(trainer, calls, NULL));
    starts[NORM] = calls->used;
    REMAT_TRY(record_clipping(trainer, calls));
    for (uint32_t p = 0; p < trainer->network->parameter_count; p++) {
        const bool trained = layer_parameter_is_trained(&trainer->network->parameters[p].about);
        starts[UPDATES + p] = calls->used;
        if (trained && trainer_part(trainer, p, REMAT_SHARD_OPTIMIZER).values)
            REMAT_TRY(record_update((void *)(uintptr_t)trainer, calls, p, trainer_summed(trainer, p)));
    }
    starts[UPDATES + trainer->network->parameter_count] = calls->used;
    return adds_squares(trainer) ? record_squares(trainer, calls, starts + squares_start(trainer)) : REMAT_OK;
}

static size_t start_count(const remat_trainer *trainer)
{
    return squares_start(trainer) + (adds_squares(trainer) ? trainer->network->parameter_count + 1 : 0);
}

/* Counted first, so that the recording has no room to spare. */
static remat_status record_counted(const remat_trainer *trainer, recording *calls, size_t *starts, bool counts_only)
{
    calls->counts = true;
    REMAT_TRY(record_all(trainer, calls, starts));
    if (counts_only)
        return REMAT_OK;
    REMAT_TRY(recording_reserve(calls));
    return record_all(trainer, calls, starts);
}

remat_status trainer_record_apply(remat_trainer *trainer)
{
    recording_begin(&trainer->apply_calls, trainer->device);
    if (!trainer_adds(trainer))
        return REMAT_OK;
    trainer->apply_starts = remat_alloc(trainer->context, start_count(trainer), sizeof *trainer->apply_starts);
    return trainer->apply_starts ? record_counted(trainer, &trainer->apply_calls, trainer->apply_starts, false)
                                 : REMAT_NO_MEMORY;
}

remat_status trainer_measure_apply(const remat_trainer *trainer, uint64_t *bytes)
{
    recording calls;
    *bytes = 0;
    if (!trainer_adds(trainer))
        return REMAT_OK;
    size_t *starts = remat_alloc(trainer->context, start_count(trainer), sizeof *starts);
    recording_begin(&calls, trainer->device);
    remat_status status = starts ? record_counted(trainer, &calls, starts, true) : REMAT_NO_MEMORY;
    *bytes = calls.used + start_count(trainer) * sizeof *starts;
    recording_end(&calls);
    remat_release(trainer->context, starts, start_count(trainer), sizeof *starts);
    return status;
}

void trainer_release_apply(remat_trainer *trainer)
{
    if (trainer->apply_starts)
        remat_release(trainer->context, trainer->apply_starts, start_count(trainer), sizeof *trainer->apply_starts);
    for (int i = 0; i < 2; i++)
        backend_event_destroy(trainer->device, trainer->apply_events[i]);
    recording_end(&trainer->apply_calls);
}

static remat_status run_part(remat_trainer *trainer, size_t first, size_t end)
{
    const size_t *starts = trainer->apply_starts;
    return backend_run(trainer->queue, &trainer->apply_calls, starts[first], starts[end]);
}

/* Before the first micro-batch: a step that fails must not have changed the weights. */
static remat_status prepare_timing(remat_trainer *trainer)
{
    for (int i = 0; i < 2; i++)
        if (!trainer->apply_events[i])
            REMAT_TRY(backend_event_create(trainer->device, &trainer->apply_events[i]));
    return REMAT_OK;
}

/* Runs parts by themselves and says when. */
static remat_status time_parts(remat_trainer *trainer, size_t first, size_t end, uint64_t *began, uint64_t *ended)
{
    backend_event *const *events = trainer->apply_events;
    REMAT_TRY(backend_event_record(trainer->queue, events[0]));
    REMAT_TRY(run_part(trainer, first, end));
    REMAT_TRY(backend_event_record(trainer->queue, events[1]));
    REMAT_TRY(backend_event_wait(trainer->device, events[0], began));
    return backend_event_wait(trainer->device, events[1], ended);
}

static remat_status time_part(remat_trainer *trainer, size_t part, uint64_t *began, uint64_t *ended)
{
    return time_parts(trainer, part, part + 1, began, ended);
}

remat_status trainer_clear_gradients(remat_trainer *trainer)
{
    uint64_t began, ended;
    if (trainer->on_action || trainer->on_gradient)
        REMAT_TRY(prepare_timing(trainer));
    if (!trainer->on_action)
        return run_part(trainer, CLEAR, RESTORE);
    REMAT_TRY(time_part(trainer, CLEAR, &began, &ended));
    trainer_note_clear(trainer, began, ended);
    return REMAT_OK;
}

remat_status trainer_restore_statistics(remat_trainer *trainer)
{
    return run_part(trainer, RESTORE, SQUARES);
}

static remat_status add_squares(remat_trainer *trainer)
{
    double sum = 0;
    for (uint32_t p = 0; p < trainer->network->parameter_count; p++)
        if (layer_parameter_is_trained(&trainer->network->parameters[p].about)) {
            REMAT_TRY(run_part(trainer, squares_start(trainer) + p, squares_start(trainer) + p + 1));
            REMAT_TRY(trainer_add_squares(trainer, p, &sum));
        }
    REMAT_TRY(backend_copy_in(trainer->queue, trainer->block.at + offsetof(step_block, squares), &sum, sizeof sum));
    return backend_wait(trainer->queue); /* the sum goes when this returns */
}

/* The sum goes on where the stage before has left it, and the last stage has that of all. */
static remat_status add_stage_squares(remat_trainer *trainer)
{
    char *at = trainer->block.at + offsetof(step_block, squares);
    double squares;
    REMAT_TRY(trainer_receive_squares(trainer, &squares));
    REMAT_TRY(backend_copy_in(trainer->queue, at, &squares, sizeof squares));
    REMAT_TRY(run_part(trainer, SQUARES, NORM));
    REMAT_TRY(backend_copy_out(trainer->queue, &squares, at, sizeof squares));
    REMAT_TRY(backend_wait(trainer->queue));
    REMAT_TRY(trainer_share_squares(trainer, &squares));
    REMAT_TRY(backend_copy_in(trainer->queue, at, &squares, sizeof squares));
    return backend_wait(trainer->queue);
}

remat_status trainer_apply_gradients(remat_trainer *trainer)
{
    size_t parameters = trainer->network->parameter_count;
    if (adds_squares(trainer))
        REMAT_TRY(add_squares(trainer));
    const bool by_stages = trainer->pipeline && trainer->settings.clip_norm > 0;
    if (by_stages)
        REMAT_TRY(add_stage_squares(trainer));
    const size_t norm = by_stages ? NORM : SQUARES;
    if (!trainer->on_action && !trainer->on_gradient)
        return run_part(trainer, norm, UPDATES + parameters);
    uint64_t began, ended;
    REMAT_TRY(time_parts(trainer, norm, NORM + 1, &began, &ended));
    if (trainer->on_action)
        trainer_note_norm(trainer, 0, began, ended);
    for (uint32_t p = 0; p < parameters; p++) {
        if (!layer_parameter_is_trained(&trainer->network->parameters[p].about) ||
            !trainer_has(trainer, p, REMAT_SHARD_OPTIMIZER))
            continue;
        if (trainer->on_gradient)
            REMAT_TRY(trainer_show_gradient(trainer, p, trainer_gradient(trainer, p)));
        REMAT_TRY(time_part(trainer, UPDATES + p, &began, &ended));
        if (trainer->on_action)
            trainer_note_apply(trainer, p, began, ended);
    }
    return REMAT_OK;
}
