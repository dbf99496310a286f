/* The calls of remat/ranks.h with a trainer, as a program makes them. Alone this is one rank; run_mpi.sh runs it as three and four. */
#include <string.h>

#include <remat/ranks.h>

#include "comm/mpi_abi.h"
#include "support/fixture.h"
#include "train/trainer_object.h"

static remat_communicator *ranks;

/* A model of 12 micro-batches, with statistics and random numbers. */
static remat_model *make_model(remat_context *context)
{
    static const char *const layers[][6] = {
        {"input", "name=in", "input_shape=2:5:5", NULL},
        {"conv2d", "name=c1", "filters=4", "kernel_size=3", NULL},
        {"batch_normalization", "name=norm", NULL},
        {"dropout", "name=drop", "rate=0.2", NULL},
        {"flatten", "name=flat", NULL},
        {"fully_connected", "name=wide1", "unit=130", NULL},
        {"fully_connected", "name=wide2", "unit=130", NULL},
        {"fully_connected", "name=wide3", "unit=130", NULL},
        {"fully_connected", "name=wide4", "unit=130", NULL},
        {"fully_connected", "name=fc", "unit=3", NULL},
        {"cross_entropy", "name=loss", NULL},
    };
    remat_model *model;
    assert_int_equal(remat_model_create(context, &model), REMAT_OK);
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        assert_int_equal(remat_model_add_layer(model, layers[i][0], layers[i] + 1), REMAT_OK);
    assert_int_equal(remat_model_set(model, REMAT_PROPERTIES("batch_size=2", "accumulate=12", "clip_norm=0.5")),
                     REMAT_OK);
    assert_int_equal(remat_model_set_optimizer(model, "adamw", REMAT_PROPERTIES("learning_rate=0.01")), REMAT_OK);
    assert_int_equal(remat_model_set_dataset(model, "random", REMAT_PROPERTIES("samples=60", "validation_split=0.2")),
                     REMAT_OK);
    assert_int_equal(remat_model_compile(model), REMAT_OK);
    return model;
}

typedef struct losses {
    double steps[3], validation;
    uint64_t bytes;
    double weights, moments; /* their sums, with the order of the values in them */
} losses;

static double mixed(const float *values, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum = 0.999 * sum + (double)values[i];
    return sum;
}

/* What all ranks read; rank 0 alone would not do. What is read is written back. */
static void read_all(remat_trainer *trainer, losses *found)
{
    static float values[20000];
    for (size_t p = 0; p < remat_trainer_parameter_count(trainer); p++) {
        remat_parameter about;
        assert_int_equal(remat_trainer_get_parameter(trainer, p, &about), REMAT_OK);
        assert_true(about.count <= sizeof values / sizeof *values);
        assert_int_equal(remat_trainer_read_parameter(trainer, p, values, about.count), REMAT_OK);
        found->weights += mixed(values, about.count);
        assert_int_equal(remat_trainer_write_parameter(trainer, p, values, about.count), REMAT_OK);
        for (size_t m = 0; m < about.moment_count; m++) {
            assert_int_equal(remat_trainer_read_moment(trainer, p, m, values, about.count), REMAT_OK);
            found->moments += mixed(values, about.count);
            assert_int_equal(remat_trainer_write_moment(trainer, p, m, values, about.count), REMAT_OK);
        }
    }
}

/* So many stages, as trainers see them. */
static uint64_t pipeline_stages;

