/* From a plan to a trainer that can train: data, memory for tensors, initial weights, recorded operations. */
#include "base/alloc.h"
#include "base/error.h"
#include "train/first_weights.h"
#include "train/optimizer.h"
#include "train/trainer_object.h"

remat_status trainer_load_data(remat_trainer *trainer)
{
    uint64_t before = remat_context_bytes(trainer->context);
    REMAT_TRY(trainer_open_data(trainer, trainer->seed, NULL, &trainer->data));
    trainer->data_bytes = remat_context_bytes(trainer->context) - before;
    return trainer_find_steps(trainer);
}

remat_status trainer_check_started(const remat_trainer *trainer)
{
    if (trainer->queue)
        return REMAT_OK;
    return remat_fail(trainer->context, REMAT_INVALID, NULL,
                      "this trainer only plans: it has no weights before remat_trainer_start");
}

/* ---- executors ---- */

executor_options trainer_executor_options(remat_trainer *trainer, const remat_program *program, const graph_plan *plan)
{
    return (executor_options){
        .program = program,
        .sequence = &plan->sequence,
        .liveness = &plan->liveness,
        .memory = {.arena = trainer->arena.at,
                   .arena_bytes = trainer->arena.bytes,
                   .offsets = plan->offsets,
                   .parameters = trainer->weights.at,
                   .step = trainer->block.at,
                   .transfers = trainer->exchange.at},
        .device = trainer->device,
        .optimizer = trainer_optimizer(trainer),
        .weights = {.find = trainer_find_weight,
                    .fetch = trainer_fetch_weight,
                    .prepare = trainer_prepare_weight,
                    .advance = trainer_advance_weights,
                    .user = trainer,
                    .leave = trainer_drops_weights(trainer) ? trainer_leave_weights : NULL,
                    .want = trainer_drops_weights(trainer) ? trainer_want_weights : NULL},
        .training = true,
        .loss_share = 1.0 / (double)trainer->settings.accumulate,
    };
}

static executor_options training_options(remat_trainer *trainer)
{
    return trainer_executor_options(trainer, trainer->program, trainer->plan);
}

static executor_options evaluation_options(remat_trainer *trainer)
{
    executor_options options = training_options(trainer);
    options.program = trainer->evaluation;
    options.sequence = &trainer->evaluation_plan.sequence;
    options.liveness = &trainer->evaluation_plan.liveness;
    options.memory.offsets = trainer->evaluation_plan.offsets;
    options.training = false;
    options.loss_share = 1;
    return options;
}

/* What a run keeps over its turn has another place in each of them. */
static remat_status make_stage_executors(remat_trainer *trainer)
{
    pipeline *stages = trainer->pipeline;
    const size_t count = trainer->plan->liveness.buffer_count;
    const uint64_t kept = trainer->plan->kept_bytes;
    stages->executors = remat_alloc_zeroed(trainer->context, stages->in_flight, sizeof(remat_executor *));
    stages->offset_count = (stages->in_flight - 1) * count;
    stages->offsets = remat_alloc(trainer->context, stages->offset_count, sizeof *stages->offsets);
    if (!stages->executors || !stages->offsets)
        return REMAT_NO_MEMORY;
    stages->executors[0] = trainer->executor;
    for (uint64_t i = 1; i < stages->in_flight; i++) {
        uint64_t *offsets = stages->offsets + (i - 1) * count;
        executor_options options = training_options(trainer);
        for (size_t b = 0; b < count; b++)
            offsets[b] = trainer->plan->offsets[b] + (trainer->plan->offsets[b] < kept ? i * kept : 0);
        options.memory.offsets = offsets;
        REMAT_TRY(executor_create(trainer->context, &options, &stages->executors[i]));
    }
    return REMAT_OK;
}

static remat_status make_executors(remat_trainer *trainer)
{
    const executor_options training = training_options(trainer), evaluation = evaluation_options(trainer);
    REMAT_TRY(executor_create(trainer->context, &training, &trainer->executor));
    if (trainer->pipeline)
        REMAT_TRY(make_stage_executors(trainer));
    REMAT_TRY(trainer_record_apply(trainer));
    REMAT_TRY(length_classes_start(trainer));
    return executor_create(trainer->context, &evaluation, &trainer->evaluator);
}

/* ---- their tables, before there is memory ---- */

/* Counted with a copy of the trainer whose areas have addresses that nobody uses. A step that takes terabytes runs nowhere: its
 * operations, which are recorded for every few hundred rows, would take minutes to count. */
remat_status trainer_count_tables(remat_trainer *trainer)
{
    static char nothing[64];
    if (trainer_arena_bytes(trainer) >> 42)
        return REMAT_OK;
    remat_trainer counted = *trainer;
    uint64_t training_bytes, evaluation_bytes, apply_bytes, class_bytes;
    counted.weights.at = counted.arena.at = counted.block.at = nothing;
    counted.state.at = counted.exchange.at = nothing;
    if (trainer_adds(trainer))
        counted.gradients.at = nothing;
    const executor_options training = training_options(&counted), evaluation = evaluation_options(&counted);
    REMAT_TRY(executor_measure(trainer->context, &training, &training_bytes));
    REMAT_TRY(executor_measure(trainer->context, &evaluation, &evaluation_bytes));
    REMAT_TRY(trainer_measure_apply(&counted, &apply_bytes));
    REMAT_TRY(length_classes_measure(&counted, &class_bytes));
    if (trainer->pipeline)
        training_bytes *= trainer->pipeline->in_flight;
    trainer->recorded_bytes = training_bytes + evaluation_bytes + apply_bytes + class_bytes;
    return REMAT_OK;
}

/* ---- starting ---- */

remat_status trainer_start(remat_trainer *trainer)
{
    uint64_t before = remat_context_bytes(trainer->context);
    REMAT_TRY(trainer_allocate(trainer));
    REMAT_TRY(trainer_map_weights(trainer));
    REMAT_TRY(parameters_fill(trainer->network, trainer->queue, trainer->seed, trainer_weight_place, trainer));
    REMAT_TRY(make_executors(trainer));
    REMAT_TRY(trainer_start_ranks(trainer));
    trainer->recorded_bytes = remat_context_bytes(trainer->context) - before - trainer_allocated_bytes(trainer);
    return REMAT_OK;
}

remat_status remat_trainer_start(remat_trainer *trainer)
{
    if (!trainer->options.plan_only)
        return remat_fail(trainer->context, REMAT_INVALID, NULL, "the trainer was not made with plan_only");
    trainer->options.plan_only = false;
    REMAT_TRY(trainer_load_data(trainer));
    return trainer_start(trainer);
}
