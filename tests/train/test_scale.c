/* The simulation of ranks. */
#include <math.h>
#include <string.h>

#include <remat/scale.h>

#include "support/fixture.h"

static remat_model *make_model(remat_context *context)
{
    static const char *const layers[][4] = {
        {"input", "name=in", "input_shape=1:1:64", NULL},    {"fully_connected", "name=a", "unit=256", NULL},
        {"fully_connected", "name=b", "unit=256", NULL},     {"fully_connected", "name=c", "unit=256", NULL},
        {"fully_connected", "name=classes", "unit=3", NULL}, {"cross_entropy", "name=loss", NULL},
    };
    remat_model *model;
    assert_int_equal(remat_model_create(context, &model), REMAT_OK);
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        assert_int_equal(remat_model_add_layer(model, layers[i][0], layers[i] + 1), REMAT_OK);
    assert_int_equal(remat_model_set(model, REMAT_PROPERTIES("batch_size=4", "accumulate=2")), REMAT_OK);
    assert_int_equal(remat_model_set_optimizer(model, "adam", REMAT_PROPERTIES("learning_rate=0.01")), REMAT_OK);
    assert_int_equal(remat_model_compile(model), REMAT_OK);
    return model;
}

/* Figures that follow from the formulas in docs/scale.md. */
static void test_formulas(void **state)
{
    fixture *f = *state;
    remat_model *model = make_model(f->context);
    remat_train_options options;
    remat_cluster cluster;
    remat_scale_estimate slow, wide, one;
    remat_train_options_init(&options);
    options.threads = 1;
    options.shard = REMAT_SHARD_GRADIENTS;
    remat_cluster_init(&cluster);
    cluster.ranks = 8;
    cluster.network_bytes_per_second = 1e9;
    cluster.network_latency = 0;
    assert_int_equal(remat_scale_simulate(model, &options, &cluster, &slow), REMAT_OK);
    assert_true(slow.fits && slow.ranks == 8 && slow.batch_size == 4 && slow.micro_batches == 1);
    /* Without latency: all gradients once, all weights once and a few losses, each times 7/8. */
    const double values = 64 * 256 + 256 + 2 * (256 * 256 + 256) + 3 * 256 + 3;
    assert_true(fabs(slow.transfer_seconds - 7.0 / 8 * (8 * values + 16) / 1e9) < 1e-9);
    assert_true(fabs(slow.seconds - slow.compute_seconds - slow.transfer_seconds) < 1e-12);
    cluster.network_bytes_per_second = 2e9;
    assert_int_equal(remat_scale_simulate(model, &options, &cluster, &wide), REMAT_OK);
    assert_true(fabs(2 * wide.transfer_seconds - slow.transfer_seconds) < 1e-9);
    cluster.ranks = 1;
    assert_int_equal(remat_scale_simulate(model, &options, &cluster, &one), REMAT_OK);
    assert_true(one.transfer_seconds == 0 && one.shard == REMAT_SHARD_NONE && one.micro_batches == 2);
    assert_true(one.rank_bytes > slow.rank_bytes);
    remat_model_destroy(model);
}

/* Shared weights: on a fast network all gathers but the first are hidden behind computing; on a slow one the network is the limit, and
 * nothing is hidden but what is computed meanwhile. */
static void test_gathers(void **state)
{
    fixture *f = *state;
    remat_model *model = make_model(f->context);
    remat_train_options options;
    remat_cluster cluster;
    remat_scale_estimate shared, gradients;
    const double values[] = {64 * 256 + 256, 256 * 256 + 256, 256 * 256 + 256, 3 * 256 + 3};
    const double forward = values[0] + values[1] + values[2] + values[3], backward = values[1] + values[2];
    remat_train_options_init(&options);
    options.threads = 1;
    remat_cluster_init(&cluster);
    cluster.ranks = 2;
    cluster.network_latency = 0;
    for (double speed = 1e6; speed < 1e15; speed *= 1e3) {
        cluster.network_bytes_per_second = speed;
        options.shard = REMAT_SHARD_GRADIENTS;
        assert_int_equal(remat_scale_simulate(model, &options, &cluster, &gradients), REMAT_OK);
        options.shard = REMAT_SHARD_WEIGHTS;
        assert_int_equal(remat_scale_simulate(model, &options, &cluster, &shared), REMAT_OK);
        /* Gradients: these and the new weights, once. Weights: these, and weights for two passes in place of the new ones; the first
         * layer has no gradient of its input, and the last one is computed with the loss, in one pass. */
        const double all = (8 * forward + 16) / 2 / speed, with = (4 * (2 * forward + backward) + 16) / 2 / speed;
        assert_true(fabs(gradients.transfer_seconds - all) < 1e-9 * all);
        assert_true(shared.transfer_seconds < with);
        assert_true(shared.transfer_seconds > with - shared.compute_seconds);
        assert_true(shared.transfer_seconds > (4 * forward + 4 * values[0]) / 2 / speed);
        if (speed > 1e12) /* only the weights of the first layer and gradients are waited for */
            assert_true(shared.transfer_seconds < all);
    }
    remat_model_destroy(model);
}

