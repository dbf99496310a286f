/* The strategy `optimal` as a whole: against every legal schedule, against the published program, monotone in the budget,
 * and the sweep that is the same solve. */
#include "support/brute_force.h"
#include "support/cases.h"
#include "support/fixture.h"
#include "support/persistent.h"
#include "support/random_profile.h"
#include "support/tiny_chain.h"

static uint64_t seed;

static void report(const remat_profile *profile, uint64_t budget)
{
    print_message("seed %llu, budget %llu\n", (unsigned long long)seed, (unsigned long long)budget);
    tiny_chain_print(profile);
}

/* Whether the figures are small enough for the method over intervals, which says so where they are not. */
static bool fits_intervals(fixture *f, const remat_profile *profile)
{
    remat_plan_options options;
    remat_sweep *sweep;
    remat_plan_options_init(&options);
    options.method = "intervals";
    options.threads = 1;
    remat_status status = remat_sweep_create(f->context, profile, &options, &sweep);
    if (status == REMAT_INVALID)
        expect_message(f, "2^61");
    else
        expect_ok(f, status);
    remat_sweep_destroy(sweep);
    return status == REMAT_OK;
}

/* Plans with a method under a budget; the cost, or UINT64_MAX where it is infeasible. Checks what the plan states. */
static uint64_t optimal_cost(fixture *f, const remat_profile *profile, const char *method, uint64_t budget,
                             unsigned threads)
{
    remat_plan_options options;
    remat_plan *plan;
    remat_plan_options_init(&options);
    options.strategy = "optimal";
    options.method = method;
    options.budget_bytes = budget;
    options.threads = threads;
    remat_status status = remat_plan_create(f->context, profile, &options, &plan);
    const remat_plan_figures *figures = plan ? remat_plan_get_figures(plan) : NULL;
    uint64_t cost = UINT64_MAX;
    if (status == REMAT_OK) {
        cost = figures->schedule.total_cost;
        assert_true(figures->schedule.peak_bytes <= budget);
        assert_true(figures->min_budget_bytes <= figures->schedule.peak_bytes);
        assert_true(figures->lower_bound_cost <= figures->method_bound_cost && figures->method_bound_cost <= cost);
    } else {
        expect_status_at(f->context, status, REMAT_INFEASIBLE, __FILE__, __LINE__);
        assert_true(figures->min_budget_bytes > budget);
        assert_true(remat_plan_remark(plan)[0]);
    }
    remat_plan_destroy(plan);
    return cost;
}

static uint64_t keep_all_peak(fixture *f, const remat_profile *profile)
{
    remat_plan *plan;
    assert_int_equal(make_plan(f, profile, "none", REMAT_NO_BUDGET, REMAT_COUNT_PEAK, &plan), REMAT_OK);
    uint64_t peak = remat_plan_get_figures(plan)->schedule.peak_bytes;
    remat_plan_destroy(plan);
    return peak;
}

static void equals_the_best_of_all_legal_schedules(void **state)
{
    fixture *f = *state;
    test_random random = {seed};
    for (int round = 0; round < LESS_WHEN_SANITIZED(1500, 150); round++) {
        size_t layers = 1 + test_random_below(&random, round % 8 == 0 ? 5 : 4);
        remat_profile *profile = tiny_chain(f, &random, layers, layers < 4 ? test_random_below(&random, 2) : 0);
        uint64_t least = brute_force_min_budget(profile, false), most = keep_all_peak(f, profile);
        for (int k = 0; k < 3; k++) {
            uint64_t range = most > least ? most - least + 1 : 1;
            uint64_t budget = k == 0 ? least : least + test_random_below(&random, range);
            brute_answer best = brute_force(profile, budget, false);
            uint64_t cost = optimal_cost(f, profile, NULL, budget, 0);
            if (!best.feasible || cost != best.cost) {
                report(profile, budget);
                fail_msg("cost %llu, the best is %llu", (unsigned long long)cost, (unsigned long long)best.cost);
            }
        }
        if (least > 0 && optimal_cost(f, profile, NULL, least - 1, 0) != UINT64_MAX) {
            report(profile, least - 1);
            fail_msg("a plan below the smallest budget");
        }
        remat_profile_destroy(profile);
    }
}

