#include "support/fixture.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "base/text_pool.h"

static void a_fresh_context_has_nothing_to_say(void **state)
{
    fixture *f = *state;
    const remat_error *error = remat_context_error(f->context);
    assert_string_equal(remat_context_message(f->context), "");
    assert_int_equal(error->status, REMAT_OK);
    assert_string_equal(error->message, "");
    assert_string_equal(error->file, "");
    assert_string_equal(error->field, "");
    assert_true(error->line == REMAT_NOWHERE && error->layer == REMAT_NOWHERE && error->step == REMAT_NOWHERE);
    assert_int_equal(remat_context_bytes(f->context), 0);
    assert_int_equal(remat_context_peak_bytes(f->context), 0);
}

static void destroying_nothing_is_fine(void **state)
{
    (void)state;
    remat_context_destroy(NULL);
    remat_profile_destroy(NULL);
    remat_plan_destroy(NULL);
    remat_simulator_destroy(NULL);
}

static void a_context_without_memory_is_no_context(void **state)
{
    (void)state;
    failing_allocator memory = {.fail_at = 1};
    remat_allocator hook = failing_allocator_hook(&memory);
    remat_context *context = (remat_context *)&memory;
    assert_int_equal(remat_context_create(&hook, &context), REMAT_NO_MEMORY);
    assert_null(context);
    assert_int_equal(memory.blocks, 0);
}

/* An allocator whose memory is anything but zero. */
static void *allocate_dirty(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    void *memory = NULL;
    if (posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, bytes) != 0)
        return NULL;
    return memset(memory, 0xAA, bytes);
}

static void release_dirty(void *user, void *memory, size_t bytes)
{
    (void)user;
    memset(memory, 0xAA, bytes);
    free(memory);
}

static void check_zeros(remat_context *context, size_t bytes)
{
    unsigned char *memory = remat_alloc_aligned(context, bytes, 64);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 64, 0);
    if (remat_alloc_comes_zeroed(context, bytes))
        assert_true(memory[0] == 0 && memcmp(memory, memory + 1, bytes - 1) == 0);
    memset(memory, 0xAA, bytes);
    remat_release(context, memory, bytes, 1);
    memory = remat_alloc_zeroed(context, bytes, 1);
    assert_non_null(memory);
    assert_true(memory[0] == 0 && memcmp(memory, memory + 1, bytes - 1) == 0);
    assert_int_equal(remat_context_bytes(context), bytes);
    memset(memory, 0xAA, bytes); /* all of it is there */
    remat_release(context, memory, bytes, 1);
    assert_int_equal(remat_context_bytes(context), 0);
}

static void what_is_asked_for_as_zeros_is_zero(void **state)
{
    (void)state;
    const remat_allocator dirty = {allocate_dirty, release_dirty, NULL};
    const size_t large = (size_t)32 << 20, sizes[] = {2, 4096, large - 1, large, large + 1};
    for (int own = 0; own < 2; own++) {
        remat_context *context;
        assert_int_equal(remat_context_create(own ? &dirty : NULL, &context), REMAT_OK);
        for (int round = 0; round < 2; round++)
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
                check_zeros(context, sizes[i]);
        assert_true(remat_alloc_comes_zeroed(context, large) == !own);
        assert_false(remat_alloc_comes_zeroed(context, large - 1));
        remat_context_destroy(context);
    }
}

static void a_failure_is_told_in_one_sentence_and_in_parts(void **state)
{
    fixture *f = *state;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = "a.json";
    place.line = 12;
    place.layer = 3;
    place.step = 4;
    place.field = "index";
    remat_status status = remat_fail(f->context, REMAT_BAD_INPUT, &place, "%d is %s", 7, "odd");
    assert_int_equal(status, REMAT_BAD_INPUT);
    assert_string_equal(remat_context_message(f->context), "a.json:12: layer 3: step 4: index: 7 is odd");
    const remat_error *error = remat_context_error(f->context);
    assert_int_equal(error->status, REMAT_BAD_INPUT);
    assert_string_equal(error->message, remat_context_message(f->context));
    assert_string_equal(error->file, "a.json");
    assert_string_equal(error->field, "index");
    assert_int_equal(error->line, 12);
    assert_int_equal(error->layer, 3);
    assert_int_equal(error->step, 4);
}

static void a_later_failure_replaces_every_part(void **state)
{
    fixture *f = *state;
    remat_place place = {"a.json", 12, 3, 4, "index"};
    remat_fail(f->context, REMAT_BAD_INPUT, &place, "first");
    remat_fail_budget(f->context, 100, 200, "fc1");
    remat_fail(f->context, REMAT_INVALID, NULL, "second");
    const remat_error *error = remat_context_error(f->context);
    assert_string_equal(error->message, "second");
    assert_string_equal(error->file, "");
    assert_string_equal(error->field, "");
    assert_string_equal(error->layer_name, "");
    assert_true(error->line == REMAT_NOWHERE && error->layer == REMAT_NOWHERE && error->step == REMAT_NOWHERE);
    assert_true(error->budget_bytes == REMAT_NOWHERE && error->needed_bytes == REMAT_NOWHERE);
}

