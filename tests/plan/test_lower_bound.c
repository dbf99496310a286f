#include "support/fixture.h"
#include "support/tiny_chain.h"

#include "plan/chain/exhaustive.h"
#include "plan/chain/lower_bound.h"

#include <time.h>

/* What the random tests found. */
typedef struct gaps {
    size_t budgets, tight;
    double sum;
} gaps;

static uint64_t bound_of(fixture *f, const remat_profile *profile, uint64_t budget, uint64_t known)
{
    uint64_t bound;
    expect_ok(f, lower_bound_cost(f->context, profile, budget, known, &bound));
    return bound;
}

static void expect_not_above(const remat_profile *profile, uint64_t seed, uint64_t budget, uint64_t bound,
                             uint64_t cost)
{
    if (bound <= cost)
        return;
    print_error("budget %llu: the bound %llu is above the cost %llu; REMAT_SEED=%llu\n", (unsigned long long)budget,
                (unsigned long long)bound, (unsigned long long)cost, (unsigned long long)seed);
    tiny_chain_print(profile);
    fail();
}

static uint64_t peak_of(fixture *f, const remat_profile *profile, const plan_draft *draft)
{
    remat_simulator *simulator;
    remat_figures figures;
    expect_ok(f, remat_simulator_create(f->context, profile, &simulator));
    for (size_t i = 0; i < draft->step_count; i++)
        expect_ok(f, remat_simulator_step(simulator, draft->steps[i]));
    expect_ok(f, remat_simulator_finish(simulator, &figures));
    remat_simulator_destroy(simulator);
    return figures.peak_bytes;
}

/* The search for prices stops at the cost it is told, which would hide a bound that is too high. So it is told nothing,
 * and costs above the true one. */
static void check_bounds(fixture *f, const remat_profile *profile, uint64_t seed, uint64_t budget, uint64_t cost,
                         gaps *found)
{
    const uint64_t known[] = {UINT64_MAX, cost + cost / 32 + 1, cost + cost / 4 + 3};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        expect_not_above(profile, seed, budget, bound_of(f, profile, budget, known[i]), cost);
    uint64_t bound = bound_of(f, profile, budget, cost);
    expect_not_above(profile, seed, budget, bound, cost);
    found->budgets++;
    found->tight += bound == cost;
    found->sum += cost ? 1.0 - (double)bound / (double)cost : 0.0;
}

/* Every corner of the exact curve, all modes allowed: no budget first, then just below each peak. */
static void check_curve(fixture *f, const remat_profile *profile, uint64_t seed, gaps *found)
{
    uint64_t budget = REMAT_NO_BUDGET, cost;
    bool feasible;
    for (;;) {
        plan_draft draft = {0};
        expect_ok(f, exhaustive_solve(f->context, profile, budget, true, &draft, &feasible, &cost));
        uint64_t peak = feasible ? peak_of(f, profile, &draft) : 0;
        plan_draft_clear(f->context, remat_profile_layer_count(profile), &draft);
        if (!feasible) {
            assert_true(bound_of(f, profile, budget, UINT64_MAX) < (uint64_t)1 << 63);
            return;
        }
        if (budget == REMAT_NO_BUDGET)
            assert_int_equal(bound_of(f, profile, budget, UINT64_MAX), cost);
        check_bounds(f, profile, seed, peak, cost, found);
        if (peak == 0)
            return;
        budget = peak - 1;
    }
}

static void check_random_chains(fixture *f, size_t chains, size_t layers, size_t most_modes)
{
    uint64_t seed = test_seed();
    test_random random = {seed + layers * 31 + most_modes};
    gaps found = {0};
    for (size_t i = 0; i < chains; i++) {
        remat_profile *profile = tiny_chain(f, &random, layers, most_modes);
        check_curve(f, profile, seed, &found);
        remat_profile_destroy(profile);
    }
    print_message("%zu layers, up to %zu more modes: %zu budgets, mean gap %.2f %%, tight in %.0f %%\n", layers,
                  most_modes, found.budgets, 100 * found.sum / (double)found.budgets,
                  100 * (double)found.tight / (double)found.budgets);
}

static void plain_chains_never_cost_less(void **state)
{
    fixture *f = *state;
    static const size_t chains[] = {10, 100, 200, 200, 120, 40, 12, 4};
    for (size_t layers = 1; layers < sizeof chains / sizeof chains[0]; layers++)
        check_random_chains(f, LESS_WHEN_SANITIZED(chains[layers], 1 + chains[layers] / 20), layers, 0);
}

static void chains_with_modes_never_cost_less(void **state)
{
    fixture *f = *state;
    check_random_chains(f, LESS_WHEN_SANITIZED(200, 20), 1, 4);
    check_random_chains(f, LESS_WHEN_SANITIZED(200, 20), 2, 4);
    check_random_chains(f, LESS_WHEN_SANITIZED(150, 8), 3, 3);
    check_random_chains(f, LESS_WHEN_SANITIZED(50, 3), 4, 2);
    check_random_chains(f, LESS_WHEN_SANITIZED(10, 1), 5, 1);
}

/* ---- long chains ---- */

