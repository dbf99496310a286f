#include "support/brute_force.h"
#include "support/fixture.h"
#include "support/slow_replay.h"
#include "support/tiny_chain.h"

#include "plan/chain/exhaustive.h"

#include <time.h>

/* One chain of the random tests, with all that a failure has to say. */
typedef struct trial {
    fixture *f;
    const remat_profile *profile;
    uint64_t seed;
    bool allow_lossy;
    size_t budgets;
} trial;

static void fail_trial(const trial *t, const char *what, uint64_t budget, uint64_t got, uint64_t wanted)
{
    print_error("%s: budget %llu%s: %llu, not %llu; REMAT_SEED=%llu\n", what, (unsigned long long)budget,
                t->allow_lossy ? " with lossy modes" : "", (unsigned long long)got, (unsigned long long)wanted,
                (unsigned long long)t->seed);
    tiny_chain_print(t->profile);
    fail();
}

static void expect_equal(const trial *t, const char *what, uint64_t budget, uint64_t got, uint64_t wanted)
{
    if (got != wanted)
        fail_trial(t, what, budget, got, wanted);
}

static remat_figures simulate(const trial *t, const plan_draft *draft)
{
    remat_simulator *simulator;
    remat_figures figures;
    expect_ok(t->f, remat_simulator_create(t->f->context, t->profile, &simulator));
    for (size_t i = 0; i < draft->step_count; i++)
        expect_ok(t->f, remat_simulator_step(simulator, draft->steps[i]));
    expect_ok(t->f, remat_simulator_finish(simulator, &figures));
    remat_simulator_destroy(simulator);
    return figures;
}

static void check_schedule(const trial *t, const plan_draft *draft, uint64_t budget, uint64_t cost)
{
    remat_figures figures = simulate(t, draft);
    expect_equal(t, "cost of the schedule", budget, figures.total_cost, cost);
    if (figures.peak_bytes > budget)
        fail_trial(t, "peak", budget, figures.peak_bytes, budget);
    for (size_t i = 0; i < draft->step_count; i++) {
        remat_step step = draft->steps[i];
        if (step.op == REMAT_FORWARD && step.save != REMAT_NO_SAVE && !t->allow_lossy)
            assert_true(remat_profile_layer(t->profile, step.layer)->modes[step.save].lossless);
    }
}

static void check_budget(trial *t, uint64_t budget, brute_answer wanted)
{
    plan_draft draft = {0};
    bool feasible;
    uint64_t cost, cost_alone;
    expect_ok(t->f, exhaustive_solve(t->f->context, t->profile, budget, t->allow_lossy, &draft, &feasible, &cost));
    expect_equal(t, "feasible", budget, feasible, wanted.feasible);
    expect_equal(t, "cost", budget, cost, wanted.cost);
    if (feasible)
        check_schedule(t, &draft, budget, cost);
    expect_ok(t->f, exhaustive_solve(t->f->context, t->profile, budget, t->allow_lossy, NULL, &feasible, &cost_alone));
    expect_equal(t, "cost without the schedule", budget, cost_alone, cost);
    plan_draft_clear(t->f->context, remat_profile_layer_count(t->profile), &draft);
    t->budgets++;
}

/* Every corner of the curve: from no budget down, each time to just below the peak of a cheapest schedule. */
static void check_all_budgets(trial *t)
{
    uint64_t budget = REMAT_NO_BUDGET, least;
    expect_ok(t->f, exhaustive_min_budget(t->f->context, t->profile, t->allow_lossy, &least));
    expect_equal(t, "least budget", 0, least, brute_force_min_budget(t->profile, t->allow_lossy));
    for (;;) {
        brute_answer wanted = brute_force(t->profile, budget, t->allow_lossy);
        check_budget(t, budget, wanted);
        if (wanted.feasible)
            check_budget(t, wanted.peak, wanted);
        if (!wanted.feasible || wanted.peak == 0)
            return;
        budget = wanted.peak - 1;
    }
}

static size_t check_random_chains(fixture *f, size_t chains, size_t layers, size_t most_modes)
{
    uint64_t seed = test_seed();
    size_t budgets = 0;
    test_random random = {seed + layers * 31 + most_modes};
    for (size_t i = 0; i < chains; i++) {
        remat_profile *profile = tiny_chain(f, &random, layers, most_modes);
        assert_true(exhaustive_applies(profile));
        for (int lossy = 0; lossy <= (most_modes > 0); lossy++) {
            trial t = {f, profile, seed, lossy, 0};
            check_all_budgets(&t);
            budgets += t.budgets;
        }
        remat_profile_destroy(profile);
    }
    return budgets;
}

