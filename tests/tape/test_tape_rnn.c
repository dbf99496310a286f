/* Runs examples/rnn_bptt.c: a network learns through 10,000 steps in a hundredth of the memory, and its gradient is
 * that of keeping everything. */
#include "test_tape_toy.h"

#define main rnn_main
#include "../../examples/rnn_bptt.c"
#undef main

static void a_hundredth_of_the_memory_is_enough(void **state)
{
    (void)state;
    char program[] = "rnn_bptt", epochs[] = "2", steps[16];
    snprintf(steps, sizeof steps, "%d", LESS_WHEN_SANITIZED(10000, 1000));
    char *arguments[] = {program, epochs, steps, NULL};
    assert_int_equal(rnn_main(3, arguments), 0);
    /* The arena is known without running; so is that of keeping everything. */
    remat_context *context;
    assert_int_equal(remat_context_create(NULL, &context), REMAT_OK);
    remat_profile *layer = make_profile(context, 1), *chain = make_profile(context, 10000);
    remat_tape_callbacks callbacks = {forward, backward, no_loss, NULL};
    remat_tape *tape, *all;
    assert_int_equal(remat_tape_create_online(context, layer, SLOTS, &callbacks, NULL, &tape), REMAT_OK);
    assert_int_equal(remat_tape_create(context, chain, &callbacks, NULL, &all), REMAT_OK);
    remat_tape_statistics figures;
    remat_tape_get_statistics(tape, &figures);
    assert_true(100 * (figures.arena_bytes + figures.bookkeeping_bytes) <= remat_tape_arena_bytes(all));
    remat_tape_destroy(tape);
    remat_tape_destroy(all);
    remat_profile_destroy(layer);
    remat_profile_destroy(chain);
    remat_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_hundredth_of_the_memory_is_enough)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
