/* Writing a plan and reading it again loses nothing. */
#include "support/chains.h"
#include "support/plan_json.h"
#include "support/random_profile.h"

#include <unistd.h>

static void expect_same_plan(const remat_profile *profile, const remat_plan *a, const remat_plan *b)
{
    const remat_plan_figures *one = remat_plan_get_figures(a), *two = remat_plan_get_figures(b);
    assert_string_equal(remat_plan_strategy(a), remat_plan_strategy(b));
    assert_string_equal(remat_plan_remark(a), remat_plan_remark(b));
    assert_int_equal(one->feasible, two->feasible);
    assert_int_equal(one->has_budget, two->has_budget);
    assert_int_equal(one->budget_bytes, two->budget_bytes);
    assert_int_equal(one->min_budget_bytes, two->min_budget_bytes);
    assert_int_equal(one->base_cost, two->base_cost);
    assert_int_equal(one->base_peak_bytes, two->base_peak_bytes);
    assert_int_equal(one->lower_bound_cost, two->lower_bound_cost);
    assert_int_equal(one->estimated_bytes, two->estimated_bytes);
    assert_memory_equal(&one->schedule, &two->schedule, sizeof one->schedule);
    for (size_t i = 0; i < remat_profile_layer_count(profile); i++) {
        assert_int_equal(remat_plan_decision(a, i), remat_plan_decision(b, i));
        assert_int_equal(remat_plan_forwards(a, i), remat_plan_forwards(b, i));
    }
}

static void expect_roundtrip(fixture *f, const remat_profile *profile, const remat_plan *plan)
{
    char *once = written_plan(plan);
    remat_plan *read;
    expect_ok(f, read_plan_text(f, once, profile, &read));
    char *twice = written_plan(read);
    assert_string_equal(once, twice);
    expect_same_plan(profile, plan, read);
    remat_plan_destroy(read);
    free(once);
    free(twice);
}

static void write_read_write_is_the_same_for_random_plans(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < LESS_WHEN_SANITIZED(60, 15); round++) {
        random_traits traits = {.most_layers = (size_t)round % 25, .modes = true, .odd_names = true};
        remat_profile *profile = random_profile(f->context, &random, &traits);
        for (size_t i = 0; i < strategy_case_count; i++) {
            remat_plan *plan = plan_case(f, profile, &strategy_cases[i]);
            expect_roundtrip(f, profile, plan);
            remat_plan_destroy(plan);
        }
        remat_profile_destroy(profile);
    }
}

/* Schedules with modes, dropped states and odd orders come from other programs. */
static void foreign_schedules_are_read_and_written_alike(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 200; round++) {
        random_traits traits = {.most_layers = (size_t)round % 12, .modes = true, .odd_names = round % 2 == 0};
        remat_profile *profile = random_profile(f->context, &random, &traits);
        step_list steps = {0};
        random_schedule(profile, &random, &steps);
        json_t *tree = plan_tree_of_steps(profile, &steps);
        char *text = json_dumps(tree, 0);
        remat_plan *plan;
        expect_ok(f, read_plan_text(f, text, profile, &plan));
        slow_figures slow = slow_replay_all(profile, steps.steps, steps.count);
        assert_int_equal(remat_plan_get_figures(plan)->schedule.peak_bytes, slow.peak);
        assert_int_equal(remat_plan_get_figures(plan)->schedule.total_cost, slow.cost);
        assert_string_equal(remat_plan_strategy(plan), "unknown");
        expect_roundtrip(f, profile, plan);
        remat_plan_destroy(plan);
        free(text);
        json_decref(tree);
        step_list_clear(&steps);
        remat_profile_destroy(profile);
    }
}

/* The remark of a strategy that found nothing to do knows more than the schedule alone. */
static void the_remark_is_read_back(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 3, 10, 10);
    remat_plan *plan = plan_by(f, profile, "attention-only");
    expect_text(remat_plan_remark(plan), "no layer is of type attention");
    expect_roundtrip(f, profile, plan);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

/* What is too long to be read back whole is refused from the start. */
static void a_long_strategy_text_is_read_back_whole_or_refused(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 3, 10, 10);
    for (int zeros = 0; zeros < 400; zeros++) {
        char strategy[500];
        remat_plan *plan;
        snprintf(strategy, sizeof strategy, "full:%0*d", zeros, 2);
        if (make_plan(f, profile, strategy, REMAT_NO_BUDGET, REMAT_COUNT_PEAK, &plan) == REMAT_OK)
            expect_roundtrip(f, profile, plan);
        else
            assert_true(strlen(strategy) > 100); /* nobody needs more */
        remat_plan_destroy(plan);
    }
    remat_profile_destroy(profile);
}

