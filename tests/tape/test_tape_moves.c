/* What leaves for a store and comes back: every pair of distances, plans that choose the store, and memory that ends on
 * the way. The gradients are those of a run that keeps everything. */
#include "support/memory_failures.h"
#include "test_tape_toy.h"

typedef struct distances {
    uint32_t write_steps, read_steps, wait_steps;
} distances;

static const distances all[] = {{0, 0, 0}, {1, 1, 0}, {1, 40, 0}, {40, 1, 0}, {40, 40, 0}, {4, 4, 1}, {2, 2, 50}};

static remat_tape_options on_disk(const char *strategy, distances by)
{
    remat_tape_options options;
    remat_tape_options_init(&options);
    options.strategy = strategy;
    options.element = REMAT_BYTES;
    options.store = REMAT_TAPE_DISK;
    options.directory = toy_directory();
    options.write_steps = by.write_steps;
    options.read_steps = by.read_steps;
    options.wait_steps = by.wait_steps;
    return options;
}

static void any_distance_gives_the_same_gradient(void **state)
{
    fixture *f = *state;
    static const char *const strategies[] = {"none", "full:3", "sqrt", "revolve:4"};
    uint64_t written = 0;
    for (size_t s = 0; s < 4; s++)
        for (size_t d = 0; d < sizeof all / sizeof all[0]; d++) {
            test_random random = {10 * s + d};
            toy_traits traits = {90, 90, 200, s % 2, false, false};
            remat_profile *profile = toy_profile(f->context, &random, &traits);
            remat_tape_options options = on_disk(strategies[s], all[d]);
            options.verify = d % 2 ? REMAT_VERIFY_HASHES : REMAT_VERIFY_OFF;
            remat_tape_statistics statistics;
            remat_tape *tape;
            toy t;
            toy_begin(&t, profile, 90, false);
            remat_tape_callbacks callbacks = toy_callbacks(&t);
            expect_ok(f, remat_tape_create(f->context, profile, &callbacks, &options, &tape));
            assert_true(toy_agrees(f->context, tape, &t, 0, d));
            remat_tape_get_statistics(tape, &statistics);
            written += statistics.store.blocks_written;
            remat_tape_destroy(tape);
            toy_end(&t);
            remat_profile_destroy(profile);
        }
    if (written <= 300)
        fail_msg("only %llu blocks", (unsigned long long)written);
}

/* With a budget the tape looks for a plan whose arena fits, from above and from below; each answer keeps to it. */
static void budgets_with_a_store(void **state)
{
    fixture *f = *state;
    static const remat_tape_store stores[] = {REMAT_TAPE_MEMORY, REMAT_TAPE_DISK, REMAT_TAPE_DISK};
    for (int s = 0; s < 3; s++) {
        test_random random = {77};
        toy_traits traits = {16, 16, 900, false, false, false};
        remat_profile *profile = toy_profile(f->context, &random, &traits);
        toy t;
        toy_begin(&t, profile, 16, false);
        remat_tape_callbacks callbacks = toy_callbacks(&t);
        remat_tape_options options = on_disk(NULL, (distances){1, 1, 0});
        options.store = stores[s];
        options.store_planned = s == 2;
        uint64_t least = 0;
        options.least_bytes = &least;
        size_t fitted = 0, refused = 0;
        for (uint64_t budget = 64; budget < 20000; budget = budget * 5 / 4 + 64) {
            remat_tape *tape;
            options.budget_bytes = budget;
            remat_status status = remat_tape_create(f->context, profile, &callbacks, &options, &tape);
            if (status == REMAT_INFEASIBLE) {
                assert_true(least > budget);
                refused++;
                continue;
            }
            expect_ok(f, status);
            fitted++;
            assert_true(remat_tape_arena_bytes(tape) <= budget);
            assert_true(toy_agrees(f->context, tape, &t, 0, budget));
            remat_tape_destroy(tape);
        }
        assert_true(fitted > 0 && refused > 0);
        toy_end(&t);
        remat_profile_destroy(profile);
    }
}

typedef struct flow {
    const char *strategy;
    distances by;
    bool planned;
    uint64_t budget;
    remat_tape_verify verify;
} flow;

static remat_status run_once(remat_context *context, void *user)
{
    const flow *wanted = user;
    remat_profile *profile = NULL, *chain = NULL;
    remat_tape *tape = NULL;
    toy t;
    remat_status status = remat_profile_create(context, &profile);
    FLOW(status, remat_profile_set_name(profile, "chain"));
    FLOW(status, remat_profile_set_cost_unit(profile, "ns"));
    FLOW(status, remat_profile_set_input_bytes(profile, 100));
    for (uint32_t i = 0; i < 24; i++)
        FLOW(status, remat_profile_add(profile, REMAT_OTHER, 100 + 30 * (i % 3), 5));
    if (status != REMAT_OK) {
        remat_profile_destroy(profile);
        return status;
    }
    toy_begin(&t, profile, 24, false);
    remat_tape_callbacks callbacks = toy_callbacks(&t);
    remat_tape_options options = on_disk(wanted->strategy, wanted->by);
    options.store_planned = wanted->planned;
    options.budget_bytes = wanted->budget;
    options.verify = wanted->verify;
    FLOW(status, remat_tape_profile(context, profile, &options, &chain));
    FLOW(status, remat_tape_create(context, profile, &callbacks, &options, &tape));
    if (status == REMAT_OK) {
        unsigned char input[100] = {1, 2, 3}, got[100], right[100];
        toy reference;
        toy_begin(&reference, profile, 24, false);
        toy_reference(&reference, 0, 0, input, right);
        status = remat_tape_run(tape, input, got);
        if (status == REMAT_OK)
            assert_memory_equal(got, right, sizeof right);
        toy_end(&reference);
    }
    remat_tape_destroy(tape);
    remat_profile_destroy(chain);
    toy_end(&t);
    remat_profile_destroy(profile);
    return status;
}

static void memory_that_ends_on_the_way(void **state)
{
    (void)state;
    static const flow flows[] = {
        {"none", {20, 20, 0}, false, REMAT_NO_BUDGET, REMAT_VERIFY_OFF},
        {"revolve:4", {1, 1, 0}, false, REMAT_NO_BUDGET, REMAT_VERIFY_COPIES},
        {"online:4", {1, 1, 0}, false, REMAT_NO_BUDGET, REMAT_VERIFY_HASHES},
        {NULL, {1, 1, 0}, true, 3000, REMAT_VERIFY_OFF},
        {NULL, {1, 1, 0}, false, 3000, REMAT_VERIFY_OFF},
    };
    for (size_t i = 0; i < sizeof flows / sizeof flows[0]; i++)
        expect_failures_survived("tape", run_once, (void *)(uintptr_t)&flows[i], 20, LESS_WHEN_SANITIZED(60, 30));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(any_distance_gives_the_same_gradient),
        FIXTURE_TEST(budgets_with_a_store),
        cmocka_unit_test(memory_that_ends_on_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
