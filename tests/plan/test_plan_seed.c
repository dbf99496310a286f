/* What the document that the planner grew out of expects, test by test; its budgets count the bytes kept. */
#include "support/chains.h"

#include <math.h>

static void expect_recomputed(fixture *f, const remat_profile *profile, const char *strategy, const char *positions)
{
    char text[256];
    remat_plan *plan = plan_by(f, profile, strategy);
    assert_string_equal(recomputed_layers(profile, plan, text), positions);
    remat_plan_destroy(plan);
}

static void expect_invalid(fixture *f, const remat_profile *profile, const char *strategy)
{
    remat_plan *plan;
    expect_status(f, make_plan(f, profile, strategy, REMAT_NO_BUDGET, REMAT_COUNT_PEAK, &plan), REMAT_INVALID);
    assert_null(plan);
}

static void none_keeps_all(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    remat_plan *plan = plan_by(f, profile, "none");
    const remat_figures *figures = &remat_plan_get_figures(plan)->schedule;
    assert_int_equal(figures->recomputed_layers, 0);
    assert_int_equal(figures->recompute_flops, 0);
    assert_int_equal(figures->largest_recomputed_bytes, 0);
    assert_int_equal(figures->kept_bytes, 4608);
    assert_int_equal(remat_plan_get_figures(plan)->estimated_bytes, 4608);
    remat_plan_destroy(plan);
    expect_recomputed(f, profile, "none", "");
    remat_profile_destroy(profile);
}

static void full_recomputes_all(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    remat_plan *plan = plan_by(f, profile, "full");
    const remat_figures *figures = &remat_plan_get_figures(plan)->schedule;
    assert_int_equal(figures->recomputed_layers, 6);
    assert_int_equal(figures->kept_bytes, 0);
    assert_int_equal(figures->largest_recomputed_bytes, 1024);
    assert_int_equal(figures->recompute_flops, 9000000);
    assert_int_equal(remat_plan_get_figures(plan)->estimated_bytes, 1024);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void every_nth_takes_the_first_of_every_n(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    expect_recomputed(f, profile, "every-nth:2", "0 2 4");
    expect_invalid(f, profile, "every-nth:0");
    remat_profile_destroy(profile);
}

static void types_filter(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    expect_recomputed(f, profile, "attention-only", "0 2 4");
    expect_recomputed(f, profile, "ffn-only", "1 3 5");
    remat_profile_destroy(profile);
}

static void other_types_are_left_alone(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_add(profile, REMAT_OTHER, 512, 500000));
    expect_ok(f, remat_profile_add(profile, REMAT_ATTENTION, 1024, 2000000));
    expect_ok(f, remat_profile_add(profile, REMAT_OTHER, 512, 500000));
    expect_recomputed(f, profile, "attention-only", "1");
    remat_profile_destroy(profile);
}

static void largest_takes_the_largest(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    expect_recomputed(f, profile, "largest:2", "0 2");
    expect_recomputed(f, profile, "largest:10", "0 1 2 3 4 5");
    remat_profile_destroy(profile);
}

static void a_ratio_of_half_takes_half(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    remat_plan *plan = plan_by(f, profile, "selective:0.5");
    assert_int_equal(remat_plan_get_figures(plan)->schedule.recomputed_layers, 3);
    remat_plan_statistics statistics;
    remat_plan_get_statistics(plan, &statistics);
    assert_true(fabs(statistics.recomputed_ratio - 0.5) < 1e-6);
    remat_plan_destroy(plan);
    expect_invalid(f, profile, "selective:1.5");
    remat_profile_destroy(profile);
}

