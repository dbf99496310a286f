#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "base/error.h"
#include "base/options.h"
#include "layers/cross_entropy.h"
#include "train/host_view.h"
#include "train/optimizer.h"
#include "train/trainer_object.h"

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- the step block ---- */

/* The part that the host sets; kernels add to the rest. */
enum { HOST_PART = offsetof(step_block, scale) };

remat_status trainer_send_block(remat_trainer *trainer, uint64_t bytes)
{
    return backend_copy_in(trainer->queue, trainer->block.at, &trainer->host_block, bytes);
}

/* Gets it back when the queue has done its work. */
remat_status trainer_receive_block(remat_trainer *trainer)
{
    REMAT_TRY(backend_copy_out(trainer->queue, &trainer->host_block, trainer->block.at, sizeof trainer->host_block));
    return backend_wait(trainer->queue);
}

/* ---- labels ---- */

/* Whether the loss is divided by the labels of a step that are not negative. */
static bool counts_labels(const remat_trainer *trainer)
{
    return cross_entropy_counts_labels(&trainer->network->layers[trainer->network->layer_count - 1].node);
}

/* How many labels of the batch that was filled last are not negative. */
static uint32_t filled_labels(const remat_trainer *trainer)
{
    const remat_network *network = trainer->network;
    return labels_count(trainer->staged.labels, network->batch * layer_values(network->labels));
}

/* ---- one run of the executor ---- */

remat_status trainer_show_gradient(void *user, uint32_t parameter, tensor_ref gradient)
{
    const remat_trainer *trainer = user;
    const network_parameter *about = &trainer->network->parameters[parameter];
    host_view view;
    REMAT_TRY(host_view_open(trainer->queue, gradient.at, dtype_bytes(gradient.type, about->values), true, &view));
    trainer->on_gradient(trainer->on_gradient_user, parameter, view.host, about->values);
    return host_view_close(&view, false);
}

static remat_status before_position(void *user, size_t position)
{
    remat_trainer *trainer = user;
    if (trainer_scatters(trainer))
        REMAT_TRY(trainer_scatter(trainer, position));
    return gradient_chain_before(trainer->chain, position);
}

static remat_status after_position(void *user, size_t position)
{
    return gradient_chain_after(((remat_trainer *)user)->chain, position);
}

static remat_status run_executor(remat_trainer *trainer, remat_executor *executor)
{
    const bool applies = !trainer_adds(trainer); /* else gradients are only summed in a run */
    const executor_hooks hooks = {.observe = trainer->on_action ? trainer_observe : NULL,
                                  .observe_begin = trainer->on_action && applies ? trainer_observe_norm : NULL,
                                  .before_apply = trainer->on_gradient && applies ? trainer_show_gradient : NULL,
                                  .user = trainer,
                                  .before = trainer->chain ? before_position : NULL,
                                  .after = trainer->chain ? after_position : NULL};
    if (hooks.observe || hooks.before_apply)
        return executor_run_observed(executor, trainer->queue, &hooks);
    if (trainer->chain)
        return executor_run_watched(executor, trainer->queue, &hooks);
    return executor_run(executor, trainer->queue);
}

static remat_status send_first(remat_trainer *trainer)
{
    trainer->host_block = (step_block){.seed = trainer->seed, .scale = 1};
    optimizer_set_step(&trainer->optimizer, 1, trainer->optimizer.learning_rate, &trainer->host_block);
    staging_aim(&trainer->staged, trainer->executor);
    REMAT_TRY(data_source_fill(trainer->data, DATA_TRAINING, 0, 0, trainer->network->batch, trainer->staged.inputs,
                               trainer->staged.labels));
    if (counts_labels(trainer))
        trainer->host_block.labels = filled_labels(trainer);
    REMAT_TRY(trainer_send_block(trainer, sizeof trainer->host_block));
    return staging_send(&trainer->staged, trainer->executor, trainer->queue);
}

remat_status trainer_run_first(remat_trainer *trainer, const executor_hooks *hooks)
{
    REMAT_TRY(send_first(trainer));
    if (hooks)
        return executor_run_observed(trainer->executor, trainer->queue, hooks);
    REMAT_TRY(executor_run(trainer->executor, trainer->queue));
    return backend_wait(trainer->queue);
}

