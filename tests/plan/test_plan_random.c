/* Random chains planned by every strategy: everything a plan states is what the slow replay finds in its schedule. */
#include "support/chains.h"
#include "support/plan_json.h"
#include "support/random_profile.h"
#include "support/slow_blocks.h"

static void expect_same_steps(const step_list *a, const step_list *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_int_equal(a->steps[i].op, b->steps[i].op);
        assert_int_equal(a->steps[i].layer, b->steps[i].layer);
        assert_int_equal(a->steps[i].save, b->steps[i].save);
    }
}

/* The decisions say which layers are blocks; the rule says what the schedule is. */
static void expect_schedule_of_rule(const remat_profile *profile, const remat_plan *plan, const char *strategy,
                                    const step_list *steps)
{
    size_t n = remat_profile_layer_count(profile);
    bool *recompute = calloc(n + 1, sizeof *recompute);
    for (size_t i = 0; i < n; i++)
        recompute[i] = remat_plan_decision(plan, i) == REMAT_NO_SAVE;
    slow_blocks blocks =
        strcmp(strategy, "budget") == 0 ? slow_blocks_of(recompute, n) : slow_blocks_by_strategy(profile, strategy);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(blocks.block[i] != 0, recompute[i]);
    step_list slow = {0};
    slow_blocks_schedule(&blocks, &slow);
    expect_same_steps(steps, &slow);
    step_list_clear(&slow);
    slow_blocks_clear(&blocks);
    free(recompute);
}

static uint64_t least_cost(const remat_profile *profile)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < remat_profile_layer_count(profile); i++) {
        const remat_layer *layer = remat_profile_layer(profile, i);
        uint64_t least = UINT64_MAX;
        for (size_t k = 0; k < layer->mode_count; k++)
            if (layer->modes[k].forward_cost + layer->modes[k].backward_cost < least)
                least = layer->modes[k].forward_cost + layer->modes[k].backward_cost;
        sum += least;
    }
    return sum;
}

static void expect_figures(const remat_profile *profile, const remat_plan *plan, const step_list *steps)
{
    const remat_plan_figures *figures = remat_plan_get_figures(plan);
    slow_figures slow = slow_replay_all(profile, steps->steps, steps->count);
    slow_blocks kept = slow_blocks_by_strategy(profile, "none");
    step_list base_steps = {0};
    slow_blocks_schedule(&kept, &base_steps);
    slow_figures base = slow_replay_all(profile, base_steps.steps, base_steps.count);
    assert_true(slow.legal && base.legal);
    assert_int_equal(figures->schedule.steps, steps->count);
    assert_int_equal(figures->schedule.peak_bytes, slow.peak);
    assert_int_equal(figures->schedule.peak_step, slow.peak_step);
    assert_int_equal(figures->schedule.total_cost, slow.cost);
    assert_int_equal(figures->schedule.kept_bytes, slow.kept_bytes);
    assert_int_equal(figures->schedule.recompute_flops, slow.recompute_flops);
    assert_int_equal(figures->schedule.recomputed_layers, slow.recomputed_layers);
    assert_int_equal(figures->schedule.largest_recomputed_bytes, slow.largest_recomputed);
    assert_int_equal(figures->estimated_bytes, slow.kept_bytes + slow.largest_recomputed);
    assert_int_equal(figures->base_cost, base.cost);
    assert_int_equal(figures->base_peak_bytes, base.peak);
    assert_true(figures->lower_bound_cost >= least_cost(profile)); /* which holds for any budget */
    assert_true(figures->lower_bound_cost <= slow.cost);
    step_list_clear(&base_steps);
    slow_blocks_clear(&kept);
}

static void expect_layers(const remat_profile *profile, const remat_plan *plan, const step_list *steps)
{
    slow_replay *replay = slow_replay_start(profile);
    for (size_t i = 0; i < steps->count; i++)
        assert_true(slow_replay_step(replay, steps->steps[i]));
    for (size_t i = 0; i < replay->n; i++) {
        assert_int_equal(remat_plan_decision(plan, i), replay->decisions[i]);
        assert_int_equal(remat_plan_forwards(plan, i), replay->forwards[i]);
    }
    slow_replay_end(replay);
}

static void add_bytes(void *user, remat_live_tensor tensor)
{
    *(uint64_t *)user += tensor.bytes;
}

static void expect_peak_live(fixture *f, const remat_profile *profile, const remat_plan *plan, const step_list *steps)
{
    uint64_t peak_step = remat_plan_get_figures(plan)->schedule.peak_step, live = 0;
    expect_ok(f, remat_plan_peak_live(plan, add_bytes, &live));
    assert_true(live <= remat_plan_get_figures(plan)->schedule.peak_bytes);
    if (peak_step == REMAT_NOWHERE) { /* no step comes to more than the input */
        assert_int_equal(live, remat_profile_input_bytes(profile));
        return;
    }
    slow_replay *replay = slow_replay_start(profile);
    for (size_t i = 0; i < steps->count && i < peak_step; i++)
        slow_replay_step(replay, steps->steps[i]);
    assert_int_equal(live, slow_replay_live(replay));
    slow_replay_end(replay);
}

