/* Weights and checkpoints, loaded into a trainer and into a predictor of a tiny model. A training that was resumed takes
 * a step, and what it saves then can be resumed. */
#include "fuzz/fuzz_tiny.h"

static remat_context *context;
static remat_model *model, *small_model;
static remat_trainer *trainer, *small_trainer; /* the second one has moments in 8 bits */

static void begin(void)
{
    const remat_train_options options = fuzz_tiny_options();
    context = fuzz_begin();
    model = fuzz_tiny_model(context);
    small_model = fuzz_small_state_model(context);
    FUZZ_CHECK(remat_trainer_create(model, &options, &trainer) == REMAT_OK);
    FUZZ_CHECK(remat_trainer_create(small_model, &options, &small_trainer) == REMAT_OK);
}

static void go_on(remat_trainer *of)
{
    remat_step_result result;
    uint64_t before = remat_trainer_steps_taken(of);
    if (!fuzz_accepted(context, remat_trainer_step(of, &result)))
        return;
    FUZZ_CHECK(result.diverged || remat_trainer_steps_taken(of) == before + 1);
    const char *path = fuzz_save_path();
    FUZZ_CHECK(remat_trainer_save(of, path, true) == REMAT_OK);
    if (before < INT64_MAX) /* a file may state no more steps than that */
        FUZZ_CHECK(remat_trainer_resume(of, path) == REMAT_OK);
    fuzz_save_end();
}

void fuzz_checkpoint(const uint8_t *data, size_t size)
{
    if (!context)
        begin();
    uint64_t held = remat_context_bytes(context);
    const char *path = fuzz_safetensors_file(0, data, size);
    bool loaded = fuzz_accepted(context, remat_trainer_load(trainer, path));
    bool resumed = fuzz_accepted(context, remat_trainer_resume(trainer, path));
    FUZZ_CHECK(loaded || !resumed);
    if (resumed)
        go_on(trainer);
    resumed = fuzz_accepted(context, remat_trainer_resume(small_trainer, path));
    FUZZ_CHECK(loaded || !resumed);
    if (resumed)
        go_on(small_trainer);
    const remat_train_options options = fuzz_tiny_options();
    remat_predictor *predictor;
    remat_prediction prediction;
    if (loaded) {
        FUZZ_CHECK(remat_predictor_create(model, path, &options, &predictor) == REMAT_OK);
        FUZZ_CHECK(remat_predictor_run_samples(predictor, 0, &prediction) == REMAT_OK);
        remat_predictor_destroy(predictor);
    }
    FUZZ_CHECK(remat_context_bytes(context) == held);
}