remat_status trainer_time_first(remat_trainer *trainer, uint64_t *nanoseconds)
{
    REMAT_TRY(send_first(trainer));
    REMAT_TRY(backend_wait(trainer->queue));
    const double began = seconds_now();
    REMAT_TRY(executor_run(trainer->executor, trainer->queue));
    REMAT_TRY(backend_wait(trainer->queue));
    *nanoseconds = (uint64_t)(1e9 * (seconds_now() - began));
    return REMAT_OK;
}

/* ---- one step ---- */

/* Which random numbers a micro-batch draws. Streams count 2^32 steps; beyond, the seed moves on. */
static void set_stream(remat_trainer *trainer, uint64_t micro_step)
{
    trainer->host_block.seed = trainer->seed + (micro_step >> 32) * UINT64_C(0x9E3779B97F4A7C15);
    trainer->host_block.step = (uint32_t)micro_step;
}

static remat_status fill(remat_trainer *trainer, uint64_t micro_step)
{
    uint64_t micro_per_epoch = trainer->steps_per_epoch * trainer->settings.accumulate;
    uint64_t epoch = micro_step / micro_per_epoch;
    uint64_t first = micro_step % micro_per_epoch * trainer->network->batch;
    return data_source_fill(trainer->data, DATA_TRAINING, epoch, first, trainer->network->batch, trainer->staged.inputs,
                            trainer->staged.labels);
}

/* Writes the next micro-batch while the device computes this one. A failure is not reported: the data will be read again when it is
 * wanted, if it is. */
static void fill_ahead(remat_trainer *trainer)
{
    if (staging_turn(&trainer->staged, trainer->executor) && fill(trainer, trainer->micro_step) == REMAT_OK)
        trainer->staged.ahead = trainer->micro_step;
}

/* Writes a micro-batch to where the executor reads it. */
static remat_status fill_micro_batch(remat_trainer *trainer, uint64_t micro_step, double *data_seconds)
{
    /* The run before reads where the new batch goes, and the block of this one, which is about to change, is on its way. */
    REMAT_TRY(backend_wait(trainer->queue));
    if (trainer->staged.ahead == micro_step) {
        trainer->staged.ahead = STAGING_NOTHING; /* whoever gets it may change it */
        return REMAT_OK;
    }
    double began = seconds_now();
    staging_aim(&trainer->staged, trainer->executor);
    REMAT_TRY(fill(trainer, micro_step));
    *data_seconds += seconds_now() - began;
    return REMAT_OK;
}

/* Of all micro-batches of the step, those of other ranks too: the data of each is read once more. */
static remat_status count_labels(remat_trainer *trainer, double *data_seconds)
{
    const uint64_t count = trainer->settings.accumulate;
    uint64_t labels = 0;
    for (uint64_t m = 0; m < count && counts_labels(trainer); m++) {
        REMAT_TRY(fill_micro_batch(trainer, trainer->step * count + m, data_seconds));
        labels += filled_labels(trainer);
    }
    trainer->host_block.labels = labels < UINT32_MAX ? (uint32_t)labels : UINT32_MAX;
    return REMAT_OK;
}

/* Reads the micro-batch of trainer->micro_step. */
static remat_status read_micro_batch(remat_trainer *trainer, double *data_seconds)
{
    REMAT_TRY(fill_micro_batch(trainer, trainer->micro_step, data_seconds));
    if (counts_labels(trainer) && trainer->settings.accumulate == 1)
        trainer->host_block.labels = filled_labels(trainer);
    return REMAT_OK;
}

remat_status trainer_prepare_micro_batch(remat_trainer *trainer, remat_executor *executor, double *data_seconds)
{
    REMAT_TRY(read_micro_batch(trainer, data_seconds));
    REMAT_TRY(staging_send(&trainer->staged, executor, trainer->queue));
    return trainer_prepare_backward(trainer);
}

/* The same for the executor of its length. What is observed has the positions of the plan for the whole length. */
static remat_status prepare_in_class(remat_trainer *trainer, remat_executor **executor, double *data_seconds)
{
    REMAT_TRY(read_micro_batch(trainer, data_seconds));
    const length_class *shorter = trainer->on_action ? NULL : length_classes_choose(trainer);
    *executor = shorter ? shorter->executor : trainer->executor;
    REMAT_TRY(shorter ? staging_send_short(&trainer->staged, shorter->network, *executor, trainer->queue)
                      : staging_send(&trainer->staged, *executor, trainer->queue));
    return trainer_prepare_backward(trainer);
}

