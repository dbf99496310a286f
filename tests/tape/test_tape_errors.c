#include "test_tape_toy.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

/* ---- errors of the user's own ---- */

typedef struct failing_case {
    remat_profile *profile;
    toy t;
    remat_tape_options options;
    remat_tape *tape;
    unsigned char input[300], got[300], wanted[300];
} failing_case;

static void begin(fixture *f, failing_case *c, uint32_t layers, const remat_tape_options *options)
{
    test_random random = {17};
    toy_traits traits = {layers, layers, 300, true, false, true};
    memset(c, 0, sizeof *c);
    c->profile = toy_profile(f->context, &random, &traits);
    toy_begin(&c->t, c->profile, layers, false);
    c->options = *options;
    remat_tape_callbacks callbacks = toy_callbacks(&c->t);
    expect_ok(f, remat_tape_create(f->context, c->profile, &callbacks, options, &c->tape));
    toy_reference(&c->t, options->seed, 0, c->input, c->wanted);
    memset(c->t.gradients, 0, layers * sizeof *c->t.gradients);
}

static void end(failing_case *c)
{
    assert_int_equal(c->t.wrong, 0);
    remat_tape_destroy(c->tape);
    toy_end(&c->t);
    remat_profile_destroy(c->profile);
}

static void expect_right_run(fixture *f, failing_case *c)
{
    remat_tape_set_step(c->tape, 0);
    expect_ok(f, remat_tape_run(c->tape, c->input, c->got));
    assert_memory_equal(c->got, c->wanted, remat_profile_input_gradient_bytes(c->profile));
}

