/* A step that runs out of memory has changed nothing: the training goes on as if the step had not begun. */
#include "train/trainer_toy.h"

typedef struct watched_case {
    const char *accumulate;
    bool actions, gradients;
} watched_case;

static void ignore_action(void *user, const remat_action *action)
{
    (void)user, (void)action;
}

static void ignore_gradient(void *user, size_t parameter, const float *gradient, uint64_t count)
{
    (void)user, (void)parameter, (void)gradient, (void)count;
}

static remat_trainer *watched_trainer(fixture *f, remat_model *model, toy *data, const watched_case *how)
{
    remat_trainer *trainer = toy_trainer(f, model, data, 10);
    if (how->actions)
        expect_ok(f, remat_trainer_on_action(trainer, ignore_action, NULL));
    if (how->gradients)
        remat_trainer_on_gradient(trainer, ignore_gradient, NULL);
    return trainer;
}

static double third_loss(fixture *f, remat_trainer *trainer)
{
    one_step(f, trainer);
    one_step(f, trainer);
    return one_step(f, trainer).loss;
}

static void expect_unchanged(fixture *f, const watched_case *how)
{
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    remat_model *model =
        toy_model(f, "adam", REMAT_PROPERTIES("learning_rate=0.01"), REMAT_PROPERTIES("batch_size=8", how->accumulate));
    remat_trainer *trainer = watched_trainer(f, model, &data, how);
    const double wanted = third_loss(f, trainer);
    remat_trainer_destroy(trainer);
    uint64_t failures = 0;
    for (bool taken = false; !taken && failures < 1000;) {
        remat_step_result result;
        trainer = watched_trainer(f, model, &data, how);
        f->memory.fail_at = f->memory.calls + failures + 1;
        remat_status status = remat_trainer_step(trainer, &result);
        f->memory.fail_at = 0;
        taken = status == REMAT_OK;
        if (!taken) {
            failures++;
            expect_status(f, status, REMAT_NO_MEMORY);
            assert_int_equal(remat_trainer_steps_taken(trainer), 0);
            assert_true(third_loss(f, trainer) == wanted);
        }
        remat_trainer_destroy(trainer);
    }
    assert_in_range(failures, 1, 999);
    remat_model_destroy(model);
}

static void watched_steps(void **state)
{
    static const watched_case cases[] = {{"accumulate=1", true, false}, {"accumulate=1", false, true},
                                         {"accumulate=1", true, true},  {"accumulate=3", true, false},
                                         {"accumulate=3", false, true}, {"accumulate=3", true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_unchanged(*state, &cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(watched_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
