/* Placements against slow code: the optimum by trying everything, the checker by looking at every pair. */
#include "support/lifetime_rows.h"

static uint64_t seed;

static bool optimal(const remat_arena_result *result)
{
    return result->height == result->lower_bound;
}

/* Up to 14 rows that the heuristics do not settle, so that the search is asked; what they came to is in *result. */
static size_t unsettled_rows(fixture *f, remat_lifetime *rows, test_random *random, remat_arena_result *result)
{
    for (;;) {
        size_t count = 9 + (size_t)test_random_below(random, 6);
        if (test_random_below(random, 8) == 0)
            count = rows_random(rows, random, 12, 5 + test_random_below(random, 5), 5);
        else
            rows_full(rows, random, count, 5 + test_random_below(random, 4));
        expect_ok(f, rows_place(f, rows, count, (row_options){1, 0, 0}, result));
        if (!optimal(result))
            return count;
    }
}

static void as_low_as_brute_force(void **state)
{
    fixture *f = *state;
    test_random random = {seed};
    for (int round = 0; round < LESS_WHEN_SANITIZED(1000, 100); round++) {
        remat_lifetime rows[16];
        remat_arena_result result;
        size_t count = unsettled_rows(f, rows, &random, &result);
        uint64_t best = rows_optimum(rows, count, rows_load(rows, count, 1));
        assert_true(result.lower_bound <= best && best <= result.height);
        expect_ok(f, rows_place(f, rows, count, (row_options){1, 0, 100000}, &result));
        assert_int_equal(result.height, best);
        assert_true(optimal(&result));
        expect_ok(f, rows_place(f, rows, count, (row_options){1, best, 100000}, &result));
        expect_status(f, rows_place(f, rows, count, (row_options){1, best - 1, 100000}, &result), REMAT_INFEASIBLE);
        assert_int_equal(result.lower_bound, best); /* that there is none is proven */
    }
}

/* Rounding sizes up by hand and placing units comes to the same as an alignment. */
static void alignment_is_a_unit(void **state)
{
    fixture *f = *state;
    test_random random = {seed + 1};
    for (int round = 0; round < LESS_WHEN_SANITIZED(200, 40); round++) {
        remat_lifetime rows[16], units[16];
        remat_arena_result result, in_units;
        uint64_t alignment = 1 + test_random_below(&random, 100);
        size_t count = rows_random(rows, &random, 16, 12, 6 * alignment);
        for (size_t i = 0; i < count; i++) {
            units[i] = rows[i];
            units[i].size = (rows[i].size + alignment - 1) / alignment;
        }
        expect_ok(f, rows_place(f, rows, count, (row_options){alignment, 0, 5000}, &result));
        expect_ok(f, rows_place(f, units, count, (row_options){1, 0, 5000}, &in_units));
        assert_int_equal(result.height, in_units.height * alignment);
        assert_int_equal(result.lower_bound, in_units.lower_bound * alignment);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(rows[i].offset, units[i].offset * alignment);
    }
}

/* Nothing is wasted in a square that was cut apart. Seeds are fixed: a few in a thousand take longer than a test may. */
static void a_cut_square_is_put_together(void **state)
{
    fixture *f = *state;
    for (uint64_t round = 0; round < LESS_WHEN_SANITIZED(60, 15); round++) {
        remat_lifetime rows[64];
        remat_arena_result result;
        test_random random = {round};
        size_t count = 20 + round % 30;
        rows_cut(rows, &random, count, 1000);
        expect_ok(f, rows_place(f, rows, count, (row_options){1, 1000, 1000000}, &result));
        assert_int_equal(result.height, 1000);
    }
}

