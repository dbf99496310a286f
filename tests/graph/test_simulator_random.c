/* The simulator against the slow replay: random walks, random whole schedules, and damaged ones. */
#include "support/fixture.h"
#include "support/random_profile.h"

typedef struct pair {
    fixture *f;
    remat_simulator *fast;
    slow_replay *slow;
} pair;

static pair pair_start(fixture *f, const remat_profile *profile)
{
    pair both = {f, NULL, slow_replay_start(profile)};
    expect_ok(f, remat_simulator_create(f->context, profile, &both.fast));
    return both;
}

static void pair_end(pair *both)
{
    remat_simulator_destroy(both->fast);
    slow_replay_end(both->slow);
}

/* ---- the same state ---- */

typedef struct live_count {
    const slow_replay *slow;
    uint64_t bytes;
    size_t tensors;
    bool all_known;
} live_count;

static void count_live(void *user, remat_live_tensor tensor)
{
    live_count *count = user;
    const slow_replay *slow = count->slow;
    const bool *known = tensor.kind == 'x' ? slow->x : tensor.kind == 's' ? slow->s : slow->y;
    count->bytes += tensor.bytes;
    count->tensors++;
    count->all_known = count->all_known && known[tensor.layer];
}

static size_t live_tensors(const slow_replay *slow)
{
    size_t count = 0;
    for (size_t i = 0; i <= slow->n; i++)
        count += (size_t)slow->x[i] + (size_t)slow->y[i] + (i < slow->n && slow->s[i]);
    return count;
}

static void expect_same_state(const pair *both)
{
    uint64_t live = slow_replay_live(both->slow);
    live_count count = {both->slow, 0, 0, true};
    remat_simulator_live(both->fast, count_live, &count);
    assert_int_equal(remat_simulator_live_bytes(both->fast), live);
    assert_int_equal(count.bytes, live);
    assert_int_equal(count.tensors, live_tensors(both->slow));
    assert_true(count.all_known);
    for (size_t i = 0; i < both->slow->n; i++)
        assert_int_equal(remat_simulator_forwards(both->fast, i), both->slow->forwards[i]);
}

static void expect_same_end(const pair *both)
{
    remat_figures fast;
    slow_figures slow = slow_replay_figures(both->slow);
    expect_status(both->f, remat_simulator_finish(both->fast, &fast), slow.legal ? REMAT_OK : REMAT_CHECK_FAILED);
    if (!slow.legal)
        return;
    assert_int_equal(fast.steps, both->slow->steps);
    assert_int_equal(fast.peak_bytes, slow.peak);
    assert_int_equal(fast.peak_step, slow.peak_step);
    assert_int_equal(fast.total_cost, slow.cost);
    assert_int_equal(fast.kept_bytes, slow.kept_bytes);
    assert_int_equal(fast.recompute_flops, slow.recompute_flops);
    assert_int_equal(fast.recomputed_layers, slow.recomputed_layers);
    assert_int_equal(fast.largest_recomputed_bytes, slow.largest_recomputed);
    for (size_t i = 0; i < both->slow->n; i++)
        assert_int_equal(remat_simulator_decision(both->fast, i), both->slow->decisions[i]);
}

/* Plays one step on both; false where both say that it is illegal. */
static bool step_both(const pair *both, remat_step step)
{
    bool legal = slow_replay_step(both->slow, step);
    remat_status status = remat_simulator_step(both->fast, step);
    if (!legal) {
        expect_status(both->f, status, REMAT_CHECK_FAILED);
        assert_int_equal(remat_context_error(both->f->context)->step, both->slow->steps);
        expect_message(both->f, "is not legal");
        return false;
    }
    expect_ok(both->f, status);
    return true;
}

/* ---- walks ---- */

static remat_step any_step(test_random *random, const remat_profile *profile)
{
    size_t n = remat_profile_layer_count(profile);
    remat_step step = {.save = REMAT_NO_SAVE};
    step.layer = (uint32_t)test_random_below(random, n + 2); /* now and then past the end */
    switch (test_random_below(random, 10)) {
    case 0: step.op = REMAT_LOSS, step.layer = 0; break;
    case 1:
    case 2: step.op = REMAT_BACKWARD; break;
    case 3: step.op = REMAT_DROP_X; break;
    case 4: step.op = REMAT_DROP_STATE; break;
    default:
        step.op = REMAT_FORWARD;
        if (step.layer < n && test_random_below(random, 2))
            step.save = (uint16_t)test_random_below(random, remat_profile_layer(profile, step.layer)->mode_count + 1);
    }
    return step;
}

