/* Each row of the memory model's table by hand, and each reason for which a step is refused. */
#include "support/fixture.h"

#include "support/slow_replay.h"

/* Two layers with figures that no sum can confuse. Layer 1 has the modes `slim` (holds its output) and `bare` (does
 * not). */
static remat_profile *two_layers(fixture *f)
{
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_set_input_bytes(profile, 1));
    expect_ok(f, remat_profile_set_input_gradient_bytes(profile, 2));
    expect_ok(f, remat_profile_set_loss_workspace_bytes(profile, 4));
    remat_layer_options layer;
    remat_layer_options_init(&layer);
    layer.activation_bytes = 30;
    layer.output_bytes = 10;
    layer.recompute_flops = 7;
    layer.forward_cost = 100;
    layer.backward_cost = 200;
    layer.forward_workspace_bytes = 1000;
    layer.backward_workspace_bytes = 2000;
    expect_ok(f, remat_profile_add_layer(profile, &layer));
    remat_mode_options modes[2];
    remat_mode_options_init(&modes[0]);
    remat_mode_options_init(&modes[1]);
    modes[0].name = "slim";
    modes[0].activation_bytes = 25;
    modes[0].forward_cost = 101;
    modes[0].backward_cost = 202;
    modes[1].name = "bare";
    modes[1].activation_bytes = 5;
    modes[1].forward_workspace_bytes = 3000;
    modes[1].backward_workspace_bytes = 4000;
    modes[1].holds_output = false;
    layer.activation_bytes = 60;
    layer.output_bytes = 20;
    layer.modes = modes;
    layer.mode_count = 2;
    expect_ok(f, remat_profile_add_layer(profile, &layer));
    return profile;
}

#define SAVE(layer, mode) ((remat_step){layer, mode, REMAT_FORWARD})
#define RUN(layer)        ((remat_step){layer, REMAT_NO_SAVE, REMAT_FORWARD})
#define LOSS              ((remat_step){0, REMAT_NO_SAVE, REMAT_LOSS})
#define BACK(layer)       ((remat_step){layer, REMAT_NO_SAVE, REMAT_BACKWARD})
#define DROP_X(i)         ((remat_step){i, REMAT_NO_SAVE, REMAT_DROP_X})
#define DROP_S(i)         ((remat_step){i, REMAT_NO_SAVE, REMAT_DROP_STATE})

typedef struct expected {
    remat_step step;
    uint64_t live; /* after it */
} expected;

static void play(fixture *f, const remat_profile *profile, const expected *steps, size_t count, remat_figures *figures)
{
    remat_simulator *simulator;
    expect_ok(f, remat_simulator_create(f->context, profile, &simulator));
    assert_int_equal(remat_simulator_live_bytes(simulator), 1); /* the input */
    for (size_t i = 0; i < count; i++) {
        expect_ok(f, remat_simulator_step(simulator, steps[i].step));
        assert_int_equal(remat_simulator_live_bytes(simulator), steps[i].live);
    }
    expect_ok(f, remat_simulator_finish(simulator, figures));
    remat_simulator_destroy(simulator);
}
#define PLAY(f, profile, steps, figures) play(f, profile, steps, sizeof steps / sizeof steps[0], figures)

static void keeping_everything_adds_up(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    static const expected steps[] = {{SAVE(0, 0), 31}, {SAVE(1, 0), 91}, {LOSS, 111}, {BACK(1), 41}, {BACK(0), 3}};
    remat_figures figures;
    PLAY(f, profile, steps, &figures);
    assert_int_equal(figures.steps, 5);
    assert_int_equal(figures.peak_bytes, 111 + 10 + 2000); /* backward 1: live, y 1, workspace */
    assert_int_equal(figures.peak_step, 3);
    assert_int_equal(figures.total_cost, 600);
    assert_int_equal(figures.kept_bytes, 90);
    assert_int_equal(figures.recompute_flops, 0);
    assert_int_equal(figures.recomputed_layers, 0);
    assert_int_equal(figures.largest_recomputed_bytes, 0);
    remat_profile_destroy(profile);
}

