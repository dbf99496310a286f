/* Which layers each strategy takes, beyond what the seed expects, and what it refuses. */
#include "support/chains.h"

static void expect_of(fixture *f, size_t layers, const char *strategy, const char *positions)
{
    char text[256];
    remat_profile *profile = equal_layers(f, layers, 10, 10);
    remat_plan *plan = plan_by(f, profile, strategy);
    assert_string_equal(recomputed_layers(profile, plan, text), positions);
    assert_string_equal(remat_plan_strategy(plan), strategy);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void selective_takes_exactly_its_share_spread_evenly(void **state)
{
    fixture *f = *state;
    expect_of(f, 10, "selective:0.6", "0 1 3 5 6 8");
    expect_of(f, 8, "selective:0.75", "0 1 2 4 5 6");
    expect_of(f, 10, "selective:0.3", "0 3 6");
    expect_of(f, 10, "selective:1", "0 1 2 3 4 5 6 7 8 9");
    expect_of(f, 10, "selective:0", "");
    expect_of(f, 10, "selective:0.04", "");
    expect_of(f, 10, "selective:0.05", "0"); /* halves go up */
    expect_of(f, 10, "selective:0.25", "0 3 6");
    expect_of(f, 3, "selective:0.5", "0 1");
    expect_of(f, 1, "selective:0.5", "0");
    expect_of(f, 10, "selective:1e-1", "0");
}

/* floor(x + 0.5) would be 1: the sum is rounded before it is cut off. */
static void the_largest_ratio_below_half_of_a_layer_takes_none(void **state)
{
    expect_of(*state, 1, "selective:0.49999999999999994", "");
}

static void selective_counts_are_round_for_every_ratio(void **state)
{
    fixture *f = *state;
    for (size_t n = 1; n <= 12; n++) {
        remat_profile *profile = equal_layers(f, n, 10, 10);
        for (uint64_t percent = 0; percent <= 100; percent++) {
            char strategy[32];
            snprintf(strategy, sizeof strategy, "selective:%g", (double)percent / 100.0);
            remat_plan *plan = plan_by(f, profile, strategy);
            double exact = (double)percent / 100.0 * (double)n; /* in double, as the specification says */
            uint64_t floor = (uint64_t)exact, wanted = exact - (double)floor >= 0.5 ? floor + 1 : floor;
            assert_int_equal(remat_plan_get_figures(plan)->schedule.recomputed_layers, wanted);
            remat_plan_destroy(plan);
        }
        remat_profile_destroy(profile);
    }
}

static void every_nth_counts_positions_not_indexes(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    static const uint64_t indexes[] = {7, 1, 100, 3, 2};
    for (size_t i = 0; i < 5; i++) {
        remat_layer_options layer;
        remat_layer_options_init(&layer);
        layer.index = indexes[i];
        layer.activation_bytes = 10;
        expect_ok(f, remat_profile_add_layer(profile, &layer));
    }
    char text[256];
    remat_plan *plan = plan_by(f, profile, "every-nth:2");
    assert_string_equal(recomputed_layers(profile, plan, text), "0 2 4");
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
    expect_of(f, 5, "every-nth:1", "0 1 2 3 4");
    expect_of(f, 5, "every-nth:4", "0 4");
    expect_of(f, 5, "every-nth:5", "0");
    expect_of(f, 5, "every-nth:9223372036854775807", "0");
}

static void largest_breaks_ties_by_position(void **state)
{
    fixture *f = *state;
    expect_of(f, 5, "largest:2", "0 1");
    expect_of(f, 5, "largest:0", "");
    expect_of(f, 5, "largest:9223372036854775807", "0 1 2 3 4");
    static const uint64_t bytes[] = {5, 9, 7, 9, 7, 1};
    static const char *const expected[] = {"", "1", "1 3", "1 2 3", "1 2 3 4", "0 1 2 3 4", "0 1 2 3 4 5"};
    remat_profile *profile = layers_of_bytes(f, bytes, 6);
    for (size_t k = 0; k <= 6; k++) {
        char strategy[32], text[256];
        snprintf(strategy, sizeof strategy, "largest:%zu", k);
        remat_plan *plan = plan_by(f, profile, strategy);
        assert_string_equal(recomputed_layers(profile, plan, text), expected[k]);
        remat_plan_destroy(plan);
    }
    remat_profile_destroy(profile);
}

static void full_takes_everything_whatever_the_length(void **state)
{
    fixture *f = *state;
    expect_of(f, 5, "full", "0 1 2 3 4");
    expect_of(f, 5, "full:1", "0 1 2 3 4");
    expect_of(f, 5, "full:3", "0 1 2 3 4");
    expect_of(f, 5, "full:9223372036854775807", "0 1 2 3 4");
    expect_of(f, 5, "sqrt", "0 1 2 3 4");
}

/* ---- what is refused ---- */

static void wrong_strategies_are_refused_with_the_reason(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *strategy, *reason;
    } cases[] = {
        {"selective:1.5", "from 0 to 1"},
        {"selective:-0.1", "from 0 to 1"},
        {"selective:nan", "from 0 to 1"},
        {"selective:1e 0", "from 0 to 1"},
        {"selective:-nan", "from 0 to 1"},
        {"selective:inf", "from 0 to 1"},
        {"selective:1.0000000000000002", "from 0 to 1"},
        {"selective:-1e-300", "from 0 to 1"},
        {"selective", "needs an argument"},
        {"selective:", "not a number"},
        {"selective:half", "not a number"},
        {"selective:0.5x", "not a number"},
        {"selective:0,5", "not a number"},
        {"every-nth:0", "at least 1"},
        {"every-nth", "needs an argument"},
        {"every-nth:", "not a count"},
        {"every-nth:-1", "not a count"},
        {"every-nth:1.5", "not a count"},
        {"every-nth:x", "not a count"},
        {"full:0", "at least 1"},
        {"full:", "not a count"},
        {"full:-1", "not a count"},
        {"full:9223372036854775808", "not a count"},
        {"largest", "needs an argument"},
        {"largest:-1", "not a count"},
        {"largest:all", "not a count"},
        {"none:1", "takes no argument"},
        {"none:", "takes no argument"},
        {"sqrt:2", "takes no argument"},
        {"attention-only:", "takes no argument"},
        {"budget:5", "takes no argument"},
        {"budget", "needs a budget"},
        {"", "no strategy"},
        {"nothing", "no strategy"},
        {"Full", "no strategy"},
        {"ful", "no strategy"},
        {"full ", "no strategy"},
        {" none", "no strategy"},
        {":2", "no strategy"},
    };
    for (size_t layers = 0; layers <= 3; layers += 3) { /* an empty profile excuses nothing */
        remat_profile *profile = equal_layers(f, layers, 10, 10);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            remat_plan *plan;
            remat_status status = make_plan(f, profile, cases[i].strategy, REMAT_NO_BUDGET, REMAT_COUNT_PEAK, &plan);
            if (status != REMAT_INVALID)
                fail_msg("'%s' gave status %d", cases[i].strategy, status);
            assert_null(plan);
            expect_message(f, cases[i].reason);
        }
        remat_profile_destroy(profile);
    }
}

