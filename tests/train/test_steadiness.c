/* When a measurement is long enough, told by made-up times. */
#include "support/fixture.h"
#include "train/steadiness.h"

enum { MILLISECOND = 1000000 };

/* How many steps are measured if step i takes `time(i)`. */
static size_t steps_of(uint64_t (*time)(size_t i))
{
    static uint64_t times[STEADY_MOST + 1], room[STEADY_MOST + 1];
    size_t count = 0;
    while (!steadiness_reached(times, count, room)) {
        assert_true(count < STEADY_MOST);
        times[count] = time(count);
        count++;
    }
    return count;
}

static uint64_t always_2_ms(size_t i)
{
    (void)i;
    return 2 * MILLISECOND;
}

static uint64_t slow_step(size_t i)
{
    (void)i;
    return (uint64_t)900 * MILLISECOND;
}

/* Twice as slow in the first second. */
static uint64_t slow_at_first(size_t i)
{
    return i < 280 ? (uint64_t)3500000 : (uint64_t)1600000;
}

static uint64_t ever_slower(size_t i)
{
    return MILLISECOND + (uint64_t)10000 * i;
}

static uint64_t nothing(size_t i)
{
    (void)i;
    return 0;
}

static void test_enough(void **state)
{
    (void)state;
    assert_in_range(steps_of(always_2_ms), STEADY_LEAST_TIME / (2 * MILLISECOND),
                    STEADY_LEAST_TIME / (2 * MILLISECOND) + 16);
    assert_int_equal(steps_of(slow_step), STEADY_FEWEST);
    assert_in_range(steps_of(ever_slower), 500, 800); /* never steady: the time ends it */
    assert_int_equal(steps_of(nothing), STEADY_MOST);
}

static void test_spread(void **state)
{
    (void)state;
    uint64_t room[8];
    const uint64_t same[] = {5, 5, 5, 5}, halves[] = {30, 31, 100, 20, 20, 21}, one[] = {7}, none[] = {0, 0};
    assert_true(steadiness_spread(same, 4, room) == 0);
    assert_true(steadiness_spread(halves, 6, room) == (31.0 - 20.0) / 30.0);
    assert_true(steadiness_spread(one, 1, room) == 0);
    assert_true(steadiness_spread(none, 2, room) == 0);
}

/* A start that is slower than the rest is noticed: it does not end a measurement. */
static void test_slow_start(void **state)
{
    (void)state;
    static uint64_t times[STEADY_MOST], room[STEADY_MOST];
    for (size_t i = 0; i < 512; i++)
        times[i] = slow_at_first(i);
    assert_true(steadiness_spread(times, 512, room) > 0.5);
    assert_false(steadiness_reached(times, 512, room));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_enough), cmocka_unit_test(test_spread),
                                       cmocka_unit_test(test_slow_start)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