static void recomputing_adds_up(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    static const expected steps[] = {{RUN(0), 11},    {RUN(1), 31},     {LOSS, 51},
                                     {DROP_X(2), 31}, {SAVE(1, 0), 91}, {BACK(1), 21},
                                     {DROP_X(1), 11}, {SAVE(0, 0), 41}, {BACK(0), 3}};
    remat_figures figures;
    PLAY(f, profile, steps, &figures);
    assert_int_equal(figures.peak_bytes, 91 + 10 + 2000);
    assert_int_equal(figures.peak_step, 5);
    assert_int_equal(figures.total_cost, 4 * 100 + 2 * 200);
    assert_int_equal(figures.kept_bytes, 0);
    assert_int_equal(figures.recompute_flops, 14);
    assert_int_equal(figures.recomputed_layers, 2);
    assert_int_equal(figures.largest_recomputed_bytes, 60);
    remat_profile_destroy(profile);
}

static void a_mode_brings_its_own_figures(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    static const expected slim[] = {{SAVE(0, 0), 31}, {SAVE(1, 1), 56}, {LOSS, 76}, {BACK(1), 41}, {BACK(0), 3}};
    remat_figures figures;
    PLAY(f, profile, slim, &figures);
    assert_int_equal(figures.total_cost, 100 + 101 + 202 + 200);
    assert_int_equal(figures.kept_bytes, 55);
    assert_int_equal(figures.peak_bytes, 76 + 10 + 2000);
    /* `bare` adds x 2 besides, and has workspaces of its own. */
    static const expected bare[] = {{SAVE(0, 0), 31}, {SAVE(1, 2), 56}, {LOSS, 76},
                                    {DROP_X(2), 56},  {BACK(1), 41},    {BACK(0), 3}};
    PLAY(f, profile, bare, &figures);
    assert_int_equal(figures.total_cost, 600);
    assert_int_equal(figures.kept_bytes, 35);
    assert_int_equal(figures.peak_bytes, 56 + 10 + 4000);
    assert_int_equal(figures.peak_step, 4);
    remat_profile_destroy(profile);
}

/* x_i and s_i are separate: either may be there without the other, or both. */
static void plain_and_saved_tensors_live_side_by_side(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    static const expected steps[] = {{SAVE(0, 0), 31}, {RUN(0), 41},  {SAVE(1, 0), 101}, {DROP_S(0), 71}, {LOSS, 91},
                                     {RUN(1), 111},    {BACK(1), 41}, {SAVE(0, 0), 71},  {BACK(0), 33}};
    remat_figures figures;
    PLAY(f, profile, steps, &figures);        /* x 1 and x 2 are left over, which is legal */
    assert_int_equal(figures.kept_bytes, 60); /* the state of layer 0 that was used is not its first */
    assert_int_equal(figures.recompute_flops, 3 * 7);
    remat_profile_destroy(profile);
}

static void the_peak_is_at_least_the_input(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    remat_simulator *simulator;
    remat_figures figures;
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_set_input_bytes(profile, 50));
    expect_ok(f, remat_simulator_create(f->context, profile, &simulator));
    expect_ok(f, remat_simulator_finish(simulator, &figures));
    assert_int_equal(figures.peak_bytes, 50);
    assert_true(figures.peak_step == REMAT_NOWHERE);
    assert_int_equal(figures.steps, 0);
    expect_status(f, remat_simulator_step(simulator, LOSS), REMAT_CHECK_FAILED); /* there is nothing to do */
    remat_simulator_destroy(simulator);
    remat_profile_destroy(profile);
}

/* ---- refused steps ---- */