/* Larger rows: the bound is never under the load nor above the height, and twice is alike. */
static void the_same_rows_give_the_same_answer(void **state)
{
    fixture *f = *state;
    test_random random = {seed + 2};
    for (uint64_t round = 0; round < LESS_WHEN_SANITIZED(300, 60); round++) {
        remat_lifetime rows[200], again[200];
        remat_arena_result first, second;
        size_t count = rows_random(rows, &random, 200, 3 + round, 1 + round * 37 % 5000);
        row_options options = {1 + round % 70, 0, 200};
        memcpy(again, rows, sizeof rows);
        expect_ok(f, rows_place(f, rows, count, options, &first));
        expect_ok(f, rows_place(f, again, count, options, &second));
        assert_memory_equal(rows, again, count * sizeof *rows);
        assert_int_equal(first.height, second.height);
        assert_int_equal(first.lower_bound, second.lower_bound);
        assert_true(first.lower_bound >= rows_load(rows, count, options.alignment));
    }
}

static bool names_a_collision(const char *message, const remat_lifetime *rows, size_t count)
{
    for (size_t a = 0; a < count; a++)
        for (size_t b = 0; b < count; b++) {
            const remat_lifetime pair[2] = {rows[a], rows[b]};
            char words[64];
            snprintf(words, sizeof words, "tensors %zu and %zu share", a, b);
            if (a != b && rows_collide(pair, 2) && strstr(message, words))
                return true;
        }
    return false;
}

static void the_checker_agrees_with_all_pairs(void **state)
{
    fixture *f = *state;
    test_random random = {seed + 3};
    int collisions = 0, rounds = LESS_WHEN_SANITIZED(20000, 3000);
    for (int round = 0; round < rounds; round++) {
        remat_lifetime rows[16];
        size_t count = rows_random(rows, &random, 6, 12, 6);
        for (size_t i = 0; i < count; i++)
            rows[i].offset = test_random_below(&random, 20);
        bool wrong = rows_collide(rows, count);
        expect_status(f, remat_arena_check(f->context, rows, count, 1, 100), wrong ? REMAT_CHECK_FAILED : REMAT_OK);
        collisions += wrong;
        if (!wrong)
            continue;
        assert_true(names_a_collision(remat_context_message(f->context), rows, count));
    }
    assert_in_range(collisions, 1, rounds - 1); /* both verdicts were asked for */
}

static void the_checker_names_what_is_wrong(void **state)
{
    fixture *f = *state;
    remat_lifetime rows[] = {{0, 1, 0, 0}, {0, 1, 10, 5}};
    expect_ok(f, remat_arena_check(f->context, NULL, 0, 1, 0));
    expect_ok(f, remat_arena_check(f->context, rows, 2, 5, 15));
    expect_status(f, remat_arena_check(f->context, rows, 2, 5, 14), REMAT_CHECK_FAILED);
    expect_message(f, "tensor 1 lies past the end");
    expect_status(f, remat_arena_check(f->context, rows, 2, 2, 100), REMAT_CHECK_FAILED);
    expect_message(f, "tensor 1 is not aligned");
    expect_status(f, remat_arena_check(f->context, rows, 2, 0, 100), REMAT_INVALID);
    rows[1].offset = UINT64_MAX - 4; /* the end wraps around */
    expect_status(f, remat_arena_check(f->context, rows, 2, 1, UINT64_MAX), REMAT_CHECK_FAILED);
    rows[1] = (remat_lifetime){4, 4, 1, 0};
    expect_status(f, remat_arena_check(f->context, rows, 2, 1, 100), REMAT_CHECK_FAILED);
    expect_message(f, "tensor 1 does not begin before it ends");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(as_low_as_brute_force),
        FIXTURE_TEST(alignment_is_a_unit),
        FIXTURE_TEST(a_cut_square_is_put_together),
        FIXTURE_TEST(the_same_rows_give_the_same_answer),
        FIXTURE_TEST(the_checker_agrees_with_all_pairs),
        FIXTURE_TEST(the_checker_names_what_is_wrong),
    };
    seed = test_seed();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed)
        print_error("REMAT_SEED=%llu repeats this\n", (unsigned long long)seed);
    return failed;
}
