#include <math.h>

#include "train/run_log.h"

#include "train/trainer_object.h"

remat_status run_log_open(const remat_trainer *trainer, const char *path, bool append, run_log **log)
{
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    const bool measured = trainer->options.profile_path != NULL;
    run_log_header header = {
        .model = trainer->settings.name,
        .strategy = figures.strategy,
        .kernels = figures.kernels,
        .remark = figures.remark,
        .first_step = trainer->step,
        .total_steps = figures.total_steps,
        .steps_per_epoch = figures.steps_per_epoch,
        .parameters = figures.parameters,
        .batch = figures.batch_size,
        .accumulate = figures.accumulate,
        .threads = figures.threads,
        .seed = trainer->seed,
        .layers = figures.layers,
        .recomputed_layers = figures.recomputed_layers,
        .forwards = figures.forwards,
        .budget_bytes = figures.budget_bytes == REMAT_NO_BUDGET ? REMAT_NOWHERE : figures.budget_bytes,
        .min_budget_bytes = figures.min_budget_bytes,
        .total_bytes = figures.total_bytes,
        .weight_bytes = figures.weight_bytes,
        .optimizer_bytes = figures.optimizer_bytes,
        .gradient_bytes = figures.gradient_bytes,
        .scratch_bytes = figures.scratch_bytes,
        .arena_bytes = figures.arena_bytes,
        .peak_bytes = figures.peak_bytes,
        .keep_all_arena_bytes = figures.keep_all_arena_bytes,
        /* Modelled costs are good for comparing plans, not for predicting seconds. */
        .predicted_step_seconds = measured ? 1e-9 * (double)figures.cost : NAN,
        .keep_all_step_seconds = measured ? 1e-9 * (double)figures.keep_all_cost : NAN,
    };
    return run_log_create(trainer->context, path, append, &header, log);
}
