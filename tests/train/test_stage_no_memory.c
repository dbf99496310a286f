/* Cutting a network into stages, and simulating ranks: every allocation may fail. */
#include <remat/scale.h>

#include "support/memory_failures.h"

static remat_status make_model(remat_context *context, remat_model **model)
{
    static const char *const layers[][5] = {
        {"input", "name=in", "input_shape=1:1:16", NULL},
        {"fully_connected", "name=a", "unit=90", "activation=gelu", NULL},
        {"fully_connected", "name=b", "unit=10", NULL},
        {"fully_connected", "name=c", "unit=70", "activation=tanh", NULL},
        {"fully_connected", "name=d", "unit=70", "activation=gelu", NULL},
        {"fully_connected", "name=e", "unit=3", NULL},
        {"mse", "name=loss", NULL},
    };
    remat_status status = remat_model_create(context, model);
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        FLOW(status, remat_model_add_layer(*model, layers[i][0], layers[i] + 1));
    FLOW(status, remat_model_set(*model, REMAT_PROPERTIES("batch_size=64", "accumulate=4")));
    FLOW(status, remat_model_set_optimizer(*model, "adam", REMAT_PROPERTIES("learning_rate=0.01")));
    FLOW(status, remat_model_compile(*model));
    return status;
}

/* A cut within a budget: stages are planned to find it, and once more to ask for them. */
static remat_status cut(remat_context *context, void *user)
{
    const uint64_t *budget = user;
    remat_model *model = NULL;
    remat_trainer *trainer = NULL;
    remat_train_options options;
    remat_stage_figures stage;
    remat_train_options_init(&options);
    options.plan_only = true;
    options.pipeline = 3;
    options.threads = 1;
    options.budget_bytes = *budget;
    remat_status status = make_model(context, &model);
    FLOW(status, remat_trainer_create(model, &options, &trainer));
    for (uint64_t s = 0; s < options.pipeline; s++)
        FLOW(status, remat_trainer_get_stage(trainer, s, &stage));
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    return status;
}

/* With everything kept, and with the least that a fast cut takes. */
static uint64_t smallest_budget(fixture *f)
{
    remat_model *model;
    remat_trainer *trainer;
    remat_train_options options;
    uint64_t works = 4000000;
    expect_ok(f, make_model(f->context, &model));
    remat_train_options_init(&options);
    options.plan_only = true;
    options.pipeline = 3;
    options.threads = 1;
    for (options.budget_bytes = works; options.budget_bytes > 0; options.budget_bytes -= 20000) {
        if (remat_trainer_create(model, &options, &trainer) != REMAT_OK)
            break;
        remat_trainer_destroy(trainer);
        works = options.budget_bytes;
    }
    remat_model_destroy(model);
    return works;
}

static void cuts_survive_every_failure(void **state)
{
    uint64_t budgets[] = {REMAT_UNLIMITED, smallest_budget(*state)};
    for (int i = 0; i < 2; i++)
        expect_failures_survived("cut", cut, &budgets[i], 300, LESS_WHEN_SANITIZED(60, 30));
}

static remat_status simulate(remat_context *context, void *user)
{
    remat_model *model = NULL;
    remat_train_options options;
    remat_scale_estimate estimate;
    remat_cluster cluster;
    uint64_t least;
    const bool pipeline = *(const bool *)user;
    remat_train_options_init(&options);
    remat_cluster_init(&cluster);
    cluster.ranks = 4;
    cluster.step_samples = 32;
    options.threads = 1;
    options.pipeline = pipeline ? 2 : 0;
    options.shard = pipeline ? REMAT_SHARD_OPTIMIZER : REMAT_SHARD_WEIGHTS;
    options.budget_bytes = 1500000;
    remat_status status = make_model(context, &model);
    FLOW(status, remat_scale_find(model, &options, &cluster, &estimate));
    if (!pipeline)
        FLOW(status, remat_scale_least_ranks(model, &options, 64, &least));
    remat_model_destroy(model);
    return status;
}

static void simulations_survive_every_failure(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        bool pipeline = i == 1;
        expect_failures_survived("simulation", simulate, &pipeline, 300, LESS_WHEN_SANITIZED(20, 10));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(cuts_survive_every_failure),
        cmocka_unit_test(simulations_survive_every_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
