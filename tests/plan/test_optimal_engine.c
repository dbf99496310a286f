/* The optimal planner over intervals: every point of its curve is a schedule that is what the point says, whatever the
 * chain, the number of threads, and the memory there is. */
#include "support/chains.h"
#include "support/curves.h"
#include "support/plain_recursion.h"
#include "support/random_profile.h"

static uint64_t seed; /* printed first, so that a failure can be repeated */

static optimal_solution *solve(fixture *f, const remat_profile *profile, bool allow_lossy, unsigned threads)
{
    optimal_options options = {allow_lossy, threads};
    optimal_solution *solution;
    expect_ok(f, optimal_solve(f->context, profile, &options, &solution));
    return solution;
}

/* Chains of every kind, all points. */
static void every_point_is_real(void **state)
{
    fixture *f = *state;
    for (int round = 0; round < 1000; round++) {
        test_random random = {seed + (uint64_t)round};
        bool modes = round % 2, lossy = round % 4 == 3;
        size_t layers = 1 + test_random_below(&random, 12);
        random_traits traits = {layers, layers, modes, false};
        remat_profile *profile =
            round % 3 == 0 ? repeating_chain(f, &random, layers, modes) : random_profile(f->context, &random, &traits);
        optimal_solution *solution = solve(f, profile, lossy, 1);
        assert_true(optimal_is_exact(solution));
        expect_real_curve(f, profile, solution, 1);
        optimal_solution_destroy(solution);
        remat_profile_destroy(profile);
    }
}

/* Up to seven layers of up to nine bytes, one more mode here and there, some repeated. */
static remat_profile *byte_chain(fixture *f, test_random *random, bool repeated)
{
    remat_profile *source, *profile;
    size_t layers = 1 + test_random_below(random, PLAIN_MOST_LAYERS), period = repeated ? 1 + layers / 3 : layers;
    expect_ok(f, remat_profile_create(f->context, &source));
    for (size_t i = 0; i < period; i++) {
        remat_layer_options layer;
        remat_mode_options mode;
        uint64_t most_workspace = test_random_below(random, 2) * 4;
        remat_layer_options_init(&layer);
        remat_mode_options_init(&mode);
        layer.type = REMAT_OTHER;
        layer.activation_bytes = test_random_below(random, 10);
        layer.output_bytes = test_random_below(random, layer.activation_bytes + 1);
        layer.recompute_flops = layer.forward_cost = test_random_below(random, 10);
        layer.backward_cost = test_random_below(random, 10);
        layer.forward_workspace_bytes = test_random_below(random, most_workspace + 1);
        layer.backward_workspace_bytes = test_random_below(random, most_workspace + 1);
        mode.name = "other";
        mode.activation_bytes = test_random_below(random, layer.activation_bytes + 1);
        mode.forward_cost = test_random_below(random, 12);
        mode.backward_cost = test_random_below(random, 12);
        mode.holds_output = test_random_below(random, 2);
        layer.modes = &mode;
        layer.mode_count = test_random_below(random, PLAIN_MOST_MODES);
        expect_ok(f, remat_profile_add_layer(source, &layer));
    }
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_set_input_bytes(profile, test_random_below(random, 7)));
    expect_ok(f, remat_profile_set_input_gradient_bytes(profile, test_random_below(random, 7)));
    expect_ok(f, remat_profile_set_loss_workspace_bytes(profile, test_random_below(random, 4)));
    append_layers(f, profile, source, 0, period, layers / period);
    append_layers(f, profile, source, 0, layers % period, 1);
    remat_profile_destroy(source);
    return profile;
}

