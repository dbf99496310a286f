/* The calls of remat/ranks.h with a trainer, as a program makes them. Alone this is one rank; run_mpi.sh runs it as three. */
#include <string.h>

#include <remat/ranks.h>

#include "comm/mpi_abi.h"
#include "support/fixture.h"

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
        {"fully_connected", "name=fc", "unit=3", NULL},
        {"cross_entropy", "name=loss", NULL},
    };
    remat_model *model;
    assert_int_equal(remat_model_create(context, &model), REMAT_OK);
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        assert_int_equal(remat_model_add_layer(model, layers[i][0], layers[i] + 1), REMAT_OK);
    assert_int_equal(remat_model_set(model, REMAT_PROPERTIES("batch_size=2", "accumulate=12")), REMAT_OK);
    assert_int_equal(remat_model_set_optimizer(model, "adamw", REMAT_PROPERTIES("learning_rate=0.01")), REMAT_OK);
    assert_int_equal(remat_model_set_dataset(model, "random", REMAT_PROPERTIES("samples=60", "validation_split=0.2")),
                     REMAT_OK);
    assert_int_equal(remat_model_compile(model), REMAT_OK);
    return model;
}

typedef struct losses {
    double steps[3], validation;
    uint64_t bytes;
} losses;

static losses train(remat_context *context, remat_communicator *with, bool fast)
{
    remat_model *model = make_model(context);
    remat_train_options options;
    remat_train_options_init(&options);
    options.communicator = with;
    options.reduce_fast = fast;
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
    }
    remat_validation_result validation;
    assert_int_equal(remat_trainer_validate(trainer, &validation), REMAT_OK);
    found.validation = validation.loss;
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    found.bytes = figures.total_bytes;
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    return found;
}

/* Every rank also trains alone, and compares. */
static void test_same_bits(void **state)
{
    fixture *f = *state;
    const losses alone = train(f->context, NULL, false), shared = train(f->context, ranks, false);
    assert_memory_equal(&alone, &shared, sizeof alone);
}

static void test_fast(void **state)
{
    fixture *f = *state;
    const losses alone = train(f->context, NULL, false), fast = train(f->context, ranks, true);
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
    const losses alone = train(f->context, NULL, false), shared = train(f->context, opened, false);
    assert_memory_equal(&alone, &shared, sizeof alone);
    remat_communicator_close(opened);
    assert_int_equal(library->Comm_free(&mine), MPI_ABI_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(test_same_bits), FIXTURE_TEST(test_fast),
                                       FIXTURE_TEST(test_wrong_number), FIXTURE_TEST(test_own_communicator)};
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