static void a_failure_can_be_put_into_a_file(void **state)
{
    fixture *f = *state;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.step = 5;
    place.field = "save";
    remat_fail(f->context, REMAT_CHECK_FAILED, &place, "no");
    assert_int_equal(remat_fail_budget(f->context, 100, 200, "fc1"), REMAT_CHECK_FAILED);
    assert_int_equal(remat_fail_in_file(f->context, "plan.json", 9), REMAT_CHECK_FAILED);
    const remat_error *error = remat_context_error(f->context);
    assert_string_equal(error->message, "plan.json:9: step 5: save: no");
    assert_string_equal(error->file, "plan.json");
    assert_string_equal(error->field, "save");
    assert_int_equal(error->line, 9);
    assert_int_equal(error->step, 5);
    assert_int_equal(error->budget_bytes, 100);
    assert_int_equal(error->needed_bytes, 200);
    assert_string_equal(error->layer_name, "fc1");
}

static void the_last_message_may_be_part_of_the_next(void **state)
{
    fixture *f = *state;
    remat_fail(f->context, REMAT_IO, NULL, "inner");
    remat_fail(f->context, REMAT_IO, NULL, "outer: %s!", remat_context_message(f->context));
    assert_string_equal(remat_context_message(f->context), "outer: inner!");
}

static void long_messages_are_cut_and_terminated(void **state)
{
    fixture *f = *state;
    char text[4000];
    memset(text, 'm', sizeof text);
    text[sizeof text - 1] = '\0';
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = place.field = text;
    remat_fail(f->context, REMAT_IO, &place, "%s %s", text, text);
    const remat_error *error = remat_context_error(f->context);
    assert_true(strlen(error->message) > 500 && strlen(error->message) < 1024);
    assert_true(strlen(error->file) < 512);
    assert_true(strlen(error->field) < 64);
    remat_fail_in_file(f->context, text, 3);
    assert_true(strlen(error->message) < 1024);
}

static void warnings_reach_the_hook_or_nobody(void **state)
{
    fixture *f = *state;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = "p.csv";
    place.line = 2;
    remat_warn(f->context, &place, "the column '%s' is odd", "c");
    assert_int_equal(f->warnings, 1);
    assert_string_equal(f->warning, "p.csv:2: the column 'c' is odd");
    assert_string_equal(remat_context_message(f->context), ""); /* a warning is not a failure */
    remat_context_on_warning(f->context, NULL, NULL);
    remat_warn(f->context, NULL, "unheard");
    assert_int_equal(f->warnings, 1);
}

static void bytes_are_counted_up_and_down(void **state)
{
    fixture *f = *state;
    void *a = remat_alloc(f->context, 10, 100), *b = remat_alloc_zeroed(f->context, 0, 8);
    assert_int_equal(remat_context_bytes(f->context), 1008); /* no items count as one */
    assert_memory_equal(b, "\0\0\0\0\0\0\0\0", 8);
    remat_release(f->context, a, 10, 100);
    assert_int_equal(remat_context_bytes(f->context), 8);
    assert_int_equal(remat_context_peak_bytes(f->context), 1008);
    remat_release(f->context, b, 0, 8);
    remat_release(f->context, NULL, 5, 5);
    assert_int_equal(remat_context_bytes(f->context), 0);
    assert_int_equal(remat_context_peak_bytes(f->context), 1008);
}

static void aligned_memory_is_aligned(void **state)
{
    fixture *f = *state;
    for (size_t alignment = 16; alignment <= 4096; alignment *= 2) {
        void *memory = remat_alloc_aligned(f->context, 100, alignment);
        assert_int_equal((uintptr_t)memory % alignment, 0);
        remat_release(f->context, memory, 100, 1);
    }
}

static void too_much_memory_is_an_error_that_says_how_much(void **state)
{
    fixture *f = *state;
    assert_null(remat_alloc(f->context, SIZE_MAX / 2, 3));
    assert_int_equal(remat_context_error(f->context)->status, REMAT_NO_MEMORY);
    f->memory.fail_at = f->memory.calls + 1;
    assert_null(remat_alloc(f->context, 7, 1));
    expect_message(f, "7 more bytes");
    assert_int_equal(remat_context_bytes(f->context), 0);
}

static void growing_keeps_what_is_there(void **state)
{
    fixture *f = *state;
    void *items = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 5000; i++) {
        expect_ok(f, remat_grow(f->context, &items, &capacity, i + 1, sizeof(uint32_t)));
        ((uint32_t *)items)[i] = (uint32_t)i;
    }
    for (size_t i = 0; i < 5000; i++)
        assert_int_equal(((uint32_t *)items)[i], i);
    assert_true(f->memory.calls < 30); /* at least doubled each time */
    void *before = items;
    size_t held = capacity;
    f->memory.fail_at = f->memory.calls + 1;
    expect_status(f, remat_grow(f->context, &items, &capacity, capacity + 1, sizeof(uint32_t)), REMAT_NO_MEMORY);
    assert_ptr_equal(items, before);
    assert_int_equal(capacity, held);
    remat_release(f->context, items, capacity, sizeof(uint32_t));
}

