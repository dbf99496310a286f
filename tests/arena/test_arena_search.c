/* Hard arenas, for which the search takes turns with all its rules: more effort is never worse, the same rows give the same
 * offsets, and memory may end at any time. */
#include "support/lifetime_rows.h"
#include "support/memory_failures.h"

enum { PIECES = 400, INSTANCES = 6 };

static void make_rows(remat_lifetime *rows, uint64_t instance)
{
    test_random random = {1000 + instance};
    if (instance % 3)
        rows_cut(rows, &random, PIECES, 3000);
    else
        rows_full(rows, &random, PIECES, 16);
}

static void more_effort_is_never_worse(void **state)
{
    fixture *f = *state;
    static const uint64_t efforts[] = {0, 20000, 200000};
    uint64_t gained = 0;
    for (uint64_t instance = 0; instance < INSTANCES; instance++) {
        uint64_t before = UINT64_MAX;
        for (size_t e = 0; e < 3; e++) {
            remat_lifetime rows[PIECES], once_more[PIECES];
            remat_arena_result result, same;
            make_rows(rows, instance);
            make_rows(once_more, instance);
            expect_ok(f, rows_place(f, rows, PIECES, (row_options){1, 0, efforts[e]}, &result));
            expect_ok(f, rows_place(f, once_more, PIECES, (row_options){1, 0, efforts[e]}, &same));
            assert_memory_equal(rows, once_more, sizeof rows);
            assert_true(result.lower_bound >= rows_load(rows, PIECES, 1) && result.lower_bound <= result.height);
            assert_true(result.height <= before);
            gained += before != UINT64_MAX && result.height < before;
            before = result.height;
        }
    }
    assert_true(gained > 0); /* or the search was not needed */
}

/* A capacity that cannot be reached is told, and the best that was found is there. */
static void capacities_out_of_reach(void **state)
{
    fixture *f = *state;
    for (uint64_t instance = 0; instance < INSTANCES; instance += 2) {
        remat_lifetime rows[PIECES];
        remat_arena_result result;
        make_rows(rows, instance);
        uint64_t load = rows_load(rows, PIECES, 1);
        remat_status status = rows_place(f, rows, PIECES, (row_options){1, load, 20000}, &result);
        assert_true(status == REMAT_OK || status == REMAT_INFEASIBLE);
        assert_true((status == REMAT_OK) == (result.height <= load));
        expect_status(f, rows_place(f, rows, PIECES, (row_options){1, load - 1, 20000}, &result), REMAT_INFEASIBLE);
    }
}

static remat_status place(remat_context *context, void *user)
{
    remat_lifetime rows[PIECES];
    remat_arena_options options;
    remat_arena_result result;
    make_rows(rows, *(uint64_t *)user);
    remat_arena_options_init(&options);
    options.effort = 3000;
    remat_status status = remat_arena_place(context, rows, PIECES, &options, &result);
    FLOW(status, remat_arena_check(context, rows, PIECES, 1, result.height));
    return status;
}

/* Rows of another size, as a program of a later release passes them: they are copied, placed, and written back. */
static remat_status place_wide(remat_context *context, void *user)
{
    struct {
        remat_lifetime row;
        uint64_t more;
    } wide[3] = {{{0, 4, 100, 9}, 0}, {{4, 6, 80, 9}, 0}, {{1, 5, 30, 9}, 0}};
    remat_arena_result result;
    (void)user;
    remat_status status =
        remat_arena_place_sized(context, &wide[0].row, sizeof wide[0], 3, NULL, &result, sizeof result);
    if (status == REMAT_OK) {
        assert_int_equal(result.height, 130);
        assert_true(wide[0].row.offset != 9 && wide[1].row.offset != 9 && wide[2].row.offset != 9);
        assert_true(wide[0].more == 0 && wide[1].more == 0 && wide[2].more == 0);
    }
    FLOW(status, remat_arena_check_sized(context, &wide[0].row, sizeof wide[0], 3, 1, 130));
    return status;
}

static void memory_that_ends_in_a_search(void **state)
{
    (void)state;
    for (uint64_t instance = 0; instance < 2; instance++)
        expect_failures_survived("search", place, &instance, 10, 1000);
    expect_failures_survived("rows of another size", place_wide, NULL, 3, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(more_effort_is_never_worse),
        FIXTURE_TEST(capacities_out_of_reach),
        cmocka_unit_test(memory_that_ends_in_a_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
