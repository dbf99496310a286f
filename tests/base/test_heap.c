#include "support/fixture.h"

#include "base/heap.h"

static bool is_less(heap_item a, heap_item b)
{
    if (a.key != b.key)
        return a.key < b.key;
    return a.second_key != b.second_key ? a.second_key < b.second_key : a.value < b.value;
}

/* Pushes and pops at random beside a list in which the least item is looked for one by one. */
static void gives_the_least_item_of_a_list(void **state)
{
    enum { MOST = 300 };
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    item_heap heap = {0};
    heap_item list[MOST];
    size_t count = 0;
    for (int round = 0; round < 20000; round++) {
        bool grows = round / 500 % 2 == 0;
        if (count == 0 || (count < MOST && test_random_below(&random, 10) < (grows ? 7 : 3))) {
            heap_item item = {test_random_below(&random, 9), test_random_below(&random, 4),
                              (uint32_t)test_random_below(&random, 5)};
            list[count++] = item;
            expect_ok(f, heap_push(f->context, &heap, item));
            continue;
        }
        size_t least = 0;
        for (size_t i = 1; i < count; i++)
            least = is_less(list[i], list[least]) ? i : least;
        heap_item popped = heap_pop(&heap);
        if (is_less(popped, list[least]) || is_less(list[least], popped))
            fail_msg("seed %llu, round %d: not the least item", (unsigned long long)seed, round);
        list[least] = list[--count];
        assert_int_equal(heap.count, count);
    }
    heap_end(f->context, &heap);
    assert_int_equal(heap.count, 0);
}

static void without_memory_the_heap_is_as_it_was(void **state)
{
    fixture *f = *state;
    item_heap heap = {0};
    expect_ok(f, heap_push(f->context, &heap, (heap_item){5, 6, 7}));
    while (heap.count < heap.capacity)
        expect_ok(f, heap_push(f->context, &heap, (heap_item){9, 0, 0}));
    size_t count = heap.count;
    f->memory.fail_at = f->memory.calls + 1;
    assert_int_equal(heap_push(f->context, &heap, (heap_item){1, 1, 1}), REMAT_NO_MEMORY);
    assert_int_equal(heap.count, count);
    assert_int_equal(heap_pop(&heap).value, 7);
    heap_end(f->context, &heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(gives_the_least_item_of_a_list),
        FIXTURE_TEST(without_memory_the_heap_is_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
