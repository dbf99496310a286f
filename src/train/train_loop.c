/* The training loop: steps, validation, early stopping, the log, and the result of the run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "train/run_log.h"
#include "train/trainer_best.h"
#include "train/trainer_object.h"

void remat_run_hooks_init_sized(remat_run_hooks *hooks, size_t size)
{
    const remat_run_hooks defaults = {0};
    remat_options_give(hooks, size, &defaults, sizeof defaults);
}

/* The last few hundred step times: enough for a median, of a fixed size. */
enum { TIMES = 512 };

typedef struct training_run {
    remat_trainer *trainer;
    remat_run_hooks hooks;
    remat_run_result result;
    run_log *log;
    double times[TIMES], data_times[TIMES];
    size_t time_count;
    bool stop;
    bool best_written; /* this run has saved to best_path */
} training_run;

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_time(const training_run *run, double *times)
{
    size_t count = run->time_count < TIMES ? run->time_count : TIMES;
    if (count == 0)
        return 0;
    qsort(times, count, sizeof *times, compare_doubles);
    return times[count / 2];
}

/* Of this program since it began. getrusage would count also what the process held before it became this program. */
static uint64_t peak_resident(void)
{
    FILE *status = fopen("/proc/self/status", "re");
    char line[256];
    unsigned long long kib = 0;
    while (status && fgets(line, sizeof line, status) && sscanf(line, "VmHWM: %llu kB", &kib) != 1)
        ;
    if (status)
        fclose(status);
    return kib * 1024;
}

/* `counts`: a validation at its regular time. The one at the end of a run is only shown, so that a training that is
 * resumed from there has the same history as one that went on. */
static remat_status validate(training_run *run, bool counts)
{
    remat_trainer *trainer = run->trainer;
    remat_validation_result result;
    REMAT_TRY(remat_trainer_validate(trainer, &result));
    if (run->log)
        run_log_validation(run->log, trainer->step, &result);
    if (run->hooks.on_validation)
        run->hooks.on_validation(run->hooks.user, trainer->step, &result);
    if (!counts)
        return REMAT_OK;
    optimizer_note_validation(&trainer->optimizer, result.loss, &trainer->plateau);
    if (result.loss < trainer->best_validation) { /* which NaN never is */
        trainer->best_validation = result.loss;
        trainer->best_step = trainer->step;
        trainer->stale_validations = 0;
        if (run->hooks.best_path)
            trainer_save_best(trainer, run->hooks.best_path, !run->hooks.save_weights_only, &run->best_written);
    } else {
        trainer->stale_validations++;
    }
    if (trainer->settings.early_stopping && trainer->stale_validations >= trainer->settings.early_stopping)
        run->result.stopped_early = run->stop = true;
    return REMAT_OK;
}

static bool has_validation(const remat_trainer *trainer)
{
    return data_source_samples(trainer->data, DATA_VALIDATION) >= trainer->network->batch;
}

/* The rate would never fall. */
static remat_status check_plateau(const remat_trainer *trainer)
{
    if (trainer->optimizer.schedule != RATE_PLATEAU || has_validation(trainer))
        return REMAT_OK;
    return remat_fail(trainer->context, REMAT_INVALID, NULL,
                      "the schedule plateau needs validations, but there are fewer samples for them than a batch has; "
                      "say validation_split or validation_inputs in [Dataset]");
}

static remat_status validate_where_due(training_run *run)
{
    const remat_trainer *trainer = run->trainer;
    if (!has_validation(trainer))
        return REMAT_OK;
    uint64_t every = model_get_dataset(trainer->model)->validation_every;
    if (every == 0)
        every = trainer->steps_per_epoch;
    bool regular = trainer->step % every == 0;
    return regular || trainer->step == trainer->total_steps ? validate(run, regular) : REMAT_OK;
}

/* Training goes on where a save fails: the file before is still there, and the next save may work. */
static void save_where_due(const training_run *run)
{
    const remat_run_hooks *hooks = &run->hooks;
    remat_context *context = run->trainer->context;
    if (!hooks->save_path || hooks->save_every == 0 || run->trainer->step % hooks->save_every != 0)
        return;
    if (remat_trainer_save(run->trainer, hooks->save_path, !hooks->save_weights_only) != REMAT_OK)
        remat_warn(context, NULL, "%s; the training goes on", remat_context_message(context));
}

static remat_status take_steps(training_run *run)
{
    remat_trainer *trainer = run->trainer;
    while (trainer->step < trainer->total_steps && !run->stop) {
        remat_step_result result;
        REMAT_TRY(remat_trainer_step(trainer, &result));
        run->result.steps++;
        run->result.last_loss = result.loss;
        if (run->result.steps > 1) { /* the first touches all memory for the first time */
            run->times[run->time_count % TIMES] = result.seconds;
            run->data_times[run->time_count++ % TIMES] = result.data_seconds;
        }
        if (run->log)
            run_log_step(run->log, &result);
        const bool stops = run->hooks.on_step && !run->hooks.on_step(run->hooks.user, &result);
        REMAT_TRY(trainer_any_rank(trainer, stops, &run->result.stopped));
        run->stop |= run->result.stopped;
        if (result.diverged) /* before the first update the rate has done nothing yet */
            return trainer_fail_diverged(trainer, result.step, run->result.steps == 1);
        REMAT_TRY(validate_where_due(run));
        save_where_due(run);
    }
    return REMAT_OK;
}

remat_status remat_trainer_run_sized(remat_trainer *trainer, const remat_run_hooks *hooks, remat_run_result *result,
                                     size_t result_size)
{
    REMAT_TRY(trainer_check_started(trainer));
    training_run *run = remat_alloc_zeroed(trainer->context, 1, sizeof *run);
    if (!run)
        return REMAT_NO_MEMORY;
    remat_run_hooks_init(&run->hooks);
    run->trainer = trainer;
    run->result.last_loss = NAN;
    remat_status status =
        remat_options_copy(trainer->context, &run->hooks, sizeof run->hooks, hooks, "remat_run_hooks_init");
    if (status == REMAT_OK)
        status = check_plateau(trainer);
    if (status == REMAT_OK && run->hooks.log_path && trainer_rank(trainer) == 0)
        status = run_log_open(trainer, run->hooks.log_path, trainer->resumed, &run->log);
    if (status == REMAT_OK)
        status = take_steps(run);
    run->result.best_step = trainer->best_step;
    run->result.best_validation_loss = isinf(trainer->best_validation) ? NAN : trainer->best_validation;
    if (status == REMAT_OK && run->result.stopped_early && run->hooks.best_path)
        status = trainer_restore_best(trainer, run->hooks.best_path, !run->hooks.save_weights_only, run->best_written,
                                      &run->result.restored_best);
    run->result.median_step_seconds = median_time(run, run->times);
    run->result.median_data_seconds = median_time(run, run->data_times);
    run->result.peak_resident_bytes = peak_resident();
    run->result.allocated_bytes = trainer_allocated_bytes(trainer) + trainer_mapped_bytes(trainer);
    run->result.forwards = executor_forwards(trainer->executor);
    run_log_close(run->log, &run->result);
    if (result)
        remat_struct_give(result, result_size, &run->result, sizeof run->result);
    remat_release(trainer->context, run, 1, sizeof *run);
    return status;
}
