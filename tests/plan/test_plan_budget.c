/* The greedy `budget` against a brute force that replays every prefix of its order. */
#include "support/chains.h"
#include "support/random_profile.h"
#include "support/slow_blocks.h"

#include "plan/chain/strategy.h"
#include "graph/block_schedule.h"

/* Everything about one profile: the peak of each prefix of the order. */
typedef struct prefixes {
    size_t n, *order;
    uint64_t *peaks; /* n + 1 */
    uint64_t least;
} prefixes;

static prefixes all_prefixes(const remat_profile *profile)
{
    size_t n = remat_profile_layer_count(profile);
    prefixes all = {n, slow_budget_order(profile), calloc(n + 1, sizeof(uint64_t)), UINT64_MAX};
    for (size_t i = 0; i <= n; i++) {
        slow_blocks blocks = slow_blocks_of_prefix(profile, all.order, i);
        all.peaks[i] = slow_blocks_peak(profile, &blocks);
        all.least = all.peaks[i] < all.least ? all.peaks[i] : all.least;
        slow_blocks_clear(&blocks);
    }
    return all;
}

static void prefixes_clear(prefixes *all)
{
    free(all->order);
    free(all->peaks);
}

static size_t shortest_that_fits(const prefixes *all, uint64_t budget)
{
    size_t length = 0;
    while (length <= all->n && all->peaks[length] > budget)
        length++;
    return length; /* n + 1 where none does */
}

static void expect_prefix(const remat_plan *plan, const prefixes *all, size_t length)
{
    assert_int_equal(remat_plan_get_figures(plan)->schedule.recomputed_layers, length);
    for (size_t i = 0; i < all->n; i++)
        assert_int_equal(remat_plan_decision(plan, all->order[i]), i < length ? REMAT_NO_SAVE : REMAT_KEEP);
}

/* One budget on one profile, asked of the strategy itself: a whole plan also looks for a lower bound of the cost, which
 * takes a thousand times longer. Returns the length of the prefix. */
static size_t expect_choice(fixture *f, const remat_profile *profile, const prefixes *all, uint64_t budget)
{
    remat_plan_options options;
    plan_draft draft = {0};
    remat_plan_options_init(&options);
    options.budget_bytes = budget;
    plan_request request = {.context = f->context, .chain = profile, .options = &options};
    expect_ok(f, strategy_budget(&request, &draft));
    size_t length = shortest_that_fits(all, budget);
    assert_int_equal(draft.infeasible, length > all->n);
    assert_true(draft.knows_min_budget);
    assert_int_equal(draft.min_budget_bytes, all->least);
    for (size_t i = 0; !draft.infeasible && i < all->n; i++)
        assert_int_equal(draft.marks[all->order[i]], i < length ? MARK_RECOMPUTE : MARK_KEEP);
    plan_draft_clear(f->context, all->n, &draft);
    return length;
}

/* The same as a whole plan. */
static void expect_budget(fixture *f, const remat_profile *profile, const prefixes *all, uint64_t budget)
{
    remat_plan *plan;
    size_t length = shortest_that_fits(all, budget);
    bool feasible = length <= all->n;
    remat_status status = make_plan(f, profile, "budget", budget, REMAT_COUNT_PEAK, &plan);
    expect_status(f, status, feasible ? REMAT_OK : REMAT_INFEASIBLE);
    const remat_plan_figures *figures = remat_plan_get_figures(plan);
    assert_int_equal(figures->feasible, feasible);
    assert_int_equal(figures->min_budget_bytes, all->least);
    assert_true(figures->has_budget && figures->budget_bytes == budget);
    if (feasible) {
        assert_int_equal(figures->schedule.peak_bytes, all->peaks[length]);
        expect_prefix(plan, all, length);
    } else {
        assert_true(budget < all->least);
        assert_int_equal(figures->schedule.steps, 0);
        step_list none = {0};
        expect_status(f, remat_plan_walk(plan, step_list_take, &none), REMAT_INFEASIBLE);
    }
    remat_plan_destroy(plan);
}

