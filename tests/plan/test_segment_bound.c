/* The bound by segments: never above the cheapest of all legal schedules, and infinite only where there is none. */
#include "plan/chain/exhaustive.h"
#include "plan/chain/lower_bound.h"
#include "support/chains.h"
#include "support/curves.h"
#include "support/tiny_chain.h"

static uint64_t seed; /* printed first, so that a failure can be repeated */

static uint64_t bound_of(fixture *f, const remat_profile *profile, uint64_t budget)
{
    uint64_t bound;
    expect_ok(f, segment_bound_cost(f->context, profile, budget, &bound));
    return bound;
}

static void expect_below(fixture *f, const remat_profile *profile, uint64_t budget, unsigned *tight)
{
    bool feasible;
    uint64_t best, bound = bound_of(f, profile, budget);
    expect_ok(f, exhaustive_solve(f->context, profile, budget, true, NULL, &feasible, &best));
    if (!feasible)
        return;
    if (bound > best) {
        tiny_chain_print(profile);
        print_error("budget %llu: the bound %llu is above the cost %llu\n", (unsigned long long)budget,
                    (unsigned long long)bound, (unsigned long long)best);
    }
    assert_true(bound <= best);
    *tight += bound == best;
}

static void never_above_the_best_of_all_schedules(void **state)
{
    fixture *f = *state;
    unsigned tight = 0, tried = 0;
    for (int round = 0; round < 150; round++) {
        test_random random = {seed + (uint64_t)round};
        remat_profile *profile = tiny_chain(f, &random, 1 + test_random_below(&random, 6), (size_t)round % 2);
        uint64_t least;
        if (exhaustive_applies(profile)) {
            expect_ok(f, exhaustive_min_budget(f->context, profile, true, &least));
            for (uint64_t k = 0; k < 6; k++, tried++)
                expect_below(f, profile, least + least / 6 * k, &tight);
        }
        remat_profile_destroy(profile);
    }
    assert_true(tight > tried / 5); /* a bound that says nothing would also never be above */
}

static void equals_a_plan_where_all_is_kept(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    assert_int_equal(bound_of(f, profile, REMAT_NO_BUDGET), 3 * 9000000);
    assert_int_equal(bound_of(f, profile, 0), UINT64_MAX);
    remat_profile_destroy(profile);
}

/* On chains of the length it is made for it lies below the curve, and close to it. */
static void below_the_curve_of_longer_chains(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 60, 1000, 77);
    optimal_options options = {0};
    optimal_solution *solution;
    expect_ok(f, optimal_solve(f->context, profile, &options, &solution));
    for (size_t k = 0; k < optimal_curve_count(solution); k += 3) {
        uint64_t peak, cost;
        optimal_curve_point(solution, k, &peak, &cost);
        assert_true(bound_of(f, profile, peak) <= cost);
    }
    optimal_solution_destroy(solution);
    remat_profile_destroy(profile);
}

static void odd_chains(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    assert_int_equal(bound_of(f, profile, 0), 0);
    expect_ok(f, remat_profile_add(profile, REMAT_OTHER, (uint64_t)1 << 61, 1));
    assert_int_equal(bound_of(f, profile, REMAT_NO_BUDGET), 0); /* too large to tell */
    remat_profile_destroy(profile);
}

static void memory_is_given_back(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    remat_status status = REMAT_NO_MEMORY;
    for (uint64_t fail_at = 1; status != REMAT_OK; fail_at++) {
        uint64_t bound, held = f->memory.bytes;
        f->memory.calls = 0;
        f->memory.fail_at = fail_at;
        status = segment_bound_cost(f->context, profile, 4000, &bound);
        assert_true(status == REMAT_OK || status == REMAT_NO_MEMORY);
        assert_int_equal(f->memory.bytes, held);
    }
    f->memory.fail_at = 0;
    remat_profile_destroy(profile);
}

int main(void)
{
    seed = test_seed();
    print_message("REMAT_SEED=%llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(never_above_the_best_of_all_schedules),
        FIXTURE_TEST(equals_a_plan_where_all_is_kept),
        FIXTURE_TEST(below_the_curve_of_longer_chains),
        FIXTURE_TEST(odd_chains),
        FIXTURE_TEST(memory_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
