/* Runs examples/heat_adjoint.c: Taylor's test of the gradient with every store. */
#include "test_tape_toy.h"

#define main heat_main
#include "../../examples/heat_adjoint.c"
#undef main

static void the_gradient_passes_the_taylor_test_with_every_store(void **state)
{
    (void)state;
    char program[] = "heat_adjoint", directory[64], steps[16];
    snprintf(directory, sizeof directory, "%s", toy_directory());
    snprintf(steps, sizeof steps, "%d", LESS_WHEN_SANITIZED(1000, 150));
    char *arguments[] = {program, directory, steps, NULL};
    assert_int_equal(heat_main(3, arguments), 0);
}

/* The test can fail: a gradient that is a hundredth off has slope 1. */
static void a_wrong_gradient_does_not(void **state)
{
    (void)state;
    static plate p;
    static float start[POINTS];
    p.steps = 50;
    for (int i = 0; i < POINTS; i++) {
        start[i] = (float)sin(0.1 * i);
        p.conductivity[i] = 1.0f;
    }
    remat_context *context;
    assert_int_equal(remat_context_create(NULL, &context), REMAT_OK);
    remat_profile *profile = toy_equal_profile(context, p.steps, sizeof start);
    remat_tape_callbacks callbacks = {forward, backward, loss, &p};
    remat_tape *tape;
    assert_int_equal(remat_tape_create(context, profile, &callbacks, NULL, &tape), REMAT_OK);
    assert_int_equal(remat_tape_run(tape, start, NULL), REMAT_OK);
    assert_true(taylor(&p, start) >= 1.95);
    for (int i = 0; i < POINTS; i++)
        p.gradient[i] *= 1.01f;
    assert_true(taylor(&p, start) < 1.5);
    remat_tape_destroy(tape);
    remat_profile_destroy(profile);
    remat_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_passes_the_taylor_test_with_every_store),
        cmocka_unit_test(a_wrong_gradient_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
