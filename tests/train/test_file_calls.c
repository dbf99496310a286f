/* Saving, loading, converting, predicting and writing with trainers that live: each allocation of each call fails once, and
 * afterwards the call works. */
#include "support/memory_failures.h"
#include "support/scratch_files.h"

#include "base/alloc.h"

#include <remat/evaluation.h>
#include <remat/generator.h>
#include <remat/train.h>

#include <unistd.h>

#define FOLDER "tests/reference/pretrained/llama"

typedef struct scene {
    remat_model *model;
    remat_trainer *trainer;
    remat_predictor *predictor;
    remat_evaluation *evaluation;
    char saved[300], state[300], other[300], folder[300], table[300], plan[300], text[300], map[300];
} scene;

static void name_files(scene *s)
{
    snprintf(s->saved, sizeof s->saved, "%s", scratch_path("saved.safetensors"));
    snprintf(s->state, sizeof s->state, "%s", scratch_path("state.safetensors"));
    snprintf(s->other, sizeof s->other, "%s", scratch_path("other.pt"));
    snprintf(s->folder, sizeof s->folder, "%s/", scratch_path("folder"));
    snprintf(s->table, sizeof s->table, "%s", scratch_path("table.csv"));
    snprintf(s->plan, sizeof s->plan, "%s", scratch_path("plan.json"));
    snprintf(s->map, sizeof s->map, "%s", scratch_write_text("map", "fc.weight = f.x transposed\nout = head\n"));
    snprintf(s->text, sizeof s->text, "%s", scratch_path("evaluation.json"));
}

/* ---- calls ---- */

static remat_status save_weights(void *user)
{
    const scene *s = user;
    return remat_trainer_save(s->trainer, s->saved, false);
}

static remat_status save_state(void *user)
{
    const scene *s = user;
    return remat_trainer_save(s->trainer, s->state, true);
}

static remat_status save_folder(void *user)
{
    const scene *s = user;
    return remat_trainer_save_folder(s->trainer, s->folder, false);
}

static remat_status save_merged(void *user)
{
    const scene *s = user;
    return remat_trainer_save_folder(s->trainer, s->folder, true);
}

static remat_status check_folder(void *user)
{
    const scene *s = user;
    return remat_trainer_check_save_folder(s->trainer, s->folder, true);
}

static remat_status load_weights(void *user)
{
    const scene *s = user;
    return remat_trainer_load(s->trainer, s->saved);
}

static remat_status load_folder(void *user)
{
    const scene *s = user;
    return remat_trainer_load(s->trainer, FOLDER);
}

static remat_status resume(void *user)
{
    const scene *s = user;
    return remat_trainer_resume(s->trainer, s->state);
}

static remat_status convert_there(void *user)
{
    const scene *s = user;
    remat_convert_options options;
    remat_convert_options_init(&options);
    options.to_torch = true;
    return remat_weights_convert(s->model, s->saved, s->other, &options);
}

static remat_status convert_back(void *user)
{
    const scene *s = user;
    remat_convert_options options;
    remat_convert_options_init(&options);
    return remat_weights_convert(s->model, s->other, s->saved, &options);
}

/* With names and shapes of their own: a matrix that lies the other way round. */
static remat_status convert_by_map(void *user)
{
    const scene *s = user;
    remat_convert_options options;
    remat_convert_options_init(&options);
    options.names_path = s->map;
    options.to_torch = true;
    remat_status status = remat_weights_convert(s->model, s->saved, s->other, &options);
    if (status != REMAT_OK)
        return status;
    options.to_torch = false;
    return remat_weights_convert(s->model, s->other, s->saved, &options);
}

static remat_status save_plan(void *user)
{
    const scene *s = user;
    return remat_trainer_save_plan(s->trainer, s->plan);
}

static remat_status save_graph_plan(void *user)
{
    const scene *s = user;
    return remat_trainer_save_graph_plan(s->trainer, s->plan);
}

static remat_status write_table(void *user)
{
    const scene *s = user;
    return remat_predictor_save_table(s->predictor, 4, s->table);
}

static remat_status write_evaluation(void *user)
{
    const scene *s = user;
    remat_status status = remat_evaluation_save(s->evaluation, s->text, true);
    return status == REMAT_OK ? remat_evaluation_save(s->evaluation, s->text, false) : status;
}

static remat_status evaluate(void *user)
{
    const scene *s = user;
    remat_train_options options;
    remat_evaluation *evaluation;
    remat_train_options_init(&options);
    options.threads = 1;
    remat_status status = remat_evaluate(s->model, s->saved, &options, &evaluation);
    remat_evaluation_destroy(evaluation);
    return status;
}

/* ---- a model file ---- */

static const char text[] = "[Model]\nbatch_size = 2\n[Optimizer : adamw]\nlearning_rate = 0.01\n"
                           "[Dataset : random]\nsamples = 8\nvalidation_split = 0.25\n"
                           "[in : input]\ninput_shape = 1:1:4\n[fc : fully_connected]\nunit = 5\n"
                           "[norm : batch_normalization]\n[out : fully_connected]\nunit = 3\n[loss : cross_entropy]\n";