/* Plays `count` steps; the last one must be refused for `reason`. */
static void refuse(fixture *f, const remat_step *steps, size_t count, const char *reason)
{
    remat_profile *profile = two_layers(f);
    remat_simulator *simulator;
    expect_ok(f, remat_simulator_create(f->context, profile, &simulator));
    for (size_t i = 0; i + 1 < count; i++)
        expect_ok(f, remat_simulator_step(simulator, steps[i]));
    uint64_t live = remat_simulator_live_bytes(simulator);
    expect_status(f, remat_simulator_step(simulator, steps[count - 1]), REMAT_CHECK_FAILED);
    expect_message(f, reason);
    assert_int_equal(remat_context_error(f->context)->step, count - 1);
    assert_int_equal(remat_simulator_live_bytes(simulator), live);
    char text[REMAT_STEP_TEXT];
    expect_message(f, remat_step_print(profile, steps[count - 1], text));
    remat_simulator_destroy(simulator);
    remat_profile_destroy(profile);
}
#define REFUSE(f, reason, ...)                                       \
    do {                                                             \
        const remat_step steps_[] = {__VA_ARGS__};                   \
        refuse(f, steps_, sizeof steps_ / sizeof steps_[0], reason); \
    } while (0)

static void needs_that_are_missing_are_named(void **state)
{
    fixture *f = *state;
    REFUSE(f, "its input, x 1, is not live", RUN(1));
    REFUSE(f, "its input, x 1, is not live", SAVE(1, 0));
    REFUSE(f, "its input, x 0, is not live", DROP_X(0), RUN(0));
    REFUSE(f, "its input, x 2, is not live", LOSS);
    REFUSE(f, "its input, x 2, is not live", SAVE(0, 0), SAVE(1, 2), DROP_X(2), LOSS); /* `bare` does not hold it */
    REFUSE(f, "the loss has not run yet", SAVE(0, 0), SAVE(1, 0), BACK(1));
    REFUSE(f, "y 1, is not live", SAVE(0, 0), SAVE(1, 0), LOSS, BACK(0));
    REFUSE(f, "y 2, is not live", SAVE(0, 0), SAVE(1, 0), LOSS, BACK(1), SAVE(1, 0), BACK(1)); /* once a layer */
    REFUSE(f, "its saved state, s 1, is not live", SAVE(0, 0), RUN(1), LOSS, BACK(1));
    REFUSE(f, "its input, x 1, is not live", SAVE(0, 0), SAVE(1, 0), LOSS, DROP_S(0), BACK(1));
    REFUSE(f, "its input, x 0, is not live", SAVE(0, 0), SAVE(1, 0), LOSS, BACK(1), DROP_X(0), BACK(0));
}

static void what_is_live_already_is_named(void **state)
{
    fixture *f = *state;
    REFUSE(f, "x 1 is live already", RUN(0), RUN(0));
    REFUSE(f, "s 0 is live already", SAVE(0, 0), SAVE(0, 0));
    REFUSE(f, "s 1 is live already", SAVE(0, 0), SAVE(1, 0), SAVE(1, 1)); /* in another mode is no different */
    REFUSE(f, "x 2 is live already", SAVE(0, 0), RUN(1), SAVE(1, 2));
    REFUSE(f, "the loss ran already", SAVE(0, 0), SAVE(1, 0), LOSS, LOSS);
    REFUSE(f, "the loss ran already", SAVE(0, 0), SAVE(1, 0), LOSS, BACK(1), BACK(0), RUN(0), RUN(1), LOSS);
}

static void drops_of_what_is_not_there_are_named(void **state)
{
    fixture *f = *state;
    REFUSE(f, "x 1 is not live on its own", DROP_X(1));
    REFUSE(f, "x 1 is not live on its own", SAVE(0, 0), DROP_X(1)); /* only inside s 0 */
    REFUSE(f, "x 0 is not live on its own", DROP_X(0), DROP_X(0));
    REFUSE(f, "s 0 is not live", DROP_S(0));
    REFUSE(f, "s 0 is not live", RUN(0), DROP_S(0));
    REFUSE(f, "s 1 is not live", SAVE(0, 0), SAVE(1, 0), LOSS, BACK(1), DROP_S(1)); /* the backward dropped it */
}

