/* What the simple strategies mean as schedules: small ones written out by hand, and all of them by the rule. */
#include "support/fixture.h"
#include "support/random_profile.h"
#include "support/slow_blocks.h"

#include "graph/block_schedule.h"

static remat_profile *five_layers(fixture *f)
{
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    for (int i = 0; i < 5; i++) /* attention at 0, 2 and 4, like the seed's chain */
        expect_ok(f, remat_profile_add(profile, i % 2 ? REMAT_FFN : REMAT_ATTENTION, 10, 10));
    return profile;
}

typedef struct printer {
    const remat_profile *profile;
    char text[2000];
} printer;

static remat_status print_step(void *user, remat_step step)
{
    printer *to = user;
    char text[REMAT_STEP_TEXT];
    size_t used = strlen(to->text);
    snprintf(to->text + used, sizeof to->text - used, "%s; ", remat_step_print(to->profile, step, text));
    return REMAT_OK;
}

static void expect_schedule(fixture *f, const char *strategy, const char *steps)
{
    remat_profile *profile = five_layers(f);
    remat_plan *plan;
    printer to = {profile, ""};
    expect_ok(f, make_plan(f, profile, strategy, REMAT_NO_BUDGET, REMAT_COUNT_PEAK, &plan));
    expect_ok(f, remat_plan_walk(plan, print_step, &to));
    assert_string_equal(to.text, steps);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void none_saves_every_layer(void **state)
{
    expect_schedule(*state, "none",
                    "forward 0, save keep; forward 1, save keep; forward 2, save keep; forward 3, save keep; "
                    "forward 4, save keep; loss; backward 4; backward 3; backward 2; backward 1; backward 0; ");
}

static void full_makes_every_layer_a_block(void **state)
{
    expect_schedule(*state, "full",
                    "forward 0; forward 1; forward 2; forward 3; forward 4; loss; drop x 5; "
                    "forward 4, save keep; backward 4; drop x 4; forward 3, save keep; backward 3; drop x 3; "
                    "forward 2, save keep; backward 2; drop x 2; forward 1, save keep; backward 1; drop x 1; "
                    "forward 0, save keep; backward 0; ");
}

static void full_with_a_length_makes_runs(void **state)
{
    expect_schedule(*state, "full:2",
                    "forward 0; forward 1; drop x 1; forward 2; forward 3; drop x 3; forward 4; loss; drop x 5; "
                    "forward 4, save keep; backward 4; drop x 4; "
                    "forward 2, save keep; forward 3, save keep; backward 3; backward 2; drop x 2; "
                    "forward 0, save keep; forward 1, save keep; backward 1; backward 0; ");
}

static void sqrt_makes_runs_of_the_root_rounded_up(void **state)
{
    expect_schedule(*state, "sqrt",
                    "forward 0; forward 1; drop x 1; forward 2; drop x 2; forward 3; forward 4; drop x 4; "
                    "loss; drop x 5; "
                    "forward 3, save keep; forward 4, save keep; backward 4; backward 3; drop x 3; "
                    "forward 0, save keep; forward 1, save keep; forward 2, save keep; "
                    "backward 2; backward 1; backward 0; ");
}

static const char every_second[] =
    "forward 0; forward 1, save keep; forward 2; forward 3, save keep; forward 4; loss; drop x 5; "
    "forward 4, save keep; backward 4; backward 3; drop x 3; forward 2, save keep; backward 2; "
    "backward 1; drop x 1; forward 0, save keep; backward 0; ";

static void every_nth_keeps_what_lies_between(void **state)
{
    expect_schedule(*state, "every-nth:2", every_second);
}

static void attention_only_recomputes_those_layers(void **state)
{
    expect_schedule(*state, "attention-only", every_second);
}

static void adjacent_layers_are_one_block_unless_marked(void **state)
{
    fixture *f = *state;
    remat_profile *profile = five_layers(f);
    printer joined = {profile, ""}, split = {profile, ""};
    static const uint8_t one[] = {MARK_KEEP, MARK_RECOMPUTE, MARK_RECOMPUTE, MARK_RECOMPUTE, MARK_KEEP};
    static const uint8_t two[] = {MARK_KEEP, MARK_RECOMPUTE, MARK_RECOMPUTE_NEW_BLOCK, MARK_RECOMPUTE, MARK_KEEP};
    expect_ok(f, remat_block_schedule_walk(profile, one, print_step, &joined));
    assert_string_equal(joined.text,
                        "forward 0, save keep; forward 1; forward 2; drop x 2; forward 3; drop x 3; "
                        "forward 4, save keep; loss; backward 4; drop x 4; forward 1, save keep; forward 2, save keep; "
                        "forward 3, save keep; backward 3; backward 2; backward 1; backward 0; ");
    expect_ok(f, remat_block_schedule_walk(profile, two, print_step, &split));
    assert_string_equal(split.text,
                        "forward 0, save keep; forward 1; forward 2; forward 3; drop x 3; forward 4, save keep; loss; "
                        "backward 4; drop x 4; forward 2, save keep; forward 3, save keep; backward 3; backward 2; "
                        "drop x 2; forward 1, save keep; backward 1; backward 0; ");
    remat_profile_destroy(profile);
}

static remat_status stop_at_once(void *user, remat_step step)
{
    (void)step;
    ++*(int *)user;
    return REMAT_IO;
}

static void a_visitor_can_stop_the_walk(void **state)
{
    fixture *f = *state;
    remat_profile *profile = five_layers(f);
    static const uint8_t marks[5] = {MARK_KEEP};
    int calls = 0;
    assert_int_equal(remat_block_schedule_walk(profile, marks, stop_at_once, &calls), REMAT_IO);
    assert_int_equal(calls, 1);
    remat_profile_destroy(profile);
}

static void any_marks_follow_the_rule_of_the_last_reader(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    static const random_traits traits = {.least_layers = 1, .most_layers = 40};
    for (int round = 0; round < 1000; round++) {
        remat_profile *profile = random_profile(f->context, &random, &traits);
        size_t n = remat_profile_layer_count(profile);
        uint8_t marks[40];
        size_t numbers[40];
        for (size_t i = 0; i < n; i++) { /* a new block starts where the mark says so, or behind a kept layer */
            marks[i] = (uint8_t)test_random_below(&random, 3);
            bool opens = marks[i] == MARK_RECOMPUTE_NEW_BLOCK || i == 0 || marks[i - 1] == MARK_KEEP;
            numbers[i] = marks[i] == MARK_KEEP ? 0 : opens ? i + 1 : numbers[i - 1];
        }
        step_list fast = {0}, slow = {0};
        slow_blocks blocks = {n, numbers};
        expect_ok(f, remat_block_schedule_walk(profile, marks, step_list_take, &fast));
        slow_blocks_schedule(&blocks, &slow);
        assert_int_equal(fast.count, slow.count);
        for (size_t i = 0; i < fast.count; i++) {
            assert_int_equal(fast.steps[i].op, slow.steps[i].op);
            assert_int_equal(fast.steps[i].layer, slow.steps[i].layer);
            assert_int_equal(fast.steps[i].save, slow.steps[i].save);
        }
        assert_true(slow_replay_all(profile, fast.steps, fast.count).legal);
        step_list_clear(&fast);
        step_list_clear(&slow);
        remat_profile_destroy(profile);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(none_saves_every_layer),
        FIXTURE_TEST(full_makes_every_layer_a_block),
        FIXTURE_TEST(full_with_a_length_makes_runs),
        FIXTURE_TEST(sqrt_makes_runs_of_the_root_rounded_up),
        FIXTURE_TEST(every_nth_keeps_what_lies_between),
        FIXTURE_TEST(attention_only_recomputes_those_layers),
        FIXTURE_TEST(adjacent_layers_are_one_block_unless_marked),
        FIXTURE_TEST(a_visitor_can_stop_the_walk),
        FIXTURE_TEST(any_marks_follow_the_rule_of_the_last_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