static void the_shortest_prefix_that_fits_is_taken(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < LESS_WHEN_SANITIZED(500, 100); round++) {
        random_traits traits = {.most_layers = (size_t)round % 40, .modes = round % 4 == 0};
        remat_profile *profile = random_profile(f->context, &random, &traits);
        prefixes all = all_prefixes(profile);
        size_t before = SIZE_MAX;
        for (int k = 0; k <= 12; k++) { /* from too little to plenty: fewer and fewer layers are recomputed */
            unsigned __int128 most = all.peaks[0] + 2;
            size_t length = expect_choice(f, profile, &all, (uint64_t)(most * (unsigned)k / 12));
            assert_true(length <= before);
            before = length;
        }
        for (size_t i = 0; i <= all.n; i++) /* exactly what a prefix needs, and one byte less */
            for (uint64_t less = 0; less < 2 && less <= all.peaks[i]; less++)
                expect_choice(f, profile, &all, all.peaks[i] - less);
        prefixes_clear(&all);
        remat_profile_destroy(profile);
    }
}

/* Long chains go through many levels of the tree that finds the peaks. */
static void long_chains_agree_too(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < LESS_WHEN_SANITIZED(4, 1); round++) {
        random_traits traits = {.least_layers = 60, .most_layers = 130};
        remat_profile *profile = random_profile(f->context, &random, &traits);
        prefixes all = all_prefixes(profile);
        for (size_t i = 0; i <= all.n; i++)
            expect_choice(f, profile, &all, all.peaks[i]);
        prefixes_clear(&all);
        remat_profile_destroy(profile);
    }
}

static void a_plan_carries_out_that_choice(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < LESS_WHEN_SANITIZED(20, 5); round++) {
        random_traits traits = {.most_layers = (size_t)round % 15, .modes = round % 4 == 0};
        remat_profile *profile = random_profile(f->context, &random, &traits);
        prefixes all = all_prefixes(profile);
        expect_budget(f, profile, &all, all.least);
        if (all.least > 0)
            expect_budget(f, profile, &all, all.least - 1);
        expect_budget(f, profile, &all, all.least + (all.peaks[0] - all.least) / 2);
        expect_budget(f, profile, &all, all.peaks[0]);
        expect_budget(f, profile, &all, 0);
        prefixes_clear(&all);
        remat_profile_destroy(profile);
    }
}

/* Three layers of 10 bytes with outputs of 1 are dropped from the front. Two of them are a good block; all three are
 * one block that holds as much as keeping everything. */
static void the_longest_prefix_is_not_always_the_smallest(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    for (size_t i = 0; i < 3; i++) {
        remat_layer_options layer;
        remat_layer_options_init(&layer);
        layer.activation_bytes = 10;
        layer.output_bytes = 1;
        expect_ok(f, remat_profile_add_layer(profile, &layer));
    }
    prefixes all = all_prefixes(profile);
    static const uint64_t peaks[] = {32, 23, 22, 32};
    for (size_t i = 0; i <= 3; i++) {
        assert_int_equal(all.peaks[i], peaks[i]);
        expect_budget(f, profile, &all, peaks[i]);
    }
    expect_budget(f, profile, &all, 21);
    assert_int_equal(all.least, 22);
    prefixes_clear(&all);
    remat_profile_destroy(profile);
}

static void ties_break_by_position(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 6, 100, 7);
    remat_plan *plan;
    char text[256];
    expect_ok(f, make_plan(f, profile, "budget", 350, REMAT_COUNT_KEPT, &plan));
    assert_string_equal(recomputed_layers(profile, plan, text), "0 1 2");
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

/* 2^53 and 2^53 + 1 are one number in double; bytes/(flops + 1) must be compared exactly. */
static void shares_are_compared_exactly(void **state)
{
    fixture *f = *state;
    static const uint64_t bytes[] = {(uint64_t)1 << 53, ((uint64_t)1 << 53) + 1};
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    for (size_t i = 0; i < 2; i++) {
        remat_layer_options layer;
        remat_layer_options_init(&layer);
        layer.activation_bytes = bytes[i];
        layer.recompute_flops = 0;
        expect_ok(f, remat_profile_add_layer(profile, &layer));
    }
    remat_plan *plan;
    char text[256];
    expect_ok(f, make_plan(f, profile, "budget", bytes[1], REMAT_COUNT_KEPT, &plan));
    assert_string_equal(recomputed_layers(profile, plan, text), "1");
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void by_kept_the_shortest_prefix_that_leaves_little_enough_is_taken(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 300; round++) {
        random_traits traits = {.most_layers = (size_t)round % 30};
        remat_profile *profile = random_profile(f->context, &random, &traits);
        size_t n = remat_profile_layer_count(profile), *order = slow_budget_order(profile), length = 0;
        uint64_t kept = 0;
        for (size_t i = 0; i < n; i++)
            kept += remat_profile_layer(profile, i)->modes[0].activation_bytes;
        uint64_t budget = test_random_below(&random, kept + 2);
        for (; kept > budget; length++)
            kept -= remat_profile_layer(profile, order[length])->modes[0].activation_bytes;
        remat_plan *plan;
        expect_ok(f, make_plan(f, profile, "budget", budget, REMAT_COUNT_KEPT, &plan));
        prefixes all = {n, order, NULL, 0};
        expect_prefix(plan, &all, length);
        assert_int_equal(remat_plan_get_figures(plan)->schedule.kept_bytes, kept);
        assert_int_equal(remat_plan_get_figures(plan)->min_budget_bytes, 0);
        remat_plan_destroy(plan);
        free(order);
        remat_profile_destroy(profile);
    }
}

