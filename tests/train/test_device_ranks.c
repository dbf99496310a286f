/* Ranks whose tensors are in memory that the host cannot touch train as one process does on the processor: the same losses and the same
 * saved file, in every way of sharing. run_mpi.sh runs this as two, three and four ranks, with the argument "nccl" by an NCCL of the
 * tests, and without through memory of the host. REMAT_TEST_DEVICE=cuda takes a GPU instead of the device for tests; then one process on
 * that GPU is what they are compared with. */
#include <unistd.h>

#include <remat/ranks.h>

#include "support/fake_nccl_calls.h"
#include "support/fenced_backend.h"
#include "support/fixture.h"
#include "support/scratch_files.h"
#include "support/small_models.h"
#include "train/trainer_object.h"

enum { STEPS = 3 };

static remat_communicator *ranks;
static const char *device, *reference;
static const char *way; /* that tensors must go; NULL: whatever way */

typedef struct sharing {
    const char *name;
    remat_shard shard;
    uint64_t pipeline;
    bool fast;
} sharing;

/* Other bits than one process: sums in the order of the library. */
static const sharing ways[] = {
    {.name = "none"},
    {.name = "optimizer", .shard = REMAT_SHARD_OPTIMIZER},
    {.name = "gradients", .shard = REMAT_SHARD_GRADIENTS},
    {.name = "weights", .shard = REMAT_SHARD_WEIGHTS},
    {.name = "pipeline", .pipeline = 2},
    {.name = "pipeline, optimizer", .shard = REMAT_SHARD_OPTIMIZER, .pipeline = 2},
    {.name = "fast", .fast = true},
    {.name = "fast pipeline", .fast = true, .pipeline = 2},
};

typedef struct training {
    double losses[STEPS], validation;
    char *file;
    size_t length;
} training;

static remat_trainer *open_trainer(fixture *f, remat_model *model, const char *where, remat_communicator *with,
                                   const sharing *how)
{
    remat_train_options options;
    remat_trainer *trainer;
    remat_train_options_init(&options);
    options.device = where;
    options.communicator = with;
    options.shard = how->shard;
    options.pipeline = how->pipeline;
    options.reduce_fast = how->fast;
    options.threads = 1;
    if (remat_trainer_create(model, &options, &trainer) != REMAT_OK)
        fail_msg("%s", remat_context_message(f->context));
    return trainer;
}

static void take_step(fixture *f, remat_trainer *trainer, double *loss)
{
    remat_step_result result;
    const remat_status status = remat_trainer_step(trainer, &result);
    if (status != REMAT_OK)
        fail_msg("%s: %s%s", remat_status_text(status), remat_context_message(f->context),
                 remat_context_message(ranks->context));
    *loss = result.loss;
}

/* The last step is that of a trainer which goes on from the file. */
static training train(fixture *f, remat_model *model, const char *where, remat_communicator *with, const sharing *how)
{
    training done = {.validation = 0};
    remat_validation_result validation;
    remat_trainer_figures figures;
    char shared[256] = "";
    remat_trainer *trainer = open_trainer(f, model, where, with, how);
    snprintf(shared, sizeof shared, "%s", scratch_path("state.safetensors"));
    if (with) /* all ranks read what the first one writes */
        expect_ok(f, comm_run(with, &(comm_transfer){.kind = COMM_BROADCAST, .data = shared, .bytes = sizeof shared}));
    if (way && with && remat_communicator_size(with) > 1)
        assert_string_equal(remat_communicator_name(trainer->links), way);
    for (int i = 0; i < STEPS - 1; i++)
        take_step(f, trainer, &done.losses[i]);
    remat_trainer_get_figures(trainer, &figures);
    assert_int_equal(trainer_allocated_bytes(trainer), figures.total_bytes); /* on every rank, to the byte */
    expect_ok(f, remat_trainer_save(trainer, shared, true));
    remat_trainer_destroy(trainer);
    trainer = open_trainer(f, model, where, with, how);
    expect_ok(f, remat_trainer_resume(trainer, shared));
    take_step(f, trainer, &done.losses[STEPS - 1]);
    if (remat_trainer_validate(trainer, &validation) == REMAT_OK)
        done.validation = validation.loss;
    expect_ok(f, remat_trainer_save(trainer, shared, true));
    done.file = scratch_read(shared, &done.length);
    if (with) /* the first rank writes there again */
        expect_ok(f, comm_run(with, &(comm_transfer){.kind = COMM_BARRIER}));
    remat_trainer_destroy(trainer);
    return done;
}

static bool are_near(const training *a, const training *b)
{
    bool near = true;
    for (int i = 0; i < STEPS; i++)
        near &= a->losses[i] > b->losses[i] - 1e-3 && a->losses[i] < b->losses[i] + 1e-3;
    return near;
}

static void compare(const training *alone, const training *shared, const char *name, const sharing *how)
{
    if (how->fast ? !are_near(alone, shared) : memcmp(alone->losses, shared->losses, sizeof alone->losses) != 0)
        fail_msg("%s, %s: other losses than one process: %.9g %.9g %.9g, wanted %.9g %.9g %.9g", name, how->name,
                 shared->losses[0], shared->losses[1], shared->losses[2], alone->losses[0], alone->losses[1],
                 alone->losses[2]);
    if (how->fast)
        return;
    if (memcmp(&alone->validation, &shared->validation, sizeof alone->validation) != 0)
        fail_msg("%s, %s: another validation loss than one process", name, how->name);
    if (alone->length != shared->length || memcmp(alone->file, shared->file, alone->length) != 0)
        fail_msg("%s, %s: another file than one process", name, how->name);
}

static void train_all_ways(fixture *f, const char *name)
{
    const uint64_t size = remat_communicator_size(ranks);
    remat_model *model;
    expect_ok(f, small_model_load(f->context, name, &model));
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=2", "accumulate=12")));
    training alone = train(f, model, reference, NULL, &ways[0]);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (ways[i].pipeline && size % ways[i].pipeline != 0)
            continue;
        training shared = train(f, model, device, ranks, &ways[i]);
        compare(&alone, &shared, name, &ways[i]);
        free(shared.file);
    }
    free(alone.file);
    remat_model_destroy(model);
}

/* Tied embeddings, clipping. */
static void test_gpt(void **state)
{
    train_all_ways(*state, "gpt.ini");
}

/* Batch normalization: statistics travel too. */
static void test_statistics(void **state)
{
    train_all_ways(*state, "resnet.ini");
}

int main(int argc, char **argv)
{
    fake_nccl_calls fake;
    const struct CMUnitTest tests[] = {FIXTURE_TEST(test_gpt), FIXTURE_TEST(test_statistics)};
    remat_context *context;
    const char *other = getenv("REMAT_TEST_DEVICE");
    device = other ? other : fenced_device();
    reference = other ? other : "cpu";
    way = other ? NULL : argc > 1 ? argv[1] : "staged";
    if (argc > 1 && !fake_nccl_load(FAKE_NCCL, (uint64_t)getpid(), &fake))
        return 1;
    if (remat_context_create(NULL, &context) != REMAT_OK || remat_communicator_open(context, NULL, &ranks) != REMAT_OK)
        return 1;
    remat_communicator_set_timeout(ranks, 60);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed)
        remat_communicator_abort(ranks, REMAT_INTERNAL);
    remat_communicator_close(ranks);
    remat_context_destroy(context);
    if (argc > 1 && *fake.open) {
        fprintf(stderr, "%d communicators of NCCL were not closed\n", *fake.open);
        return 1;
    }
    return failed;
}