static void steps_that_do_not_exist_are_refused(void **state)
{
    fixture *f = *state;
    REFUSE(f, "only 2 layers", RUN(2));
    REFUSE(f, "only 2 layers", BACK(2));
    REFUSE(f, "only 2 layers", DROP_S(2));
    REFUSE(f, "only 2 layers", DROP_X(3));
    REFUSE(f, "only 2 layers", RUN(UINT32_MAX));
    REFUSE(f, "no such mode", SAVE(0, 1));
    REFUSE(f, "no such mode", RUN(0), SAVE(1, 3));
    REFUSE(f, "no such mode", SAVE(0, 0xfffe));
    REFUSE(f, "no such step", ((remat_step){0, REMAT_NO_SAVE, 5}));
    REFUSE(f, "no such step", ((remat_step){0, REMAT_NO_SAVE, 255}));
}

static void an_early_end_names_the_layer(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    remat_simulator *simulator;
    remat_figures figures;
    static const remat_step steps[] = {SAVE(0, 0), SAVE(1, 0), LOSS, BACK(1), BACK(0)};
    expect_ok(f, remat_simulator_create(f->context, profile, &simulator));
    for (size_t i = 0; i < 5; i++) {
        expect_status(f, remat_simulator_finish(simulator, &figures), REMAT_CHECK_FAILED);
        expect_message(f, i < 4 ? "layer 1 has had no backward" : "layer 0 has had no backward");
        assert_int_equal(remat_context_error(f->context)->step, i);
        expect_ok(f, remat_simulator_step(simulator, steps[i]));
    }
    expect_ok(f, remat_simulator_finish(simulator, &figures));
    remat_simulator_destroy(simulator);
    remat_profile_destroy(profile);
}

static void costs_past_two_to_the_63_are_refused_not_wrapped(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    remat_simulator *simulator;
    expect_ok(f, remat_profile_create(f->context, &profile));
    remat_layer_options layer;
    remat_layer_options_init(&layer);
    layer.forward_cost = (uint64_t)1 << 62;
    layer.backward_cost = 0;
    expect_ok(f, remat_profile_add_layer(profile, &layer));
    expect_ok(f, remat_simulator_create(f->context, profile, &simulator));
    expect_ok(f, remat_simulator_step(simulator, RUN(0)));
    expect_ok(f, remat_simulator_step(simulator, DROP_X(1)));
    expect_status(f, remat_simulator_step(simulator, RUN(0)), REMAT_CHECK_FAILED);
    expect_message(f, "2^63");
    remat_simulator_destroy(simulator);
    remat_profile_destroy(profile);
}

static void steps_print_for_people(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    char text[REMAT_STEP_TEXT];
    assert_string_equal(remat_step_print(profile, SAVE(1, 2), text), "forward 1, save bare");
    assert_string_equal(remat_step_print(profile, RUN(1), text), "forward 1");
    assert_string_equal(remat_step_print(profile, LOSS, text), "loss");
    assert_string_equal(remat_step_print(profile, BACK(0), text), "backward 0");
    assert_string_equal(remat_step_print(profile, DROP_X(2), text), "drop x 2");
    assert_string_equal(remat_step_print(profile, DROP_S(1), text), "drop s 1");
    assert_string_equal(remat_step_print(profile, SAVE(9, 9), text), "forward 9, save ?");
    remat_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(keeping_everything_adds_up),
        FIXTURE_TEST(recomputing_adds_up),
        FIXTURE_TEST(a_mode_brings_its_own_figures),
        FIXTURE_TEST(plain_and_saved_tensors_live_side_by_side),
        FIXTURE_TEST(the_peak_is_at_least_the_input),
        FIXTURE_TEST(needs_that_are_missing_are_named),
        FIXTURE_TEST(what_is_live_already_is_named),
        FIXTURE_TEST(drops_of_what_is_not_there_are_named),
        FIXTURE_TEST(steps_that_do_not_exist_are_refused),
        FIXTURE_TEST(an_early_end_names_the_layer),
        FIXTURE_TEST(costs_past_two_to_the_63_are_refused_not_wrapped),
        FIXTURE_TEST(steps_print_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