static remat_status ignore_step(void *user, remat_step step)
{
    (void)user;
    (void)step;
    return REMAT_OK;
}

static void a_fixed_strategy_meets_its_own_peak_and_no_less(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    static const char *const strategies[] = {"none", "full", "full:2", "selective:0.5", "every-nth:2", "sqrt"};
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) {
        remat_plan *plan = plan_by(f, profile, strategies[i]);
        uint64_t peak = remat_plan_get_figures(plan)->schedule.peak_bytes;
        assert_int_equal(remat_plan_get_figures(plan)->min_budget_bytes, peak);
        remat_plan_destroy(plan);
        expect_ok(f, make_plan(f, profile, strategies[i], peak, REMAT_COUNT_PEAK, &plan));
        remat_plan_destroy(plan);
        expect_status(f, make_plan(f, profile, strategies[i], peak - 1, REMAT_COUNT_PEAK, &plan), REMAT_INFEASIBLE);
        assert_int_equal(remat_plan_get_figures(plan)->min_budget_bytes, peak);
        assert_false(remat_plan_get_figures(plan)->feasible);
        assert_int_equal(remat_plan_get_figures(plan)->schedule.peak_bytes, 0);
        remat_plan_statistics statistics;
        remat_plan_get_statistics(plan, &statistics);
        assert_int_equal(statistics.peak_reduction_bytes, 0); /* a plan that is none saves nothing */
        assert_true(statistics.peak_reduction_percent == 0.0);
        expect_budget_error(f, peak - 1, peak);
        assert_true(remat_context_error(f->context)->layer_name[0] != '\0');
        expect_message(f, "cannot meet a budget");
        expect_status(f, remat_plan_walk(plan, ignore_step, NULL), REMAT_INFEASIBLE);
        expect_budget_error(f, peak - 1, peak);
        remat_plan_destroy(plan);
    }
    remat_profile_destroy(profile);
}

static void the_least_of_the_best_and_its_layer_are_figures(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    static const char *const methods[] = {"exhaustive", "intervals"};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        remat_plan_options options;
        remat_plan_options_init(&options);
        options.method = methods[i];
        options.budget_bytes = 1;
        remat_plan *plan;
        expect_status(f, remat_plan_create(f->context, profile, &options, &plan), REMAT_INFEASIBLE);
        uint64_t least = remat_plan_get_figures(plan)->min_budget_bytes;
        expect_budget_error(f, 1, least);
        const char *layer = remat_context_error(f->context)->layer_name;
        expect_text(remat_plan_remark(plan), layer);
        assert_true(layer[0] != '\0');
        remat_plan_destroy(plan);
        options.budget_bytes = least;
        expect_ok(f, remat_plan_create(f->context, profile, &options, &plan));
        remat_plan_destroy(plan);
    }
    remat_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(the_shortest_prefix_that_fits_is_taken),
        FIXTURE_TEST(long_chains_agree_too),
        FIXTURE_TEST(a_plan_carries_out_that_choice),
        FIXTURE_TEST(the_longest_prefix_is_not_always_the_smallest),
        FIXTURE_TEST(ties_break_by_position),
        FIXTURE_TEST(shares_are_compared_exactly),
        FIXTURE_TEST(by_kept_the_shortest_prefix_that_leaves_little_enough_is_taken),
        FIXTURE_TEST(a_fixed_strategy_meets_its_own_peak_and_no_less),
        FIXTURE_TEST(the_least_of_the_best_and_its_layer_are_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