static void plain_chains_match_the_brute_force(void **state)
{
    fixture *f = *state;
    size_t budgets = check_random_chains(f, LESS_WHEN_SANITIZED(50, 10), 0, 0);
    budgets += check_random_chains(f, LESS_WHEN_SANITIZED(200, 20), 1, 0);
    budgets += check_random_chains(f, LESS_WHEN_SANITIZED(300, 30), 2, 0);
    budgets += check_random_chains(f, LESS_WHEN_SANITIZED(300, 30), 3, 0);
    budgets += check_random_chains(f, LESS_WHEN_SANITIZED(300, 30), 4, 0);
    budgets += check_random_chains(f, LESS_WHEN_SANITIZED(40, 3), 5, 0);
    print_message("%zu budgets of plain chains\n", budgets);
}

static void chains_with_modes_match_the_brute_force(void **state)
{
    fixture *f = *state;
    size_t budgets = check_random_chains(f, LESS_WHEN_SANITIZED(200, 30), 1, 4);
    budgets += check_random_chains(f, LESS_WHEN_SANITIZED(200, 30), 2, 3);
    budgets += check_random_chains(f, LESS_WHEN_SANITIZED(120, 10), 3, 2);
    budgets += check_random_chains(f, LESS_WHEN_SANITIZED(40, 2), 4, 1);
    budgets += check_random_chains(f, LESS_WHEN_SANITIZED(12, 1), 4, 2);
    print_message("%zu budgets of chains with modes\n", budgets);
}

/* A backward that makes a large gradient out of a small one is better run late here: first a layer to the left is
 * saved, whose workspace has room only before it. Rare in random chains. */
static void a_backward_may_have_to_wait(void **state)
{
    fixture *f = *state;
    static const struct {
        uint64_t input, bytes[4], output[4], cost[4], workspace[4];
    } chains[] = {
        {17, {5, 10, 0, 9}, {5, 10, 0, 9}, {4, 10, 1, 3}, {18, 10, 14, 16}},
        {16, {13, 17, 4, 12}, {4, 17, 4, 12}, {1, 4, 3, 8}, {17, 10, 12, 0}},
        {8, {12, 18, 4, 13}, {9, 18, 4, 13}, {1, 7, 3, 10}, {18, 10, 16, 9}},
    };
    for (size_t c = 0; c < sizeof chains / sizeof chains[0]; c++) {
        remat_profile *profile;
        expect_ok(f, remat_profile_create(f->context, &profile));
        expect_ok(f, remat_profile_set_input_bytes(profile, chains[c].input));
        for (size_t i = 0; i < 4; i++) {
            remat_layer_options layer;
            remat_layer_options_init(&layer);
            layer.activation_bytes = chains[c].bytes[i];
            layer.output_bytes = chains[c].output[i];
            layer.recompute_flops = chains[c].cost[i];
            layer.forward_workspace_bytes = chains[c].workspace[i];
            expect_ok(f, remat_profile_add_layer(profile, &layer));
        }
        trial t = {f, profile, 0, false, 0};
        check_all_budgets(&t);
        remat_profile_destroy(profile);
    }
}

/* ---- chains at the limit ---- */

static remat_profile *chain_of(fixture *f, size_t layers, size_t modes)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    remat_profile *profile;
    test_random random = {42};
    expect_ok(f, remat_profile_create(f->context, &profile));
    for (size_t i = 0; i < layers; i++) {
        remat_layer_options layer;
        remat_mode_options mode[4];
        remat_layer_options_init(&layer);
        layer.activation_bytes = 10 + test_random_below(&random, 1000);
        layer.output_bytes = layer.activation_bytes / 2;
        layer.recompute_flops = 1 + test_random_below(&random, 1000);
        layer.modes = mode;
        layer.mode_count = modes;
        for (size_t k = 0; k < modes; k++) {
            remat_mode_options_init(&mode[k]);
            mode[k].name = names[k];
            mode[k].activation_bytes = layer.activation_bytes - 1 - k;
        }
        expect_ok(f, remat_profile_add_layer(profile, &layer));
    }
    return profile;
}

static double seconds(clock_t ticks)
{
    return (double)ticks / CLOCKS_PER_SEC;
}