/* For every budget up to keeping everything. */
static void never_above_the_plain_recursion(void **state)
{
    fixture *f = *state;
    for (int round = 0; round < 500; round++) {
        test_random random = {seed + (uint64_t)round};
        remat_profile *profile = byte_chain(f, &random, round % 2);
        optimal_solution *solution = solve(f, profile, true, 1);
        plain_recursion *plain = plain_recursion_start(profile);
        size_t count = optimal_curve_count(solution);
        uint64_t last_peak, peak, cost, found = PLAIN_NEVER;
        optimal_curve_point(solution, count - 1, &last_peak, &cost);
        for (uint64_t budget = remat_profile_input_bytes(profile), k = 0; budget <= last_peak; budget++) {
            for (; k < count; k++) {
                optimal_curve_point(solution, k, &peak, &cost);
                if (peak > budget)
                    break;
                found = cost;
            }
            assert_true(found <= plain_recursion_cost(plain, budget));
        }
        plain_recursion_end(plain);
        optimal_solution_destroy(solution);
        remat_profile_destroy(profile);
    }
}

static void threads_do_not_matter(void **state)
{
    fixture *f = *state;
    for (int round = 0; round < 12; round++) {
        test_random random = {seed + (uint64_t)round};
        size_t layers = round == 0 ? 120 : 16 + test_random_below(&random, 12);
        random_traits traits = {layers, layers, round % 2, false};
        remat_profile *profile = round % 3 == 2 ? repeating_chain(f, &random, layers, round % 2)
                                                : random_profile(f->context, &random, &traits);
        optimal_solution *one = solve(f, profile, true, 1), *two = solve(f, profile, true, 2);
        optimal_solution *three = solve(f, profile, true, 3), *all = solve(f, profile, true, 0);
        expect_same_curve(one, two);
        expect_same_curve(one, three);
        expect_same_curve(one, all);
        expect_real_curve(f, profile, two, 1 + optimal_curve_count(two) / 50);
        optimal_solution_destroy(one);
        optimal_solution_destroy(two);
        optimal_solution_destroy(three);
        optimal_solution_destroy(all);
        remat_profile_destroy(profile);
    }
}

static void no_layers_is_one_point(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    uint64_t peak, cost;
    step_list steps = {0};
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_set_input_bytes(profile, 77));
    optimal_solution *solution = solve(f, profile, false, 0);
    assert_int_equal(optimal_curve_count(solution), 1);
    optimal_curve_point(solution, 0, &peak, &cost);
    assert_int_equal(peak, 77);
    assert_int_equal(cost, 0);
    assert_true(optimal_is_exact(solution));
    expect_ok(f, optimal_walk(solution, 0, step_list_take, &steps));
    assert_int_equal(steps.count, 0);
    optimal_solution_destroy(solution);
    remat_profile_destroy(profile);
}

/* Where both ends of the curve lie for equal layers of 10 bytes. */
static void equal_layers_trade_bytes_for_cost(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 8, 10, 100);
    optimal_solution *solution = solve(f, profile, false, 1);
    uint64_t peak, cost;
    optimal_curve_point(solution, optimal_curve_count(solution) - 1, &peak, &cost);
    assert_int_equal(peak, 100); /* eight states, the gradient of the last output, and the one of its input */
    assert_int_equal(cost, 8 * 300);
    optimal_curve_point(solution, 0, &peak, &cost);
    assert_int_equal(peak, 40); /* a state, the input of its layer, and two gradients */
    expect_real_curve(f, profile, solution, 1);
    optimal_solution_destroy(solution);
    remat_profile_destroy(profile);
}

static remat_status stop_at_third(void *user, remat_step step)
{
    (void)step;
    return ++*(int *)user == 3 ? REMAT_IO : REMAT_OK;
}

static void a_visitor_can_stop_the_walk(void **state)
{
    fixture *f = *state;
    int steps = 0;
    remat_profile *profile = six_layers(f);
    optimal_solution *solution = solve(f, profile, false, 1);
    assert_int_equal(optimal_walk(solution, 0, stop_at_third, &steps), REMAT_IO);
    assert_int_equal(steps, 3);
    optimal_solution_destroy(solution);
    remat_profile_destroy(profile);
}