remat_status trainer_prepare_backward(remat_trainer *trainer)
{
    set_stream(trainer, trainer->micro_step);
    return trainer_send_block(trainer, HOST_PART);
}

static remat_status run_micro_batch(remat_trainer *trainer, double *data_seconds)
{
    remat_executor *executor;
    REMAT_TRY(prepare_in_class(trainer, &executor, data_seconds));
    REMAT_TRY(run_executor(trainer, executor));
    trainer->micro_step++;
    fill_ahead(trainer);
    return REMAT_OK;
}

/* Micro-batch number m of the step; its loss. */
static remat_status run_numbered(remat_trainer *trainer, uint64_t m, double *loss, double *data_seconds)
{
    trainer->micro_step = trainer->step * trainer->settings.accumulate + m;
    trainer->host_block.loss = 0;
    REMAT_TRY(trainer_send_block(trainer, sizeof trainer->host_block));
    REMAT_TRY(run_micro_batch(trainer, data_seconds));
    REMAT_TRY(trainer_receive_block(trainer));
    *loss = trainer->host_block.loss;
    return REMAT_OK;
}

/* Rank r of N runs the micro-batches r, r + N, r + 2 N, ... Losses are added in the order of all micro-batches. */
static remat_status run_shared(remat_trainer *trainer, double *loss, double *data_seconds)
{
    const uint64_t size = trainer_rank_count(trainer), count = trainer->settings.accumulate;
    double *losses = trainer_own_losses(trainer);
    for (uint64_t j = 0, m = trainer_rank(trainer); m < count; j++, m += size) {
        REMAT_TRY(gradient_chain_begin(trainer->chain, m == 0, m + size >= count));
        REMAT_TRY(run_numbered(trainer, m, &losses[j], data_seconds));
    }
    REMAT_TRY(gradient_chain_finish(trainer->chain));
    return trainer_sum_losses(trainer, losses, loss);
}

static remat_status run_alone(remat_trainer *trainer, double *loss, double *data_seconds)
{
    double one;
    *loss = 0;
    for (uint64_t m = 0; m < trainer->settings.accumulate; m++) {
        REMAT_TRY(run_numbered(trainer, m, &one, data_seconds));
        *loss += one;
    }
    return REMAT_OK;
}

static remat_status run_accumulated(remat_trainer *trainer, double *data_seconds)
{
    double loss;
    REMAT_TRY(trainer_clear_gradients(trainer));
    REMAT_TRY(backend_wait(trainer->queue)); /* what comes from other ranks is written there */
    remat_status status = trainer->pipeline ? trainer_run_stages(trainer, &loss, data_seconds)
                          : trainer->chain  ? run_shared(trainer, &loss, data_seconds)
                                            : run_alone(trainer, &loss, data_seconds);
    if (status == REMAT_OK) {
        trainer->micro_step = (trainer->step + 1) * trainer->settings.accumulate;
        trainer->host_block.loss = loss;
        set_stream(trainer, trainer->micro_step - 1); /* updates may round at random: the same on all ranks */
        REMAT_TRY(trainer_send_block(trainer, sizeof trainer->host_block));
        REMAT_TRY(trainer_apply_gradients(trainer));
        if (trainer->shard)
            REMAT_TRY(trainer_join_weights(trainer));
        return trainer->pipeline ? trainer_share_tied(trainer) : REMAT_OK;
    }
    REMAT_TRY(trainer_restore_statistics(trainer)); /* the micro-batches before have moved them */
    return status;
}

static remat_status run_step(remat_trainer *trainer, double rate, double *data_seconds)
{
    trainer->host_block = (step_block){.scale = 1};
    optimizer_set_step(&trainer->optimizer, trainer->step + 1, rate, &trainer->host_block);
    if (trainer->settings.accumulate > 1)
        REMAT_TRY(count_labels(trainer, data_seconds));
    REMAT_TRY(trainer_send_block(trainer, sizeof trainer->host_block));
    /* A step that failed between micro-batches begins anew. */
    trainer->micro_step = trainer->step * trainer->settings.accumulate;
    if (trainer_adds(trainer))
        REMAT_TRY(run_accumulated(trainer, data_seconds));
    else
        REMAT_TRY(run_micro_batch(trainer, data_seconds));
    REMAT_TRY(trainer_receive_block(trainer));
    return trainer->shard || trainer->pipeline ? trainer_share_broken(trainer) : REMAT_OK;
}

