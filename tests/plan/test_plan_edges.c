/* Options of plans and curves that do not exist or do not go together, chains without layers, and what plans without a
 * schedule write. */
#include "support/chains.h"

#include <remat/sweep.h>

static remat_status plan_with(fixture *f, const remat_profile *profile, const remat_plan_options *options)
{
    remat_plan *plan = (remat_plan *)f;
    remat_status status = remat_plan_create(f->context, profile, options, &plan);
    if (status != REMAT_OK && status != REMAT_INFEASIBLE)
        assert_null(plan);
    remat_plan_destroy(plan);
    return status;
}

static void options_that_do_not_go_together(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f), *longer = equal_layers(f, 100, 64, 3);
    remat_plan_options options;
    remat_sweep *sweep = (remat_sweep *)f;
    remat_plan_options_init(&options);
    options.strategy = "full";
    options.method = "exhaustive";
    expect_status(f, plan_with(f, profile, &options), REMAT_INVALID);
    expect_message(f, "only the strategy 'optimal' has methods, not 'full'");
    options.strategy = "optimal";
    options.method = "guessing";
    expect_status(f, plan_with(f, profile, &options), REMAT_INVALID);
    expect_message(f, "there is no method 'guessing'");
    expect_status(f, remat_sweep_create(f->context, profile, &options, &sweep), REMAT_INVALID);
    assert_null(sweep);
    options.method = "exhaustive";
    expect_status(f, plan_with(f, longer, &options), REMAT_INVALID);
    expect_message(f, "too long for the method 'exhaustive' (100 layers)");
    static const char *const methods[] = {"auto", "exhaustive", "intervals"};
    for (size_t i = 0; i < 3; i++) {
        options.method = methods[i];
        expect_ok(f, plan_with(f, profile, &options));
    }
    options.method = NULL;
    options.budget_counts = REMAT_COUNT_KEPT;
    expect_status(f, plan_with(f, profile, &options), REMAT_INVALID);
    expect_message(f, "only the strategy 'budget' can count the bytes kept");
    options.struct_size = 1;
    expect_status(f, plan_with(f, profile, &options), REMAT_INVALID);
    expect_status(f, remat_sweep_create(f->context, profile, &options, &sweep), REMAT_INVALID);
    assert_null(sweep);
    remat_sweep_destroy(NULL);
    remat_profile_destroy(longer);
    remat_profile_destroy(profile);
}

/* Nothing but an input: it takes its bytes, and no strategy can change that. */
static void chains_without_layers(void **state)
{
    fixture *f = *state;
    static const char *const methods[] = {"exhaustive", "intervals"};
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_set_input_bytes(profile, 500));
    for (int i = 0; i < 2; i++) {
        remat_plan_options options;
        remat_plan *plan;
        remat_sweep *sweep;
        remat_sweep_point point;
        remat_plan_options_init(&options);
        options.strategy = "optimal";
        options.method = methods[i];
        expect_ok(f, remat_plan_create(f->context, profile, &options, &plan));
        uint64_t peak = remat_plan_get_figures(plan)->schedule.peak_bytes;
        assert_true(peak >= 500);
        remat_plan_destroy(plan);
        options.budget_bytes = 499;
        expect_status(f, remat_plan_create(f->context, profile, &options, &plan), REMAT_INFEASIBLE);
        assert_int_equal(remat_plan_get_figures(plan)->min_budget_bytes, peak);
        assert_true(strlen(remat_plan_remark(plan)) > 0);
        remat_plan_destroy(plan);
        expect_ok(f, remat_sweep_create(f->context, profile, &options, &sweep));
        assert_int_equal(remat_sweep_count(sweep), 1);
        assert_int_equal(remat_sweep_knee(sweep), 0);
        expect_ok(f, remat_sweep_get_point(sweep, 0, &point));
        assert_int_equal(point.peak_bytes, peak);
        remat_sweep_destroy(sweep);
    }
    static const char *const strategies[] = {"none",      "full",     "sqrt",     "every-nth:2",
                                             "revolve:2", "online:2", "largest:1"};
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        remat_plan *plan = plan_by(f, profile, strategies[i]);
        assert_int_equal(remat_plan_get_figures(plan)->schedule.recomputed_layers, 0);
        char *text = written_plan(plan);
        remat_plan *read;
        expect_ok(f, read_plan_text(f, text, profile, &read));
        remat_plan_destroy(read);
        free(text);
        remat_plan_destroy(plan);
    }
    remat_profile_destroy(profile);
}

/* Nothing takes any bytes: the curve has one point, at 0. */
static void chains_without_bytes(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 3, 0, 5);
    remat_plan_options options;
    remat_sweep *sweep;
    remat_sweep_point point;
    remat_plan_options_init(&options);
    options.budget_bytes = 0;
    expect_ok(f, plan_with(f, profile, &options));
    expect_ok(f, remat_sweep_create(f->context, profile, NULL, &sweep));
    assert_int_equal(remat_sweep_count(sweep), 1);
    expect_ok(f, remat_sweep_get_point(sweep, 0, &point));
    assert_int_equal(point.peak_bytes, 0);
    remat_sweep_destroy(sweep);
    remat_profile_destroy(profile);
}

/* A plan that was refused is written with what would do. It cannot be read as a plan: it has no steps. */
static void refused_plans_are_written(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    static const char *const strategies[] = {"optimal", "budget", "sqrt"};
    for (size_t i = 0; i < 3; i++) {
        remat_plan *plan, *read;
        remat_figures figures;
        expect_status(f, make_plan(f, profile, strategies[i], 100, REMAT_COUNT_PEAK, &plan), REMAT_INFEASIBLE);
        uint64_t needed = remat_plan_get_figures(plan)->min_budget_bytes;
        char *text = written_plan(plan);
        expect_text(text, "\"feasible\": false");
        assert_null(strstr(text, "method_bound_cost"));
        assert_null(strstr(text, "schedule"));
        expect_status(f, read_plan_text(f, text, profile, &read), REMAT_BAD_INPUT);
        expect_message(f, "the plan is infeasible, there is nothing to replay");
        expect_status(f, check_plan_text(f, text, profile, &figures), REMAT_BAD_INPUT);
        free(text);
        remat_plan_destroy(plan);
        expect_ok(f, make_plan(f, profile, strategies[i], needed, REMAT_COUNT_PEAK, &plan));
        remat_plan_destroy(plan);
    }
    remat_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(options_that_do_not_go_together),
        FIXTURE_TEST(chains_without_layers),
        FIXTURE_TEST(chains_without_bytes),
        FIXTURE_TEST(refused_plans_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
