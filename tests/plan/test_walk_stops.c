/* Walks that their visitor ends: at every step of every kind of schedule the status comes back unchanged, no further step
 * is told, and the next walk is whole. */
#include "support/chains.h"
#include "support/random_profile.h"

#include <remat/revolve.h>
#include <remat/sweep.h>

typedef struct stopper {
    uint64_t told, stop_at; /* the step that ends the walk, from 1 */
} stopper;

static remat_status stop(void *user, remat_step step)
{
    stopper *s = user;
    (void)step;
    return ++s->told == s->stop_at ? REMAT_IO : REMAT_OK;
}

static void expect_stops(const remat_plan *plan)
{
    uint64_t steps = remat_plan_get_figures(plan)->schedule.steps;
    assert_true(steps > 0);
    for (uint64_t at = 1; at <= steps; at++) {
        stopper s = {0, at};
        assert_int_equal(remat_plan_walk(plan, stop, &s), REMAT_IO);
        assert_int_equal(s.told, at);
    }
    stopper whole = {0};
    assert_int_equal(remat_plan_walk(plan, stop, &whole), REMAT_OK);
    assert_int_equal(whole.told, steps);
}

/* Layers with modes that hold their output and modes that do not, so that outputs are dropped on their own. */
static remat_profile *mixed_layers(fixture *f, size_t count)
{
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_set_input_bytes(profile, 40));
    for (size_t i = 0; i < count; i++) {
        remat_mode_options mode;
        remat_layer_options layer;
        remat_mode_options_init(&mode);
        remat_layer_options_init(&layer);
        mode.name = "small";
        mode.activation_bytes = 30 + i;
        mode.holds_output = i % 3 == 0 && i > 9;
        layer.activation_bytes = 100 + 7 * i;
        layer.output_bytes = 20 + i;
        layer.recompute_flops = 5 + i % 4;
        layer.modes = &mode;
        layer.mode_count = i % 2;
        expect_ok(f, remat_profile_add_layer(profile, &layer));
    }
    return profile;
}

static void plans_of_every_strategy(void **state)
{
    fixture *f = *state;
    static const char *const strategies[] = {"none",      "full",      "full:2",         "every-nth:3",
                                             "sqrt",      "largest:3", "attention-only", "selective:0.5",
                                             "revolve:3", "online:3",  "optimal"};
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++)
        for (size_t layers = 1; layers < 12; layers += 5) {
            remat_profile *profile = mixed_layers(f, layers);
            remat_plan *plan;
            remat_status status = make_plan(f, profile, strategies[i], REMAT_NO_BUDGET, REMAT_COUNT_PEAK, &plan);
            expect_ok(f, status);
            expect_stops(plan);
            remat_plan_destroy(plan);
            remat_profile_destroy(profile);
        }
}

static void points_of_a_curve(void **state)
{
    fixture *f = *state;
    static const char *const methods[] = {"exhaustive", "intervals"};
    for (int i = 0; i < 2; i++) {
        remat_profile *profile = mixed_layers(f, i ? 20 : 6);
        remat_plan_options options;
        remat_sweep *sweep;
        remat_plan *plan;
        remat_sweep_point point;
        remat_plan_options_init(&options);
        options.method = methods[i];
        options.threads = 1;
        expect_ok(f, remat_sweep_create(f->context, profile, &options, &sweep));
        assert_string_equal(remat_sweep_method(sweep), methods[i]);
        size_t count = remat_sweep_count(sweep);
        assert_true(count > 2);
        for (size_t k = 0; k < count; k += count / 3) {
            expect_ok(f, remat_sweep_plan(sweep, k, &plan));
            expect_ok(f, remat_sweep_get_point(sweep, k, &point));
            assert_int_equal(remat_plan_get_figures(plan)->schedule.peak_bytes, point.peak_bytes);
            expect_stops(plan);
            remat_plan_destroy(plan);
        }
        expect_status(f, remat_sweep_get_point(sweep, count, &point), REMAT_INVALID);
        expect_status(f, remat_sweep_plan(sweep, count, &plan), REMAT_INVALID);
        assert_null(plan);
        remat_sweep_destroy(sweep);
        remat_profile_destroy(profile);
    }
}

static void revolve_and_its_online_version(void **state)
{
    fixture *f = *state;
    stopper whole = {0};
    expect_ok(f, remat_revolve_walk(f->context, 20, 3, stop, &whole));
    for (uint64_t at = 1; at <= whole.told; at++) {
        stopper s = {0, at};
        assert_int_equal(remat_revolve_walk(f->context, 20, 3, stop, &s), REMAT_IO);
        assert_int_equal(s.told, at);
    }
    uint64_t steps = UINT64_MAX;
    for (uint64_t at = 1; at <= steps; at++) {
        stopper s = {0, at};
        remat_online *online;
        remat_status status = REMAT_OK;
        expect_ok(f, remat_online_create(f->context, 2, &online));
        for (int i = 0; status == REMAT_OK && i < 12; i++)
            status = remat_online_advance(online, stop, &s);
        if (status == REMAT_OK)
            status = remat_online_reverse(online, stop, &s);
        remat_online_destroy(online);
        if (status == REMAT_OK) { /* the step at which it should end is past the last one */
            steps = s.told;
            assert_int_equal(at, steps + 1);
            break;
        }
        assert_int_equal(status, REMAT_IO);
        assert_int_equal(s.told, at);
    }
}

/* A plan that is not feasible has no steps, and says so to every question. */
static void plans_without_a_schedule(void **state)
{
    fixture *f = *state;
    remat_profile *profile = mixed_layers(f, 6);
    static const char *const strategies[] = {"optimal", "budget", "full"};
    for (size_t i = 0; i < 3; i++) {
        remat_plan *plan;
        stopper s = {0};
        expect_status(f, make_plan(f, profile, strategies[i], 10, REMAT_COUNT_PEAK, &plan), REMAT_INFEASIBLE);
        assert_int_equal(remat_context_error(f->context)->budget_bytes, 10);
        assert_true(remat_context_error(f->context)->needed_bytes > 10);
        assert_false(remat_plan_get_figures(plan)->feasible);
        assert_int_equal(remat_plan_walk(plan, stop, &s), REMAT_INFEASIBLE);
        assert_int_equal(remat_plan_peak_live(plan, NULL, NULL), REMAT_INFEASIBLE);
        assert_int_equal(s.told, 0);
        if (i == 0) { /* it looked for a schedule and found none */
            assert_int_equal(remat_plan_decision(plan, 0), REMAT_NO_SAVE);
            assert_int_equal(remat_plan_forwards(plan, 0), 0);
        }
        remat_plan_destroy(plan);
    }
    remat_plan *plan = plan_by(f, profile, "none");
    assert_int_equal(remat_plan_decision(plan, 5), REMAT_KEEP);
    assert_int_equal(remat_plan_decision(plan, 6), REMAT_NO_SAVE); /* past the end */
    assert_int_equal(remat_plan_forwards(plan, 6), 0);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(plans_of_every_strategy),
        FIXTURE_TEST(points_of_a_curve),
        FIXTURE_TEST(revolve_and_its_online_version),
        FIXTURE_TEST(plans_without_a_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