/* Ranks of one machine: their processors copy, so that computing hides nothing. */
static void test_memory(void **state)
{
    fixture *f = *state;
    remat_model *model = make_model(f->context);
    remat_train_options options;
    remat_cluster cluster;
    remat_scale_estimate hidden, copied;
    remat_train_options_init(&options);
    options.threads = 1;
    remat_cluster_init(&cluster);
    cluster.ranks = 2;
    cluster.network_bytes_per_second = 1e9;
    cluster.network_latency = 1e-5;
    const double bytes = 4 * (64 * 256 + 256 + 2 * (256 * 256 + 256) + 3 * 256 + 3), link = 1e-5 + bytes / 1e9;
    for (remat_shard shard = REMAT_SHARD_NONE; shard <= REMAT_SHARD_WEIGHTS; shard++) {
        options.shard = shard;
        cluster.network_in_memory = false;
        assert_int_equal(remat_scale_simulate(model, &options, &cluster, &hidden), REMAT_OK);
        cluster.network_in_memory = true;
        assert_int_equal(remat_scale_simulate(model, &options, &cluster, &copied), REMAT_OK);
        assert_true(copied.compute_seconds == hidden.compute_seconds);
        assert_true(copied.transfer_seconds >= hidden.transfer_seconds * (1 - 1e-12));
        if (shard ==
            REMAT_SHARD_NONE) /* one link: for the micro-batch, for the last round, and twice to the other rank; then the losses */
            assert_true(fabs(copied.transfer_seconds - 4 * link - (1e-5 + 8e-9)) < 1e-9);
        if (shard == REMAT_SHARD_WEIGHTS)
            assert_true(copied.transfer_seconds > hidden.transfer_seconds);
    }
    remat_model_destroy(model);
}

/* A pipeline: the first micro-batch passes all stages, and behind it one comes every time that the slowest stage takes. */
static void test_pipeline(void **state)
{
    fixture *f = *state;
    remat_model *model = make_model(f->context);
    remat_train_options options;
    remat_cluster cluster;
    remat_scale_estimate few, many, more, alone;
    remat_train_options_init(&options);
    options.threads = 1;
    remat_cluster_init(&cluster);
    cluster.step_samples = 32;
    assert_int_equal(remat_scale_simulate(model, &options, &cluster, &alone), REMAT_OK);
    assert_true(alone.pipeline == 1);
    options.pipeline = 2;
    cluster.ranks = 2;
    assert_int_equal(remat_scale_simulate(model, &options, &cluster, &few), REMAT_OK);
    assert_true(few.fits && few.pipeline == 2 && few.micro_batches == 8 && few.rank_bytes < alone.rank_bytes);
    assert_true(few.compute_seconds < alone.compute_seconds && few.compute_seconds > alone.compute_seconds / 2);
    assert_true(fabs(few.seconds - few.compute_seconds - few.transfer_seconds) < 1e-12);
    cluster.step_samples = 64;
    assert_int_equal(remat_scale_simulate(model, &options, &cluster, &many), REMAT_OK);
    cluster.step_samples = 96;
    assert_int_equal(remat_scale_simulate(model, &options, &cluster, &more), REMAT_OK);
    assert_true(fabs((more.compute_seconds - many.compute_seconds) - (many.compute_seconds - few.compute_seconds)) <
                1e-9);
    cluster.ranks = 3;
    assert_int_equal(remat_scale_simulate(model, &options, &cluster, &few), REMAT_INVALID);
    remat_model_destroy(model);
}

