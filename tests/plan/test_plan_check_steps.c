/* Schedules that are not quite right: the check says what the slow replay says. */
#include "support/chains.h"
#include "support/plan_json.h"
#include "support/random_profile.h"

/* Checks the tree: alone, its schedule must be judged as the slow replay judges it; with its figures, it may pass only
 * where the schedule is legal. */
static bool expect_verdict(fixture *f, const remat_profile *profile, const json_t *tree)
{
    step_list steps = {0};
    remat_figures figures;
    json_t *bare = bare_plan(tree);
    plan_tree_steps(bare, profile, &steps);
    slow_figures slow = slow_replay_all(profile, steps.steps, steps.count);
    remat_status status = check_plan_tree(f, bare, profile, &figures);
    expect_status(f, status, slow.legal ? REMAT_OK : REMAT_CHECK_FAILED);
    if (slow.legal) {
        assert_int_equal(figures.peak_bytes, slow.peak);
        assert_int_equal(figures.total_cost, slow.cost);
        assert_int_equal(figures.steps, steps.count);
    } else {
        assert_int_equal(remat_context_error(f->context)->step, slow.illegal_step);
    }
    status = check_plan_tree(f, tree, profile, &figures);
    bool same = slow.legal && plan_number(tree, "steps") == steps.count &&
                plan_number(tree, "peak_bytes") == slow.peak && plan_number(tree, "total_cost") == slow.cost &&
                plan_number(tree, "kept_bytes") == slow.kept_bytes;
    if (!same)
        expect_status(f, status, REMAT_CHECK_FAILED);
    step_list_clear(&steps);
    json_decref(bare);
    return slow.legal;
}

/* Every step of the plan deleted, doubled, and swapped with the next, one at a time. */
static void expect_all_changes_judged(fixture *f, const remat_profile *profile, const remat_plan *plan)
{
    json_t *tree = plan_tree(plan);
    size_t count = json_array_size(json_object_get(tree, "schedule"));
    for (size_t i = 0; i < count; i++)
        for (int change = 0; change < 3; change++) {
            json_t *copy = json_deep_copy(tree), *schedule = json_object_get(copy, "schedule");
            json_t *step = json_incref(json_array_get(schedule, i));
            if (change == 1)
                json_array_insert_new(schedule, i, json_deep_copy(step));
            else
                json_array_remove(schedule, i);
            if (change == 2)
                json_array_insert(schedule, i + 1 < count ? i + 1 : i, step);
            expect_verdict(f, profile, copy);
            json_decref(step);
            json_decref(copy);
        }
    json_decref(tree);
}

static void every_single_change_is_judged_like_the_slow_replay(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < LESS_WHEN_SANITIZED(6, 2); round++) {
        random_traits traits = {.least_layers = 1, .most_layers = 7, .modes = round % 2 == 0};
        remat_profile *profile = random_profile(f->context, &random, &traits);
        for (size_t i = 0; i < strategy_case_count; i++) {
            remat_plan *plan = plan_case(f, profile, &strategy_cases[i]);
            expect_all_changes_judged(f, profile, plan);
            remat_plan_destroy(plan);
        }
        remat_profile_destroy(profile);
    }
}

static void random_schedules_with_modes_are_judged_too(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    static const random_traits traits = {.least_layers = 1, .most_layers = 6, .modes = true};
    for (int round = 0; round < LESS_WHEN_SANITIZED(12, 4); round++) {
        remat_profile *profile = random_profile(f->context, &random, &traits);
        step_list steps = {0};
        random_schedule(profile, &random, &steps);
        json_t *tree = plan_tree_of_steps(profile, &steps);
        char *text = json_dumps(tree, 0);
        remat_plan *plan;
        expect_ok(f, read_plan_text(f, text, profile, &plan));
        expect_all_changes_judged(f, profile, plan);
        remat_plan_destroy(plan);
        free(text);
        json_decref(tree);
        step_list_clear(&steps);
        remat_profile_destroy(profile);
    }
}

static void an_illegal_step_is_named_with_its_line_and_reason(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 2, 10, 10);
    remat_figures figures;
    expect_status(f,
                  check_plan_text(f,
                                  "{\"format\": \"remat-plan\", \"version\": 1, \"schedule\": [\n"
                                  "{\"op\": \"forward\", \"layer\": 0, \"save\": \"keep\"},\n"
                                  "{\"op\": \"loss\"}]}",
                                  profile, &figures),
                  REMAT_CHECK_FAILED);
    assert_string_equal(remat_context_message(f->context),
                        "text:3: step 1: 'loss' is not legal: its input, x 2, is not live");
    assert_int_equal(remat_context_error(f->context)->line, 3);
    assert_int_equal(remat_context_error(f->context)->step, 1);
    remat_profile_destroy(profile);
}

/* ---- steps that cannot be understood ---- */

