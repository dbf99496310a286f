/* Awkward input, capacities, memory that runs out, and lifetimes of the shapes that training has. */
#include "support/lifetime_rows.h"

static const row_options plain = {1, 0, 1000};
static uint64_t seed;

static void nothing_needs_nothing(void **state)
{
    fixture *f = *state;
    remat_arena_result result;
    expect_ok(f, rows_place(f, NULL, 0, plain, &result));
    assert_int_equal(result.height, 0);
    assert_int_equal(result.lower_bound, 0);
    remat_lifetime rows[] = {{0, 5, 0, 9}, {1, 3, 0, 9}};
    expect_ok(f, rows_place(f, rows, 2, plain, &result));
    assert_int_equal(result.height, 0);
    assert_int_equal(rows[1].offset, 0);
    remat_lifetime mixed[] = {{0, 5, 0, 9}, {1, 3, 7, 9}, {0, 9, 0, 9}, {2, 4, 5, 9}};
    expect_ok(f, rows_place(f, mixed, 4, plain, &result));
    assert_int_equal(result.height, 12);
}

static void wrong_lifetimes_are_named(void **state)
{
    fixture *f = *state;
    remat_arena_result result;
    remat_lifetime empty[] = {{0, 5, 8, 42}, {3, 3, 8, 43}};
    expect_status(f, rows_place(f, empty, 2, plain, &result), REMAT_INVALID);
    expect_message(f, "tensor 1 lives from 3 to 3");
    assert_int_equal(empty[0].offset, 42);
    remat_lifetime inverted[] = {{7, 5, 0, 0}, {3, 4, 8, 0}};
    expect_status(f, rows_place(f, inverted, 2, plain, &result), REMAT_INVALID);
    expect_message(f, "tensor 0 lives from 7 to 5");
}

static void sums_stay_below_the_limit(void **state)
{
    fixture *f = *state;
    remat_arena_result result;
    remat_lifetime rows[] = {{0, 1, UINT64_C(1) << 62, 0}, {2, 3, UINT64_C(1) << 62, 0}};
    expect_status(f, rows_place(f, rows, 2, plain, &result), REMAT_INVALID);
    expect_message(f, "2^63");
    rows[1].size--;
    expect_ok(f, rows_place(f, rows, 2, plain, &result));
    assert_int_equal(result.height, UINT64_C(1) << 62);
    rows[1].lower = 0; /* together now */
    expect_ok(f, rows_place(f, rows, 2, plain, &result));
    assert_int_equal(result.height, (UINT64_C(1) << 63) - 1);
    expect_status(f, rows_place(f, rows, 2, (row_options){64, 0, 0}, &result), REMAT_INVALID); /* rounding goes past */
    rows[0].size = UINT64_MAX;
    expect_status(f, rows_place(f, rows, 1, plain, &result), REMAT_INVALID);
    rows[0].size = 1;
    expect_status(f, rows_place(f, rows, 1, (row_options){UINT64_C(1) << 63, 0, 0}, &result), REMAT_INVALID);
    expect_ok(f, rows_place(f, rows, 1, (row_options){UINT64_C(1) << 62, 0, 0}, &result));
    assert_int_equal(result.height, UINT64_C(1) << 62);
}

static void times_may_be_anything(void **state)
{
    fixture *f = *state;
    remat_arena_result result;
    remat_lifetime rows[] = {{0, UINT64_MAX, 10, 0}, {UINT64_MAX - 1, UINT64_MAX, 5, 0}, {0, UINT64_MAX - 1, 5, 0}};
    expect_ok(f, rows_place(f, rows, 3, plain, &result));
    assert_int_equal(result.height, 15);
}

static void every_alignment_rounds_up(void **state)
{
    fixture *f = *state;
    static const struct {
        uint64_t alignment, rounded;
    } cases[] = {{1, 100}, {64, 128}, {48, 144}, {7, 105}, {100, 100}, {101, 101}, {4096, 4096}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        remat_arena_result result;
        remat_lifetime rows[40];
        for (size_t i = 0; i < 40; i++)
            rows[i] = (remat_lifetime){3, 9, 100, 0};
        expect_ok(f, rows_place(f, rows, 40, (row_options){cases[c].alignment, 0, 1000}, &result));
        assert_int_equal(result.height, 40 * cases[c].rounded);
        assert_int_equal(result.lower_bound, result.height);
    }
}

