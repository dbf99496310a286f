/* Steps that are held as runs come back as they were; those of real schedules take little. */
#include <stdlib.h>

#include "plan/graph/step_runs.h"
#include "support/fixture.h"

static size_t check(fixture *f, const remat_step *steps, size_t count)
{
    step_runs runs;
    expect_ok(f, step_runs_make(f->context, steps, count, &runs));
    remat_step *again = calloc(count + 1, sizeof *again);
    assert_int_equal(runs.step_count, count);
    step_runs_read(&runs, again);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(again[i].layer, steps[i].layer);
        assert_int_equal(again[i].save, steps[i].save);
        assert_int_equal(again[i].op, steps[i].op);
    }
    size_t made = runs.count;
    free(again);
    step_runs_release(f->context, &runs);
    return made;
}

static void test_any_steps(void **state)
{
    test_random random = {7};
    remat_step steps[60];
    for (int i = 0; i < 400; i++) {
        size_t count = test_random_below(&random, 61);
        uint64_t layers = 1 + test_random_below(&random, 6), ops = 1 + test_random_below(&random, 3);
        for (size_t k = 0; k < count; k++)
            steps[k] = (remat_step){(uint32_t)test_random_below(&random, layers),
                                    test_random_below(&random, 2) ? REMAT_NO_SAVE : REMAT_KEEP,
                                    (uint8_t)test_random_below(&random, ops)};
        assert_true(check(*state, steps, count) <= count);
    }
}

/* Forward with drops, the loss, backward: three patterns. */
static void test_schedule(void **state)
{
    enum { LAYERS = 1000 };
    remat_step *steps = calloc(3 * LAYERS + 1, sizeof *steps);
    size_t count = 0;
    for (uint32_t i = 0; i < LAYERS; i++) {
        steps[count++] = (remat_step){i, REMAT_NO_SAVE, REMAT_FORWARD};
        steps[count++] = (remat_step){i, REMAT_NO_SAVE, REMAT_DROP_X};
    }
    steps[count++] = (remat_step){0, REMAT_NO_SAVE, REMAT_LOSS};
    for (uint32_t i = LAYERS; i-- > 0;)
        steps[count++] = (remat_step){i, REMAT_NO_SAVE, REMAT_BACKWARD};
    assert_in_range(check(*state, steps, count), 1, 8);
    free(steps);
}

/* Memory that runs out at any call leaves nothing behind. */
static void test_no_memory(void **state)
{
    fixture *f = *state;
    remat_step steps[100];
    for (uint32_t i = 0; i < 100; i++)
        steps[i] = (remat_step){i * i * i, REMAT_KEEP, REMAT_FORWARD};
    bool failed = true;
    for (size_t n = 1; n < 100 && failed; n++) {
        step_runs runs;
        f->memory.fail_at = f->memory.calls + n;
        remat_status status = step_runs_make(f->context, steps, 100, &runs);
        f->memory.fail_at = 0;
        failed = status != REMAT_OK;
        if (failed)
            assert_int_equal(status, REMAT_NO_MEMORY);
        step_runs_release(f->context, &runs);
    }
    assert_false(failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(test_any_steps), FIXTURE_TEST(test_schedule),
                                       FIXTURE_TEST(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