static void calls_of_model_files(void **state)
{
    fixture *f = *state;
    scene s;
    remat_train_options options;
    remat_step_result step;
    name_files(&s);
    remat_alloc_take_no_reserve(f->context);
    remat_train_options_init(&options);
    options.threads = 1;
    options.strategy = "none";
    expect_ok(f, remat_model_load(f->context, scratch_write_text("model.ini", text), &s.model));
    expect_ok(f, remat_trainer_create(s.model, &options, &s.trainer));
    expect_ok(f, remat_trainer_step(s.trainer, &step));
    expect_call_failures_survived(f, "saving weights", save_weights, &s, 3);
    expect_call_failures_survived(f, "saving a state", save_state, &s, 3);
    expect_call_failures_survived(f, "loading", load_weights, &s, 10);
    expect_call_failures_survived(f, "resuming", resume, &s, 10);
    expect_call_failures_survived(f, "converting to PyTorch", convert_there, &s, 10);
    expect_call_failures_survived(f, "converting from PyTorch", convert_back, &s, 10);
    expect_call_failures_survived(f, "converting by a map", convert_by_map, &s, 20);
    expect_call_failures_survived(f, "a plan", save_plan, &s, 1);
    expect_call_failures_survived(f, "a graph plan", save_graph_plan, &s, 1);
    remat_trainer_destroy(s.trainer);
    expect_ok(f, remat_predictor_create(s.model, s.saved, &options, &s.predictor));
    expect_call_failures_survived(f, "a table", write_table, &s, 1);
    remat_predictor_destroy(s.predictor);
    expect_ok(f, remat_evaluate(s.model, s.saved, &options, &s.evaluation));
    expect_call_failures_survived(f, "an evaluation", write_evaluation, &s, 1);
    remat_evaluation_destroy(s.evaluation);
    expect_call_failures_survived(f, "evaluating", evaluate, &s, 50);
    remat_model_destroy(s.model);
}

/* ---- a folder, whole and with an adapter ---- */

static void calls_of_folders(void **state)
{
    fixture *f = *state;
    static const char *const tunings[] = {"model.batch_size=2", "model.lora=rank=2,targets=q_proj",
                                          "model.adapter=" FOLDER "/adapter"};
    remat_alloc_take_no_reserve(f->context);
    for (int i = 0; i < 3; i++) {
        scene s;
        remat_train_options options;
        const char *const settings[] = {"model.length=4", "dataset.type=random", tunings[i], NULL};
        name_files(&s);
        remat_train_options_init(&options);
        options.threads = 1;
        options.strategy = "none";
        expect_ok(f, remat_model_load_with(f->context, FOLDER, settings, &s.model));
        expect_ok(f, remat_trainer_create(s.model, &options, &s.trainer));
        expect_call_failures_survived(f, "loading a folder", load_folder, &s, 20);
        expect_call_failures_survived(f, "saving a folder", save_folder, &s, 10);
        expect_call_failures_survived(f, "checking a folder", check_folder, &s, 0);
        expect_call_failures_survived(f, "saving a merged folder", save_merged, &s, 10);
        remat_trainer_destroy(s.trainer);
        remat_model_destroy(s.model);
    }
}

/* A folder whose weights cannot be looked at is none without weights: nothing is written that is not made of them. */
static void weights_that_cannot_be_seen_are_told(void **state)
{
    fixture *f = *state;
    scene s;
    size_t length;
    remat_train_options options;
    static const char *const settings[] = {"model.length=4", "dataset.type=random", NULL};
    name_files(&s);
    snprintf(s.folder, sizeof s.folder, "%s/", scratch_path("fresh"));
    char *config = scratch_read(FOLDER "/config.json", &length);
    scratch_write("config.json", config, length);
    scratch_write_text("tokenizer.json", "{}");
    free(config);
    remat_train_options_init(&options);
    options.threads = 1;
    options.strategy = "none";
    expect_ok(f, remat_model_load_with(f->context, scratch_folder(), settings, &s.model));
    expect_ok(f, remat_trainer_create(s.model, &options, &s.trainer));
    /* A check writes no files. */
    expect_ok(f, remat_trainer_check_save_folder(s.trainer, s.folder, true));
    assert_int_not_equal(access(scratch_path("fresh/config.json"), F_OK), 0);
    /* Nor would a training be saved over what the model is read from. */
    expect_status(f, remat_trainer_check_save(s.trainer, scratch_path("config.json"), true), REMAT_IO);
    expect_message(f, "config.json: cannot be written: it is a file of the model");
    expect_ok(f, remat_trainer_check_save(s.trainer, scratch_path("training.st"), true));
    const char *loop = scratch_path("model.safetensors");
    assert_int_equal(symlink("model.safetensors", loop), 0);
    expect_status(f, save_merged(&s), REMAT_IO);
    expect_message(f, "model.safetensors: cannot be opened");
    expect_status(f, check_folder(&s), REMAT_IO);
    assert_int_equal(unlink(loop), 0);
    expect_ok(f, save_merged(&s));
    assert_int_equal(access(scratch_path("fresh/config.json"), F_OK), 0);
    remat_trainer_destroy(s.trainer);
    remat_model_destroy(s.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(calls_of_model_files),
        FIXTURE_TEST(calls_of_folders),
        FIXTURE_TEST(weights_that_cannot_be_seen_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