static void lossy_modes_only_where_allowed(void **state)
{
    fixture *f = *state;
    for (int round = 0; round < 40; round++) {
        test_random random = {seed + (uint64_t)round};
        random_traits traits = {1, 8, true, false};
        remat_profile *profile = random_profile(f->context, &random, &traits);
        optimal_solution *solution = solve(f, profile, false, 1);
        for (size_t k = 0; k < optimal_curve_count(solution); k++) {
            step_list steps = {0};
            expect_ok(f, optimal_walk(solution, k, step_list_take, &steps));
            for (size_t s = 0; s < steps.count; s++) {
                const remat_layer *layer = remat_profile_layer(profile, steps.steps[s].layer);
                if (steps.steps[s].op == REMAT_FORWARD && steps.steps[s].save != REMAT_NO_SAVE)
                    assert_true(layer->modes[steps.steps[s].save].lossless);
            }
            step_list_clear(&steps);
        }
        optimal_solution_destroy(solution);
        remat_profile_destroy(profile);
    }
}

static void too_large_figures_are_refused(void **state)
{
    fixture *f = *state;
    optimal_options options = {0};
    optimal_solution *solution;
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_add(profile, REMAT_OTHER, (uint64_t)1 << 61, 1));
    expect_status(f, optimal_solve(f->context, profile, &options, &solution), REMAT_INVALID);
    expect_message(f, "2^61");
    assert_null(solution);
    remat_profile_destroy(profile);
}

static void too_many_layers_are_refused(void **state)
{
    fixture *f = *state;
    optimal_options options = {0};
    optimal_solution *solution;
    remat_profile *profile = equal_layers(f, 50001, 10, 10);
    expect_status(f, optimal_solve(f->context, profile, &options, &solution), REMAT_INVALID);
    expect_message(f, "too many");
    assert_null(solution);
    remat_profile_destroy(profile);
}

static remat_status ignore(void *user, remat_step step)
{
    (void)user;
    (void)step;
    return REMAT_OK;
}

/* The n-th allocation fails, for every n that there is, with one thread and with more. */
static void expect_memory_given_back(size_t layers, unsigned threads, uint64_t stride)
{
    for (uint64_t fail_at = 1;; fail_at += stride) {
        void *state;
        assert_int_equal(fixture_setup(&state), 0);
        fixture *f = state;
        test_random random = {seed};
        random_traits traits = {layers, layers, layers < 100, false};
        remat_profile *profile = random_profile(f->context, &random, &traits);
        optimal_options options = {true, threads};
        optimal_solution *solution;
        f->memory.calls = 0;
        f->memory.fail_at = fail_at;
        remat_status status = optimal_solve(f->context, profile, &options, &solution);
        assert_true(status == REMAT_OK ? solution != NULL : solution == NULL && status == REMAT_NO_MEMORY);
        if (status == REMAT_OK)
            status = optimal_walk(solution, 0, ignore, NULL);
        assert_true(status == REMAT_OK || status == REMAT_NO_MEMORY);
        bool reached = f->memory.calls >= fail_at;
        f->memory.fail_at = 0;
        optimal_solution_destroy(solution);
        remat_profile_destroy(profile);
        assert_int_equal(fixture_teardown(&state), 0);
        if (!reached)
            return;
    }
}

static void memory_is_given_back(void **state)
{
    (void)state;
    expect_memory_given_back(9, 1, 1);
    expect_memory_given_back(16, 3, 1);
    expect_memory_given_back(104, 2, 19);
}

static void long_chains_are_planned(void **state)
{
    fixture *f = *state;
    test_random random = {seed};
    random_traits traits = {200, 200, false, false};
    remat_profile *profile = random_profile(f->context, &random, &traits);
    optimal_solution *solution = solve(f, profile, false, 2);
    expect_real_curve(f, profile, solution, 1 + optimal_curve_count(solution) / 40);
    optimal_solution_destroy(solution);
    remat_profile_destroy(profile);

    profile = repeating_chain(f, &random, 2000, false);
    solution = solve(f, profile, false, 2);
    expect_real_curve(f, profile, solution, 1 + optimal_curve_count(solution) / 8);
    optimal_solution_destroy(solution);
    remat_profile_destroy(profile);
}

