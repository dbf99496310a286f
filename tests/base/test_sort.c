#include "support/fixture.h"

#include "base/alloc.h"
#include "base/sort.h"

static bool smaller_key(const void *user, uint32_t a, uint32_t b)
{
    const uint32_t *keys = user;
    return keys[a] < keys[b];
}

/* Where an item belongs, counted: everything with a smaller key stands before it, and equal ones by number. */
static size_t place_of(const uint32_t *keys, size_t count, uint32_t item)
{
    size_t before = 0;
    for (uint32_t i = 0; i < count; i++)
        before += keys[i] < keys[item] || (keys[i] == keys[item] && i < item);
    return before;
}

static void sorts_like_counting_and_keeps_equal_items_in_order(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    for (int round = 0; round < 400; round++) {
        uint32_t keys[200], *items;
        size_t count = round < 40 ? (size_t)round : test_random_below(&random, 200);
        uint64_t different = 1 + test_random_below(&random, round % 2 ? 5 : 1000);
        for (uint32_t i = 0; i < count; i++)
            keys[i] = (uint32_t)test_random_below(&random, different);
        expect_ok(f, remat_order(f->context, count, smaller_key, keys, &items));
        for (size_t i = 0; i < count; i++)
            if (place_of(keys, count, items[i]) != i)
                fail_msg("seed %llu, round %d: item %u is at %zu", (unsigned long long)seed, round, items[i], i);
        remat_release(f->context, items, count, sizeof *items);
    }
}

static void sorted_and_reversed_input_is_sorted(void **state)
{
    fixture *f = *state;
    enum { COUNT = 1000 };
    uint32_t keys[COUNT], items[COUNT];
    for (int reversed = 0; reversed < 2; reversed++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            keys[i] = reversed ? COUNT - i : i;
            items[i] = i;
        }
        expect_ok(f, remat_sort(f->context, items, COUNT, smaller_key, keys));
        for (uint32_t i = 0; i < COUNT; i++)
            assert_int_equal(items[i], reversed ? COUNT - 1 - i : i);
    }
}

static void without_memory_nothing_is_moved(void **state)
{
    fixture *f = *state;
    uint32_t keys[] = {3, 2, 1}, items[] = {0, 1, 2};
    f->memory.fail_at = f->memory.calls + 1;
    expect_status(f, remat_sort(f->context, items, 3, smaller_key, keys), REMAT_NO_MEMORY);
    assert_int_equal(items[0], 0);
    assert_int_equal(items[2], 2);
    for (uint64_t call = 1; call <= 2; call++) {
        uint32_t *order;
        f->memory.fail_at = f->memory.calls + call;
        expect_status(f, remat_order(f->context, 3, smaller_key, keys, &order), REMAT_NO_MEMORY);
        assert_null(order);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(sorts_like_counting_and_keeps_equal_items_in_order),
        FIXTURE_TEST(sorted_and_reversed_input_is_sorted),
        FIXTURE_TEST(without_memory_nothing_is_moved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
