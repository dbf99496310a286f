/* Which batch a budget allows, and which of them trains fastest by the plan's prediction. */
#include "base/error.h"
#include "base/options.h"
#include "train/trainer_object.h"

/* ---- one batch ---- */

/* What the plan for a batch size says. */
typedef struct batch_trial {
    uint64_t batch;
    double sample_cost; /* nanoseconds for one sample */
    bool fits;
    bool keeps_all; /* nothing is recomputed */
} batch_trial;

/* Who trains with the batch that is found gets the warnings. */
static remat_status create_quietly(remat_model *model, const remat_train_options *options, remat_trainer **trainer)
{
    remat_context_set_quiet(model_context(model), true);
    remat_status status = remat_trainer_create(model, options, trainer);
    remat_context_set_quiet(model_context(model), false);
    return status;
}

/* REMAT_OK also where it does not fit. */
static remat_status try_batch(remat_model *model, const remat_train_options *options, uint64_t batch,
                              batch_trial *trial)
{
    remat_train_options wanted = *options;
    wanted.batch_size = batch;
    wanted.plan_only = true;
    remat_trainer *trainer;
    *trial = (batch_trial){.batch = batch};
    remat_status status = create_quietly(model, &wanted, &trainer);
    if (status == REMAT_INFEASIBLE)
        return REMAT_OK;
    if (status != REMAT_OK)
        return status;
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    trial->fits = true;
    trial->keeps_all = figures.cost <= figures.keep_all_cost;
    trial->sample_cost = (double)figures.cost / ((double)batch * (double)figures.accumulate);
    remat_trainer_destroy(trainer);
    return REMAT_OK;
}

/* No batch can be larger than the data that it comes from: found by opening it for one sample. */
static remat_status most_samples(remat_model *model, const remat_train_options *options, uint64_t *most)
{
    *most = (uint64_t)1 << 40;
    if (options->plan_only)
        return REMAT_OK;
    remat_train_options single = *options;
    single.batch_size = 1;
    remat_trainer *trainer;
    REMAT_TRY(create_quietly(model, &single, &trainer));
    uint64_t validation = data_source_samples(trainer->data, DATA_VALIDATION);
    *most = trainer->steps_per_epoch;
    if (validation && validation < *most)
        *most = validation;
    remat_trainer_destroy(trainer);
    return REMAT_OK;
}

/* ---- the largest ---- */

static remat_status start_search(remat_model *model, const remat_train_options *options, remat_train_options *wanted)
{
    remat_train_options_init(wanted);
    REMAT_TRY(remat_options_copy(model_context(model), wanted, sizeof *wanted, options, "remat_train_options_init"));
    if (wanted->budget_bytes == REMAT_NO_BUDGET && !model_get_settings(model)->budget)
        return remat_fail(model_context(model), REMAT_INVALID, NULL,
                          "the largest batch for which budget? There is none in the options or the model");
    return REMAT_OK;
}

/* Also finds the largest batch with which nothing is recomputed; its number is 0 where there is none. */
static remat_status find_largest(remat_model *model, const remat_train_options *wanted, batch_trial *largest,
                                 batch_trial *kept)
{
    uint64_t most;
    REMAT_TRY(most_samples(model, wanted, &most));
    REMAT_TRY(try_batch(model, wanted, 1, largest));
    *kept = (batch_trial){0};
    if (!largest->fits) { /* once more, for the message */
        remat_train_options single = *wanted;
        remat_trainer *trainer;
        single.batch_size = 1;
        single.plan_only = true;
        return remat_trainer_create(model, &single, &trainer);
    }
    if (largest->keeps_all)
        *kept = *largest;
    /* Memory grows with the batch: double until it no longer fits, then halve the gap. */
    uint64_t fails = most + 1;
    batch_trial trial;
    for (uint64_t next = 2; fails - largest->batch > 1;) {
        REMAT_TRY(try_batch(model, wanted, next, &trial));
        if (trial.fits)
            *largest = trial;
        else
            fails = next;
        if (trial.fits && trial.keeps_all)
            *kept = trial;
        bool doubles = trial.fits && fails == most + 1 && next <= most / 2;
        next = doubles ? 2 * next : largest->batch + (fails - largest->batch) / 2;
    }
    return REMAT_OK;
}

remat_status remat_train_largest_batch(remat_model *model, const remat_train_options *options, uint64_t *batch)
{
    remat_train_options wanted;
    batch_trial largest, kept;
    *batch = 0;
    REMAT_TRY(start_search(model, options, &wanted));
    REMAT_TRY(find_largest(model, &wanted, &largest, &kept));
    *batch = largest.batch;
    return REMAT_OK;
}

/* ---- the fastest ---- */

static remat_status try_better(remat_model *model, const remat_train_options *wanted, uint64_t batch, batch_trial *best)
{
    batch_trial trial;
    REMAT_TRY(try_batch(model, wanted, batch, &trial));
    if (trial.fits && trial.sample_cost < best->sample_cost)
        *best = trial;
    return REMAT_OK;
}

/* With nothing recomputed, a larger batch is never slower for a sample: the optimizer runs less often. Beyond that,
 * recomputing costs more and more. So the best is the largest that keeps everything, or somewhat above it. */
static remat_status find_fastest(remat_model *model, const remat_train_options *wanted, const batch_trial *largest,
                                 batch_trial kept, batch_trial *best)
{
    uint64_t recomputes = largest->batch;
    *best = *largest;
    if (largest->keeps_all)
        return REMAT_OK;
    while (recomputes - kept.batch > 1) {
        batch_trial trial;
        REMAT_TRY(try_batch(model, wanted, kept.batch + (recomputes - kept.batch) / 2, &trial));
        if (trial.sample_cost < best->sample_cost)
            *best = trial;
        if (trial.keeps_all)
            kept = trial;
        else
            recomputes = trial.batch;
    }
    if (kept.batch && kept.sample_cost < best->sample_cost)
        *best = kept;
    enum { PARTS = 8 };
    const uint64_t low = kept.batch, high = largest->batch;
    uint64_t step = (high - low + PARTS - 1) / PARTS;
    for (uint64_t batch = low + step; batch < high; batch += step)
        REMAT_TRY(try_better(model, wanted, batch, best));
    while (step > 1) {
        const uint64_t centre = best->batch;
        step = (step + 1) / 2;
        if (centre > low + step)
            REMAT_TRY(try_better(model, wanted, centre - step, best));
        if (centre + step < high)
            REMAT_TRY(try_better(model, wanted, centre + step, best));
    }
    return REMAT_OK;
}

remat_status remat_train_choose_batch_sized(remat_model *model, const remat_train_options *options,
                                            remat_batch_choice *choice, size_t choice_size)
{
    remat_train_options wanted;
    batch_trial largest, kept, best;
    const remat_batch_choice none = {0};
    remat_struct_give(choice, choice_size, &none, sizeof none);
    REMAT_TRY(start_search(model, options, &wanted));
    REMAT_TRY(find_largest(model, &wanted, &largest, &kept));
    REMAT_TRY(find_fastest(model, &wanted, &largest, kept, &best));
    const remat_batch_choice found = {best.batch, largest.batch, best.sample_cost, largest.sample_cost};
    remat_struct_give(choice, choice_size, &found, sizeof found);
    return REMAT_OK;
}
