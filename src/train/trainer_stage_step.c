/* The micro-batches of a step on a stage of a pipeline (pipeline.h). */
#include "base/error.h"
#include "base/min_max.h"
#include "train/trainer_object.h"

/* ---- a part of a micro-batch ---- */

static remat_status before_position(void *user, size_t position)
{
    remat_trainer *trainer = user;
    const pipeline *stages = trainer->pipeline;
    if (stages->statistics && stages->part != EXECUTOR_BACKWARD)
        REMAT_TRY(gradient_chain_before(stages->statistics, position));
    if (trainer->chain && stages->part != EXECUTOR_FORWARD)
        REMAT_TRY(gradient_chain_before(trainer->chain, position));
    return stage_transfers_before(stages->training, trainer->plan->sequence.actions[position], stages->part);
}

static remat_status after_position(void *user, size_t position)
{
    remat_trainer *trainer = user;
    const pipeline *stages = trainer->pipeline;
    if (stages->statistics && stages->part != EXECUTOR_BACKWARD)
        REMAT_TRY(gradient_chain_after(stages->statistics, position));
    if (trainer->chain && stages->part != EXECUTOR_FORWARD)
        REMAT_TRY(gradient_chain_after(trainer->chain, position));
    return stage_transfers_after(stages->training, trainer->plan->sequence.actions[position], stages->part);
}

static remat_status run_part(remat_trainer *trainer, remat_executor *executor, executor_part part)
{
    const executor_hooks hooks = {.observe = trainer->on_action ? trainer_observe : NULL,
                                  .user = trainer,
                                  .before = before_position,
                                  .after = after_position,
                                  .part = part};
    trainer->pipeline->part = part;
    return hooks.observe ? executor_run_observed(executor, trainer->queue, &hooks)
                         : executor_run_watched(executor, trainer->queue, &hooks);
}

/* ---- one forward, one backward ---- */

/* Micro-batch number j of this row. */
typedef struct row_run {
    remat_trainer *trainer;
    uint64_t count; /* of the row */
    double *losses;
    double *data_seconds;
} row_run;

static remat_executor *executor_of(const row_run *run, uint64_t j)
{
    const pipeline *stages = run->trainer->pipeline;
    return stages->executors[j % stages->in_flight];
}

static void set_micro_step(const row_run *run, uint64_t j)
{
    remat_trainer *trainer = run->trainer;
    trainer->micro_step =
        trainer->step * trainer->settings.accumulate + j * trainer_row_count(trainer) + trainer_row(trainer);
}

static remat_status begin_chain(const row_run *run, gradient_chain *chain, uint64_t j)
{
    if (!chain)
        return REMAT_OK;
    return gradient_chain_begin(chain, j == 0 && trainer_row(run->trainer) == 0, j + 1 == run->count);
}

static bool is_last_stage(const remat_trainer *trainer)
{
    return trainer->program->turn == GRAPH_NONE;
}

/* The last stage goes backward at once. */
static remat_status run_forward(const row_run *run, uint64_t j)
{
    remat_trainer *trainer = run->trainer;
    set_micro_step(run, j);
    trainer->host_block.loss = 0;
    REMAT_TRY(trainer_send_block(trainer, sizeof trainer->host_block));
    REMAT_TRY(trainer_prepare_micro_batch(trainer, executor_of(run, j), run->data_seconds));
    REMAT_TRY(begin_chain(run, trainer->pipeline->statistics, j));
    if (!is_last_stage(trainer))
        return run_part(trainer, executor_of(run, j), EXECUTOR_FORWARD);
    REMAT_TRY(begin_chain(run, trainer->chain, j));
    REMAT_TRY(run_part(trainer, executor_of(run, j), EXECUTOR_WHOLE));
    REMAT_TRY(trainer_receive_block(trainer));
    run->losses[j] = trainer->host_block.loss;
    return REMAT_OK;
}

static remat_status run_backward(const row_run *run, uint64_t j)
{
    remat_trainer *trainer = run->trainer;
    if (is_last_stage(trainer))
        return REMAT_OK;
    set_micro_step(run, j);
    REMAT_TRY(trainer_prepare_backward(trainer));
    REMAT_TRY(begin_chain(run, trainer->chain, j));
    return run_part(trainer, executor_of(run, j), EXECUTOR_BACKWARD);
}