static void expect_bad_step(fixture *f, const char *step, remat_status status, const char *field, const char *reason)
{
    char text[3000];
    remat_profile *profile = equal_layers(f, 2, 10, 10);
    remat_figures figures;
    snprintf(text, sizeof text, "{\"format\": \"remat-plan\", \"version\": 1, \"schedule\": [\n%s]}", step);
    expect_status(f, check_plan_text(f, text, profile, &figures), status);
    expect_message(f, reason);
    assert_string_equal(remat_context_error(f->context)->field, field);
    assert_int_equal(remat_context_error(f->context)->line, 2);
    remat_profile_destroy(profile);
}

static void steps_that_make_no_sense_name_the_field(void **state)
{
    fixture *f = *state;
    expect_bad_step(f, "{}", REMAT_BAD_INPUT, "op", "missing");
    expect_bad_step(f, "{\"layer\": 0}", REMAT_BAD_INPUT, "op", "missing");
    expect_bad_step(f, "{\"op\": \"jump\", \"layer\": 0}", REMAT_BAD_INPUT, "op", "'jump' is not a step");
    expect_bad_step(f, "{\"op\": 1}", REMAT_BAD_INPUT, "op", "string");
    expect_bad_step(f, "{\"op\": \"a very long operation\"}", REMAT_BAD_INPUT, "op", "too long");
    expect_bad_step(f, "{\"op\": \"forward\"}", REMAT_BAD_INPUT, "layer", "missing");
    expect_bad_step(f, "{\"op\": \"backward\"}", REMAT_BAD_INPUT, "layer", "missing");
    expect_bad_step(f, "{\"op\": \"forward\", \"layer\": -1}", REMAT_BAD_INPUT, "layer", "whole number");
    expect_bad_step(f, "{\"op\": \"forward\", \"layer\": 1.5}", REMAT_BAD_INPUT, "layer", "whole number");
    expect_bad_step(f, "{\"op\": \"forward\", \"layer\": \"0\"}", REMAT_BAD_INPUT, "layer", "whole number");
    expect_bad_step(f, "{\"op\": \"drop\", \"layer\": 0}", REMAT_BAD_INPUT, "what", "'x' or 's'");
    expect_bad_step(f, "{\"op\": \"drop\", \"layer\": 0, \"what\": \"y\"}", REMAT_BAD_INPUT, "what", "'x' or 's'");
    expect_bad_step(f, "{\"op\": \"loss\", \"op\": \"loss\"}", REMAT_BAD_INPUT, "op", "twice");
    expect_bad_step(f, "1", REMAT_BAD_INPUT, "schedule", "a step must be an object");
    expect_bad_step(f, "[]", REMAT_BAD_INPUT, "schedule", "a step must be an object");
}

static void steps_outside_the_chain_are_refused(void **state)
{
    fixture *f = *state;
    expect_bad_step(f, "{\"op\": \"forward\", \"layer\": 2}", REMAT_CHECK_FAILED, "", "only 2 layers");
    expect_bad_step(f, "{\"op\": \"forward\", \"layer\": 3}", REMAT_CHECK_FAILED, "layer", "past the end");
    expect_bad_step(f, "{\"op\": \"drop\", \"what\": \"s\", \"layer\": 2}", REMAT_CHECK_FAILED, "", "only 2 layers");
    /* 2^32 must not become 0 */
    expect_bad_step(f, "{\"op\": \"forward\", \"layer\": 4294967296}", REMAT_CHECK_FAILED, "layer", "past the end");
    expect_bad_step(f, "{\"op\": \"forward\", \"layer\": 9223372036854775807}", REMAT_CHECK_FAILED, "layer", "past");
    expect_bad_step(f, "{\"op\": \"forward\", \"layer\": 0, \"save\": \"half\"}", REMAT_CHECK_FAILED, "save",
                    "no mode 'half'");
    expect_bad_step(f, "{\"op\": \"forward\", \"layer\": 2, \"save\": \"keep\"}", REMAT_CHECK_FAILED, "save",
                    "no mode");
    expect_bad_step(f, "{\"op\": \"forward\", \"layer\": 0, \"save\": \"\"}", REMAT_CHECK_FAILED, "save", "no mode");
}

static void unknown_keys_of_a_step_are_warned_about(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 1, 10, 10);
    remat_figures figures;
    expect_ok(f, check_plan_text(f,
                                 "{\"schedule\": [{\"op\": \"forward\", \"layer\": 0, \"save\": \"keep\", \"at\": 5},"
                                 "{\"op\": \"loss\"}, {\"op\": \"backward\", \"layer\": 0}],"
                                 "\"version\": 1, \"format\": \"remat-plan\", \"made\": [\"by\", {\"hand\": 1}]}",
                                 profile, &figures));
    assert_int_equal(f->warnings, 2);
    remat_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(every_single_change_is_judged_like_the_slow_replay),
        FIXTURE_TEST(random_schedules_with_modes_are_judged_too),
        FIXTURE_TEST(an_illegal_step_is_named_with_its_line_and_reason),
        FIXTURE_TEST(steps_that_make_no_sense_name_the_field),
        FIXTURE_TEST(steps_outside_the_chain_are_refused),
        FIXTURE_TEST(unknown_keys_of_a_step_are_warned_about),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
