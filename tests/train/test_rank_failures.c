/* Trainings of several ranks in which each transfer and each allocation fails in turn. The other ranks are an echo
 * (support/echo_ranks.h): the numbers mean nothing, and every call is made. */
#include "support/echo_ranks.h"
#include "support/memory_failures.h"
#include "support/scratch_files.h"

#include "train/trainer_object.h"

static const char text[] = "[Model]\nbatch_size = 2\naccumulate = 6\nclip_norm = 1\n[Optimizer]\ntype = adamw\n"
                           "[Dataset : random]\nsamples = 30\nvalidation_split = 0.2\n"
                           "[in : input]\ninput_shape = 1:1:6\n[fc : fully_connected]\nunit = 5\n"
                           "[norm : batch_normalization]\n[fc2 : fully_connected]\nunit = 3\n[loss : cross_entropy]\n";

typedef struct setup {
    uint64_t rank, size;
    remat_shard shard;
    bool fast;
    uint64_t pipeline;
} setup;

static const setup setups[] = {
    {0, 2, REMAT_SHARD_NONE, false, 0},      {1, 2, REMAT_SHARD_NONE, false, 0},
    {1, 3, REMAT_SHARD_NONE, true, 0},       {0, 2, REMAT_SHARD_OPTIMIZER, false, 0},
    {1, 2, REMAT_SHARD_GRADIENTS, false, 0}, {0, 2, REMAT_SHARD_WEIGHTS, false, 0},
    {1, 2, REMAT_SHARD_WEIGHTS, false, 0},   {0, 2, REMAT_SHARD_NONE, false, 2},
    {1, 2, REMAT_SHARD_NONE, false, 2},      {2, 4, REMAT_SHARD_OPTIMIZER, false, 2},
    {1, 4, REMAT_SHARD_NONE, true, 2},       {3, 4, REMAT_SHARD_NONE, false, 2},
};
enum { SETUPS = sizeof setups / sizeof *setups };

/* Where rank 0 cuts the network into two stages. */
static uint32_t starts[3];

static remat_status find_starts(remat_context *context)
{
    remat_model *model = NULL;
    remat_trainer *trainer = NULL;
    remat_train_options options;
    remat_train_options_init(&options);
    options.plan_only = true;
    options.pipeline = 2;
    options.strategy = "none";
    FILE *stream = stream_of(text, strlen(text));
    remat_status status = remat_model_read(context, stream, "text", &model);
    fclose(stream);
    FLOW(status, remat_trainer_create(model, &options, &trainer));
    if (status == REMAT_OK)
        memcpy(starts, trainer->pipeline->starts, sizeof starts);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    return status;
}

static remat_status read_and_write(remat_trainer *trainer)
{
    float values[64];
    remat_status status = REMAT_OK;
    for (size_t p = 0; p < remat_trainer_parameter_count(trainer) && status == REMAT_OK; p++) {
        remat_parameter about;
        status = remat_trainer_get_parameter(trainer, p, &about);
        FLOW(status, remat_trainer_read_parameter(trainer, p, values, about.count));
        FLOW(status, remat_trainer_write_parameter(trainer, p, values, about.count));
        for (size_t m = 0; m < about.moment_count; m++) {
            FLOW(status, remat_trainer_read_moment(trainer, p, m, values, about.count));
            FLOW(status, remat_trainer_write_moment(trainer, p, m, values, about.count));
        }
    }
    return status;
}

static remat_status train(remat_context *context, const setup *how, uint64_t fail_at, uint64_t *calls)
{
    echo_ranks ranks = echo_ranks_make(context, how->rank, how->size);
    ranks.fail_at = fail_at;
    if (how->pipeline) {
        memcpy(ranks.starts, starts, sizeof starts);
        ranks.part_size = how->size / how->pipeline;
    }
    remat_model *model = NULL;
    remat_trainer *trainer = NULL;
    remat_train_options options;
    remat_step_result step;
    remat_validation_result validation;
    char saved[300];
    snprintf(saved, sizeof saved, "%s", scratch_path("saved.safetensors"));
    remat_train_options_init(&options);
    options.communicator = &ranks.base;
    options.shard = how->shard;
    options.reduce_fast = how->fast;
    options.pipeline = how->pipeline;
    options.threads = 1;
    options.strategy = "none"; /* no search for a plan, which is most of the allocations */
    FILE *stream = stream_of(text, strlen(text));
    remat_status status = remat_model_read(context, stream, "text", &model);
    fclose(stream);
    FLOW(status, remat_trainer_create(model, &options, &trainer));
    for (int i = 0; i < 2; i++)
        FLOW(status, remat_trainer_step(trainer, &step));
    FLOW(status, read_and_write(trainer));
    FLOW(status, remat_trainer_validate(trainer, &validation));
    FLOW(status, remat_trainer_save(trainer, saved, true));
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
    *calls = ranks.calls;
    return status;
}

static void every_transfer_may_fail(void **state)
{
    fixture *f = *state;
    expect_ok(f, find_starts(f->context));
    for (int i = 0; i < SETUPS; i++) {
        uint64_t calls = 0, all;
        expect_ok(f, train(f->context, &setups[i], 0, &all));
        assert_true(all > 20);
        /* Most of the calls are those of later steps, which are the same. */
        for (uint64_t n = 1; n <= all; n += n < all / 2 ? 1 : LESS_WHEN_SANITIZED(1 + n % 3, 5)) {
            expect_status(f, train(f->context, &setups[i], n, &calls), REMAT_IO);
            expect_message(f, "fails");
            assert_int_equal(remat_context_bytes(f->context), 0);
        }
    }
}

static remat_status train_once(remat_context *context, void *user)
{
    uint64_t calls;
    return train(context, user, 0, &calls);
}

static void every_allocation_may_fail(void **state)
{
    fixture *f = *state;
    expect_ok(f, find_starts(f->context));
    for (int i = 0; i < SETUPS; i++)
        expect_failures_survived("ranks", train_once, (void *)(uintptr_t)&setups[i], 50,
                                 LESS_WHEN_SANITIZED(1000, 150));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(every_transfer_may_fail),
        FIXTURE_TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
