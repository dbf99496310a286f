#include <math.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/error.h"
#include "train/optimizer.h"
#include "train/trainer_object.h"

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- the optimizer's part ---- */

static const real *gradient_of(const remat_trainer *trainer, uint32_t parameter)
{
    return trainer->gradients.memory ? trainer->gradient_values[parameter]
                                     : executor_gradient(trainer->executor, parameter);
}

/* Clipping: the norm over all gradients, parameter after parameter, so that the sum has one order. */
static void find_norm(void *user)
{
    remat_trainer *trainer = user;
    if (trainer->settings.clip_norm <= 0)
        return;
    double sum = 0;
    uint64_t began = trainer_clock(trainer), values = 0;
    for (uint32_t p = 0; p < trainer->network->parameter_count; p++) {
        const network_parameter *about = &trainer->network->parameters[p];
        if (about->about.statistic || !gradient_of(trainer, p))
            continue;
        sum += trainer->kernels->sum_of_squares(&trainer->run, about->values, gradient_of(trainer, p));
        values += about->values;
    }
    trainer->gradient_norm = sqrt(sum);
    double scale = trainer->settings.clip_norm / (trainer->gradient_norm + 1e-6);
    trainer->clip_scale = scale < 1 ? scale : 1;
    trainer_note_all(trainer, "apply", began, 2 * values, values * sizeof(real));
}

void trainer_apply(remat_trainer *trainer, uint32_t parameter, const real *gradient)
{
    const network_parameter *about = &trainer->network->parameters[parameter];
#ifndef REMAT_REAL_IS_DOUBLE
    if (trainer->on_gradient)
        trainer->on_gradient(trainer->on_gradient_user, parameter, gradient, about->values);
#endif
    real *moments[2] = {trainer->moment_values[0][parameter], trainer->moment_values[1][parameter]};
    optimizer_apply(trainer->kernels, &trainer->run, &trainer->optimizer, trainer->step + 1, trainer->rate,
                    trainer->clip_scale, about->about.decay, about->values, gradient,
                    trainer->parameter_values[parameter], moments);
}

static void apply(void *user, uint32_t parameter, const real *gradient)
{
    trainer_apply(user, parameter, gradient);
}

static void apply_all(remat_trainer *trainer)
{
    find_norm(trainer);
    for (uint32_t p = 0; p < trainer->network->parameter_count; p++) {
        if (trainer->network->parameters[p].about.statistic)
            continue;
        uint64_t began = trainer_clock(trainer);
        trainer_apply(trainer, p, trainer->gradient_values[p]);
        trainer_note_apply(trainer, p, began);
    }
}

/* Before the first micro-batch, where several are added up. */
static void clear_gradients(const remat_trainer *trainer)
{
    uint64_t began = trainer_clock(trainer);
    memset(trainer->gradients.memory, 0, trainer->gradients.bytes);
    trainer_note_all(trainer, "gradient", began, 0, trainer->gradients.bytes);
}

/* ---- one step ---- */

static void point_at_inputs(remat_trainer *trainer, const remat_executor *executor)
{
    size_t next = 0;
    for (uint32_t n = 0; n < trainer->network->layer_count; n++)
        if (trainer->network->layers[n].node.input_count == 0)
            trainer->input_pointers[next++] = executor_input(executor, n);
}

remat_status trainer_fill_first(remat_trainer *trainer)
{
    point_at_inputs(trainer, trainer->executor);
    return data_source_fill(trainer->data, DATA_TRAINING, 0, 0, trainer->network->batch, trainer->input_pointers,
                            executor_labels(trainer->executor));
}

static remat_status run_micro_batch(remat_trainer *trainer, double *loss, double *data_seconds)
{
    double began = seconds_now();
    uint64_t micro_per_epoch = trainer->steps_per_epoch * trainer->settings.accumulate;
    uint64_t epoch = trainer->micro_step / micro_per_epoch;
    uint64_t first = trainer->micro_step % micro_per_epoch * trainer->network->batch;
    point_at_inputs(trainer, trainer->executor);
    REMAT_TRY(data_source_fill(trainer->data, DATA_TRAINING, epoch, first, trainer->network->batch,
                               trainer->input_pointers, executor_labels(trainer->executor)));
    *data_seconds += seconds_now() - began;
    /* Streams count 2^32 steps; beyond, the seed moves on. */
    uint64_t seed = trainer->seed + (trainer->micro_step >> 32) * UINT64_C(0x9E3779B97F4A7C15);
    const executor_turn turn = {seed, (uint32_t)trainer->micro_step, true, 1.0 / (double)trainer->settings.accumulate};
    const executor_hooks hooks = {find_norm, apply, trainer->on_action ? trainer_observe : NULL, trainer};
    *loss += executor_run(trainer->executor, &turn, &hooks);
    trainer->micro_step++;
    return REMAT_OK;
}

remat_status remat_trainer_step(remat_trainer *trainer, remat_step_result *result)
{
    double began = seconds_now(), loss = 0, data_seconds = 0;
    uint64_t micro_batches = trainer->settings.accumulate;
    trainer->rate = optimizer_rate(&trainer->optimizer, trainer->step, trainer->total_steps);
    trainer->clip_scale = 1;
    trainer->gradient_norm = NAN;
    trainer->micro_step = trainer->step * micro_batches; /* a step that failed between micro-batches begins anew */
    if (trainer->gradients.memory)
        clear_gradients(trainer);
    for (uint64_t m = 0; m < micro_batches; m++)
        REMAT_TRY(run_micro_batch(trainer, &loss, &data_seconds));
    if (trainer->gradients.memory)
        apply_all(trainer);
    uint64_t epoch = trainer->step / trainer->steps_per_epoch;
    trainer->step++;
    *result = (remat_step_result){.step = trainer->step,
                                  .epoch = epoch,
                                  .loss = loss / (double)micro_batches,
                                  .rate = trainer->rate,
                                  .gradient_norm = trainer->gradient_norm,
                                  .seconds = seconds_now() - began,
                                  .data_seconds = data_seconds};
    return REMAT_OK;
}

void remat_trainer_on_gradient(remat_trainer *trainer, remat_gradient_fn visit, void *user)
{
    trainer->on_gradient = visit;
    trainer->on_gradient_user = user;
}

/* ---- validation ---- */

remat_status remat_trainer_validate(remat_trainer *trainer, remat_validation_result *result)
{
    uint64_t batch = trainer->network->batch, samples = data_source_samples(trainer->data, DATA_VALIDATION);
    uint64_t batches = samples / batch;
    if (batches == 0)
        return remat_fail(trainer->context, REMAT_INVALID, NULL,
                          "there is no validation batch: the validation data has %llu samples and a batch takes %llu",
                          (unsigned long long)samples, (unsigned long long)batch);
    const executor_turn turn = {trainer->seed, 0, false, 1.0};
    const executor_hooks hooks = {NULL, NULL, NULL, trainer};
    double loss = 0, correct = 0;
    for (uint64_t b = 0; b < batches; b++) {
        point_at_inputs(trainer, trainer->evaluator);
        REMAT_TRY(data_source_fill(trainer->data, DATA_VALIDATION, 0, b * batch, batch, trainer->input_pointers,
                                   executor_labels(trainer->evaluator)));
        loss += executor_run(trainer->evaluator, &turn, &hooks);
        correct += (double)executor_correct(trainer->evaluator);
    }
    double rows = (double)(batches * batch * layer_values(trainer->network->labels));
    *result = (remat_validation_result){loss / (double)batches, trainer->network->integer_labels ? correct / rows : NAN,
                                        batches * batch};
    return REMAT_OK;
}
