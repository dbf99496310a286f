/* Gathers of shared weights that begin early: in bytes that are free, within the budget, in the order of their actions. */
#include "support/fixture.h"

#include "arena/placement.h"
#include "base/alloc.h"
#include "support/scratch_files.h"
#include "train/trainer_object.h"

static remat_model *make_model(fixture *f)
{
    static const char *const layers[][5] = {
        {"input", "name=in", "input_shape=1:1:64", NULL},
        {"fully_connected", "name=a", "unit=300", "activation=gelu", NULL},
        {"layer_normalization", "name=n", NULL},
        {"fully_connected", "name=b", "unit=400", "activation=tanh", NULL},
        {"fully_connected", "name=c", "unit=300", "activation=gelu", NULL},
        {"layer_normalization", "name=m", NULL},
        {"fully_connected", "name=d", "unit=300", "activation=gelu", NULL},
        {"fully_connected", "name=e", "unit=3", NULL},
        {"mse", "name=loss", NULL},
    };
    remat_model *model;
    expect_ok(f, remat_model_create(f->context, &model));
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        expect_ok(f, remat_model_add_layer(model, layers[i][0], layers[i] + 1));
    expect_ok(f, remat_model_set(model, REMAT_PROPERTIES("batch_size=128", "accumulate=4")));
    expect_ok(f, remat_model_set_optimizer(model, "adam", REMAT_PROPERTIES("learning_rate=0.01")));
    expect_ok(f, remat_model_compile(model));
    return model;
}

static remat_trainer *plan(fixture *f, remat_model *model, uint64_t budget)
{
    remat_train_options options;
    remat_trainer *trainer;
    remat_train_options_init(&options);
    options.plan_only = true;
    options.plan_ranks = 2;
    options.threads = 1;
    options.shard = REMAT_SHARD_WEIGHTS;
    options.budget_bytes = budget;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    return trainer;
}

/* No two buffers share bytes, and all live bytes are those of the ranges. */
static void expect_sound(fixture *f, const graph_liveness *liveness, const uint64_t *offsets, uint64_t arena)
{
    remat_lifetime *lifetimes = remat_alloc(f->context, liveness->buffer_count, sizeof *lifetimes);
    uint64_t *live = remat_alloc_zeroed(f->context, liveness->position_count, sizeof *live);
    assert_true(lifetimes && live);
    for (size_t i = 0; i < liveness->buffer_count; i++) {
        const graph_buffer *buffer = &liveness->buffers[i];
        assert_true(i == 0 || buffer->born >= buffer[-1].born);
        lifetimes[i] = (remat_lifetime){buffer->born, buffer->ends, buffer->bytes, offsets[i]};
    }
    expect_ok(f, arena_check(f->context, lifetimes, liveness->buffer_count, 64, arena));
    for (size_t i = 0; i < liveness->range_count; i++) {
        const live_range *range = &liveness->ranges[i];
        assert_true(i == 0 || range->born >= range[-1].born);
        assert_true(range->in_place_of == GRAPH_NONE || liveness->ranges[range->in_place_of].ends == range->born + 1);
        for (uint32_t p = live_range_counts_from(range); p < range->ends; p++)
            live[p] += range->bytes;
    }
    for (size_t p = 0; p < liveness->position_count; p++) {
        assert_int_equal(live[p], liveness->live_bytes[p]);
        assert_true(live[p] <= liveness->peak_bytes);
    }
    assert_int_equal(live[liveness->peak_position], liveness->peak_bytes);
    remat_release(f->context, lifetimes, liveness->buffer_count, sizeof *lifetimes);
    remat_release(f->context, live, liveness->position_count, sizeof *live);
}

/* Of the large gathers, how many begin early; and that gathers begin in the order of their actions. */
static size_t count_early(const remat_program *program, const graph_sequence *sequence, const graph_liveness *liveness,
                          size_t *large)
{
    size_t early = 0;
    uint32_t last = 0;
    *large = 0;
    for (uint32_t p = 0; p < sequence->count; p++) {
        const uint64_t bytes = program_fetched_bytes(program, sequence->actions[p]);
        for (size_t i = 0; i < liveness->range_count && bytes; i++) {
            const live_range *range = &liveness->ranges[i];
            if (range->tensor != GRAPH_NONE || range->ends != p + 1)
                continue;
            assert_true(range->born >= last && p - range->born < GATHER_MOST_AHEAD);
            last = range->born;
            *large += bytes > 100000;
            early += bytes > 100000 && range->born < p;
        }
    }
    return early;
}

