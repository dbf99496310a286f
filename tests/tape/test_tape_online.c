#include "test_tape_toy.h"

typedef struct online_case {
    remat_profile *layer;
    toy t;
    remat_tape *tape;
} online_case;

static remat_profile *one_layer(fixture *f, uint64_t output, uint64_t activation, uint64_t forward, uint64_t backward,
                                uint64_t loss)
{
    remat_profile *profile;
    remat_layer_options layer;
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_set_input_bytes(profile, output));
    expect_ok(f, remat_profile_set_loss_workspace_bytes(profile, loss));
    remat_layer_options_init(&layer);
    layer.output_bytes = output;
    layer.activation_bytes = activation;
    layer.forward_workspace_bytes = forward;
    layer.backward_workspace_bytes = backward;
    expect_ok(f, remat_profile_add_layer(profile, &layer));
    return profile;
}

/* Runs a chain of n steps; false where the gradient is not that of the reference. */
static bool run_agrees(fixture *f, online_case *c, uint32_t n)
{
    uint64_t bytes = toy_x_bytes(&c->t, 0);
    unsigned char *input = malloc(bytes + 1), *got = malloc(bytes + 1), *wanted = malloc(bytes + 1);
    c->t.layers = n;
    memset(c->t.gradients, 0, n * sizeof *c->t.gradients);
    toy reference;
    toy_begin(&reference, c->layer, n, true);
    toy_draw_out(n, input, bytes);
    toy_draw_out(1, got, bytes);
    memcpy(wanted, got, bytes);
    toy_reference(&reference, 0, remat_tape_step(c->tape), input, wanted);
    expect_ok(f, remat_tape_begin(c->tape, input));
    assert_memory_equal(remat_tape_output(c->tape), input, bytes);
    for (uint32_t i = 0; i < n; i++) {
        expect_ok(f, remat_tape_advance(c->tape));
        assert_non_null(remat_tape_output(c->tape));
    }
    expect_ok(f, remat_tape_reverse(c->tape, got));
    assert_null(remat_tape_output(c->tape));
    bool same = memcmp(got, wanted, bytes) == 0 && c->t.wrong == 0 &&
                memcmp(c->t.gradients, reference.gradients, n * sizeof *reference.gradients) == 0;
    toy_end(&reference);
    free(input);
    free(got);
    free(wanted);
    return same;
}

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static void chains_of_unknown_length_have_the_right_gradient(void **state)
{
    fixture *f = *state;
    static const uint64_t sizes[][5] = {
        {64, 64, 0, 0, 0}, {100, 300, 0, 50, 0}, {128, 200, 700, 0, 2000}, {0, 0, 0, 0, 0}};
    uint32_t longest = LESS_WHEN_SANITIZED(70, 40);
    for (size_t k = 0; k < 4; k++)
        for (uint64_t slots = 1; slots <= 10; slots++) {
            const uint64_t *size = sizes[k];
            online_case c = {.layer = one_layer(f, size[0], size[1], size[2], size[3], size[4])};
            toy_begin(&c.t, c.layer, 100, true);
            remat_tape_callbacks callbacks = toy_callbacks(&c.t);
            expect_ok(f, remat_tape_create_online(f->context, c.layer, slots, &callbacks, NULL, &c.tape));
            uint64_t workspace = size[2] > size[3] ? size[2] : size[3];
            workspace = size[4] > workspace ? size[4] : workspace;
            assert_int_equal(remat_tape_arena_bytes(c.tape),
                             (slots + 3) * rounded(size[0]) + rounded(size[1]) + rounded(workspace));
            for (uint32_t n = 0; n <= longest; n += n < 20 ? 1 : 7)
                assert_true(run_agrees(f, &c, n));
            assert_true(remat_tape_plan(c.tape) == NULL);
            assert_int_equal(remat_tape_forwards(c.tape, 0), 0);
            remat_tape_destroy(c.tape);
            toy_end(&c.t);
            remat_profile_destroy(c.layer);
        }
}

/* However long the chain, what is held does not grow. */
static void memory_does_not_grow_with_the_chain(void **state)
{
    fixture *f = *state;
    uint32_t n = LESS_WHEN_SANITIZED(50000, 5000);
    online_case c = {.layer = one_layer(f, 64, 64, 0, 0, 0)};
    toy_begin(&c.t, c.layer, n, true);
    remat_tape_callbacks callbacks = toy_callbacks(&c.t);
    expect_ok(f, remat_tape_create_online(f->context, c.layer, 20, &callbacks, NULL, &c.tape));
    assert_true(run_agrees(f, &c, 100));
    uint64_t peak = remat_context_peak_bytes(f->context), calls = f->memory.calls;
    assert_true(run_agrees(f, &c, n));
    assert_int_equal(remat_context_peak_bytes(f->context), peak);
    assert_int_equal(f->memory.calls, calls); /* not a single allocation */
    remat_tape_statistics statistics;
    remat_tape_get_statistics(c.tape, &statistics);
    assert_int_equal(statistics.forwards, n);
    assert_int_equal(statistics.backwards, n);
    assert_int_equal(statistics.avoided_bytes, 64u * n);
    assert_int_equal(statistics.runs, 2);
    remat_tape_destroy(c.tape);
    toy_end(&c.t);
    remat_profile_destroy(c.layer);
}

