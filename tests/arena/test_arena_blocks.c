/* The summaries of 64 items or sections give the answers that a look at every one of them gives. */
#include "support/lifetime_rows.h"

#include "arena/arena_internal.h"

enum { ROWS = 400 };

static void items_agree(arena_model *model)
{
    for (uint32_t begin = 0; begin + ARENA_BLOCK <= model->count; begin += ARENA_BLOCK) {
        uint64_t hash[2] = {0, 0};
        uint32_t lowest = UINT32_MAX, end = 0, reach = 0;
        for (uint32_t i = begin; i < begin + ARENA_BLOCK; i++) {
            if (!model->waiting[i])
                continue;
            arena_hash_item(model, i, hash);
            if (arena_goes_before(model, i, lowest))
                lowest = i;
            reach = model->last[i] > reach ? model->last[i] : reach;
            end = i + 1;
        }
        const arena_item_block *block = arena_items_at(model, begin);
        assert_int_equal(block->lowest, lowest);
        assert_int_equal(block->end, end);
        assert_int_equal(block->reach, reach);
        assert_true(block->hash[0] == hash[0] && block->hash[1] == hash[1]);
    }
}

static void sections_agree(arena_model *model)
{
    for (uint32_t begin = 0; begin + ARENA_BLOCK <= model->section_count; begin += ARENA_BLOCK) {
        uint32_t tightest = UINT32_MAX;
        for (uint32_t s = begin; s < begin + ARENA_BLOCK; s++)
            if (model->waiting_count[s] && arena_is_tighter(model, s, tightest))
                tightest = s;
        assert_int_equal(arena_tightest_at(model, begin), tightest);
    }
}

/* Puts items down at random until one does not fit, takes some back, and so on. */
static void put_down_and_take_back(arena_model *model, test_random *random)
{
    size_t undone = 0;
    for (int round = 0; round < 300; round++) {
        uint32_t item = (uint32_t)test_random_below(random, model->count);
        size_t before = model->trail_count;
        if (!model->waiting[item])
            continue;
        if (!arena_put_down(model, item)) {
            arena_undo(model, before);
            if (!arena_lift_off(model, item))
                arena_undo(model, test_random_below(random, before + 1));
            undone++;
        }
        items_agree(model);
        sections_agree(model);
    }
    assert_true(undone > 0);
    arena_undo(model, 0);
    items_agree(model);
    sections_agree(model);
}

static void summaries_agree_with_every_item(void **state)
{
    fixture *f = *state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        test_random random = {seed};
        remat_lifetime rows[ROWS];
        size_t count = ROWS;
        for (size_t i = 0; i < count; i++) {
            uint64_t from = test_random_below(&random, 2 * ROWS);
            rows[i] = (remat_lifetime){from, from + 1 + test_random_below(&random, 40 * seed),
                                       1 + test_random_below(&random, 50), 0};
        }
        arena_problem problem;
        arena_model *model;
        expect_ok(f, arena_problem_create(f->context, &problem, rows, count, 1));
        uint32_t largest = 0;
        for (uint32_t i = 0; i < problem.part_count; i++)
            if (problem.parts[i].count > problem.parts[largest].count)
                largest = i;
        expect_ok(f, arena_model_create(f->context, &problem.parts[largest], &model));
        assert_true(model->count >= 2 * ARENA_BLOCK && model->section_count >= 2 * ARENA_BLOCK);
        for (uint32_t i = 0; i < model->count; i++)
            model->preference[i] = test_random_below(&random, 4);
        model->capacity = problem.parts[largest].load;
        model->rule = ARENA_TIGHTEST;
        arena_blocks_forget(model);
        arena_mark_all(model);
        assert_true(arena_propagate(model));
        put_down_and_take_back(model, &random);
        arena_model_destroy(model);
        arena_problem_destroy(f->context, &problem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(summaries_agree_with_every_item)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
