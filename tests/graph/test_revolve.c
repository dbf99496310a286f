#include "support/cases.h"

#include <remat/remat.h>

/* Counts what a schedule does while the simulator says whether it is legal. */
typedef struct counter {
    remat_simulator *simulator;
    uint64_t plain_forwards, held, most_held;
} counter;

static remat_status count_step(void *user, remat_step step)
{
    counter *count = user;
    bool plain = step.op == REMAT_FORWARD && step.save == REMAT_NO_SAVE;
    count->plain_forwards += plain;
    count->held += plain;
    count->held -= step.op == REMAT_DROP_X;
    count->most_held = count->held > count->most_held ? count->held : count->most_held;
    return count->simulator ? remat_simulator_step(count->simulator, step) : REMAT_OK;
}

static remat_profile *equal_chain(remat_context *context, uint32_t layers)
{
    remat_profile *profile;
    assert_int_equal(remat_profile_create(context, &profile), REMAT_OK);
    for (uint32_t i = 0; i < layers; i++)
        assert_int_equal(remat_profile_add(profile, REMAT_OTHER, 1, 1), REMAT_OK);
    return profile;
}

static remat_context *make_context(void)
{
    remat_context *context;
    assert_int_equal(remat_context_create(NULL, &context), REMAT_OK);
    return context;
}

/* The closed form against the recurrence it solves: run m layers ahead, hold that state, reverse both parts. */
static void closed_form_is_the_optimum(void **state)
{
    (void)state;
    enum { LAYERS = 90, SLOTS = 12 };
    static uint64_t least[SLOTS + 1][LAYERS + 1];
    for (uint64_t s = 0; s <= SLOTS; s++)
        for (uint64_t n = 2; n <= LAYERS; n++) {
            least[s][n] = UINT64_MAX / 4;
            for (uint64_t m = 1; s > 0 && m < n; m++) {
                uint64_t cost = m + least[s - 1][n - m] + least[s][m];
                least[s][n] = cost < least[s][n] ? cost : least[s][n];
            }
        }
    for (uint64_t s = 1; s <= SLOTS; s++)
        for (uint64_t n = 1; n <= LAYERS; n++)
            assert_int_equal(remat_revolve_forwards(n, s), least[s][n]);
}

static void schedules_have_the_counts_of_the_closed_form(void **state)
{
    (void)state;
    remat_context *context = make_context();
    for (uint32_t n = 1; n <= 500; n++)
        for (uint64_t slots = 1; slots <= 30; slots++) {
            counter count = {0};
            assert_int_equal(remat_revolve_walk(context, n, slots, count_step, &count), REMAT_OK);
            assert_int_equal(count.plain_forwards, remat_revolve_forwards(n, slots));
            /* The input's slot is not in `held`; running ahead, one more state is read and another is made. */
            assert_true(count.most_held <= slots - 1 + 2);
        }
    assert_int_equal(remat_context_bytes(context), 0);
    remat_context_destroy(context);
}

static void large_chains_have_the_counts_of_the_closed_form(void **state)
{
    (void)state;
    remat_context *context = make_context();
    static const uint64_t slots[] = {10, 30, 100};
    for (size_t i = 0; i < 3; i++) {
        counter count = {0};
        assert_int_equal(remat_revolve_walk(context, 1000000, slots[i], count_step, &count), REMAT_OK);
        assert_int_equal(count.plain_forwards, remat_revolve_forwards(1000000, slots[i]));
    }
    assert_true(remat_context_peak_bytes(context) < 1 << 16); /* nothing grows with the chain */
    remat_context_destroy(context);
}

/* By hand: C(3+2, 3) = 10, so ten layers and three slots need t = 2 and 2*10 - C(5, 1) = 15 forwards. */
static void known_values(void **state)
{
    (void)state;
    assert_int_equal(remat_revolve_forwards(0, 3), 0);
    assert_int_equal(remat_revolve_forwards(1, 1), 0);
    assert_int_equal(remat_revolve_forwards(10, 3), 15);
    assert_int_equal(remat_revolve_forwards(10, 1), 45);
    assert_int_equal(remat_revolve_forwards(10, 10), 9);
    assert_int_equal(remat_revolve_forwards(10, 1000000), 9);
    assert_int_equal(remat_revolve_forwards(UINT64_MAX / 2, 1), UINT64_MAX);
}

static void offline_and_online_are_legal(void **state)
{
    (void)state;
    remat_context *context = make_context();
    for (uint32_t n = 0; n <= 70; n++) {
        remat_profile *profile = equal_chain(context, n);
        for (uint64_t slots = 1; slots <= 12; slots++)
            for (int online = 0; online < 2; online++) {
                char strategy[32];
                remat_plan_options options;
                remat_plan *plan;
                snprintf(strategy, sizeof strategy, "%s:%d", online ? "online" : "revolve", (int)slots);
                remat_plan_options_init(&options);
                options.strategy = strategy;
                assert_int_equal(remat_plan_create(context, profile, &options, &plan), REMAT_OK);
                remat_plan_destroy(plan);
            }
        remat_profile_destroy(profile);
    }
    remat_context_destroy(context);
}

/* Forwards of the online version for every length, against those of the schedule that knows the length: the last
 * layer runs once more, because nobody knew that it was the last, and the states lie a little worse. */
static void online_is_close_to_offline(void **state)
{
    (void)state;
    remat_context *context = make_context();
    double worst = 0;
    for (uint64_t slots = 2; slots <= 20; slots++)
        for (uint32_t n = 2; n <= 400; n += 7) {
            remat_online *online;
            counter count = {0};
            assert_int_equal(remat_online_create(context, slots, &online), REMAT_OK);
            for (uint32_t i = 0; i < n; i++)
                assert_int_equal(remat_online_advance(online, count_step, &count), REMAT_OK);
            assert_int_equal(remat_online_reverse(online, count_step, &count), REMAT_OK);
            assert_int_equal(remat_online_advance(online, count_step, &count), REMAT_INVALID);
            assert_int_equal(remat_online_reverse(online, count_step, &count), REMAT_INVALID);
            remat_online_destroy(online);
            uint64_t offline = remat_revolve_forwards(n, slots);
            assert_true(count.plain_forwards > offline);
            assert_true(count.most_held <= slots - 1 + 2);
            double ratio = (double)(count.plain_forwards + n) / (double)(offline + n);
            worst = ratio > worst ? ratio : worst;
        }
    print_message("online: at most %.3f times the forwards of the offline optimum\n", worst);
    assert_true(worst < 1.34); /* measured: 1.333, at two layers */
    remat_context_destroy(context);
}

static void slots_must_be_there(void **state)
{
    (void)state;
    remat_context *context = make_context();
    remat_online *online;
    counter count = {0};
    assert_int_equal(remat_revolve_walk(context, 3, 0, count_step, &count), REMAT_INVALID);
    assert_int_equal(remat_online_create(context, 0, &online), REMAT_INVALID);
    assert_null(online);
    remat_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_form_is_the_optimum),
        cmocka_unit_test(schedules_have_the_counts_of_the_closed_form),
        cmocka_unit_test(large_chains_have_the_counts_of_the_closed_form),
        cmocka_unit_test(known_values),
        cmocka_unit_test(offline_and_online_are_legal),
        cmocka_unit_test(online_is_close_to_offline),
        cmocka_unit_test(slots_must_be_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