static void only_the_greedy_counts_what_is_kept(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 3, 10, 10);
    remat_plan *plan;
    static const char *const others[] = {"none", "full", "selective:0.5", "largest:1", "sqrt", "every-nth:2"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        expect_status(f, make_plan(f, profile, others[i], 1000, REMAT_COUNT_KEPT, &plan), REMAT_INVALID);
        assert_null(plan);
    }
    remat_profile_destroy(profile);
}

static void options_must_be_initialised(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 3, 10, 10);
    remat_plan_options options = {0};
    remat_plan *plan;
    expect_status(f, remat_plan_create(f->context, profile, &options, &plan), REMAT_INVALID);
    expect_message(f, "remat_plan_options_init");
    assert_null(plan);
    remat_profile_destroy(profile);
}

/* Figures end below 2^63: a sum that would pass it is an error, not a small number. */
static void sums_past_two_to_the_63_are_refused(void **state)
{
    fixture *f = *state;
    for (int flops = 0; flops < 2; flops++) {
        remat_profile *profile;
        expect_ok(f, remat_profile_create(f->context, &profile));
        for (int i = 0; i < 2; i++) {
            remat_layer_options layer;
            remat_layer_options_init(&layer);
            layer.recompute_flops = flops ? (uint64_t)1 << 62 : 0;
            layer.forward_cost = flops ? 0 : (uint64_t)1 << 61;
            layer.backward_cost = flops ? 0 : (uint64_t)1 << 60;
            expect_ok(f, remat_profile_add_layer(profile, &layer));
        }
        remat_plan *plan = plan_by(f, profile, "none");
        assert_int_equal(remat_plan_get_figures(plan)->base_cost, flops ? 0 : (uint64_t)3 << 61);
        remat_plan_destroy(plan);
        remat_status status = make_plan(f, profile, "full", REMAT_NO_BUDGET, REMAT_COUNT_PEAK, &plan);
        assert_int_not_equal(status, REMAT_OK);
        assert_null(plan);
        expect_message(f, "2^63");
        remat_profile_destroy(profile);
    }
}

static void without_strategy_and_budget_everything_is_kept(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 3, 10, 10);
    remat_plan *plan = plan_by(f, profile, NULL);
    assert_string_equal(remat_plan_strategy(plan), "none");
    assert_int_equal(remat_plan_get_figures(plan)->schedule.recomputed_layers, 0);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void the_listed_strategies_have_names_and_an_end(void **state)
{
    (void)state;
    static const char *const known[] = {"none",    "full",   "selective", "attention-only", "ffn-only", "every-nth",
                                        "largest", "budget", "sqrt"};
    size_t count = 0, found = 0;
    for (const remat_strategy_info *info; (info = remat_strategy_list(count)); count++) {
        assert_true(info->name[0] && info->summary[0] && info->argument);
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            found += strcmp(info->name, known[i]) == 0;
    }
    assert_int_equal(found, sizeof known / sizeof known[0]);
    assert_null(remat_strategy_list(count + 1));
    assert_null(remat_strategy_list(SIZE_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(selective_takes_exactly_its_share_spread_evenly),
        FIXTURE_TEST(the_largest_ratio_below_half_of_a_layer_takes_none),
        FIXTURE_TEST(selective_counts_are_round_for_every_ratio),
        FIXTURE_TEST(every_nth_counts_positions_not_indexes),
        FIXTURE_TEST(largest_breaks_ties_by_position),
        FIXTURE_TEST(full_takes_everything_whatever_the_length),
        FIXTURE_TEST(wrong_strategies_are_refused_with_the_reason),
        FIXTURE_TEST(only_the_greedy_counts_what_is_kept),
        FIXTURE_TEST(options_must_be_initialised),
        FIXTURE_TEST(sums_past_two_to_the_63_are_refused),
        FIXTURE_TEST(without_strategy_and_budget_everything_is_kept),
        cmocka_unit_test(the_listed_strategies_have_names_and_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