static void a_budget_is_kept(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 6, 1048576, 1000000);
    uint64_t budget;
    remat_plan *plan;
    expect_ok(f, remat_size_from_mib(f->context, 3.0, &budget));
    expect_ok(f, make_plan(f, profile, "budget", budget, REMAT_COUNT_KEPT, &plan));
    assert_true(remat_plan_get_figures(plan)->schedule.kept_bytes <= 3 * 1048576);
    assert_int_equal(remat_plan_get_figures(plan)->schedule.recomputed_layers, 3);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void a_budget_within_reach_changes_nothing(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 3, 1024, 10000);
    uint64_t budget;
    remat_plan *plan;
    expect_ok(f, remat_size_from_mib(f->context, 100.0, &budget));
    expect_ok(f, make_plan(f, profile, "budget", budget, REMAT_COUNT_KEPT, &plan));
    assert_int_equal(remat_plan_get_figures(plan)->schedule.recomputed_layers, 0);
    assert_int_equal(remat_plan_get_figures(plan)->schedule.kept_bytes, 3072);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void a_negative_budget_is_invalid(void **state)
{
    fixture *f = *state;
    uint64_t budget;
    expect_status(f, remat_size_from_mib(f->context, -1.0, &budget), REMAT_INVALID);
    expect_status(f, remat_size_from_mib(f->context, (double)NAN, &budget), REMAT_INVALID);
}

static void the_ratio_of_all_is_one_and_of_none_zero(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    remat_plan *full = plan_by(f, profile, "full"), *none = plan_by(f, profile, "none");
    remat_plan_statistics statistics;
    remat_plan_get_statistics(full, &statistics);
    assert_true(statistics.recomputed_ratio == 1.0);
    remat_plan_get_statistics(none, &statistics);
    assert_true(statistics.recomputed_ratio == 0.0);
    remat_plan_destroy(full);
    remat_plan_destroy(none);
    remat_profile_destroy(profile);
}

static void statistics_count_layers_and_bytes(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    remat_plan *plan = plan_by(f, profile, "attention-only");
    remat_plan_statistics statistics;
    remat_plan_get_statistics(plan, &statistics);
    assert_int_equal(statistics.layers, 6);
    assert_int_equal(statistics.recomputed_layers, 3);
    assert_true(fabs(statistics.recomputed_percent - 50.0) < 1e-4);
    assert_true(fabs(statistics.mean_activation_bytes - 768.0) < 1e-9);
    assert_int_equal(statistics.estimated_bytes, 3 * 512 + 1024);
    const remat_plan_figures *figures = remat_plan_get_figures(plan);
    uint64_t peak = figures->schedule.peak_bytes, base = figures->base_peak_bytes;
    assert_int_equal(statistics.peak_reduction_bytes, peak < base ? base - peak : 0);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void an_empty_profile_is_an_empty_plan(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 0, 0, 0);
    for (size_t i = 0; i < strategy_case_count; i++) {
        remat_plan *plan = plan_case(f, profile, &strategy_cases[i]);
        const remat_plan_figures *figures = remat_plan_get_figures(plan);
        remat_plan_statistics statistics;
        remat_plan_get_statistics(plan, &statistics);
        assert_true(figures->feasible);
        assert_int_equal(figures->schedule.steps, 0);
        assert_int_equal(figures->schedule.peak_bytes, 0);
        assert_int_equal(figures->schedule.recompute_flops, 0);
        assert_int_equal(figures->schedule.largest_recomputed_bytes, 0);
        assert_int_equal(figures->estimated_bytes, 0);
        assert_true(statistics.recomputed_ratio == 0.0 && statistics.recomputed_percent == 0.0);
        assert_true(statistics.mean_activation_bytes == 0.0 && statistics.peak_reduction_percent == 0.0);
        remat_plan_destroy(plan);
    }
    remat_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(none_keeps_all),
        FIXTURE_TEST(full_recomputes_all),
        FIXTURE_TEST(every_nth_takes_the_first_of_every_n),
        FIXTURE_TEST(types_filter),
        FIXTURE_TEST(other_types_are_left_alone),
        FIXTURE_TEST(largest_takes_the_largest),
        FIXTURE_TEST(a_ratio_of_half_takes_half),
        FIXTURE_TEST(a_budget_is_kept),
        FIXTURE_TEST(a_budget_within_reach_changes_nothing),
        FIXTURE_TEST(a_negative_budget_is_invalid),
        FIXTURE_TEST(the_ratio_of_all_is_one_and_of_none_zero),
        FIXTURE_TEST(statistics_count_layers_and_bytes),
        FIXTURE_TEST(an_empty_profile_is_an_empty_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