remat_status remat_trainer_step_sized(remat_trainer *trainer, remat_step_result *result, size_t result_size)
{
    REMAT_TRY(trainer_check_started(trainer));
    REMAT_TRY(trainer_check_mapped(trainer));
    REMAT_TRY(trainer_compare_ranks(trainer));
    if (trainer->on_gradient && (trainer_scatters(trainer) || trainer->pipeline))
        return remat_fail(trainer->context, REMAT_INVALID, NULL, "no rank has %s gradients to show: %s",
                          trainer->pipeline ? "all" : "whole",
                          trainer->pipeline ? "leave out the pipeline" : "share only the state of the optimizer");
    if (trainer->step >= INT64_MAX / trainer->settings.accumulate)
        return remat_fail(trainer->context, REMAT_INVALID, NULL,
                          "the training has taken %" PRIu64 " steps: no file could state more", trainer->step);
    double began = seconds_now(), data_seconds = 0;
    double rate = optimizer_rate(&trainer->optimizer, trainer->step, trainer->total_steps, trainer->plateau.cuts);
    remat_status status = run_step(trainer, rate, &data_seconds);
    if (status != REMAT_OK) {
        backend_wait(trainer->queue); /* nothing goes on behind a failure */
        return status;
    }
    const step_block *block = &trainer->host_block;
    uint64_t epoch = trainer->step / trainer->steps_per_epoch;
    trainer->step++;
    const remat_step_result taken = {.step = trainer->step,
                                     .epoch = epoch,
                                     .loss = block->loss / (double)trainer->settings.accumulate,
                                     .learning_rate = rate,
                                     .gradient_norm = trainer->settings.clip_norm > 0 ? sqrt(block->squares) : NAN,
                                     .seconds = seconds_now() - began,
                                     .data_seconds = data_seconds,
                                     .diverged = !step_is_finite(block)};
    remat_struct_give(result, result_size, &taken, sizeof taken);
    return REMAT_OK;
}

/* ---- a step that diverged ---- */

/* The number of the first layer whose output is not finite in the step that was taken last; the last layer, the loss, where
 * all outputs are. The step runs again: the weights are those that it began with. */
static remat_status find_broken_layer(remat_trainer *trainer, uint64_t *layer)
{
    const uint64_t next = trainer->micro_step, micro_batches = trainer->settings.accumulate;
    double seconds = 0;
    trainer->host_block = (step_block){.scale = 1, .loss = NAN}; /* so that nothing is updated */
    remat_status status = trainer_send_block(trainer, sizeof trainer->host_block);
    trainer->micro_step = next - micro_batches;
    if (trainer->pipeline && status == REMAT_OK)
        status = trainer_check_stage_outputs(trainer);
    for (; !trainer->pipeline && trainer->micro_step < next && status == REMAT_OK && !trainer->host_block.broken;
         trainer->micro_step++) {
        remat_executor *executor;
        status = prepare_in_class(trainer, &executor, &seconds);
        if (status == REMAT_OK)
            status = executor_run_checked(executor, trainer->queue, NULL);
        if (status == REMAT_OK)
            status = trainer_receive_block(trainer);
    }
    trainer->micro_step = next;
    *layer = trainer->host_block.broken ? trainer->host_block.broken - 1 : trainer->network->layer_count - 1;
    return status;
}

remat_status trainer_fail_diverged(remat_trainer *trainer, uint64_t step, bool is_first)
{
    const step_block block = trainer->host_block;
    const remat_network *network = trainer->network;
    const char *advice = is_first ? "the data or the weights may hold NaN, infinity or very large numbers"
                                  : "a smaller learning rate or clip_norm may help";
    if (isfinite(block.loss))
        return remat_fail(trainer->context, REMAT_DIVERGED, NULL,
                          "step %" PRIu64
                          " diverged: the gradient of %s is not finite or too large; a smaller learning "
                          "rate or clip_norm may help",
                          step, block.broken ? network->parameters[block.broken - 1].name : "the weights");
    uint64_t layer;
    kept_memory kept = {0};
    REMAT_TRY(trainer_keep(trainer, &kept)); /* running statistics would count the batch twice */
    remat_status status = find_broken_layer(trainer, &layer);
    remat_status restored = trainer_put_back(trainer, &kept);
    REMAT_TRY(status);
    REMAT_TRY(restored);
    return remat_fail(trainer->context, REMAT_DIVERGED, NULL,
                      "step %" PRIu64
                      " diverged: the loss is not finite; the first layer whose output is not finite is %s; %s",
                      step, network->layers[layer].node.name, advice);
}

