/* Runs of a trainer: validation, stopping, budgets, and what goes wrong. */
#include <stdlib.h>

#include "support/scratch_files.h"
#include "support/small_models.h"
#include "train/trainer_toy.h"

/* ---- validation ---- */

typedef struct watched {
    unsigned steps, validations, stop_after;
    uint64_t last_validation;
} watched;

static bool watch_step(void *user, const remat_step_result *result)
{
    assert_true(result->data_seconds > 0 && result->data_seconds < result->seconds);
    watched *seen = user;
    seen->steps++;
    assert_int_equal(result->step, seen->steps);
    return seen->steps != seen->stop_after;
}

static void watch_validation(void *user, uint64_t step, const remat_validation_result *result)
{
    watched *seen = user;
    seen->validations++;
    seen->last_validation = step;
    assert_true(isfinite(result->loss));
}

static remat_run_result run_watched(fixture *f, remat_trainer *trainer, watched *seen)
{
    remat_run_hooks hooks;
    remat_run_hooks_init(&hooks);
    hooks.on_step = watch_step;
    hooks.on_validation = watch_validation;
    hooks.user = seen;
    remat_run_result result;
    expect_ok(f, remat_trainer_run(trainer, &hooks, &result));
    return result;
}

static void test_validation(void **state)
{
    fixture *f = *state;
    toy data = {UINT64_MAX, 0, 1};
    remat_model *model =
        toy_model(f, "adam", REMAT_PROPERTIES("learning_rate=0.01"), REMAT_PROPERTIES("batch_size=16", "epochs=3"));
    remat_train_options options = toy_options(&data);
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    assert_int_equal(figures.steps_per_epoch, 6);
    assert_int_equal(figures.total_steps, 18);
    watched seen = {0};
    remat_run_result result = run_watched(f, trainer, &seen);
    assert_int_equal(seen.steps, 18);
    assert_int_equal(seen.validations, 3); /* after every epoch */
    assert_int_equal(seen.last_validation, 18);
    assert_false(result.stopped || result.stopped_early);
    assert_true(isfinite(result.best_validation_loss));
    /* A second run has nothing left to do. */
    expect_ok(f, remat_trainer_run(trainer, NULL, &result));
    assert_int_equal(result.steps, 0);
    remat_trainer_destroy(trainer);

    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    seen = (watched){.stop_after = 4};
    result = run_watched(f, trainer, &seen);
    assert_true(result.stopped && !result.stopped_early);
    assert_int_equal(result.steps, 4);
    remat_trainer_destroy(trainer);

    options.validation_samples = 0;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    remat_validation_result validation;
    expect_status(f, remat_trainer_validate(trainer, &validation), REMAT_INVALID);
    expect_message(f, "validation");
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

/* At rate 0 nothing ever improves: it stops after the first validation and two more. */
static void test_early_stopping(void **state)
{
    fixture *f = *state;
    toy data = {UINT64_MAX, 0, 1};
    remat_model *model = toy_model(f, "sgd", REMAT_PROPERTIES("learning_rate=0"),
                                   REMAT_PROPERTIES("batch_size=16", "epochs=50", "early_stopping=2"));
    remat_trainer *trainer = toy_trainer(f, model, &data, REMAT_DEFAULT);
    watched seen = {0};
    remat_run_result result = run_watched(f, trainer, &seen);
    assert_true(result.stopped_early && !result.stopped);
    assert_int_equal(seen.validations, 3);
    assert_int_equal(result.steps, 18);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

/* At rate 0 the first validation is the best. The trainer goes back to it, and to its state. */
static void test_best_weights(void **state)
{
    fixture *f = *state;
    toy data = {UINT64_MAX, 0, 1};
    const char *path = scratch_path("best.safetensors");
    remat_model *model = toy_model(f, "adam", REMAT_PROPERTIES("learning_rate=0"),
                                   REMAT_PROPERTIES("batch_size=16", "epochs=50", "early_stopping=2"));
    for (int only_weights = 0; only_weights < 2; only_weights++) {
        remat_trainer *trainer = toy_trainer(f, model, &data, REMAT_DEFAULT);
        remat_run_hooks hooks;
        remat_run_hooks_init(&hooks);
        hooks.best_path = path;
        hooks.save_weights_only = only_weights;
        remat_run_result result;
        expect_ok(f, remat_trainer_run(trainer, &hooks, &result));
        assert_true(result.stopped_early && result.restored_best);
        assert_int_equal(result.steps, 18);
        assert_int_equal(result.best_step, 6);
        assert_int_equal(remat_trainer_steps_taken(trainer), only_weights ? 18 : 6);
        remat_trainer_destroy(trainer);
    }
    remat_model_destroy(model);
}

/* Evaluation changes nothing: the next step is the same with and without it. */
static void test_validation_leaves_no_trace(void **state)
{
    fixture *f = *state;
    double losses[2];
    for (int with = 0; with < 2; with++) {
        remat_model *model;
        expect_ok(f, small_model_load(f->context, "resnet.ini", &model));
        remat_train_options options;
        remat_train_options_init(&options);
        options.threads = 1;
        remat_trainer *trainer;
        expect_ok(f, remat_trainer_create(model, &options, &trainer));
        for (int i = 0; i < 4; i++) {
            remat_validation_result first, second;
            if (with) {
                expect_ok(f, remat_trainer_validate(trainer, &first));
                expect_ok(f, remat_trainer_validate(trainer, &second));
                assert_true(first.loss == second.loss);
                assert_true(first.accuracy >= 0 && first.accuracy <= 1);
            }
            losses[with] = one_step(f, trainer).loss;
        }
        remat_trainer_destroy(trainer);
        remat_model_destroy(model);
    }
    assert_true(losses[0] == losses[1]);
}

/* ---- what goes wrong ---- */

static void expect_recovery(fixture *f, remat_model *model, uint64_t missing, double wanted)
{
    toy data = {missing, 0, 1};
    remat_trainer *trainer = toy_trainer(f, model, &data, 8);
    remat_run_result result;
    expect_status(f, remat_trainer_run(trainer, NULL, &result), REMAT_IO);
    assert_true(data.asked > 0);
    assert_true(remat_trainer_steps_taken(trainer) < 3);
    data.fail_at = UINT64_MAX;
    expect_ok(f, remat_trainer_run(trainer, NULL, &result));
    assert_int_equal(remat_trainer_steps_taken(trainer), 8);
    if (result.last_loss != wanted)
        fail_msg("after sample %llu was missing for a while the last loss is %.17g, not %.17g",
                 (unsigned long long)missing, result.last_loss, wanted);
    remat_trainer_destroy(trainer);
}

/* The failure comes back as it is; once the data is there again the training goes on as if nothing had been. */
static void test_generator_fails(void **state)
{
    fixture *f = *state;
    toy data = {UINT64_MAX, 0, 1};
    remat_model *model =
        toy_model(f, "sgd", REMAT_PROPERTIES("learning_rate=0.1"), REMAT_PROPERTIES("batch_size=16", "accumulate=2"));
    remat_trainer *trainer = toy_trainer(f, model, &data, 8);
    remat_run_result result;
    expect_ok(f, remat_trainer_run(trainer, NULL, &result));
    remat_trainer_destroy(trainer);
    for (uint64_t missing = 0; missing < 96; missing += 5)
        expect_recovery(f, model, missing, result.last_loss);
    remat_model_destroy(model);
}

static void refused(fixture *f, remat_model *model, const remat_train_options *options, remat_status status,
                    const char *message)
{
    remat_trainer *trainer;
    expect_status(f, remat_trainer_create(model, options, &trainer), status);
    assert_null(trainer);
    expect_message(f, message);
}

static void test_wrong_options(void **state)
{
    fixture *f = *state;
    toy data = {UINT64_MAX, 0, 1};
    remat_model *model = toy_model(f, "sgd", REMAT_PROPERTIES("learning_rate=0.1"), REMAT_PROPERTIES("batch_size=16"));
    remat_train_options options = toy_options(&data);
    options.kernels = "foo";
    refused(f, model, &options, REMAT_INVALID, "foo");
    options = toy_options(&data);
    options.strategy = "sometimes";
    refused(f, model, &options, REMAT_INVALID, "sometimes");
    options.strategy = "every-nth:x";
    refused(f, model, &options, REMAT_INVALID, "'x' is not a count");
    options = toy_options(&data);
    options.batch_size = 97;
    refused(f, model, &options, REMAT_INVALID, "97");
    options = toy_options(&data);
    options.plan_path = "there/is/no.json";
    refused(f, model, &options, REMAT_IO, "there/is/no.json");
    options = toy_options(&data);
    options.profile_path = "there/is/no.json";
    refused(f, model, &options, REMAT_IO, "there/is/no.json");
    options = toy_options(&data);
    options.sample = NULL;
    refused(f, model, &options, REMAT_INVALID, "Dataset");
    options = toy_options(&data);
    options.budget_bytes = 100;
    refused(f, model, &options, REMAT_INFEASIBLE, "the smallest plan that was found takes");
    options.strategy = "none";
    refused(f, model, &options, REMAT_INFEASIBLE, "with this strategy the model takes");
    remat_model_destroy(model);
}

static void test_no_loss(void **state)
{
    fixture *f = *state;
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=4")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=fc", "unit=3")));
    expect_ok(f, remat_model_compile(model));
    refused(f, model, NULL, REMAT_INVALID, "loss");
    remat_model_destroy(model);
}

