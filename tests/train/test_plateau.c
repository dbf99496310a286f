/* The schedule plateau: the rate falls where validations do not get better, and a resumed training has the same bits. */
#include "support/parameter_copies.h"
#include "support/scratch_files.h"
#include "train/trainer_toy.h"

#include <string.h>

enum { STEPS = 48, FIRST = 27, BATCH = 16 }; /* 96 samples: 6 steps an epoch */

typedef struct seen {
    double rates[STEPS + 1], losses[STEPS + 1];
} seen;

static bool note_step(void *user, const remat_step_result *result)
{
    seen *all = user;
    all->rates[result->step] = result->learning_rate;
    all->losses[result->step] = result->loss;
    return true;
}

static bool stop_at_first(void *user, const remat_step_result *result)
{
    note_step(user, result);
    return result->step < FIRST;
}

/* Few validations are better by half. */
static remat_model *plateau_model(fixture *f)
{
    return toy_model(f, "sgd",
                     REMAT_PROPERTIES("learning_rate=0.1", "schedule=plateau", "patience=0", "gamma=0.5",
                                      "min_rate=0.005", "threshold=0.5"),
                     REMAT_PROPERTIES("batch_size=16"));
}

static remat_trainer *run(fixture *f, remat_model *model, toy *data, const char *resume, bool stop, seen *all)
{
    remat_trainer *trainer = toy_trainer(f, model, data, STEPS);
    if (resume)
        expect_ok(f, remat_trainer_resume(trainer, resume));
    remat_run_hooks hooks;
    remat_run_hooks_init(&hooks);
    hooks.on_step = stop ? stop_at_first : note_step;
    hooks.user = all;
    expect_ok(f, remat_trainer_run(trainer, &hooks, NULL));
    return trainer;
}

static void test_resumed_plateau_has_the_same_bits(void **state)
{
    fixture *f = *state;
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    const char *path = scratch_path("plateau.safetensors");
    seen whole = {0}, halves = {0};
    remat_model *model = plateau_model(f);
    remat_trainer *once = run(f, model, &data, NULL, false, &whole);
    remat_trainer *start = run(f, model, &data, NULL, true, &halves);
    expect_ok(f, remat_trainer_save(start, path, true));
    remat_trainer_destroy(start);
    remat_trainer *rest = run(f, model, &data, path, false, &halves);
    for (int i = 1; i <= STEPS; i++)
        assert_true(whole.rates[i] == halves.rates[i] && whole.losses[i] == halves.losses[i]);
    /* It fell before the stop, and after it. */
    assert_true(whole.rates[1] == 0.1 && whole.rates[FIRST] < 0.1 && whole.rates[STEPS] < whole.rates[FIRST]);
    assert_true(whole.rates[STEPS] >= 0.005);
    for (size_t p = 0; p < remat_trainer_parameter_count(once); p++) {
        remat_parameter about;
        float *a = parameter_copy(f, once, p, &about), *b = parameter_copy(f, rest, p, &about);
        assert_memory_equal(a, b, about.count * sizeof *a);
        free(a);
        free(b);
    }
    remat_trainer_destroy(once);
    remat_trainer_destroy(rest);
    remat_model_destroy(model);
}

/* Without the state, as from a training of another schedule, the plateau starts anew. */
static void test_other_schedules(void **state)
{
    fixture *f = *state;
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    const char *path = scratch_path("constant.safetensors");
    remat_model *constant =
        toy_model(f, "sgd", REMAT_PROPERTIES("learning_rate=0.1"), REMAT_PROPERTIES("batch_size=16"));
    remat_trainer *trainer = toy_trainer(f, constant, &data, STEPS);
    one_step(f, trainer);
    expect_ok(f, remat_trainer_save(trainer, path, true));
    remat_trainer_destroy(trainer);
    remat_model_destroy(constant);
    remat_model *model = plateau_model(f);
    trainer = toy_trainer(f, model, &data, STEPS);
    expect_ok(f, remat_trainer_resume(trainer, path));
    assert_true(one_step(f, trainer).learning_rate == 0.1);
    remat_trainer_destroy(trainer);

    remat_train_options options = toy_options(&data); /* no validation: the rate would never fall */
    options.validation_samples = 0;
    options.steps = 4;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    expect_status(f, remat_trainer_run(trainer, NULL, NULL), REMAT_INVALID);
    expect_message(f, "the schedule plateau needs validations");
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

static void test_keys(void **state)
{
    fixture *f = *state;
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_status(f, remat_model_set_optimizer(model, "sgd", REMAT_PROPERTIES("schedule=cosine", "patience=3")),
                  REMAT_INVALID);
    expect_message(f, "patience: it would do nothing here; it belongs to the schedule plateau");
    expect_status(f, remat_model_set_optimizer(model, "sgd", REMAT_PROPERTIES("schedule=one_cycle", "warmup_steps=3")),
                  REMAT_INVALID);
    expect_message(f, "all schedules but one_cycle");
    expect_ok(f, remat_model_set_optimizer(model, "sgd", REMAT_PROPERTIES("schedule=one_cycle", "rise=0.2")));
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_resumed_plateau_has_the_same_bits),
        FIXTURE_TEST(test_other_schedules),
        FIXTURE_TEST(test_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
