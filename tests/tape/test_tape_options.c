/* What tapes refuse: options that do not exist or do not go together, profiles that do not fit, missing functions. Each
 * refusal names its field, and there is no tape afterwards. */
#include "test_tape_toy.h"

typedef struct options_case {
    const char *field;
    remat_tape_options options;
} options_case;

static void expect_refused(fixture *f, const remat_profile *profile, const toy *t, const options_case *wrong,
                           bool online)
{
    remat_tape_callbacks callbacks = toy_callbacks((toy *)(uintptr_t)t);
    remat_tape *tape = (remat_tape *)f;
    remat_tape_options options = wrong->options;
    remat_status status = online ? remat_tape_create_online(f->context, profile, 3, &callbacks, &options, &tape)
                                 : remat_tape_create(f->context, profile, &callbacks, &options, &tape);
    expect_status(f, status, REMAT_INVALID);
    assert_null(tape);
    assert_string_equal(remat_context_error(f->context)->field, wrong->field);
    if (online)
        return;
    remat_profile *chain = (remat_profile *)f;
    expect_status(f, remat_tape_profile(f->context, profile, &options, &chain), REMAT_INVALID);
    assert_null(chain);
}

static remat_tape_options defaults(void)
{
    remat_tape_options options;
    remat_tape_options_init(&options);
    return options;
}

static void options_that_do_not_exist(void **state)
{
    fixture *f = *state;
    remat_profile *profile = toy_equal_profile(f->context, 4, 128);
    remat_plan *plan;
    toy t;
    toy_begin(&t, profile, 4, false);
    expect_ok(f, make_plan(f, profile, "none", REMAT_NO_BUDGET, REMAT_COUNT_PEAK, &plan));
    options_case all[] = {{"store", defaults()},     {"verify", defaults()},        {"overflow", defaults()},
                          {"element", defaults()},   {"element", defaults()},       {"verify", defaults()},
                          {"directory", defaults()}, {"store_planned", defaults()}, {"plan_path", defaults()},
                          {"strategy", defaults()},  {"strategy", defaults()}};
    all[0].options.store = (remat_tape_store)9;
    all[1].options.verify = (remat_tape_verify)9;
    all[2].options.overflow = (remat_overflow)9;
    all[3].options.element = (remat_element)9;
    all[4].options.element = REMAT_BYTES;
    all[4].options.store = REMAT_TAPE_FP16;
    all[5].options.verify = REMAT_VERIFY_HASHES;
    all[5].options.store = REMAT_TAPE_BF16;
    all[6].options.store = REMAT_TAPE_DISK;
    all[6].options.directory = NULL;
    all[7].options.store_planned = true;
    all[8].options.plan = plan;
    all[8].options.plan_path = "plan.json";
    all[9].options.plan = plan;
    all[9].options.strategy = "full";
    all[10].options.plan_path = "plan.json";
    all[10].options.strategy = "full";
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        expect_refused(f, profile, &t, &all[i], false);
    remat_plan_destroy(plan);
    toy_end(&t);
    remat_profile_destroy(profile);
}

static void options_that_an_online_tape_has_not(void **state)
{
    fixture *f = *state;
    remat_profile *profile = toy_equal_profile(f->context, 1, 128);
    remat_plan *plan;
    toy t;
    toy_begin(&t, profile, 1, true);
    expect_ok(f, make_plan(f, profile, "none", REMAT_NO_BUDGET, REMAT_COUNT_PEAK, &plan));
    options_case all[] = {{"strategy", defaults()}, {"strategy", defaults()}, {"strategy", defaults()},
                          {"store", defaults()},    {"store", defaults()},    {"verify", defaults()}};
    all[0].options.strategy = "full";
    all[1].options.plan = plan;
    all[2].options.plan_path = "plan.json";
    all[3].options.store = REMAT_TAPE_FP16;
    all[4].options.store = REMAT_TAPE_DISK;
    all[5].options.verify = REMAT_VERIFY_COPIES;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        expect_refused(f, profile, &t, &all[i], true);
    remat_tape_callbacks callbacks = toy_callbacks(&t);
    remat_tape *tape;
    expect_status(f, remat_tape_create_online(f->context, profile, 0, &callbacks, NULL, &tape), REMAT_INVALID);
    assert_null(tape);
    expect_status(f, remat_tape_create_online(f->context, profile, UINT32_MAX, &callbacks, NULL, &tape), REMAT_INVALID);
    assert_null(tape);
    /* A budget below what the slots take is refused with the bytes that would do, and these bytes do. */
    remat_tape_options small = defaults();
    uint64_t least = 0;
    small.budget_bytes = 100;
    small.least_bytes = &least;
    expect_status(f, remat_tape_create_online(f->context, profile, 3, &callbacks, &small, &tape), REMAT_INFEASIBLE);
    expect_budget_error(f, 100, least);
    small.budget_bytes = least;
    expect_ok(f, remat_tape_create_online(f->context, profile, 3, &callbacks, &small, &tape));
    assert_int_equal(remat_tape_arena_bytes(tape), small.budget_bytes);
    assert_int_equal(least, 0);
    assert_int_equal(remat_tape_forwards(tape, 0), 0);
    assert_null(remat_tape_plan(tape));
    remat_tape_destroy(tape);
    remat_plan_destroy(plan);
    toy_end(&t);
    remat_profile_destroy(profile);
}

