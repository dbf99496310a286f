/* A trainer that only planned can start with that plan: it trains like one that was made at once, and the tables take the
 * memory that was said. */
#include "support/fixture.h"
#include "support/random_model.h"

#include <remat/train.h>

enum { STEPS = 3, MODELS = 12 };

static remat_trainer_figures figures_of(const remat_trainer *trainer)
{
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    return figures;
}

static void take_steps(fixture *f, remat_trainer *trainer, double losses[STEPS])
{
    for (int i = 0; i < STEPS; i++) {
        remat_step_result result;
        expect_ok(f, remat_trainer_step(trainer, &result));
        losses[i] = result.loss;
    }
}

/* Starting allocates the tensors, the tables of the operations, and the data; it plans nothing. */
static void check_start(fixture *f, remat_trainer *trainer)
{
    enum { SMALL = 16384 }; /* queues, buffers of the data */
    const remat_trainer_figures planned = figures_of(trainer);
    const uint64_t before = remat_context_bytes(f->context);
    expect_ok(f, remat_trainer_start(trainer));
    const remat_trainer_figures started = figures_of(trainer);
    assert_int_equal(started.total_bytes, planned.total_bytes);
    assert_int_equal(started.cost, planned.cost);
    assert_in_range(started.table_bytes, planned.table_bytes, planned.table_bytes + SMALL);
    assert_true(remat_context_bytes(f->context) - before <=
                planned.total_bytes + planned.table_bytes + started.data_bytes + SMALL);
    expect_status(f, remat_trainer_start(trainer), REMAT_INVALID);
}

static void check_model(fixture *f, const random_model_options *wanted)
{
    remat_model *model;
    expect_ok(f, random_model_make(f->context, wanted, &model, NULL));
    remat_train_options options;
    remat_train_options_init(&options);
    options.threads = 1;
    options.plan_only = true;
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    options.budget_bytes = figures_of(trainer).min_budget_bytes;
    remat_trainer_destroy(trainer);

    double at_once[STEPS], started[STEPS];
    options.plan_only = false;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    expect_status(f, remat_trainer_start(trainer), REMAT_INVALID);
    const uint64_t table_bytes = figures_of(trainer).table_bytes;
    take_steps(f, trainer, at_once);
    remat_trainer_destroy(trainer);
    options.plan_only = true;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    check_start(f, trainer);
    assert_int_equal(figures_of(trainer).table_bytes, table_bytes);
    take_steps(f, trainer, started);
    assert_memory_equal(at_once, started, sizeof started);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

static void test_start(void **state)
{
    for (uint64_t seed = 0; seed < MODELS; seed++)
        check_model(*state, &(random_model_options){.seed = seed, .layers = 4 + (unsigned)seed, .clip = -1});
}

static void calls_that_need_weights_are_refused_before_the_start(void **state)
{
    fixture *f = *state;
    const random_model_options wanted = {.seed = 1};
    remat_model *model;
    expect_ok(f, random_model_make(f->context, &wanted, &model, NULL));
    remat_train_options options;
    remat_train_options_init(&options);
    options.plan_only = true;
    remat_trainer *trainer;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    remat_step_result step;
    remat_validation_result validation;
    remat_profile *profile;
    expect_status(f, remat_trainer_step(trainer, &step), REMAT_INVALID);
    expect_message(f, "only plans");
    expect_status(f, remat_trainer_run(trainer, NULL, NULL), REMAT_INVALID);
    expect_status(f, remat_trainer_validate(trainer, &validation), REMAT_INVALID);
    expect_status(f, remat_trainer_measure(trainer, 1, &profile), REMAT_INVALID);
    assert_null(profile);
    expect_status(f, remat_trainer_save(trainer, "/nowhere", true), REMAT_INVALID);
    expect_status(f, remat_trainer_load(trainer, "/nowhere"), REMAT_INVALID);
    expect_status(f, remat_trainer_resume(trainer, "/nowhere"), REMAT_INVALID);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(test_start),
                                       FIXTURE_TEST(calls_that_need_weights_are_refused_before_the_start)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