/* Cut at a fixed number of bytes, half a letter would be left, and the file written next would not be UTF-8. */
static void long_foreign_texts_are_never_cut_inside_a_letter(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 0, 0, 0);
    static const char *const keys[] = {"strategy", "remark"};
    for (int i = 0; i < 6; i++) {
        char text[2000];
        size_t used = (size_t)snprintf(text, sizeof text, "{\"format\": \"remat-plan\", \"version\": 1, \"%s\": \"%.*s",
                                       keys[i / 3], i % 3, "aa");
        for (int letter = 0; letter < 400; letter++, used += 3)
            memcpy(text + used, "€", 3);
        snprintf(text + used, sizeof text - used, "\", \"schedule\": []}");
        remat_plan *plan;
        if (read_plan_text(f, text, profile, &plan) != REMAT_OK)
            continue;                 /* refusing it is fine, too */
        json_decref(plan_tree(plan)); /* Jansson insists on UTF-8 */
        remat_plan_destroy(plan);
    }
    remat_profile_destroy(profile);
}

static void an_infeasible_plan_states_what_would_do(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    static const char *const strategies[] = {"budget", "none", "full"};
    for (size_t i = 0; i < 3; i++) {
        remat_plan *plan;
        expect_status(f, make_plan(f, profile, strategies[i], 5, REMAT_COUNT_PEAK, &plan), REMAT_INFEASIBLE);
        json_t *tree = plan_tree(plan);
        assert_true(json_is_false(json_object_get(tree, "feasible")));
        assert_int_equal(plan_number(tree, "budget_bytes"), 5);
        assert_int_equal(plan_number(tree, "min_budget_bytes"), remat_plan_get_figures(plan)->min_budget_bytes);
        assert_null(json_object_get(tree, "schedule"));
        assert_null(json_object_get(tree, "peak_bytes"));
        char *text = json_dumps(tree, 0);
        remat_figures figures;
        expect_status(f, check_plan_text(f, text, profile, &figures), REMAT_BAD_INPUT);
        expect_message(f, "infeasible");
        free(text);
        json_decref(tree);
        remat_plan_destroy(plan);
    }
    remat_profile_destroy(profile);
}

static void a_plan_without_its_schedule_keeps_its_figures(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    remat_plan *plan = plan_by(f, profile, "full:2");
    capture out;
    capture_begin(&out);
    expect_ok(f, remat_plan_write(plan, out.stream, false));
    capture_end(&out);
    json_t *tree = json_loads(out.text, 0, NULL);
    assert_int_equal(plan_number(tree, "peak_bytes"), remat_plan_get_figures(plan)->schedule.peak_bytes);
    assert_null(json_object_get(tree, "schedule"));
    json_decref(tree);
    free(out.text);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void plans_are_saved_and_loaded_by_path(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    remat_plan *plan = plan_by(f, profile, "every-nth:2"), *loaded;
    char path[] = "/tmp/remat-plan-XXXXXX";
    close(mkstemp(path));
    expect_ok(f, remat_plan_save(plan, path));
    expect_ok(f, remat_plan_load(f->context, path, profile, &loaded));
    expect_same_plan(profile, plan, loaded);
    remat_plan_destroy(loaded);
    unlink(path);
    expect_status(f, remat_plan_load(f->context, path, profile, &loaded), REMAT_IO);
    assert_null(loaded);
    expect_message(f, path);
    expect_status(f, remat_plan_save(plan, "/dev/full"), REMAT_IO);
    expect_status(f, remat_plan_save(plan, "/nowhere/plan.json"), REMAT_IO);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(write_read_write_is_the_same_for_random_plans),
        FIXTURE_TEST(foreign_schedules_are_read_and_written_alike),
        FIXTURE_TEST(the_remark_is_read_back),
        FIXTURE_TEST(a_long_strategy_text_is_read_back_whole_or_refused),
        FIXTURE_TEST(long_foreign_texts_are_never_cut_inside_a_letter),
        FIXTURE_TEST(an_infeasible_plan_states_what_would_do),
        FIXTURE_TEST(a_plan_without_its_schedule_keeps_its_figures),
        FIXTURE_TEST(plans_are_saved_and_loaded_by_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