static void never_above_the_persistent_optimum(void **state)
{
    fixture *f = *state;
    test_random random = {seed + 1};
    for (int round = 0; round < LESS_WHEN_SANITIZED(400, 60); round++) {
        remat_profile *profile = tiny_chain(f, &random, 2 + test_random_below(&random, 6), 0);
        uint64_t most = keep_all_peak(f, profile);
        for (uint64_t k = 1; k <= 6 && fits_intervals(f, profile); k++) {
            uint64_t budget = most / 6 * k, persistent = persistent_cost(profile, budget);
            uint64_t cost = persistent == UINT64_MAX ? 0 : optimal_cost(f, profile, "intervals", budget, 1);
            if (persistent != UINT64_MAX && cost > persistent) {
                report(profile, budget);
                fail_msg("cost %llu, persistent %llu", (unsigned long long)cost, (unsigned long long)persistent);
            }
        }
        remat_profile_destroy(profile);
    }
}

static remat_sweep_point sweep_point(const remat_sweep *sweep, size_t position)
{
    remat_sweep_point point;
    assert_int_equal(remat_sweep_get_point(sweep, position, &point), REMAT_OK);
    return point;
}

/* Strictly falling costs, and a plan at every point with that very cost and no more than that peak. */
static void check_sweep(fixture *f, const remat_profile *profile, const char *method, test_random *random)
{
    remat_plan_options options;
    remat_sweep *sweep;
    remat_plan_options_init(&options);
    options.method = method;
    options.threads = 1;
    assert_int_equal(remat_sweep_create(f->context, profile, &options, &sweep), REMAT_OK);
    size_t count = remat_sweep_count(sweep);
    assert_true(count > 0 && remat_sweep_knee(sweep) < count);
    for (size_t i = 1; i < count; i++) {
        remat_sweep_point before = sweep_point(sweep, i - 1), point = sweep_point(sweep, i);
        if (point.peak_bytes <= before.peak_bytes || point.total_cost >= before.total_cost) {
            report(profile, point.peak_bytes);
            fail_msg("the curve is not monotone");
        }
    }
    size_t at = test_random_below(random, count);
    remat_sweep_point point = sweep_point(sweep, at);
    uint64_t between = point.peak_bytes;
    if (at + 1 < count)
        between += test_random_below(random, sweep_point(sweep, at + 1).peak_bytes - point.peak_bytes);
    if (optimal_cost(f, profile, method, point.peak_bytes, 1) != point.total_cost ||
        optimal_cost(f, profile, method, between, 1) != point.total_cost) {
        report(profile, between);
        fail_msg("a point of the curve is not the plan at its budget");
    }
    remat_plan *plan;
    assert_int_equal(remat_sweep_plan(sweep, at, &plan), REMAT_OK);
    assert_int_equal(remat_plan_get_figures(plan)->schedule.total_cost, point.total_cost);
    remat_plan_destroy(plan);
    assert_int_equal(remat_sweep_plan(sweep, count, &plan), REMAT_INVALID);
    remat_sweep_destroy(sweep);
}

static void more_budget_never_costs_more(void **state)
{
    fixture *f = *state;
    test_random random = {seed + 2};
    for (int round = 0; round < LESS_WHEN_SANITIZED(10000, 600); round++) {
        size_t layers = 1 + test_random_below(&random, round % 50 == 0 ? 10 : 5);
        remat_profile *profile = tiny_chain(f, &random, layers, layers <= 4 ? test_random_below(&random, 3) : 0);
        check_sweep(f, profile, round % 2 && fits_intervals(f, profile) ? "intervals" : NULL, &random);
        remat_profile_destroy(profile);
    }
}

static void threads_change_nothing(void **state)
{
    fixture *f = *state;
    test_random random = {seed + 3};
    for (int round = 0; round < LESS_WHEN_SANITIZED(20, 4); round++) {
        random_traits traits = {.least_layers = 20, .most_layers = 60, .modes = round % 4 == 0};
        remat_profile *profile = random_profile(f->context, &random, &traits);
        char *plans[3];
        for (unsigned threads = 1; threads <= 3; threads++) {
            remat_plan_options options;
            remat_plan *plan;
            remat_plan_options_init(&options);
            options.strategy = "optimal";
            options.budget_bytes = keep_all_peak(f, profile) * 2 / 3;
            options.threads = threads;
            remat_status status = remat_plan_create(f->context, profile, &options, &plan);
            assert_true(status == REMAT_OK || status == REMAT_INFEASIBLE);
            plans[threads - 1] = written_plan(plan);
            remat_plan_destroy(plan);
        }
        assert_string_equal(plans[0], plans[1]);
        assert_string_equal(plans[0], plans[2]);
        for (int k = 0; k < 3; k++)
            free(plans[k]);
        remat_profile_destroy(profile);
    }
}