static losses train(remat_context *context, remat_communicator *with, bool fast, remat_shard shard)
{
    remat_model *model = make_model(context);
    remat_train_options options;
    remat_train_options_init(&options);
    options.communicator = with;
    options.reduce_fast = fast;
    options.shard = shard;
    options.pipeline = pipeline_stages;
    options.threads = 1;
    remat_trainer *trainer;
    losses found = {0};
    if (remat_trainer_create(model, &options, &trainer) != REMAT_OK)
        fail_msg("%s", remat_context_message(context));
    for (int i = 0; i < 3; i++) {
        remat_step_result step;
        if (remat_trainer_step(trainer, &step) != REMAT_OK)
            fail_msg("%s", remat_context_message(context));
        found.steps[i] = step.loss;
        if (i == 1)
            read_all(trainer, &found);
    }
    remat_validation_result validation;
    assert_int_equal(remat_trainer_validate(trainer, &validation), REMAT_OK);
    found.validation = validation.loss;
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    found.bytes = figures.total_bytes;
    assert_int_equal(trainer_allocated_bytes(trainer), figures.total_bytes); /* on every rank, to the byte */
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    return found;
}

/* Every rank also trains alone, and compares. */
static void test_same_bits(void **state)
{
    fixture *f = *state;
    const losses alone = train(f->context, NULL, false, REMAT_SHARD_NONE),
                 shared = train(f->context, ranks, false, REMAT_SHARD_NONE);
    assert_memory_equal(&alone, &shared, sizeof alone);
}

/* Each stage takes less memory than the one before; the rest is the same. */
static void test_shards(void **state)
{
    fixture *f = *state;
    losses before = train(f->context, NULL, false, REMAT_SHARD_NONE);
    for (remat_shard stage = REMAT_SHARD_OPTIMIZER; stage <= REMAT_SHARD_WEIGHTS; stage++) {
        const losses shared = train(f->context, ranks, false, stage);
        assert_true(remat_communicator_size(ranks) == 1 ? shared.bytes == before.bytes : shared.bytes < before.bytes);
        before.bytes = shared.bytes;
        assert_memory_equal(&before, &shared, sizeof before);
    }
}

/* One stage on each rank. */
static void test_pipeline(void **state)
{
    fixture *f = *state;
    losses alone = train(f->context, NULL, false, REMAT_SHARD_NONE);
    if (remat_communicator_size(ranks) == 1)
        return;
    pipeline_stages = remat_communicator_size(ranks);
    const losses staged = train(f->context, ranks, false, REMAT_SHARD_NONE);
    pipeline_stages = 0;
    assert_true(staged.bytes < alone.bytes);
    alone.bytes = staged.bytes;
    assert_memory_equal(&alone, &staged, sizeof alone);
}

/* Two rows of two stages share the state of the optimizer. */
static void test_rows(void **state)
{
    fixture *f = *state;
    if (remat_communicator_size(ranks) != 4)
        return;
    losses alone = train(f->context, NULL, false, REMAT_SHARD_NONE);
    pipeline_stages = 2;
    const losses rows = train(f->context, ranks, false, REMAT_SHARD_NONE);
    const losses shared = train(f->context, ranks, false, REMAT_SHARD_OPTIMIZER);
    pipeline_stages = 0;
    assert_true(shared.bytes < rows.bytes && rows.bytes < alone.bytes);
    pipeline_stages = 2;
    const losses fast = train(f->context, ranks, true, REMAT_SHARD_OPTIMIZER);
    pipeline_stages = 0;
    for (int i = 0; i < 3; i++)
        assert_true(fast.steps[i] > alone.steps[i] - 1e-4 && fast.steps[i] < alone.steps[i] + 1e-4);
    assert_int_equal(fast.bytes, shared.bytes);
    alone.bytes = rows.bytes;
    assert_memory_equal(&alone, &rows, sizeof alone);
    alone.bytes = shared.bytes;
    assert_memory_equal(&alone, &shared, sizeof alone);
}

static void see_gradient(void *user, size_t parameter, const float *gradient, uint64_t count)
{
    (void)user, (void)parameter, (void)gradient, (void)count;
}