static void errors_end_the_chain(void **state)
{
    fixture *f = *state;
    unsigned char input[64] = {0};
    online_case c = {.layer = one_layer(f, 64, 128, 0, 0, 0)};
    toy_begin(&c.t, c.layer, 30, true);
    remat_tape_callbacks callbacks = toy_callbacks(&c.t);
    expect_ok(f, remat_tape_create_online(f->context, c.layer, 3, &callbacks, NULL, &c.tape));
    assert_true(run_agrees(f, &c, 30));
    uint64_t calls = c.t.calls, held = f->memory.bytes;
    for (uint64_t at = 1; at <= calls; at++) {
        remat_status status;
        c.t.calls = 0;
        c.t.fail_at = at;
        c.t.fail_with = -3;
        expect_ok(f, remat_tape_begin(c.tape, input));
        status = REMAT_OK;
        for (uint32_t i = 0; i < 30 && status == REMAT_OK; i++)
            status = remat_tape_advance(c.tape);
        if (status == REMAT_OK)
            status = remat_tape_reverse(c.tape, NULL);
        assert_int_equal((int)status, -3);
        assert_string_equal(remat_context_error(f->context)->field, remat_tape_phase_name(c.t.failed_phase));
        assert_int_equal(f->memory.bytes, held);
        expect_status(f, remat_tape_advance(c.tape), REMAT_INVALID);
        expect_status(f, remat_tape_reverse(c.tape, NULL), REMAT_INVALID);
    }
    c.t.fail_at = 0;
    assert_true(run_agrees(f, &c, 30));
    /* A chain that is begun again, or never reversed, is given up. */
    expect_ok(f, remat_tape_begin(c.tape, input));
    expect_ok(f, remat_tape_advance(c.tape));
    assert_true(run_agrees(f, &c, 9));
    expect_ok(f, remat_tape_begin(c.tape, input));
    expect_ok(f, remat_tape_advance(c.tape));
    remat_tape_destroy(c.tape);
    toy_end(&c.t);
    remat_profile_destroy(c.layer);
}

static void wrong_use_is_told(void **state)
{
    fixture *f = *state;
    remat_profile *layer = one_layer(f, 64, 128, 0, 0, 0), *two = toy_equal_profile(f->context, 2, 64);
    toy t;
    toy_begin(&t, layer, 3, true);
    remat_tape_callbacks callbacks = toy_callbacks(&t);
    remat_tape_options options;
    remat_tape *tape;
    uint64_t least = 0;
    expect_status(f, remat_tape_create_online(f->context, layer, 0, &callbacks, NULL, &tape), REMAT_INVALID);
    expect_status(f, remat_tape_create_online(f->context, two, 3, &callbacks, NULL, &tape), REMAT_INVALID);
    expect_message(f, "exactly one layer");
    remat_tape_options_init(&options);
    options.strategy = "none";
    expect_status(f, remat_tape_create_online(f->context, layer, 3, &callbacks, &options, &tape), REMAT_INVALID);
    remat_tape_options_init(&options);
    options.budget_bytes = 64 * 6 + 127;
    options.least_bytes = &least;
    expect_status(f, remat_tape_create_online(f->context, layer, 3, &callbacks, &options, &tape), REMAT_INFEASIBLE);
    assert_int_equal(least, 64 * 6 + 128);
    expect_budget_error(f, 64 * 6 + 127, least);
    assert_string_equal(remat_context_error(f->context)->layer_name, remat_profile_layer(layer, 0)->name);
    options.budget_bytes = least;
    expect_ok(f, remat_tape_create_online(f->context, layer, 3, &callbacks, &options, &tape));
    expect_status(f, remat_tape_run(tape, NULL, NULL), REMAT_INVALID);
    expect_status(f, remat_tape_advance(tape), REMAT_INVALID);
    expect_message(f, "remat_tape_begin");
    expect_status(f, remat_tape_begin(tape, NULL), REMAT_INVALID);
    remat_tape_destroy(tape);
    expect_ok(f, remat_profile_set_input_bytes(layer, 32));
    expect_status(f, remat_tape_create_online(f->context, layer, 3, &callbacks, NULL, &tape), REMAT_INVALID);
    expect_message(f, "input_bytes");
    toy_end(&t);
    remat_profile_destroy(layer);
    remat_profile_destroy(two);
}

static void no_memory_leaks_when_it_runs_out(void **state)
{
    fixture *f = *state;
    remat_profile *layer = one_layer(f, 60, 128, 0, 0, 0);
    toy t;
    toy_begin(&t, layer, 40, true);
    remat_tape_callbacks callbacks = toy_callbacks(&t);
    unsigned char input[60] = {0};
    uint64_t held = f->memory.bytes;
    remat_status status = REMAT_NO_MEMORY;
    for (uint64_t at = 1; status != REMAT_OK; at++) {
        remat_tape *tape;
        f->memory.fail_at = f->memory.calls + at;
        status = remat_tape_create_online(f->context, layer, 20, &callbacks, NULL, &tape);
        if (status == REMAT_OK)
            status = remat_tape_begin(tape, input);
        for (int i = 0; i < 40 && status == REMAT_OK; i++)
            status = remat_tape_advance(tape);
        if (status == REMAT_OK)
            status = remat_tape_reverse(tape, NULL);
        remat_tape_destroy(tape);
        f->memory.fail_at = 0;
        assert_true(status == REMAT_OK || status == REMAT_NO_MEMORY);
        assert_int_equal(f->memory.bytes, held);
    }
    toy_end(&t);
    remat_profile_destroy(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(chains_of_unknown_length_have_the_right_gradient),
        FIXTURE_TEST(memory_does_not_grow_with_the_chain),
        FIXTURE_TEST(errors_end_the_chain),
        FIXTURE_TEST(wrong_use_is_told),
        FIXTURE_TEST(no_memory_leaks_when_it_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