static void what_applies_stays_small(void **state)
{
    fixture *f = *state;
    static const size_t longest[] = {11, 8, 7, 6};
    for (size_t modes = 0; modes < 4; modes++) {
        remat_profile *fits = chain_of(f, longest[modes], modes), *too_long = chain_of(f, longest[modes] + 1, modes);
        uint64_t least, cost, more_cost;
        bool feasible;
        assert_true(exhaustive_applies(fits));
        assert_false(exhaustive_applies(too_long));
        clock_t start = clock();
        expect_ok(f, exhaustive_min_budget(f->context, fits, true, &least));
        clock_t between = clock();
        expect_ok(f, exhaustive_solve(f->context, fits, least, true, NULL, &feasible, &cost));
        print_message("%zu layers, %zu more modes: least budget %.3f s, solving %.3f s, %.0f MB\n", longest[modes],
                      modes, seconds(between - start), seconds(clock() - between),
                      (double)remat_context_peak_bytes(f->context) / 1e6);
        assert_true(feasible);
        expect_ok(f, exhaustive_solve(f->context, fits, least + least / 4, true, NULL, &feasible, &more_cost));
        assert_true(feasible && more_cost <= cost);
        expect_ok(f, exhaustive_solve(f->context, fits, least - 1, true, NULL, &feasible, &cost));
        assert_true(!feasible && cost == 0);
        expect_status(f, exhaustive_min_budget(f->context, too_long, true, &least), REMAT_INTERNAL);
        expect_status(f, exhaustive_solve(f->context, too_long, 1, true, NULL, &feasible, &cost), REMAT_INTERNAL);
        expect_message(f, "too long");
        remat_profile_destroy(fits);
        remat_profile_destroy(too_long);
    }
    assert_true(remat_context_peak_bytes(f->context) < 200000000);
}

static void the_same_plan_comes_out_again(void **state)
{
    fixture *f = *state;
    remat_profile *profile = chain_of(f, 8, 0);
    uint64_t least, cost;
    bool feasible;
    expect_ok(f, exhaustive_min_budget(f->context, profile, false, &least));
    for (uint64_t budget = least; budget < 2 * least; budget += least / 16 + 1) {
        plan_draft drafts[2] = {0};
        for (int i = 0; i < 2; i++)
            expect_ok(f, exhaustive_solve(f->context, profile, budget, false, &drafts[i], &feasible, &cost));
        assert_int_equal(drafts[0].step_count, drafts[1].step_count);
        for (size_t i = 0; i < drafts[0].step_count; i++) {
            assert_int_equal(drafts[0].steps[i].op, drafts[1].steps[i].op);
            assert_int_equal(drafts[0].steps[i].layer, drafts[1].steps[i].layer);
            assert_int_equal(drafts[0].steps[i].save, drafts[1].steps[i].save);
        }
        for (int i = 0; i < 2; i++)
            plan_draft_clear(f->context, 8, &drafts[i]);
    }
    remat_profile_destroy(profile);
}

/* ---- memory ---- */

static void every_failed_allocation_is_survived(void **state)
{
    fixture *f = *state;
    remat_profile *profile = chain_of(f, 6, 1);
    uint64_t least, cost, blocks = f->memory.blocks, failures = 0;
    bool feasible;
    expect_ok(f, exhaustive_min_budget(f->context, profile, false, &least));
    for (int solving = 0; solving < 2; solving++) {
        remat_status status = REMAT_NO_MEMORY;
        for (uint64_t n = 1; status != REMAT_OK; n++) {
            plan_draft draft = {0};
            f->memory.fail_at = f->memory.calls + n;
            status = solving ? exhaustive_solve(f->context, profile, least, false, &draft, &feasible, &cost)
                             : exhaustive_min_budget(f->context, profile, false, &least);
            f->memory.fail_at = 0;
            plan_draft_clear(f->context, 6, &draft);
            if (status != REMAT_OK)
                expect_status(f, status, REMAT_NO_MEMORY);
            assert_int_equal(f->memory.blocks, blocks);
            failures += status != REMAT_OK;
        }
    }
    assert_true(failures > 10);
    remat_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(plain_chains_match_the_brute_force), FIXTURE_TEST(chains_with_modes_match_the_brute_force),
        FIXTURE_TEST(a_backward_may_have_to_wait),        FIXTURE_TEST(what_applies_stays_small),
        FIXTURE_TEST(the_same_plan_comes_out_again),      FIXTURE_TEST(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
