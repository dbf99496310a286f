/* The arena of the executor under AddressSanitizer: what does not live may not be touched. Other builds skip this. */
#include "support/fixture.h"

#include "train/poison.h"

#ifdef REMAT_POISON
#include <sanitizer/asan_interface.h>

/* Two buffers that follow each other in the same place, a gap, and one that lives throughout. */
static void only_what_lives_may_be_touched(void **state)
{
    fixture *f = *state;
    graph_buffer buffers[] = {{64, 0, 1}, {64, 0, 3}, {64, 2, 3}};
    const uint64_t offsets[] = {0, 128, 0};
    const graph_liveness liveness = {.buffers = buffers, .buffer_count = 3};
    _Alignas(64) static char arena[256];
    poison_map *map;
    expect_ok(f, poison_map_create(f->context, &liveness, offsets, arena, sizeof arena, &map));
    for (int run = 0; run < 2; run++) {
        static const bool first_lives[] = {true, false, true};
        for (size_t position = 0; position < 3; position++) {
            poison_map_enter(map, position, position);
            assert_int_equal(__asan_address_is_poisoned(arena), !first_lives[position]);
            assert_int_equal(__asan_address_is_poisoned(arena + 64), 1);
            assert_int_equal(__asan_address_is_poisoned(arena + 128 + 63), 0);
            assert_int_equal(__asan_address_is_poisoned(arena + 192), 1);
            poison_map_leave(map, position);
        }
        assert_int_equal(__asan_address_is_poisoned(arena + 128), 1);
        poison_map_open(map);
        assert_null(__asan_region_is_poisoned(arena, sizeof arena));
    }
    poison_map_destroy(map);
}

/* Position 1 is fused into position 0. Its buffers may be touched at both, also one that has the bytes of a buffer that ends at 0. */
static void fused_positions_may_touch_both(void **state)
{
    fixture *f = *state;
    graph_buffer buffers[] = {{64, 0, 1}, {64, 1, 2}, {64, 1, 3}, {64, 2, 3}};
    const uint64_t offsets[] = {0, 0, 64, 0};
    const graph_liveness liveness = {.buffers = buffers, .buffer_count = 4};
    _Alignas(64) static char arena[128];
    poison_map *map;
    expect_ok(f, poison_map_create(f->context, &liveness, offsets, arena, sizeof arena, &map));
    for (size_t position = 0; position < 3; position++) {
        poison_map_enter(map, position, position == 0 ? 1 : position);
        assert_null(__asan_region_is_poisoned(arena, sizeof arena));
        poison_map_leave(map, position);
        assert_int_equal(__asan_address_is_poisoned(arena), 1);
    }
    poison_map_open(map);
    poison_map_destroy(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(only_what_lives_may_be_touched),
                                       FIXTURE_TEST(fused_positions_may_touch_both)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    return TEST_SKIPPED; /* only AddressSanitizer can tell */
}
#endif