/* Figures of a rank without other ranks; and what ranks that share cannot do. */
static void test_shard_plans(void **state)
{
    fixture *f = *state;
    remat_model *model = make_model(f->context);
    remat_train_options options;
    remat_trainer *trainer;
    remat_trainer_figures figures;
    uint64_t last = UINT64_MAX;
    for (uint64_t n = 1; n <= 4; n++) {
        remat_train_options_init(&options);
        options.plan_only = true;
        options.plan_ranks = n;
        options.shard = REMAT_SHARD_WEIGHTS;
        assert_int_equal(remat_trainer_create(model, &options, &trainer), REMAT_OK);
        remat_trainer_get_figures(trainer, &figures);
        assert_true(figures.optimizer_bytes < last);
        last = figures.optimizer_bytes;
        remat_trainer_destroy(trainer);
    }
    options.reduce_fast = true;
    assert_int_equal(remat_trainer_create(model, &options, &trainer), REMAT_INVALID);
    assert_non_null(strstr(remat_context_message(f->context), "in a fixed order"));
    options.reduce_fast = false;
    assert_int_equal(remat_model_set_optimizer(model, "adafactor", REMAT_PROPERTIES("learning_rate=0.01")), REMAT_OK);
    assert_int_equal(remat_trainer_create(model, &options, &trainer), REMAT_INVALID);
    assert_non_null(strstr(remat_context_message(f->context), "adafactor needs whole matrices"));
    assert_int_equal(remat_model_set_optimizer(model, "adamw", REMAT_PROPERTIES("learning_rate=0.01")), REMAT_OK);
    options.plan_only = false; /* ranks that train have a communicator */
    assert_int_equal(remat_trainer_create(model, &options, &trainer), REMAT_INVALID);
    if (remat_communicator_size(ranks) > 1) {
        remat_train_options_init(&options);
        options.communicator = ranks;
        options.threads = 1;
        options.shard = REMAT_SHARD_GRADIENTS;
        assert_int_equal(remat_trainer_create(model, &options, &trainer), REMAT_OK);
        remat_step_result step;
        remat_trainer_on_gradient(trainer, see_gradient, NULL);
        assert_int_equal(remat_trainer_step(trainer, &step), REMAT_INVALID);
        remat_trainer_destroy(trainer);
    }
    remat_model_destroy(model);
}

static void expect_refused(fixture *f, remat_model *model, const remat_train_options *options, const char *why)
{
    remat_trainer *trainer;
    assert_int_equal(remat_trainer_create(model, options, &trainer), REMAT_INVALID);
    expect_message(f, why);
}

/* The figures of each stage without other ranks; and what cannot be. */
static void test_pipeline_plans(void **state)
{
    fixture *f = *state;
    remat_model *model = make_model(f->context);
    remat_train_options options;
    remat_trainer *trainer;
    remat_trainer_figures whole, figures;
    remat_stage_figures stage;
    uint64_t weights = 0;
    remat_train_options_init(&options);
    options.plan_only = true;
    assert_int_equal(remat_trainer_create(model, &options, &trainer), REMAT_OK);
    remat_trainer_get_figures(trainer, &whole);
    assert_int_equal(remat_trainer_get_stage(trainer, 0, &stage), REMAT_INVALID);
    remat_trainer_destroy(trainer);
    options.pipeline = 3;
    options.plan_ranks = 6;
    for (options.plan_stage = 0; options.plan_stage < 3; options.plan_stage++) {
        if (remat_trainer_create(model, &options, &trainer) != REMAT_OK)
            fail_msg("%s", remat_context_message(f->context));
        remat_trainer_get_figures(trainer, &figures);
        assert_int_equal(remat_trainer_get_stage(trainer, options.plan_stage, &stage), REMAT_OK);
        assert_int_equal(stage.total_bytes, figures.total_bytes);
        assert_int_equal(stage.in_flight, 3 - options.plan_stage);
        assert_true((stage.kept_bytes > 0) == (options.plan_stage < 2));
        weights += figures.weight_bytes;
        for (uint64_t s = 0; s < 3; s++) { /* of the other stages too */
            assert_int_equal(remat_trainer_get_stage(trainer, s, &stage), REMAT_OK);
            assert_int_equal(stage.in_flight, 3 - s);
        }
        assert_int_equal(remat_trainer_get_stage(trainer, 3, &stage), REMAT_INVALID);
        remat_trainer_destroy(trainer);
    }
    assert_int_equal(weights, whole.weight_bytes); /* no weight is in two stages */
    expect_refused(f, model, &options, "there is no stage 3");
    options.plan_stage = 0;
    options.plan_ranks = 4;
    expect_refused(f, model, &options, "must be a multiple of 3");
    options.plan_ranks = 15;
    expect_refused(f, model, &options, "5 pipelines cannot share");
    options.plan_ranks = 3;
    options.shard = REMAT_SHARD_WEIGHTS;
    expect_refused(f, model, &options, "use --shard optimizer");
    options.shard = REMAT_SHARD_NONE;
    options.plan_path = "plan.json";
    expect_refused(f, model, &options, "each stage of a pipeline has its own plan");
    options.plan_path = NULL;
    options.plan_ranks = options.pipeline = 100;
    expect_refused(f, model, &options, "cannot be cut into 100 stages");
    options.plan_only = false;
    expect_refused(f, model, &options, "takes as many ranks");
    remat_model_destroy(model);
}