static void profiles_that_do_not_fit(void **state)
{
    fixture *f = *state;
    remat_tape_callbacks callbacks = {toy_forward, toy_backward, toy_loss, NULL};
    remat_tape_options half = defaults();
    half.store = REMAT_TAPE_FP16;
    remat_tape *tape;
    for (int odd_output = 0; odd_output < 2; odd_output++) {
        remat_profile *profile;
        remat_layer_options layer;
        remat_layer_options_init(&layer);
        layer.activation_bytes = odd_output ? 8 : 7;
        layer.output_bytes = odd_output ? 6 : 4;
        expect_ok(f, remat_profile_create(f->context, &profile));
        expect_ok(f, remat_profile_add_layer(profile, &layer));
        expect_status(f, remat_tape_create(f->context, profile, &callbacks, &half, &tape), REMAT_INVALID);
        assert_string_equal(remat_context_error(f->context)->field, odd_output ? "output_bytes" : "activation_bytes");
        assert_int_equal(remat_context_error(f->context)->layer, 0);
        remat_profile_destroy(profile);
    }
    /* An online tape: exactly one layer, and one size for all that passes between steps. */
    remat_profile *two = toy_equal_profile(f->context, 2, 128), *one = toy_equal_profile(f->context, 1, 128);
    expect_status(f, remat_tape_create_online(f->context, two, 3, &callbacks, NULL, &tape), REMAT_INVALID);
    assert_string_equal(remat_context_error(f->context)->field, "layers");
    expect_ok(f, remat_profile_set_input_gradient_bytes(one, 64));
    expect_status(f, remat_tape_create_online(f->context, one, 3, &callbacks, NULL, &tape), REMAT_INVALID);
    assert_string_equal(remat_context_error(f->context)->field, "input_gradient_bytes");
    expect_ok(f, remat_profile_set_input_gradient_bytes(one, 0));
    expect_ok(f, remat_tape_create_online(f->context, one, 3, &callbacks, NULL, &tape));
    remat_tape_destroy(tape);
    expect_ok(f, remat_profile_set_input_bytes(one, 64));
    expect_status(f, remat_tape_create_online(f->context, one, 3, &callbacks, NULL, &tape), REMAT_INVALID);
    assert_string_equal(remat_context_error(f->context)->field, "input_bytes");
    remat_profile_destroy(one);
    remat_profile_destroy(two);
}

static void functions_that_are_missing(void **state)
{
    fixture *f = *state;
    remat_profile *profile = toy_equal_profile(f->context, 1, 128);
    static const char *const fields[] = {"forward", "backward", "loss"};
    for (int i = 0; i < 3; i++) {
        remat_tape_callbacks callbacks = {i == 0 ? NULL : toy_forward, i == 1 ? NULL : toy_backward,
                                          i == 2 ? NULL : toy_loss, NULL};
        remat_tape *tape;
        expect_status(f, remat_tape_create(f->context, profile, &callbacks, NULL, &tape), REMAT_INVALID);
        assert_string_equal(remat_context_error(f->context)->field, fields[i]);
        expect_status(f, remat_tape_create_online(f->context, profile, 2, &callbacks, NULL, &tape), REMAT_INVALID);
        assert_null(tape);
    }
    remat_profile_destroy(profile);
}

static void a_plan_that_is_not_feasible(void **state)
{
    fixture *f = *state;
    remat_profile *profile = toy_equal_profile(f->context, 4, 128);
    toy t;
    toy_begin(&t, profile, 4, false);
    remat_tape_callbacks callbacks = toy_callbacks(&t);
    remat_tape_options options = defaults();
    remat_plan *plan;
    remat_tape *tape;
    expect_status(f, make_plan(f, profile, "full", 10, REMAT_COUNT_PEAK, &plan), REMAT_INFEASIBLE);
    options.plan = plan;
    remat_status status = remat_tape_create(f->context, profile, &callbacks, &options, &tape);
    assert_true(status == REMAT_INFEASIBLE || status == REMAT_INVALID);
    assert_null(tape);
    remat_plan_destroy(plan);
    /* A plan in a budget for the arena that it does not keep to. */
    plan = NULL;
    expect_ok(f, make_plan(f, profile, "none", REMAT_NO_BUDGET, REMAT_COUNT_PEAK, &plan));
    options.plan = plan;
    options.budget_bytes = 64;
    uint64_t least = 0;
    options.least_bytes = &least;
    expect_status(f, remat_tape_create(f->context, profile, &callbacks, &options, &tape), REMAT_INFEASIBLE);
    assert_true(least > 64);
    options.budget_bytes = least;
    expect_ok(f, remat_tape_create(f->context, profile, &callbacks, &options, &tape));
    remat_tape_destroy(tape);
    remat_plan_destroy(plan);
    toy_end(&t);
    remat_profile_destroy(profile);
}

static void phases_have_names(void **state)
{
    (void)state;
    assert_string_equal(remat_tape_phase_name(REMAT_PHASE_RECOMPUTE), "recompute");
    assert_string_equal(remat_tape_phase_name(REMAT_PHASE_BACKWARD), "backward");
    assert_string_equal(remat_tape_phase_name((remat_tape_phase)4), "unknown");
    assert_string_equal(remat_precision_name(REMAT_BF16), "bf16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(options_that_do_not_exist),   FIXTURE_TEST(options_that_an_online_tape_has_not),
        FIXTURE_TEST(profiles_that_do_not_fit),    FIXTURE_TEST(functions_that_are_missing),
        FIXTURE_TEST(a_plan_that_is_not_feasible), cmocka_unit_test(phases_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