static void test_infinite_loss(void **state)
{
    fixture *f = *state;
    toy data = {UINT64_MAX, 0, 1e30f};
    remat_model *model = toy_model(f, "sgd", REMAT_PROPERTIES("learning_rate=10"), REMAT_PROPERTIES("batch_size=16"));
    remat_trainer *trainer = toy_trainer(f, model, &data, 50);
    remat_run_result result;
    expect_status(f, remat_trainer_run(trainer, NULL, &result), REMAT_DIVERGED);
    expect_message(f, "not finite");
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

/* A budget that is exactly what the message asks for is enough, with any number of threads. */
static void test_smallest_budget(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; small_model_name(i); i++) {
        remat_model *model;
        expect_ok(f, small_model_load(f->context, small_model_name(i), &model));
        remat_train_options options;
        remat_train_options_init(&options);
        options.threads = 1 + (unsigned)i % 3;
        options.strategy = "none";
        remat_trainer *trainer;
        remat_trainer_figures all, least;
        expect_ok(f, remat_trainer_create(model, &options, &trainer));
        remat_trainer_get_figures(trainer, &all);
        remat_trainer_destroy(trainer);
        assert_int_equal(all.recomputed_layers, 0);
        assert_int_equal(all.cost, all.keep_all_cost);
        options.strategy = NULL;
        options.budget_bytes = all.total_bytes;
        expect_ok(f, remat_trainer_create(model, &options, &trainer));
        remat_trainer_get_figures(trainer, &least);
        remat_trainer_destroy(trainer);
        assert_int_equal(least.cost, all.cost); /* with enough memory nothing is recomputed */
        assert_true(least.min_budget_bytes <= all.total_bytes);
        options.budget_bytes = least.min_budget_bytes;
        remat_status status = remat_trainer_create(model, &options, &trainer);
        if (status != REMAT_OK)
            fail_msg("%s: %s", small_model_name(i), remat_context_message(f->context));
        remat_trainer_get_figures(trainer, &least);
        assert_true(least.total_bytes <= options.budget_bytes);
        assert_int_equal(least.budget_bytes, options.budget_bytes);
        assert_true(least.cost >= all.cost);
        remat_trainer_destroy(trainer);
        options.budget_bytes = least.min_budget_bytes - 1;
        refused(f, model, &options, REMAT_INFEASIBLE, "the smallest plan that was found takes");
        remat_model_destroy(model);
    }
}