void remat_trainer_on_gradient(remat_trainer *trainer, remat_gradient_fn visit, void *user)
{
    trainer->on_gradient = visit;
    trainer->on_gradient_user = user;
}

/* ---- validation ---- */

/* Of one batch: what its loss is a mean of, the sum of those losses, and how many rows are correct. */
static remat_status evaluate_batch(remat_trainer *trainer, uint64_t number, double found[3])
{
    const uint64_t batch = trainer->network->batch;
    trainer->host_block = (step_block){.seed = trainer->seed, .scale = 1};
    staging_aim(&trainer->staged, trainer->evaluator);
    REMAT_TRY(data_source_fill(trainer->data, DATA_VALIDATION, 0, number * batch, batch, trainer->staged.inputs,
                               trainer->staged.labels));
    if (counts_labels(trainer))
        trainer->host_block.labels = filled_labels(trainer);
    found[0] = counts_labels(trainer) ? (double)trainer->host_block.labels : 1;
    REMAT_TRY(trainer_send_block(trainer, sizeof trainer->host_block));
    REMAT_TRY(staging_send(&trainer->staged, trainer->evaluator, trainer->queue));
    REMAT_TRY(trainer_run_evaluator(trainer));
    REMAT_TRY(trainer_receive_block(trainer));
    found[1] = trainer->host_block.loss * found[0];
    found[2] = (double)trainer->host_block.correct;
    return REMAT_OK;
}

/* Ranks, or rows of a pipeline, take turns. The losses are added in the order of the batches. */
static remat_status evaluate(remat_trainer *trainer, uint64_t batches, double sums[3])
{
    const uint64_t size = trainer_row_count(trainer), rank = trainer_row(trainer);
    const uint64_t stages = trainer_stage_count(trainer);
    sums[0] = sums[1] = sums[2] = 0;
    REMAT_TRY(backend_wait(trainer->queue));
    REMAT_TRY(trainer_begin_evaluation(trainer, batches));
    for (uint64_t first = 0; first < batches; first += size) {
        double mine[3] = {0, 0, 0};
        const double *all;
        if (first + rank < batches)
            REMAT_TRY(evaluate_batch(trainer, first + rank, mine));
        else if (trainer->evaluation->fetches) /* the others need its weights */
            REMAT_TRY(evaluate_batch(trainer, 0, mine));
        REMAT_TRY(trainer_gather_sums(trainer, mine, &all));
        for (uint64_t r = 0; r < size && first + r < batches; r++)
            for (uint64_t i = 0; i < 3; i++)
                sums[i] += all[3 * (r * stages + stages - 1) + i]; /* the last stage has the loss */
    }
    return trainer_end_evaluation(trainer);
}

remat_status remat_trainer_validate_sized(remat_trainer *trainer, remat_validation_result *result, size_t result_size)
{
    REMAT_TRY(trainer_check_started(trainer));
    uint64_t batch = trainer->network->batch, samples = data_source_samples(trainer->data, DATA_VALIDATION);
    uint64_t batches = samples / batch;
    if (batches == 0)
        return remat_fail(trainer->context, REMAT_INVALID, NULL,
                          "there is no validation batch: the validation data has %llu samples and a batch takes %llu",
                          (unsigned long long)samples, (unsigned long long)batch);
    double sums[3];
    REMAT_TRY(evaluate(trainer, batches, sums));
    double rows = counts_labels(trainer) ? sums[0] : (double)(batches * batch * layer_values(trainer->network->labels));
    bool classes = trainer->network->labels_dtype == REMAT_INT32;
    const remat_validation_result found = {sums[0] > 0 ? sums[1] / sums[0] : 0, classes ? sums[2] / rows : NAN,
                                           batches * batch};
    remat_struct_give(result, result_size, &found, sizeof found);
    return REMAT_OK;
}
