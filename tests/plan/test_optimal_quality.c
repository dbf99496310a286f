/* How good the method over intervals is: against the search over every legal schedule, on chains short enough for both.
 */
#include "plan/chain/exhaustive.h"
#include "support/chains.h"
#include "support/curves.h"
#include "support/random_profile.h"

static uint64_t seed; /* printed first, so that a failure can be repeated */

typedef struct tally {
    size_t points, equal, beyond_reach, chains, least_equal;
    double worst, worst_least; /* how far above, as a share: costs, and smallest budgets */
} tally;

/* Sizes of one kind for a whole chain: outputs as large as states, smaller, or much smaller; workspaces or none. */
static remat_profile *quality_chain(fixture *f, test_random *random, size_t layers, bool modes)
{
    remat_profile *profile;
    uint64_t outputs = test_random_below(random, 3), workspaces = test_random_below(random, 2);
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_set_input_bytes(profile, 1 + test_random_below(random, 20)));
    for (size_t i = 0; i < layers; i++) {
        remat_layer_options layer;
        remat_mode_options mode;
        remat_layer_options_init(&layer);
        remat_mode_options_init(&mode);
        layer.type = REMAT_OTHER;
        layer.activation_bytes = 1 + test_random_below(random, 20);
        layer.output_bytes = outputs == 0   ? layer.activation_bytes
                             : outputs == 1 ? 1 + test_random_below(random, layer.activation_bytes)
                                            : 1 + layer.activation_bytes / 6;
        layer.recompute_flops = 1 + test_random_below(random, 10);
        layer.forward_workspace_bytes = workspaces * test_random_below(random, 12);
        layer.backward_workspace_bytes = workspaces * test_random_below(random, 12);
        mode.name = "half";
        mode.activation_bytes = (layer.activation_bytes + 1) / 2; /* often fewer bytes than the output it holds */
        mode.forward_cost = layer.recompute_flops + test_random_below(random, 3);
        layer.modes = &mode;
        layer.mode_count = modes && test_random_below(random, 2) ? 1 : 0;
        expect_ok(f, remat_profile_add_layer(profile, &layer));
    }
    return profile;
}

/* The cost of the curve within a budget; UINT64_MAX where it does not reach so low. */
static uint64_t curve_cost(const optimal_solution *solution, uint64_t budget)
{
    uint64_t best = UINT64_MAX, peak, cost;
    for (size_t k = 0; k < optimal_curve_count(solution); k++) {
        optimal_curve_point(solution, k, &peak, &cost);
        if (peak <= budget)
            best = cost;
    }
    return best;
}

static void compare_at(fixture *f, const remat_profile *profile, const optimal_solution *solution, uint64_t budget,
                       tally *t)
{
    bool feasible;
    uint64_t exact, cost = curve_cost(solution, budget);
    expect_ok(f, exhaustive_solve(f->context, profile, budget, true, NULL, &feasible, &exact));
    if (!feasible) {
        assert_true(cost == UINT64_MAX);
        return;
    }
    t->points++;
    if (cost == UINT64_MAX) {
        t->beyond_reach++;
        return;
    }
    assert_true(cost >= exact);
    t->equal += cost == exact;
    double above = (double)cost / (double)exact - 1;
    if (above > t->worst)
        t->worst = above;
}

/* At the corners of the curve, one byte below each (where a better schedule would show), and at the least budget. */
static void compare_chain(fixture *f, const remat_profile *profile, tally *t)
{
    optimal_options options = {true, 1};
    optimal_solution *solution;
    uint64_t peak, cost, least;
    expect_ok(f, optimal_solve(f->context, profile, &options, &solution));
    expect_real_curve(f, profile, solution, 1);
    expect_ok(f, exhaustive_min_budget(f->context, profile, true, &least));
    optimal_curve_point(solution, 0, &peak, &cost);
    t->chains++;
    t->least_equal += peak == least;
    double above = (double)peak / (double)least - 1;
    if (above > t->worst_least)
        t->worst_least = above;
    compare_at(f, profile, solution, least, t);
    for (size_t k = 0; k < optimal_curve_count(solution); k++) {
        optimal_curve_point(solution, k, &peak, &cost);
        compare_at(f, profile, solution, peak, t);
        if (peak > least)
            compare_at(f, profile, solution, peak - 1, t);
    }
    optimal_solution_destroy(solution);
}

static tally compare_chains(fixture *f, size_t chains, size_t layers, bool modes)
{
    tally t = {0};
    for (size_t k = 0; k < chains; k++) {
        test_random random = {seed + k};
        remat_profile *profile = quality_chain(f, &random, layers, modes);
        assert_true(exhaustive_applies(profile));
        compare_chain(f, profile, &t);
        remat_profile_destroy(profile);
    }
    print_message(
        "%zu layers%s: %zu of %zu budgets optimal, worst %.2f %% above, %zu out of reach; least budget of %zu of "
        "%zu chains, worst %.2f %% above\n",
        layers, modes ? ", modes" : "", t.equal, t.points, 100 * t.worst, t.beyond_reach, t.least_equal, t.chains,
        100 * t.worst_least);
    return t;
}

/* Fewer than one chain in 1,000 has a smaller least budget than the method finds: it would have to recompute the input of
 * one saved layer halfway through the backward passes to the right of it. */
static void eight_layers_are_planned_optimally(void **state)
{
    tally t = compare_chains(*state, LESS_WHEN_SANITIZED(60, 30), 8, false);
    assert_true(t.equal * 100 >= t.points * 98);
    assert_true(t.worst <= 0.05 && t.beyond_reach * 100 <= t.points);
    assert_true(t.least_equal + 1 >= t.chains && t.worst_least <= 0.10);
}

static void modes_smaller_than_their_output(void **state)
{
    tally t = compare_chains(*state, LESS_WHEN_SANITIZED(60, 30), 5, true);
    assert_true(t.equal * 100 >= t.points * 98);
    assert_true(t.worst <= 0.10 && t.beyond_reach * 100 <= t.points);
    assert_true(t.least_equal + 1 >= t.chains && t.worst_least <= 0.10);
}

int main(void)
{
    seed = test_seed();
    print_message("REMAT_SEED=%llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(eight_layers_are_planned_optimally),
        FIXTURE_TEST(modes_smaller_than_their_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