/* ---- saving on the way ---- */

/* Stops after so many steps; what was saved on the way, or at the end where `every` is 0. */
static char *saved_by_run(fixture *f, remat_model *model, unsigned steps, unsigned every, size_t *length)
{
    toy data = {UINT64_MAX, 0, 1};
    remat_trainer *trainer = toy_trainer(f, model, &data, 18);
    const char *path = scratch_path(every ? "way.safetensors" : "end.safetensors");
    watched seen = {.stop_after = steps};
    remat_run_hooks hooks;
    remat_run_hooks_init(&hooks);
    hooks.on_step = watch_step;
    hooks.user = &seen;
    hooks.save_path = path;
    hooks.save_every = every;
    expect_ok(f, remat_trainer_run(trainer, &hooks, NULL));
    if (every == 0)
        expect_ok(f, remat_trainer_save(trainer, path, true));
    remat_trainer_destroy(trainer);
    return scratch_read(path, length);
}

/* An epoch has 6 steps: the file of step 6 must know of the validation that belongs to it. */
static void test_saved_on_the_way(void **state)
{
    fixture *f = *state;
    remat_model *model =
        toy_model(f, "adam", REMAT_PROPERTIES("learning_rate=0.01"), REMAT_PROPERTIES("batch_size=16"));
    static const unsigned every[] = {6, 4, 3};
    for (size_t i = 0; i < sizeof every / sizeof every[0]; i++) {
        size_t length, wanted_length;
        char *bytes = saved_by_run(f, model, 7, every[i], &length);
        char *wanted = saved_by_run(f, model, 7 / every[i] * every[i], 0, &wanted_length);
        assert_int_equal(length, wanted_length);
        assert_memory_equal(bytes, wanted, length);
        free(bytes);
        free(wanted);
    }
    /* A save that fails is a warning, and the run goes on. */
    toy data = {UINT64_MAX, 0, 1};
    remat_trainer *trainer = toy_trainer(f, model, &data, 18);
    remat_run_hooks hooks;
    remat_run_hooks_init(&hooks);
    hooks.save_path = scratch_path("no/such/folder.safetensors");
    hooks.save_every = 5;
    remat_run_result result;
    const size_t warnings = f->warnings;
    expect_ok(f, remat_trainer_run(trainer, &hooks, &result));
    assert_int_equal(result.steps, 18);
    assert_int_equal(f->warnings - warnings, 3); /* after the steps 5, 10 and 15 */
    assert_non_null(strstr(f->warning, "no/such/folder.safetensors"));
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_validation),       FIXTURE_TEST(test_early_stopping),
        FIXTURE_TEST(test_best_weights),     FIXTURE_TEST(test_validation_leaves_no_trace),
        FIXTURE_TEST(test_generator_fails),  FIXTURE_TEST(test_wrong_options),
        FIXTURE_TEST(test_no_loss),          FIXTURE_TEST(test_infinite_loss),
        FIXTURE_TEST(test_saved_on_the_way), FIXTURE_TEST(test_smallest_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