static void test_fast(void **state)
{
    fixture *f = *state;
    const losses alone = train(f->context, NULL, false, REMAT_SHARD_NONE),
                 fast = train(f->context, ranks, true, REMAT_SHARD_NONE);
    for (int i = 0; i < 3; i++)
        assert_true(fast.steps[i] > alone.steps[i] - 1e-4 && fast.steps[i] < alone.steps[i] + 1e-4);
}

static void test_wrong_number(void **state)
{
    fixture *f = *state;
    if (remat_communicator_size(ranks) == 1)
        return;
    remat_model *model = make_model(f->context);
    remat_train_options options;
    remat_train_options_init(&options);
    options.communicator = ranks;
    assert_int_equal(remat_model_set(model, REMAT_PROPERTIES("accumulate=1")), REMAT_OK);
    remat_trainer *trainer;
    assert_int_equal(remat_trainer_create(model, &options, &trainer), REMAT_INVALID);
    assert_non_null(strstr(remat_context_message(f->context), "cannot share the micro-batches"));
    remat_model_destroy(model);
}

/* A communicator of the program's own. */
static void test_own_communicator(void **state)
{
    fixture *f = *state;
    if (remat_communicator_size(ranks) == 1)
        return;
    const mpi_library *library = mpi_library_load();
    mpi_handle mine;
    assert_int_equal(library->Comm_dup(library->world, &mine), MPI_ABI_SUCCESS);
    remat_communicator *opened;
    assert_int_equal(remat_communicator_open(f->context, &mine, &opened), REMAT_OK);
    assert_int_equal(remat_communicator_rank(opened), remat_communicator_rank(ranks));
    assert_int_equal(remat_communicator_size(opened), remat_communicator_size(ranks));
    const losses alone = train(f->context, NULL, false, REMAT_SHARD_NONE),
                 shared = train(f->context, opened, false, REMAT_SHARD_NONE);
    assert_memory_equal(&alone, &shared, sizeof alone);
    remat_communicator_close(opened);
    assert_int_equal(library->Comm_free(&mine), MPI_ABI_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_same_bits), FIXTURE_TEST(test_pipeline),     FIXTURE_TEST(test_pipeline_plans),
        FIXTURE_TEST(test_shards),    FIXTURE_TEST(test_rows),         FIXTURE_TEST(test_shard_plans),
        FIXTURE_TEST(test_fast),      FIXTURE_TEST(test_wrong_number), FIXTURE_TEST(test_own_communicator)};
    remat_context *context;
    if (remat_context_create(NULL, &context) != REMAT_OK || remat_communicator_open(context, NULL, &ranks) != REMAT_OK)
        return 1;
    remat_communicator_set_timeout(ranks, 60);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed)
        remat_communicator_abort(ranks, REMAT_INTERNAL);
    remat_communicator_close(ranks);
    remat_context_destroy(context);
    return failed;
}