static const struct {
    const char *strategy;
    remat_tape_store store;
} kinds[] = {{"none", REMAT_TAPE_MEMORY},
             {"revolve:3", REMAT_TAPE_MEMORY},
             {"sqrt", REMAT_TAPE_DISK},
             {"none", REMAT_TAPE_DISK},
             {"online:3", REMAT_TAPE_DISK}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void callback_errors_come_back_unchanged(void **state)
{
    fixture *f = *state;
    static const int codes[] = {1, 5, 42, -7, 1 << 30};
    for (int kind = 0; kind < KINDS; kind++) {
        remat_tape_options options;
        remat_tape_options_init(&options);
        options.strategy = kinds[kind].strategy;
        options.store = kinds[kind].store;
        options.directory = toy_directory();
        options.write_steps = options.read_steps = 1;
        failing_case c;
        begin(f, &c, 25, &options);
        expect_right_run(f, &c);
        uint64_t calls = c.t.calls, held = f->memory.bytes, allocations = f->memory.calls;
        for (uint64_t at = 1; at <= calls; at++) {
            c.t.calls = 0;
            c.t.fail_at = at;
            c.t.fail_with = codes[at % 5];
            remat_status status = remat_tape_run(c.tape, c.input, c.got);
            assert_int_equal((int)status, codes[at % 5]);
            const remat_error *error = remat_context_error(f->context);
            assert_int_equal((int)error->status, codes[at % 5]);
            assert_string_equal(error->field, remat_tape_phase_name(c.t.failed_phase));
            assert_true(c.t.failed_phase == REMAT_PHASE_LOSS ? error->layer == REMAT_NOWHERE
                                                             : error->layer == c.t.failed_layer);
            expect_message(f, "the callback returned");
            assert_int_equal(remat_tape_step(c.tape), 1);
            assert_int_equal(f->memory.bytes, held);
            if (at % 7 == 0)
                expect_right_run(f, &c);
        }
        c.t.fail_at = 0;
        expect_right_run(f, &c);
        assert_int_equal(f->memory.calls, allocations); /* not one allocation in all those runs */
        end(&c);
    }
}

typedef struct watcher {
    uint64_t calls, stop_at, total;
    unsigned phases[4];
    bool in_order;
} watcher;

static int watch(void *user, uint64_t done, uint64_t total, remat_tape_phase phase, uint32_t layer)
{
    watcher *w = user;
    (void)layer;
    w->in_order &= done == ++w->calls;
    w->total = total;
    w->phases[phase]++;
    return w->calls == w->stop_at ? 99 : 0;
}

static void progress_is_told_and_may_stop_the_run(void **state)
{
    fixture *f = *state;
    watcher w = {.in_order = true};
    remat_tape_options options;
    remat_tape_options_init(&options);
    options.strategy = "sqrt";
    options.progress = watch;
    options.progress_user = &w;
    failing_case c;
    begin(f, &c, 25, &options);
    expect_right_run(f, &c);
    assert_true(w.in_order && w.calls == w.total && w.calls == c.t.calls);
    assert_int_equal(w.phases[REMAT_PHASE_FORWARD], 25);
    assert_int_equal(w.phases[REMAT_PHASE_RECOMPUTE], 25);
    assert_int_equal(w.phases[REMAT_PHASE_LOSS], 1);
    assert_int_equal(w.phases[REMAT_PHASE_BACKWARD], 25);
    w = (watcher){.stop_at = 30, .in_order = true};
    assert_int_equal((int)remat_tape_run(c.tape, c.input, c.got), 99);
    expect_message(f, "the progress function returned 99");
    assert_int_equal(w.calls, 30);
    w.stop_at = 0;
    expect_right_run(f, &c);
    end(&c);
}

/* ---- memory that runs out ---- */

/* Makes a tape and runs it; true where everything went well. */
static bool make_and_run(fixture *f, const remat_profile *profile, toy *t, const remat_tape_options *options)
{
    remat_tape_callbacks callbacks = toy_callbacks(t);
    remat_tape *tape;
    unsigned char input[300] = {0}, got[300];
    remat_status status = remat_tape_create(f->context, profile, &callbacks, options, &tape);
    if (status == REMAT_OK)
        status = remat_tape_run(tape, input, got);
    remat_tape_destroy(tape);
    if (status != REMAT_OK)
        assert_int_equal(status, REMAT_NO_MEMORY);
    return status == REMAT_OK;
}

static void no_memory_leaks_when_it_runs_out(void **state)
{
    fixture *f = *state;
    test_random random = {23};
    toy_traits traits = {14, 14, 300, true, false, true};
    remat_profile *profile = toy_profile(f->context, &random, &traits);
    toy t;
    toy_begin(&t, profile, 14, false);
    uint64_t held = f->memory.bytes, failures = 0;
    for (int kind = 0; kind < 2 * KINDS; kind++) {
        remat_tape_options options;
        remat_tape_options_init(&options);
        options.strategy = kind < KINDS ? kinds[kind % KINDS].strategy : NULL;
        options.budget_bytes = kind < KINDS ? REMAT_NO_BUDGET : 6000;
        options.store = kinds[kind % KINDS].store;
        options.directory = toy_directory();
        options.write_steps = options.read_steps = 1;
        options.verify = (remat_tape_verify)(kind % 3);
        bool done = false;
        for (uint64_t at = 1; !done; at++) {
            f->memory.fail_at = f->memory.calls + at;
            done = make_and_run(f, profile, &t, &options);
            failures += !done;
            f->memory.fail_at = 0;
            assert_int_equal(f->memory.bytes, held);
        }
    }
    print_message("%llu failed allocations\n", (unsigned long long)failures);
    assert_true(failures > 100);
    toy_end(&t);
    remat_profile_destroy(profile);
}

/* A tape whose arena could not be had can be run later. */
static void the_arena_can_be_had_later(void **state)
{
    fixture *f = *state;
    remat_tape_options options;
    remat_tape_options_init(&options);
    failing_case c;
    begin(f, &c, 8, &options);
    f->memory.fail_at = f->memory.calls + 1;
    expect_status(f, remat_tape_run(c.tape, c.input, c.got), REMAT_NO_MEMORY);
    f->memory.fail_at = 0;
    expect_right_run(f, &c);
    end(&c);
}

/* ---- wrong use ---- */

static void wrong_use_is_told(void **state)
{
    fixture *f = *state;
    remat_profile *profile = toy_equal_profile(f->context, 4, 128), *other = toy_equal_profile(f->context, 5, 128);
    toy t;
    toy_begin(&t, profile, 4, false);
    remat_tape_callbacks callbacks = toy_callbacks(&t), missing = callbacks;
    remat_tape_options options;
    remat_tape *tape;
    remat_plan *plan;
    missing.loss = NULL;
    expect_status(f, remat_tape_create(f->context, profile, &missing, NULL, &tape), REMAT_INVALID);
    expect_message(f, "loss: missing");
    remat_tape_options_init(&options);
    options.struct_size = 3;
    expect_status(f, remat_tape_create(f->context, profile, &callbacks, &options, &tape), REMAT_INVALID);
    expect_message(f, "remat_tape_options_init");
    remat_tape_options_init(&options);
    options.strategy = "nothing";
    expect_status(f, remat_tape_create(f->context, profile, &callbacks, &options, &tape), REMAT_INVALID);
    expect_message(f, "there is no strategy");
    remat_tape_options_init(&options);
    options.store_planned = true;
    expect_status(f, remat_tape_create(f->context, profile, &callbacks, &options, &tape), REMAT_INVALID);
    remat_tape_options_init(&options);
    options.plan_path = "/there/is/no/plan.json";
    expect_status(f, remat_tape_create(f->context, profile, &callbacks, &options, &tape), REMAT_IO);
    expect_ok(f, make_plan(f, other, "none", REMAT_NO_BUDGET, REMAT_COUNT_PEAK, &plan));
    remat_tape_options_init(&options);
    options.plan = plan;
    expect_status(f, remat_tape_create(f->context, profile, &callbacks, &options, &tape), REMAT_CHECK_FAILED);
    expect_message(f, "not legal");
    options.strategy = "none";
    expect_status(f, remat_tape_create(f->context, other, &callbacks, &options, &tape), REMAT_INVALID);
    remat_plan_destroy(plan);
    expect_ok(f, remat_tape_create(f->context, profile, &callbacks, NULL, &tape));
    expect_status(f, remat_tape_run(tape, NULL, NULL), REMAT_INVALID);
    expect_message(f, "input: missing");
    expect_status(f, remat_tape_begin(tape, NULL), REMAT_INVALID);
    expect_status(f, remat_tape_advance(tape), REMAT_INVALID);
    expect_status(f, remat_tape_reverse(tape, NULL), REMAT_INVALID);
    unsigned char input[128] = {0};
    expect_ok(f, remat_tape_run(tape, input, NULL)); /* the gradient may be left where it is */
    remat_tape_destroy(tape);
    remat_tape_destroy(NULL);
    toy_end(&t);
    remat_profile_destroy(profile);
    remat_profile_destroy(other);
}

static int run_myself(void *user, const remat_tape_call *call)
{
    remat_tape **tape = user;
    (void)call;
    return (int)remat_tape_run(*tape, "", NULL);
}

static void a_callback_cannot_run_its_own_tape(void **state)
{
    fixture *f = *state;
    remat_profile *profile = toy_equal_profile(f->context, 4, 0);
    remat_tape *tape;
    remat_tape_callbacks callbacks = {run_myself, run_myself, run_myself, &tape};
    expect_ok(f, remat_tape_create(f->context, profile, &callbacks, NULL, &tape));
    expect_status(f, remat_tape_run(tape, NULL, NULL), REMAT_INVALID);
    expect_message(f, "layer 0");
    remat_tape_destroy(tape);
    remat_profile_destroy(profile);
}

/* ---- what is not live cannot be touched ---- */

#ifdef __SANITIZE_ADDRESS__
typedef struct spy {
    toy t;
    const void *last_gradient; /* that the backward before this one read: it was dropped */
    unsigned looked, dead, past_end;
} spy;

static int spy_forward(void *user, const remat_tape_call *call)
{
    spy *s = user;
    s->past_end += __asan_address_is_poisoned((unsigned char *)call->output + 100) != 0;
    return toy_forward(&s->t, call);
}

static int spy_backward(void *user, const remat_tape_call *call)
{
    spy *s = user;
    if (s->last_gradient && s->last_gradient != call->input_gradient) {
        s->looked++;
        s->dead += __asan_address_is_poisoned(s->last_gradient) != 0;
    }
    s->last_gradient = call->output_gradient;
    return toy_backward(&s->t, call);
}

static int spy_loss(void *user, const remat_tape_call *call)
{
    spy *s = user;
    return toy_loss(&s->t, call);
}

static void dead_rooms_are_poisoned(void **state)
{
    fixture *f = *state;
    remat_profile *profile = toy_equal_profile(f->context, 20, 100);
    spy s = {0};
    toy_begin(&s.t, profile, 20, false);
    remat_tape_callbacks callbacks = {spy_forward, spy_backward, spy_loss, &s};
    remat_tape_options options;
    remat_tape *tape;
    unsigned char input[100] = {0};
    remat_tape_options_init(&options);
    options.strategy = "full:20";
    expect_ok(f, remat_tape_create(f->context, profile, &callbacks, &options, &tape));
    expect_ok(f, remat_tape_run(tape, input, NULL));
    assert_true(s.looked > 0);
    assert_int_equal(s.dead, s.looked);
    assert_int_equal(s.past_end, 40); /* 100 bytes are 128 of room: the rest is not the callback's */
    assert_int_equal(s.t.wrong, 0);
    remat_tape_destroy(tape);
    toy_end(&s.t);
    remat_profile_destroy(profile);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(callback_errors_come_back_unchanged),
        FIXTURE_TEST(progress_is_told_and_may_stop_the_run),
        FIXTURE_TEST(no_memory_leaks_when_it_runs_out),
        FIXTURE_TEST(the_arena_can_be_had_later),
        FIXTURE_TEST(wrong_use_is_told),
        FIXTURE_TEST(a_callback_cannot_run_its_own_tape),
#ifdef __SANITIZE_ADDRESS__
        FIXTURE_TEST(dead_rooms_are_poisoned),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