static remat_profile *long_chain(fixture *f, size_t layers)
{
    remat_profile *profile;
    test_random random = {7};
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_set_input_bytes(profile, 500));
    for (size_t i = 0; i < layers; i++) {
        remat_layer_options layer;
        remat_layer_options_init(&layer);
        layer.activation_bytes = 1 + test_random_below(&random, 1000);
        layer.output_bytes = test_random_below(&random, layer.activation_bytes + 1);
        layer.recompute_flops = 1 + test_random_below(&random, 1000);
        layer.forward_workspace_bytes = test_random_below(&random, 100);
        expect_ok(f, remat_profile_add_layer(profile, &layer));
    }
    return profile;
}

/* Whatever any strategy finds costs at least the bound at its own peak. */
static void no_strategy_is_below_the_bound(void **state)
{
    fixture *f = *state;
    static const char *const strategies[] = {"none",        "sqrt",       "full",     "full:7",
                                             "every-nth:3", "largest:20", "revolve:5"};
    static const size_t layers[] = {30, 200};
    for (size_t k = 0; k < 2; k++) {
        remat_profile *profile = long_chain(f, layers[k]);
        for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
            remat_plan *plan;
            remat_plan_options options;
            remat_plan_options_init(&options);
            options.strategy = strategies[i];
            expect_ok(f, remat_plan_create(f->context, profile, &options, &plan));
            const remat_figures *schedule = &remat_plan_get_figures(plan)->schedule;
            uint64_t cost = schedule->total_cost, peak = schedule->peak_bytes;
            expect_not_above(profile, 0, peak, bound_of(f, profile, peak, UINT64_MAX), cost);
            uint64_t aimed = bound_of(f, profile, peak, cost + cost / 10);
            uint64_t base = remat_plan_get_figures(plan)->base_cost;
            expect_not_above(profile, 0, peak, aimed, cost);
            print_message("%zu layers, %s: %.1f %% above the base, the bound says %.1f %%\n", layers[k], strategies[i],
                          100.0 * ((double)cost / (double)base - 1), 100.0 * ((double)aimed / (double)base - 1));
            remat_plan_destroy(plan);
        }
        remat_profile_destroy(profile);
    }
}

static void long_chains_are_quick(void **state)
{
    fixture *f = *state;
    static const size_t layers[] = {1000, 10000, 200000};
    for (size_t k = 0; k < LESS_WHEN_SANITIZED(3, 1); k++) {
        remat_profile *profile = long_chain(f, layers[k]);
        uint64_t base = bound_of(f, profile, REMAT_NO_BUDGET, UINT64_MAX);
        for (uint64_t bytes = 20; bytes <= 100; bytes += 80) { /* a layer, of some 500 on average */
            clock_t start = clock();
            uint64_t bound = bound_of(f, profile, bytes * layers[k], UINT64_MAX);
            print_message("%zu layers, budget %.0f %%: %.2f %% above the base, in %.3f s\n", layers[k],
                          (double)bytes / 5.0, 100.0 * ((double)bound / (double)base - 1),
                          (double)(clock() - start) / CLOCKS_PER_SEC);
            assert_true(bound > base);
            assert_int_equal(bound, bound_of(f, profile, bytes * layers[k], UINT64_MAX));
        }
        remat_profile_destroy(profile);
    }
}

/* ---- by hand ---- */

static void an_empty_chain_costs_nothing(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    assert_int_equal(bound_of(f, profile, 0, UINT64_MAX), 0);
    assert_int_equal(bound_of(f, profile, REMAT_NO_BUDGET, UINT64_MAX), 0);
    remat_profile_destroy(profile);
}

/* Three layers of 10 bytes that run forward for 1, 2 and 4 and backward for 8 each. Keeping all takes 30 bytes of
 * states and 20 of gradients at the last layer's backward. One byte less, and a layer must run twice: the first, at
 * best. */
static void one_byte_less_costs_the_cheapest_layer(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    for (unsigned i = 0; i < 3; i++) {
        remat_layer_options layer;
        remat_layer_options_init(&layer);
        layer.activation_bytes = 10;
        layer.output_bytes = 10;
        layer.forward_cost = 1u << i;
        layer.backward_cost = 8;
        expect_ok(f, remat_profile_add_layer(profile, &layer));
    }
    assert_int_equal(bound_of(f, profile, 50, UINT64_MAX), 31);
    assert_int_equal(bound_of(f, profile, 49, UINT64_MAX), 32);
    assert_int_equal(bound_of(f, profile, 49, 31), 31); /* never above what is known, even if that is wrong */
    remat_profile_destroy(profile);
}

static void every_failed_allocation_is_survived(void **state)
{
    fixture *f = *state;
    remat_profile *profile = long_chain(f, 20);
    uint64_t bound, blocks = f->memory.blocks, failures = 0;
    remat_status status = REMAT_NO_MEMORY;
    for (uint64_t n = 1; status != REMAT_OK; n++) {
        f->memory.fail_at = f->memory.calls + n;
        status = lower_bound_cost(f->context, profile, 4000, UINT64_MAX, &bound);
        f->memory.fail_at = 0;
        if (status != REMAT_OK)
            expect_status(f, status, REMAT_NO_MEMORY);
        assert_int_equal(f->memory.blocks, blocks);
        failures += status != REMAT_OK;
    }
    assert_true(failures > 0);
    remat_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(plain_chains_never_cost_less),        FIXTURE_TEST(chains_with_modes_never_cost_less),
        FIXTURE_TEST(no_strategy_is_below_the_bound),      FIXTURE_TEST(long_chains_are_quick),
        FIXTURE_TEST(an_empty_chain_costs_nothing),        FIXTURE_TEST(one_byte_less_costs_the_cheapest_layer),
        FIXTURE_TEST(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
