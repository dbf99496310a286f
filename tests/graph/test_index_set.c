#include "support/fixture.h"

#include "graph/index_set.h"

static void an_index_is_known_from_the_second_time_on(void **state)
{
    fixture *f = *state;
    index_set *set;
    expect_ok(f, index_set_create(f->context, &set));
    uint64_t largest = ((uint64_t)1 << 63) - 1;
    for (int round = 0; round < 2; round++)
        for (uint64_t i = 0; i < 5000; i++) {
            bool known;
            uint64_t index = i % 2 ? i : largest - i; /* from both ends */
            expect_ok(f, index_set_add(set, index, &known));
            assert_int_equal(known, round == 1);
        }
    index_set_destroy(set);
    index_set_destroy(NULL);
}

static void without_memory_the_set_stays_as_it_was(void **state)
{
    fixture *f = *state;
    index_set *set;
    bool known;
    expect_ok(f, index_set_create(f->context, &set));
    for (uint64_t i = 0; i < 16; i++)
        expect_ok(f, index_set_add(set, i, &known));
    f->memory.fail_at = f->memory.calls + 1;
    expect_status(f, index_set_add(set, 99, &known), REMAT_NO_MEMORY); /* has to grow */
    expect_ok(f, index_set_add(set, 99, &known));
    assert_false(known);
    expect_ok(f, index_set_add(set, 3, &known));
    assert_true(known);
    index_set_destroy(set);
}

/* Indexes in steps of a power of two are what a packed number (layer << 32 | part) looks like. If they fell into the same
 * places, every one would be compared with all before it, and this would not end before CTest stops it. */
static void regular_steps_are_spread(void **state)
{
    fixture *f = *state;
    for (unsigned shift = 0; shift <= 44; shift++) {
        index_set *set;
        expect_ok(f, index_set_create(f->context, &set));
        for (uint64_t i = 0; i < LESS_WHEN_SANITIZED(400000, 100000); i++) {
            bool known;
            expect_ok(f, index_set_add(set, i << shift, &known));
            assert_false(known);
        }
        index_set_destroy(set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(an_index_is_known_from_the_second_time_on),
        FIXTURE_TEST(without_memory_the_set_stays_as_it_was),
        FIXTURE_TEST(regular_steps_are_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