/* Not all cuts of such a chain are tried: where the tables end, plans are guided by the least memory of every part, down to
 * the smallest budget of all. */
static void irregular_chains_reach_their_least_budget(void **state)
{
    fixture *f = *state;
    for (uint64_t round = 0; round < 3; round++) {
        test_random random = {17 + round};
        remat_profile *profile;
        uint64_t before = 0, needed = 0;
        expect_ok(f, remat_profile_create(f->context, &profile));
        for (size_t i = 0; i < 130; i++) {
            static const uint64_t scales[] = {1, 10, 100, 1000, 10000};
            const uint64_t output = scales[test_random_below(&random, 5)] * (1 + test_random_below(&random, 9));
            remat_layer_options layer;
            remat_layer_options_init(&layer);
            layer.type = REMAT_OTHER;
            layer.output_bytes = output;
            layer.activation_bytes = output + test_random_below(&random, 5000);
            layer.recompute_flops = 1 + test_random_below(&random, 1000);
            expect_ok(f, remat_profile_add_layer(profile, &layer));
            /* The backward step of a layer holds its input, what it saves, and the gradients on both sides. */
            if (before + layer.activation_bytes > needed)
                needed = before + layer.activation_bytes;
            before = output;
        }
        optimal_solution *solution = solve(f, profile, false, 1);
        assert_false(optimal_is_exact(solution));
        expect_real_curve(f, profile, solution, 1 + optimal_curve_count(solution) / 40);
        uint64_t least, cost;
        optimal_curve_point(solution, 0, &least, &cost);
        assert_true(least >= needed);
        remat_plan *full = plan_by(f, profile, "full");
        assert_true(least <= remat_plan_get_figures(full)->schedule.peak_bytes);
        remat_plan_destroy(full);
        optimal_solution_destroy(solution);
        remat_profile_destroy(profile);
    }
}

/* A layer with more modes than can be searched: some are left out, and what remains is still real. */
static void very_many_modes_are_not_too_many(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    remat_mode_options modes[60];
    char names[60][8];
    expect_ok(f, remat_profile_create(f->context, &profile));
    for (size_t i = 0; i < 12; i++) {
        remat_layer_options layer;
        remat_layer_options_init(&layer);
        layer.type = REMAT_OTHER;
        layer.activation_bytes = 1000;
        layer.output_bytes = 100;
        layer.recompute_flops = 50;
        for (size_t k = 0; k < 60; k++) {
            remat_mode_options_init(&modes[k]);
            snprintf(names[k], sizeof names[k], "m%zu", k);
            modes[k].name = names[k];
            modes[k].activation_bytes = 900 - 10 * k;
            modes[k].forward_cost = 50 + k;
        }
        layer.modes = modes;
        layer.mode_count = i == 5 ? 60 : 0;
        expect_ok(f, remat_profile_add_layer(profile, &layer));
    }
    optimal_solution *solution = solve(f, profile, false, 2);
    assert_false(optimal_is_exact(solution));
    expect_real_curve(f, profile, solution, 1);
    optimal_solution_destroy(solution);
    remat_profile_destroy(profile);
}

int main(void)
{
    seed = test_seed();
    print_message("REMAT_SEED=%llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(every_point_is_real),
        FIXTURE_TEST(never_above_the_plain_recursion),
        FIXTURE_TEST(threads_do_not_matter),
        FIXTURE_TEST(no_layers_is_one_point),
        FIXTURE_TEST(equal_layers_trade_bytes_for_cost),
        FIXTURE_TEST(a_visitor_can_stop_the_walk),
        FIXTURE_TEST(lossy_modes_only_where_allowed),
        FIXTURE_TEST(too_large_figures_are_refused),
        FIXTURE_TEST(too_many_layers_are_refused),
        cmocka_unit_test(memory_is_given_back),
        FIXTURE_TEST(long_chains_are_planned),
        FIXTURE_TEST(irregular_chains_reach_their_least_budget),
        FIXTURE_TEST(very_many_modes_are_not_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