static void options_are_checked(void **state)
{
    fixture *f = *state;
    remat_arena_options options = {0};
    remat_arena_result result;
    remat_lifetime row = {0, 1, 5, 3};
    expect_status(f, remat_arena_place(f->context, &row, 1, &options, &result), REMAT_INVALID);
    expect_message(f, "remat_arena_options_init");
    expect_status(f, rows_place(f, &row, 1, (row_options){0, 0, 0}, &result), REMAT_INVALID);
    expect_message(f, "alignment of 0");
    assert_int_equal(row.offset, 3);
}

static void a_capacity_is_met_or_missed(void **state)
{
    fixture *f = *state;
    remat_arena_result result;
    remat_lifetime rows[] = {{0, 4, 10, 99}, {2, 6, 5, 99}, {5, 9, 10, 99}};
    expect_ok(f, rows_place(f, rows, 3, (row_options){1, UINT64_MAX, 100}, &result));
    expect_ok(f, rows_place(f, rows, 3, (row_options){1, 15, 100}, &result));
    for (size_t i = 0; i < 3; i++)
        rows[i].offset = 99;
    expect_status(f, rows_place(f, rows, 3, (row_options){1, 14, 100}, &result), REMAT_INFEASIBLE);
    expect_budget_error(f, 14, 15);
    assert_int_equal(result.height, 15);
    assert_int_equal(result.lower_bound, 15); /* so 14 is impossible */
    assert_int_not_equal(rows[0].offset, 99); /* the best is written all the same */
    /* A capacity that is no multiple of the alignment, and one below it. */
    expect_ok(f, rows_place(f, rows, 3, (row_options){16, 33, 100}, &result));
    expect_status(f, rows_place(f, rows, 3, (row_options){16, 31, 100}, &result), REMAT_INFEASIBLE);
    expect_status(f, rows_place(f, rows, 3, (row_options){64, 3, 100}, &result), REMAT_INFEASIBLE);
}

/* A generous capacity ends the search at once; without one it goes on. */
static void a_capacity_never_costs_height_it_does_not_allow(void **state)
{
    fixture *f = *state;
    test_random random = {5};
    remat_lifetime rows[40];
    remat_arena_result result;
    rows_cut(rows, &random, 40, 1000);
    for (uint64_t capacity = 1000; capacity <= 2000; capacity += 50) {
        expect_ok(f, rows_place(f, rows, 40, (row_options){1, capacity, 1000000}, &result));
        assert_true(result.height <= capacity);
        assert_int_equal(result.lower_bound, 1000);
    }
}

/* ---- memory that runs out ---- */

/* Every call that the work makes fails once; whatever it was, nothing changed and nothing is kept. */
static size_t fail_everywhere(fixture *f, size_t count, uint64_t side, row_options options, size_t most)
{
    test_random random = {17};
    remat_lifetime *original = calloc(count, sizeof *original), *rows = calloc(count, sizeof *rows);
    rows_cut(original, &random, count, side);
    uint64_t held = f->memory.bytes, before = f->memory.calls;
    remat_arena_result result;
    memcpy(rows, original, count * sizeof *rows);
    rows_place(f, rows, count, options, &result);
    size_t calls = (size_t)(f->memory.calls - before), tried = 0;
    remat_arena_options wanted;
    remat_arena_options_init(&wanted);
    wanted.alignment = options.alignment, wanted.capacity = options.capacity, wanted.effort = options.effort;
    for (size_t n = calls > most ? calls - most : 1;; n++) {
        memcpy(rows, original, count * sizeof *rows);
        f->memory.fail_at = f->memory.calls + n;
        remat_status status = remat_arena_place(f->context, rows, count, &wanted, &result);
        bool failed = f->memory.calls >= f->memory.fail_at;
        f->memory.fail_at = 0;
        assert_int_equal(f->memory.bytes, held);
        if (!failed)
            break;
        expect_status(f, status, REMAT_NO_MEMORY);
        assert_memory_equal(rows, original, count * sizeof *rows);
        tried++;
    }
    free(original);
    free(rows);
    return tried;
}

static void every_allocation_may_fail(void **state)
{
    fixture *f = *state;
    size_t tried = fail_everywhere(f, 40, 1000, (row_options){1, 0, 3000}, 1000);
    assert_in_range(tried, 20, 1000);
}

/* So many rows that the search's trail has to grow. */
static void growing_may_fail(void **state)
{
    fixture *f = *state;
    size_t tried = fail_everywhere(f, 400, 100000, (row_options){1, 100000, 2000}, 12);
    assert_in_range(tried, 1, 13);
}

