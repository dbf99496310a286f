/* Searches for batches and ranks with each allocation failing in turn, and options that make no sense. */
#include "support/memory_failures.h"

#include <math.h>

#include <remat/scale.h>
#include <remat/train.h>

static remat_model *make_model(fixture *f)
{
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    expect_ok(f, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=1:1:64")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=a", "unit=32")));
    expect_ok(f, remat_model_add_layer(model, "activation", REMAT_PROPERTIES("name=b", "activation=relu")));
    expect_ok(f, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=c", "unit=3")));
    expect_ok(f, remat_model_add_layer(model, "cross_entropy", REMAT_PROPERTIES("name=loss")));
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=4", "accumulate=2")));
    expect_ok(f, remat_model_set_dataset(model, "random", REMAT_PROPERTIES("samples=64", "validation_split=0.25")));
    expect_ok(f, remat_model_compile(model));
    return model;
}

typedef struct search {
    remat_model *model;
    remat_train_options options;
    remat_cluster cluster;
} search;

static remat_status find_largest(void *user)
{
    search *s = user;
    uint64_t batch;
    return remat_train_largest_batch(s->model, &s->options, &batch);
}

static remat_status find_fastest(void *user)
{
    search *s = user;
    remat_batch_choice choice;
    return remat_train_choose_batch(s->model, &s->options, &choice);
}

static remat_status simulate(void *user)
{
    search *s = user;
    remat_scale_estimate estimate;
    return remat_scale_simulate(s->model, &s->options, &s->cluster, &estimate);
}

static remat_status find_batch_of_ranks(void *user)
{
    search *s = user;
    remat_scale_estimate estimate;
    return remat_scale_find(s->model, &s->options, &s->cluster, &estimate);
}

static remat_status find_least_ranks(void *user)
{
    search *s = user;
    uint64_t ranks;
    return remat_scale_least_ranks(s->model, &s->options, 64, &ranks);
}

static search begin_search(fixture *f)
{
    search s = {.model = make_model(f)};
    remat_train_options_init(&s.options);
    s.options.threads = 1;
    s.options.strategy = "none";
    s.options.budget_bytes = 1100000;
    remat_cluster_init(&s.cluster);
    s.cluster.ranks = 2;
    return s;
}

static void failed_allocations_are_survived(void **state)
{
    fixture *f = *state;
    search s = begin_search(f);
    expect_call_failures_survived(f, "the largest batch", find_largest, &s, 50);
    expect_call_failures_survived(f, "the fastest batch", find_fastest, &s, 50);
    s.options.plan_only = true;
    expect_call_failures_survived(f, "the largest batch of any data", find_largest, &s, 50);
    s.options.plan_only = false;
    expect_call_failures_survived(f, "a simulation", simulate, &s, 50);
    s.options.reduce_fast = true;
    expect_ok(f, simulate(&s));
    s.options.reduce_fast = false;
    expect_call_failures_survived(f, "a micro-batch of ranks", find_batch_of_ranks, &s, 50);
    expect_call_failures_survived(f, "the fewest ranks", find_least_ranks, &s, 50);
    remat_model_destroy(s.model);
}

static void wrong_options_are_refused(void **state)
{
    fixture *f = *state;
    search s = begin_search(f);
    const search right = s;
    s.cluster.ranks = 0;
    expect_status(f, simulate(&s), REMAT_INVALID);
    s.cluster.ranks = (1 << 20) + 1;
    expect_status(f, simulate(&s), REMAT_INVALID);
    s = right;
    s.cluster.network_bytes_per_second = 0;
    expect_status(f, simulate(&s), REMAT_INVALID);
    s = right;
    s.cluster.network_latency = -1;
    expect_status(f, simulate(&s), REMAT_INVALID);
    s.cluster.network_latency = INFINITY;
    expect_status(f, find_batch_of_ranks(&s), REMAT_INVALID);
    s = right;
    s.cluster.struct_size = 0;
    expect_status(f, simulate(&s), REMAT_INVALID);
    s = right;
    s.options.struct_size = 0;
    expect_status(f, simulate(&s), REMAT_INVALID);
    expect_status(f, find_batch_of_ranks(&s), REMAT_INVALID);
    expect_status(f, find_least_ranks(&s), REMAT_INVALID);
    expect_status(f, find_largest(&s), REMAT_INVALID);
    expect_status(f, find_fastest(&s), REMAT_INVALID);
    s = right;
    s.options.budget_bytes = REMAT_NO_BUDGET;
    expect_status(f, find_largest(&s), REMAT_INVALID);
    expect_message(f, "budget");
    expect_status(f, find_least_ranks(&s), REMAT_INVALID);
    uint64_t ranks;
    expect_status(f, remat_scale_least_ranks(right.model, &right.options, 0, &ranks), REMAT_INVALID);
    remat_model_destroy(right.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(failed_allocations_are_survived),
        FIXTURE_TEST(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
