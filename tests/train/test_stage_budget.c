/* Cutting a network into stages within a budget: against all cuts that there are. */
#include "support/fixture.h"

#include "train/trainer_object.h"

/* Layers of changing widths, so that what crosses and what is kept go up and down along the network. */
static remat_model *make_model(fixture *f)
{
    static const char *const layers[][5] = {
        {"input", "name=in", "input_shape=1:1:64", NULL},
        {"fully_connected", "name=a", "unit=900", "activation=gelu", NULL},
        {"fully_connected", "name=b", "unit=40", NULL},
        {"fully_connected", "name=c", "unit=700", "activation=tanh", NULL},
        {"fully_connected", "name=d", "unit=700", "activation=gelu", NULL},
        {"fully_connected", "name=e", "unit=30", NULL},
        {"fully_connected", "name=f", "unit=3", NULL},
        {"mse", "name=loss", NULL},
    };
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        expect_ok(f, remat_model_add_layer(model, layers[i][0], layers[i] + 1));
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=64", "accumulate=4")));
    expect_ok(f, remat_model_set_optimizer(model, "adam", REMAT_PROPERTIES("learning_rate=0.01")));
    expect_ok(f, remat_model_compile(model));
    return model;
}

/* The slowest of three stages that begin at these layers; UINT64_MAX where one does not fit. */
static uint64_t time_of(fixture *f, remat_trainer *trainer, uint32_t second, uint32_t third)
{
    const uint32_t first = trainer->pipeline->starts[1], next = trainer->pipeline->starts[2];
    uint64_t slowest = 0;
    trainer->pipeline->starts[1] = second;
    trainer->pipeline->starts[2] = third;
    for (uint64_t s = 0; s < 3; s++) {
        remat_trainer stage;
        remat_status status = trainer_open_stage(trainer, s, &stage);
        if (status == REMAT_INFEASIBLE) {
            slowest = UINT64_MAX;
            continue;
        }
        expect_ok(f, status);
        slowest = stage.plan->cost > slowest ? stage.plan->cost : slowest;
        trainer_close_stage(&stage);
    }
    trainer->pipeline->starts[1] = first;
    trainer->pipeline->starts[2] = next;
    return slowest;
}

static uint64_t best_of_all(fixture *f, remat_trainer *trainer)
{
    remat_program *whole;
    stage_cuts cuts;
    uint64_t best = UINT64_MAX;
    expect_ok(f, trainer_build_program(trainer, &whole));
    expect_ok(f, stage_cuts_find(whole, &cuts));
    for (size_t second = 1; second < cuts.count; second++)
        for (size_t third = second + 1; third < cuts.count; third++) {
            const uint64_t time = time_of(f, trainer, cuts.layers[second], cuts.layers[third]);
            best = time < best ? time : best;
        }
    stage_cuts_release(&cuts);
    program_destroy(whole);
    return best;
}

/* In every budget: no cut is faster by more than a 64th, and where none was found there is none. */
static void test_all_cuts(void **state)
{
    fixture *f = *state;
    remat_model *model = make_model(f);
    remat_train_options options;
    remat_trainer *roomy, *trainer;
    unsigned fitted = 0, recomputed = 0;
    remat_train_options_init(&options);
    options.plan_only = true;
    options.pipeline = 3;
    options.threads = 1;
    expect_ok(f, remat_trainer_create(model, &options, &roomy));
    const uint64_t fastest = best_of_all(f, roomy);
    for (uint64_t budget = 3000000; budget <= 17000000; budget += 500000) {
        options.budget_bytes = budget;
        remat_status status = remat_trainer_create(model, &options, &trainer);
        roomy->options.budget_bytes = budget;
        const uint64_t best = best_of_all(f, roomy);
        if (status == REMAT_INFEASIBLE) {
            assert_true(best == UINT64_MAX);
            continue;
        }
        expect_ok(f, status);
        const uint32_t *starts = trainer->pipeline->starts;
        const uint64_t found = time_of(f, roomy, starts[1], starts[2]);
        if (found > best + best / 64)
            fail_msg("budget %llu: %llu ns, and another cut takes %llu", (unsigned long long)budget,
                     (unsigned long long)found, (unsigned long long)best);
        fitted++;
        recomputed += best > fastest;
        remat_trainer_destroy(trainer);
    }
    assert_true(fitted > 3 && recomputed > 0); /* else this says nothing */
    remat_trainer_destroy(roomy);
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(test_all_cuts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