static void the_checker_may_fail(void **state)
{
    fixture *f = *state;
    remat_lifetime rows[] = {{0, 4, 10, 0}, {2, 6, 5, 10}};
    uint64_t held = f->memory.bytes;
    for (uint64_t n = 1; n <= 4; n++) {
        f->memory.fail_at = f->memory.calls + n;
        expect_status(f, remat_arena_check(f->context, rows, 2, 1, 15), REMAT_NO_MEMORY);
        assert_int_equal(f->memory.bytes, held);
    }
    f->memory.fail_at = 0;
    expect_ok(f, remat_arena_check(f->context, rows, 2, 1, 15));
}

/* ---- training ---- */

/* Saved in the forward, released in the backward: exactly the bound, without search. */
static void nested_lives_meet_the_bound(void **state)
{
    fixture *f = *state;
    enum { LAYERS = LESS_WHEN_SANITIZED(20000, 4000) };
    test_random random = {seed};
    remat_lifetime *rows = calloc(LAYERS, sizeof *rows);
    uint64_t total = 0;
    for (uint64_t i = 0; i < LAYERS; i++) {
        rows[i] = (remat_lifetime){i, 2 * LAYERS - i, test_random_below(&random, 100000), 0};
        total += (rows[i].size + 63) / 64 * 64;
    }
    remat_arena_result result;
    expect_ok(f, rows_place(f, rows, LAYERS, (row_options){64, 0, 0}, &result));
    assert_int_equal(result.height, total);
    assert_int_equal(result.lower_bound, total);
    free(rows);
}

/* With a gradient that passes from layer to layer and a workspace for every step; nearly the bound, without search. */
static void a_chain_with_gradients_comes_near_the_bound(void **state)
{
    fixture *f = *state;
    enum { LAYERS = LESS_WHEN_SANITIZED(4000, 800) };
    test_random random = {seed};
    remat_lifetime *rows = calloc((size_t)3 * LAYERS, sizeof *rows), *at = rows;
    for (uint64_t i = 0; i < LAYERS; i++) {
        uint64_t size = 4096 + test_random_below(&random, 1 << 20), back = 2 * LAYERS - 1 - i;
        *at++ = (remat_lifetime){i, back + 1, size, 0};
        *at++ = (remat_lifetime){back, back + 2, size, 0};
        *at++ = (remat_lifetime){i, i + 1, 1024 + test_random_below(&random, 1 << 18), 0};
    }
    remat_arena_result result;
    expect_ok(f, rows_place(f, rows, (size_t)3 * LAYERS, (row_options){64, 0, 0}, &result));
    assert_true(result.height - result.lower_bound <= result.lower_bound / 1000);
    free(rows);
}

/* Parts of time that nothing crosses share the arena; its height is the highest of theirs. */
static void parts_share_the_arena(void **state)
{
    fixture *f = *state;
    remat_lifetime rows[300];
    remat_arena_result result;
    for (uint64_t i = 0; i < 300; i++)
        rows[i] = (remat_lifetime){i / 3 * 10, i / 3 * 10 + 10, i % 3 + 1, 0};
    expect_ok(f, rows_place(f, rows, 300, plain, &result));
    assert_int_equal(result.height, 6);
    assert_int_equal(result.lower_bound, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(nothing_needs_nothing),
        FIXTURE_TEST(wrong_lifetimes_are_named),
        FIXTURE_TEST(sums_stay_below_the_limit),
        FIXTURE_TEST(times_may_be_anything),
        FIXTURE_TEST(every_alignment_rounds_up),
        FIXTURE_TEST(options_are_checked),
        FIXTURE_TEST(a_capacity_is_met_or_missed),
        FIXTURE_TEST(a_capacity_never_costs_height_it_does_not_allow),
        FIXTURE_TEST(every_allocation_may_fail),
        FIXTURE_TEST(growing_may_fail),
        FIXTURE_TEST(the_checker_may_fail),
        FIXTURE_TEST(nested_lives_meet_the_bound),
        FIXTURE_TEST(a_chain_with_gradients_comes_near_the_bound),
        FIXTURE_TEST(parts_share_the_arena),
    };
    seed = test_seed();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed)
        print_error("REMAT_SEED=%llu repeats this\n", (unsigned long long)seed);
    return failed;
}