/* Without a budget the memory is what it was; the planner does not know of gathers that begin early. */
static void test_free_bytes(void **state)
{
    fixture *f = *state;
    remat_model *model = make_model(f);
    remat_trainer *trainer = plan(f, model, REMAT_NO_BUDGET);
    remat_trainer_figures figures;
    size_t large;
    remat_trainer_get_figures(trainer, &figures);
    assert_int_equal(figures.arena_bytes, figures.keep_all_arena_bytes);
    expect_sound(f, &trainer->plan->liveness, trainer->plan->offsets, figures.arena_bytes);
    expect_sound(f, &trainer->evaluation_plan.liveness, trainer->evaluation_plan.offsets, figures.arena_bytes);
    const size_t early = count_early(trainer->program, &trainer->plan->sequence, &trainer->plan->liveness, &large);
    assert_true(large >= 5 && early >= large / 2);
    assert_true(count_early(trainer->evaluation, &trainer->evaluation_plan.sequence, &trainer->evaluation_plan.liveness,
                            &large) >= 2);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

static void test_budgets(void **state)
{
    fixture *f = *state;
    remat_model *model = make_model(f);
    remat_trainer *trainer = plan(f, model, REMAT_NO_BUDGET);
    remat_trainer_figures figures;
    size_t large, last = 0;
    remat_trainer_get_figures(trainer, &figures);
    const uint64_t least = figures.min_budget_bytes, most = figures.total_bytes + figures.total_bytes / 8;
    remat_trainer_destroy(trainer);
    for (uint64_t i = 0; i <= 8; i++) {
        const uint64_t budget = least + (most - least) * i / 8;
        trainer = plan(f, model, budget);
        remat_trainer_get_figures(trainer, &figures);
        assert_true(figures.total_bytes <= budget);
        assert_int_equal(figures.min_budget_bytes, least);
        expect_sound(f, &trainer->plan->liveness, trainer->plan->offsets, figures.arena_bytes);
        last = count_early(trainer->program, &trainer->plan->sequence, &trainer->plan->liveness, &large);
        remat_trainer_destroy(trainer);
    }
    assert_true(last == large); /* there is room for all; the first is none of them */
    remat_model_destroy(model);
}

/* The cost of a micro-batch, with a profile or without. */
static uint64_t cost_of(fixture *f, remat_model *model, uint64_t ranks, const char *profile)
{
    remat_train_options options;
    remat_trainer *trainer;
    remat_train_options_init(&options);
    options.plan_only = true;
    options.plan_ranks = ranks;
    options.threads = 1;
    options.shard = REMAT_SHARD_WEIGHTS;
    options.profile_path = profile;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    const uint64_t cost = trainer->plan->cost;
    remat_trainer_destroy(trainer);
    return cost;
}

/* What is fetched moves through memory. That is added to measured costs too, for who measured them fetched nothing. */
static void test_costs(void **state)
{
    fixture *f = *state;
    remat_model *model = make_model(f);
    const char *profile = scratch_write_text(
        "profile.json", "{\"format\": \"remat-profile\", \"version\": 1, \"cost_unit\": \"ns\", \"layers\": ["
                        "{\"index\": 0, \"name\": \"e\", \"type\": \"ffn\", \"activation_bytes\": 1536, "
                        "\"recompute_flops\": 1, \"forward_cost\": 7000000, \"backward_cost\": 9000000}]}");
    const uint64_t fetching = cost_of(f, model, 2, NULL) - cost_of(f, model, 1, NULL);
    assert_true(fetching > 0 && fetching < 1000000);
    assert_true(cost_of(f, model, 1, profile) > 16000000);
    assert_int_equal(cost_of(f, model, 2, profile) - cost_of(f, model, 1, profile), fetching);
    remat_model_destroy(model);
}

/* The file of a schedule has no early workspaces; who reads it begins gathers early too. */
static void test_plan_file(void **state)
{
    fixture *f = *state;
    remat_model *model = make_model(f);
    remat_trainer *trainer = plan(f, model, REMAT_NO_BUDGET), *read;
    remat_train_options options;
    const char *path = scratch_path("plan.json");
    size_t large;
    expect_ok(f, remat_trainer_save_graph_plan(trainer, path));
    remat_train_options_init(&options);
    options.plan_only = true;
    options.plan_ranks = 2;
    options.threads = 1;
    options.shard = REMAT_SHARD_WEIGHTS;
    options.graph_plan_path = path;
    expect_ok(f, remat_trainer_create(model, &options, &read));
    assert_int_equal(read->plan->arena_bytes, trainer->plan->arena_bytes);
    expect_sound(f, &read->plan->liveness, read->plan->offsets, read->plan->arena_bytes);
    const size_t early = count_early(trainer->program, &trainer->plan->sequence, &trainer->plan->liveness, &large);
    assert_int_equal(count_early(read->program, &read->plan->sequence, &read->plan->liveness, &large), early);
    remat_trainer_destroy(read);
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(test_free_bytes), FIXTURE_TEST(test_budgets),
                                       FIXTURE_TEST(test_costs), FIXTURE_TEST(test_plan_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