/* The best micro-batch is as good as each that is tried by hand; a budget that nothing fits is no error. */
static void test_search(void **state)
{
    fixture *f = *state;
    remat_model *model = make_model(f->context);
    remat_train_options options;
    remat_cluster cluster;
    remat_scale_estimate best, other;
    remat_train_options_init(&options);
    options.threads = 1;
    options.shard = REMAT_SHARD_WEIGHTS;
    remat_cluster_init(&cluster);
    cluster.ranks = 4;
    cluster.step_samples = 64;
    assert_int_equal(remat_scale_find(model, &options, &cluster, &best), REMAT_OK);
    assert_true(best.fits && best.micro_batches * best.batch_size == 16);
    for (uint64_t batch = 1; batch <= 16; batch *= 2) {
        options.batch_size = batch;
        assert_int_equal(remat_scale_simulate(model, &options, &cluster, &other), REMAT_OK);
        assert_true(other.seconds >= best.seconds);
    }
    options.budget_bytes = 1000;
    assert_int_equal(remat_scale_find(model, &options, &cluster, &best), REMAT_OK);
    assert_false(best.fits);
    assert_true(best.rank_bytes > 1000 && best.batch_size == 1);
    remat_model_destroy(model);
}

static void test_least_ranks(void **state)
{
    fixture *f = *state;
    remat_model *model = make_model(f->context);
    remat_train_options options;
    remat_trainer *trainer;
    uint64_t ranks;
    remat_train_options_init(&options);
    options.threads = 1;
    options.shard = REMAT_SHARD_OPTIMIZER;
    assert_int_equal(remat_scale_least_ranks(model, &options, 64, &ranks), REMAT_INVALID); /* no budget */
    options.budget_bytes = 1000;
    assert_int_equal(remat_scale_least_ranks(model, &options, 64, &ranks), REMAT_OK);
    assert_int_equal(ranks, 0);
    options.plan_only = true;
    for (uint64_t wanted = 2; wanted <= 5; wanted++) { /* what so many need is the budget */
        remat_trainer_figures figures;
        options.budget_bytes = REMAT_UNLIMITED;
        options.strategy = "optimal";
        options.plan_ranks = options.accumulate = wanted;
        assert_int_equal(remat_trainer_create(model, &options, &trainer), REMAT_OK);
        remat_trainer_get_figures(trainer, &figures);
        remat_trainer_destroy(trainer);
        options.budget_bytes = figures.min_budget_bytes;
        assert_int_equal(remat_scale_least_ranks(model, &options, 64, &ranks), REMAT_OK);
        assert_int_equal(ranks, wanted);
    }
    remat_model_destroy(model);
}

static void test_mistakes(void **state)
{
    fixture *f = *state;
    remat_model *model = make_model(f->context);
    remat_cluster cluster;
    remat_scale_estimate found;
    remat_cluster_init(&cluster);
    cluster.ranks = 0;
    assert_int_equal(remat_scale_simulate(model, NULL, &cluster, &found), REMAT_INVALID);
    cluster.ranks = 3;
    cluster.step_samples = 4;
    assert_int_equal(remat_scale_find(model, NULL, &cluster, &found), REMAT_INVALID);
    cluster.step_samples = 9; /* three for each rank, and a batch has four */
    assert_int_equal(remat_scale_simulate(model, NULL, &cluster, &found), REMAT_INVALID);
    cluster.step_samples = 12;
    cluster.network_bytes_per_second = NAN;
    assert_int_equal(remat_scale_simulate(model, NULL, &cluster, &found), REMAT_INVALID);
    remat_train_options options;
    remat_train_options_init(&options);
    options.device_flops = -1;
    remat_cluster_init(&cluster);
    assert_int_equal(remat_scale_simulate(model, &options, &cluster, &found), REMAT_INVALID);
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(test_formulas), FIXTURE_TEST(test_gathers),
                                       FIXTURE_TEST(test_memory),   FIXTURE_TEST(test_pipeline),
                                       FIXTURE_TEST(test_search),   FIXTURE_TEST(test_least_ranks),
                                       FIXTURE_TEST(test_mistakes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