remat_status trainer_run_stages(remat_trainer *trainer, double *loss, double *data_seconds)
{
    pipeline *stages = trainer->pipeline;
    const row_run run = {.trainer = trainer,
                         .count = trainer->settings.accumulate / trainer_row_count(trainer),
                         .losses = trainer_own_losses(trainer),
                         .data_seconds = data_seconds};
    const uint64_t ahead = remat_min(stages->count - 1 - stages->number, run.count);
    REMAT_TRY(stage_transfers_begin(stages->training, run.count));
    for (uint64_t j = 0; j < run.count; j++)
        run.losses[j] = 0;
    for (uint64_t j = 0; j < run.count + ahead; j++) {
        if (j < run.count)
            REMAT_TRY(run_forward(&run, j));
        if (j >= ahead)
            REMAT_TRY(run_backward(&run, j - ahead));
    }
    if (trainer->chain)
        REMAT_TRY(gradient_chain_finish(trainer->chain));
    if (stages->statistics)
        REMAT_TRY(gradient_chain_finish(stages->statistics));
    REMAT_TRY(stage_transfers_finish(stages->training));
    REMAT_TRY(backend_wait(trainer->queue));
    return trainer_sum_losses(trainer, run.losses, loss);
}

/* ---- looking for what is not finite ---- */

static remat_status transfer_before(void *user, size_t position)
{
    remat_trainer *trainer = user;
    const pipeline *stages = trainer->pipeline;
    return stage_transfers_before(stages->training, trainer->plan->sequence.actions[position], stages->part);
}

static remat_status transfer_after(void *user, size_t position)
{
    remat_trainer *trainer = user;
    const pipeline *stages = trainer->pipeline;
    return stage_transfers_after(stages->training, trainer->plan->sequence.actions[position], stages->part);
}

static remat_status run_checked(remat_trainer *trainer, executor_part part)
{
    const executor_hooks hooks = {.user = trainer, .before = transfer_before, .after = transfer_after, .part = part};
    trainer->pipeline->part = part;
    return executor_run_checked(trainer->executor, trainer->queue, &hooks);
}

/* All micro-batches of the row, one after the other. The first layer that breaks in any of them is told. */
remat_status trainer_check_stage_outputs(remat_trainer *trainer)
{
    pipeline *stages = trainer->pipeline;
    double seconds = 0;
    const row_run run = {.trainer = trainer,
                         .count = trainer->settings.accumulate / trainer_row_count(trainer),
                         .data_seconds = &seconds};
    trainer->step--; /* the step that was taken */
    remat_status status = stage_transfers_begin(stages->training, run.count);
    for (uint64_t j = 0; j < run.count && status == REMAT_OK; j++) {
        set_micro_step(&run, j);
        status = trainer_prepare_micro_batch(trainer, trainer->executor, &seconds);
        if (status == REMAT_OK)
            status = run_checked(trainer, is_last_stage(trainer) ? EXECUTOR_WHOLE : EXECUTOR_FORWARD);
        if (status == REMAT_OK && !is_last_stage(trainer))
            status = run_checked(trainer, EXECUTOR_BACKWARD);
    }
    trainer->step++;
    REMAT_TRY(status);
    REMAT_TRY(stage_transfers_finish(stages->training));
    REMAT_TRY(trainer_receive_block(trainer));
    return trainer_share_broken(trainer);
}

/* ---- evaluation ---- */

static remat_status before_evaluated(void *user, size_t position)
{
    remat_trainer *trainer = user;
    return stage_transfers_before(trainer->pipeline->evaluation, trainer->evaluation_plan.sequence.actions[position],
                                  EXECUTOR_WHOLE);
}

static remat_status after_evaluated(void *user, size_t position)
{
    remat_trainer *trainer = user;
    return stage_transfers_after(trainer->pipeline->evaluation, trainer->evaluation_plan.sequence.actions[position],
                                 EXECUTOR_WHOLE);
}

remat_status trainer_run_evaluator(remat_trainer *trainer)
{
    const executor_hooks hooks = {.user = trainer, .before = before_evaluated, .after = after_evaluated};
    return trainer->pipeline ? executor_run_watched(trainer->evaluator, trainer->queue, &hooks)
                             : executor_run(trainer->evaluator, trainer->queue);
}

/* Batches go to the rows by turns. */
remat_status trainer_begin_evaluation(remat_trainer *trainer, uint64_t batches)
{
    const uint64_t rows = trainer_row_count(trainer), row = trainer_row(trainer);
    if (!trainer->pipeline)
        return REMAT_OK;
    return stage_transfers_begin(trainer->pipeline->evaluation, batches > row ? (batches - row - 1) / rows + 1 : 0);
}

remat_status trainer_end_evaluation(remat_trainer *trainer)
{
    return trainer->pipeline ? stage_transfers_finish(trainer->pipeline->evaluation) : REMAT_OK;
}