/* ---- the file ---- */

static void expect_file_layers(const json_t *tree, const remat_profile *profile, const remat_plan *plan)
{
    const json_t *layers = json_object_get(tree, "layers");
    assert_int_equal(json_array_size(layers), remat_profile_layer_count(profile));
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *entry = json_array_get(layers, i);
        const remat_layer *layer = remat_profile_layer(profile, i);
        assert_int_equal(plan_number(entry, "index"), layer->index);
        assert_int_equal(plan_number(entry, "forwards"), remat_plan_forwards(plan, i));
        assert_string_equal(json_string_value(json_object_get(entry, "name")), layer->name);
        assert_string_equal(json_string_value(json_object_get(entry, "decision")), remat_plan_decision_name(plan, i));
    }
}

static void expect_file(const remat_profile *profile, const remat_plan *plan, const step_list *steps)
{
    const remat_plan_figures *figures = remat_plan_get_figures(plan);
    json_t *tree = plan_tree(plan);
    step_list written = {0};
    assert_string_equal(json_string_value(json_object_get(tree, "format")), "remat-plan");
    assert_int_equal(plan_number(tree, "version"), 1);
    assert_string_equal(json_string_value(json_object_get(tree, "strategy")), remat_plan_strategy(plan));
    assert_true(json_is_true(json_object_get(tree, "feasible")));
    assert_int_equal(plan_number(tree, "peak_bytes"), figures->schedule.peak_bytes);
    assert_int_equal(plan_number(tree, "kept_bytes"), figures->schedule.kept_bytes);
    assert_int_equal(plan_number(tree, "estimated_bytes"), figures->estimated_bytes);
    assert_int_equal(plan_number(tree, "total_cost"), figures->schedule.total_cost);
    assert_int_equal(plan_number(tree, "base_cost"), figures->base_cost);
    assert_int_equal(plan_number(tree, "lower_bound_cost"), figures->lower_bound_cost);
    assert_int_equal(plan_number(tree, "recompute_flops"), figures->schedule.recompute_flops);
    assert_int_equal(plan_number(tree, "min_budget_bytes"), figures->min_budget_bytes);
    expect_file_layers(tree, profile, plan);
    plan_tree_steps(tree, profile, &written);
    expect_same_steps(&written, steps);
    step_list_clear(&written);
    json_decref(tree);
}

static void expect_check_to_agree(fixture *f, const remat_profile *profile, const remat_plan *plan)
{
    char *text = written_plan(plan);
    remat_figures figures;
    expect_ok(f, check_plan_text(f, text, profile, &figures));
    assert_memory_equal(&figures, &remat_plan_get_figures(plan)->schedule, sizeof figures);
    assert_int_equal(f->warnings, 0);
    free(text);
}

static void expect_plan(fixture *f, const remat_profile *profile, const remat_plan *plan, bool blocks)
{
    step_list steps = {0};
    expect_ok(f, remat_plan_walk(plan, step_list_take, &steps));
    if (blocks)
        expect_schedule_of_rule(profile, plan, remat_plan_strategy(plan), &steps);
    expect_figures(profile, plan, &steps);
    expect_layers(profile, plan, &steps);
    expect_peak_live(f, profile, plan, &steps);
    expect_file(profile, plan, &steps);
    expect_check_to_agree(f, profile, plan);
    step_list_clear(&steps);
}

static void every_strategy_states_what_the_slow_replay_finds(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < LESS_WHEN_SANITIZED(120, 25); round++) {
        random_traits traits = {
            .most_layers = (size_t)round % 30, .modes = round % 3 == 0, .odd_names = round % 5 == 0};
        remat_profile *profile = random_profile(f->context, &random, &traits);
        for (size_t i = 0; i < strategy_case_count; i++) {
            remat_plan *plan = plan_case(f, profile, &strategy_cases[i]);
            expect_plan(f, profile, plan, true);
            remat_plan_destroy(plan);
        }
        remat_profile_destroy(profile);
    }
}

/* Strategies whose schedules are not blocks have the rest in common. */
static void so_do_the_strategies_with_slots(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    static const char *const strategies[] = {"revolve:1", "revolve:2", "revolve:4", "online:1", "online:3"};
    for (int round = 0; round < 60; round++) {
        random_traits traits = {.most_layers = (size_t)round % 20, .modes = round % 3 == 0};
        remat_profile *profile = random_profile(f->context, &random, &traits);
        for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
            remat_plan *plan = plan_by(f, profile, strategies[i]);
            expect_plan(f, profile, plan, false);
            remat_plan_destroy(plan);
        }
        remat_profile_destroy(profile);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(every_strategy_states_what_the_slow_replay_finds),
        FIXTURE_TEST(so_do_the_strategies_with_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