/* Mostly steps that are legal, so that walks get somewhere; the first illegal one ends the walk. */
static void walk(const pair *both, test_random *random, const remat_profile *profile)
{
    for (int steps = 0; steps < 150; steps++) {
        remat_step step = any_step(random, profile);
        bool anything = test_random_below(random, 40) == 0;
        for (int tries = 0; tries < 50 && !anything && !slow_replay_allows(both->slow, step); tries++)
            step = any_step(random, profile);
        if (!step_both(both, step))
            return;
        expect_same_state(both);
    }
}

static void walks_of_any_steps_agree(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < LESS_WHEN_SANITIZED(20000, 3000); round++) {
        random_traits traits = {.least_layers = 1, .most_layers = 1 + (size_t)round % 12, .modes = round % 3 != 0};
        remat_profile *profile = random_profile(f->context, &random, &traits);
        pair both = pair_start(f, profile);
        expect_same_state(&both);
        walk(&both, &random, profile);
        expect_same_end(&both);
        pair_end(&both);
        remat_profile_destroy(profile);
    }
}

static void whole_schedules_agree(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < LESS_WHEN_SANITIZED(8000, 1500); round++) {
        random_traits traits = {.most_layers = (size_t)round % 20, .modes = round % 3 != 0};
        remat_profile *profile = random_profile(f->context, &random, &traits);
        step_list steps = {0};
        random_schedule(profile, &random, &steps);
        pair both = pair_start(f, profile);
        for (size_t i = 0; i < steps.count; i++)
            assert_true(step_both(&both, steps.steps[i]));
        assert_true(slow_replay_complete(both.slow));
        expect_same_state(&both);
        expect_same_end(&both);
        pair_end(&both);
        step_list_clear(&steps);
        remat_profile_destroy(profile);
    }
}

/* ---- damage ---- */

static void damage(step_list *steps, test_random *random, const remat_profile *profile)
{
    size_t at = test_random_below(random, steps->count), other = test_random_below(random, steps->count);
    remat_step step = steps->steps[at];
    switch (test_random_below(random, 5)) {
    case 0: memmove(steps->steps + at, steps->steps + at + 1, (--steps->count - at) * sizeof step); break;
    case 1:
        step_list_take(steps, step);
        memmove(steps->steps + at + 1, steps->steps + at, (steps->count - 1 - at) * sizeof step);
        break;
    case 2:
        steps->steps[at] = steps->steps[other];
        steps->steps[other] = step;
        break;
    case 3: steps->steps[at] = any_step(random, profile); break;
    default: steps->count = at;
    }
}

static void damaged_schedules_are_refused_at_the_same_step(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    size_t still_legal = 0, rounds = LESS_WHEN_SANITIZED(12000, 2000);
    for (size_t round = 0; round < rounds; round++) {
        random_traits traits = {.least_layers = 1, .most_layers = 1 + round % 10, .modes = round % 2 == 0};
        remat_profile *profile = random_profile(f->context, &random, &traits);
        step_list steps = {0};
        random_schedule(profile, &random, &steps);
        damage(&steps, &random, profile);
        pair both = pair_start(f, profile);
        size_t played = 0;
        while (played < steps.count && step_both(&both, steps.steps[played]))
            played++;
        if (played == steps.count)
            expect_same_end(&both);
        still_legal += played == steps.count && slow_replay_complete(both.slow);
        pair_end(&both);
        step_list_clear(&steps);
        remat_profile_destroy(profile);
    }
    assert_true(still_legal > rounds / 100 && still_legal < rounds * 3 / 4); /* both verdicts were compared */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(walks_of_any_steps_agree),
        FIXTURE_TEST(whole_schedules_agree),
        FIXTURE_TEST(damaged_schedules_are_refused_at_the_same_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