/* Without a reserve an array has room for what was asked for, and each text of a pool is a block of its own. */
static void nothing_is_taken_in_reserve(void **state)
{
    fixture *f = *state;
    remat_alloc_take_no_reserve(f->context);
    void *items = NULL;
    size_t capacity = 0;
    for (size_t i = 1; i < 20; i++) {
        expect_ok(f, remat_grow(f->context, &items, &capacity, i, sizeof(uint32_t)));
        assert_int_equal(capacity, i);
    }
    remat_release(f->context, items, capacity, sizeof(uint32_t));
    text_pool pool;
    text_pool_begin(&pool, f->context);
    const uint64_t blocks = f->memory.blocks;
    for (int i = 0; i < 10; i++)
        assert_string_equal(text_pool_text(&pool, "text"), "text");
    assert_int_equal(f->memory.blocks, blocks + 10);
    text_pool_end(&pool);
}

static void options_of_an_older_kind_are_taken_and_others_refused(void **state)
{
    fixture *f = *state;
    struct options {
        size_t struct_size;
        uint64_t first, second;
    } target = {sizeof target, 1, 2}, older = {offsetof(struct options, second), 10, 20}, none = {0};
    struct newer_options {
        struct options known;
        uint64_t third;
    } newer = {{sizeof newer, 30, 40}, 0};
    expect_ok(f, remat_options_copy(f->context, &target, sizeof target, &older, "options_init"));
    assert_int_equal(target.struct_size, sizeof target);
    assert_int_equal(target.first, 10);
    assert_int_equal(target.second, 2); /* the default stays */
    expect_status(f, remat_options_copy(f->context, &target, sizeof target, &none, "options_init"), REMAT_INVALID);
    expect_message(f, "call options_init");
    none.struct_size = SIZE_MAX; /* such as 0xff everywhere: not read to its end */
    expect_status(f, remat_options_copy(f->context, &target, sizeof target, &none, "options_init"), REMAT_INVALID);
    assert_int_equal(target.first, 10);
    expect_ok(f, remat_options_copy(f->context, &target, sizeof target, &newer, "options_init"));
    assert_int_equal(target.struct_size, sizeof target);
    assert_int_equal(target.second, 40);
    newer.known.first = newer.third = 1; /* what this library cannot do is not left undone in silence */
    expect_status(f, remat_options_copy(f->context, &target, sizeof target, &newer, "options_init"), REMAT_INVALID);
    assert_int_equal(target.first, 30);
}

static void a_struct_is_filled_in_to_its_own_size(void **state)
{
    (void)state;
    const uint64_t defaults[3] = {0, 1, 2};
    uint64_t room[5];
    for (size_t size = 0; size <= sizeof room; size++) {
        memset(room, 0xab, sizeof room);
        remat_options_give(room, size, defaults, sizeof defaults);
        for (size_t i = 0; i < sizeof room; i++) {
            unsigned char got = ((const unsigned char *)room)[i];
            if (i >= size)
                assert_int_equal(got, 0xab);
            else if (i >= sizeof(size_t))
                assert_int_equal(got, i < sizeof defaults ? ((const unsigned char *)defaults)[i] : 0);
        }
        if (size >= sizeof(size_t))
            assert_memory_equal(room, &size, sizeof size);
    }
}

static void every_status_has_a_text_of_its_own(void **state)
{
    (void)state;
    for (int i = REMAT_OK; i <= REMAT_DIVERGED; i++)
        for (int k = REMAT_OK; k < i; k++)
            assert_string_not_equal(remat_status_text((remat_status)i), remat_status_text((remat_status)k));
    assert_non_null(remat_status_text((remat_status)99));
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", REMAT_VERSION_MAJOR, REMAT_VERSION_MINOR, REMAT_VERSION_PATCH);
    assert_string_equal(remat_version(), version);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_fresh_context_has_nothing_to_say),
        cmocka_unit_test(destroying_nothing_is_fine),
        cmocka_unit_test(a_context_without_memory_is_no_context),
        cmocka_unit_test(what_is_asked_for_as_zeros_is_zero),
        FIXTURE_TEST(a_failure_is_told_in_one_sentence_and_in_parts),
        FIXTURE_TEST(a_later_failure_replaces_every_part),
        FIXTURE_TEST(a_failure_can_be_put_into_a_file),
        FIXTURE_TEST(the_last_message_may_be_part_of_the_next),
        FIXTURE_TEST(long_messages_are_cut_and_terminated),
        FIXTURE_TEST(warnings_reach_the_hook_or_nobody),
        FIXTURE_TEST(bytes_are_counted_up_and_down),
        FIXTURE_TEST(aligned_memory_is_aligned),
        FIXTURE_TEST(too_much_memory_is_an_error_that_says_how_much),
        FIXTURE_TEST(growing_keeps_what_is_there),
        FIXTURE_TEST(options_of_an_older_kind_are_taken_and_others_refused),
        cmocka_unit_test(a_struct_is_filled_in_to_its_own_size),
        cmocka_unit_test(every_status_has_a_text_of_its_own),
        FIXTURE_TEST(nothing_is_taken_in_reserve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