static void an_infeasible_budget_names_the_step(void **state)
{
    fixture *f = *state;
    static const uint64_t bytes[] = {10, 500, 10, 10};
    remat_profile *profile;
    assert_int_equal(remat_profile_create(f->context, &profile), REMAT_OK);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(remat_profile_add(profile, REMAT_OTHER, bytes[i], 1), REMAT_OK);
    for (int k = 0; k < 2; k++) {
        remat_plan_options options;
        remat_plan *plan;
        remat_plan_options_init(&options);
        options.budget_bytes = 400;
        options.method = k ? "intervals" : "exhaustive";
        assert_int_equal(remat_plan_create(f->context, profile, &options, &plan), REMAT_INFEASIBLE);
        /* s2 and y3 with 10 bytes each, x2 and its gradient with 500 each, while layer 2 runs backward */
        assert_int_equal(remat_plan_get_figures(plan)->min_budget_bytes, 1020);
        expect_text(remat_plan_remark(plan), "the step 'backward 2' (layer2) needs it");
        remat_plan_destroy(plan);
    }
    remat_profile_destroy(profile);
}

/* With the n-th allocation failing, for n = 1, 2, ... until none does: no memory is the answer, and nothing leaks (the
 * fixture looks). Under a budget that is met, and under one that is not. */
static void survives_every_failed_allocation(void **state)
{
    fixture *f = *state;
    test_random random = {seed + 5};
    remat_profile *profile = tiny_chain(f, &random, 5, 1);
    uint64_t budgets[] = {keep_all_peak(f, profile), 0};
    for (int k = 0; k < 6; k++) {
        remat_status status = REMAT_NO_MEMORY;
        for (uint64_t n = 1; status == REMAT_NO_MEMORY; n++) {
            remat_plan_options options;
            remat_plan *plan = NULL;
            remat_sweep *sweep = NULL;
            remat_plan_options_init(&options);
            options.method = k % 2 ? "intervals" : "exhaustive";
            options.threads = 1;
            f->memory.calls = 0;
            f->memory.fail_at = n;
            if (k >= 4) {
                status = remat_sweep_create(f->context, profile, &options, &sweep);
            } else {
                options.strategy = "optimal";
                options.budget_bytes = budgets[k / 2];
                status = remat_plan_create(f->context, profile, &options, &plan);
            }
            f->memory.fail_at = 0;
            remat_plan_destroy(plan);
            remat_sweep_destroy(sweep);
        }
        if (status != REMAT_OK && status != REMAT_INFEASIBLE && status != REMAT_INVALID /* figures above 2^61 */)
            fail_msg("seed %llu: %s", (unsigned long long)seed, remat_context_message(f->context));
    }
    remat_profile_destroy(profile);
}

static void methods_are_checked(void **state)
{
    fixture *f = *state;
    test_random random = {seed + 4};
    random_traits traits = {.least_layers = 40, .most_layers = 40};
    remat_profile *profile = random_profile(f->context, &random, &traits);
    remat_plan_options options;
    remat_plan *plan;
    remat_plan_options_init(&options);
    options.strategy = "optimal";
    options.method = "magic";
    assert_int_equal(remat_plan_create(f->context, profile, &options, &plan), REMAT_INVALID);
    options.method = "exhaustive"; /* forty layers are too many */
    assert_int_equal(remat_plan_create(f->context, profile, &options, &plan), REMAT_INVALID);
    options.strategy = "sqrt";
    options.method = "intervals";
    assert_int_equal(remat_plan_create(f->context, profile, &options, &plan), REMAT_INVALID);
    remat_profile_destroy(profile);
}

int main(void)
{
    seed = test_seed();
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(equals_the_best_of_all_legal_schedules),
        FIXTURE_TEST(never_above_the_persistent_optimum),
        FIXTURE_TEST(more_budget_never_costs_more),
        FIXTURE_TEST(threads_change_nothing),
        FIXTURE_TEST(an_infeasible_budget_names_the_step),
        FIXTURE_TEST(survives_every_failed_allocation),
        FIXTURE_TEST(methods_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
