#include "tape/tape_object.h"
#include "test_tape_toy.h"

#include <errno.h>
#include <math.h>

/* ---- a chain of floats ---- */

enum { FLOATS = 100 };

/* x_{i+1} = sin(x_i) * scale + 0.1; the state is the output and the cosine. */
typedef struct floats {
    float scale;
    size_t state; /* how many floats a state has; 0: just those two. The others are 0 */
    uint32_t layers, exact_states, rounded_states;
    remat_precision precision;
    float states[64][2 * FLOATS]; /* as the first forward made them */
    float weight_gradient;
} floats;

static int float_forward(void *user, const remat_tape_call *call)
{
    floats *t = user;
    const float *x = call->input;
    float *out = call->output, *saved = call->saved;
    for (int i = 0; i < FLOATS; i++) {
        out[i] = sinf(x[i]) * t->scale + 0.1f;
        if (saved)
            saved[FLOATS + i] = cosf(x[i]);
    }
    for (size_t i = 2 * FLOATS; saved && i < t->state; i++)
        saved[i] = 0;
    if (saved && call->phase == REMAT_PHASE_FORWARD)
        memcpy(t->states[call->layer], saved, sizeof t->states[0]);
    return 0;
}

static int float_loss(void *user, const remat_tape_call *call)
{
    (void)user;
    for (int i = 0; i < FLOATS; i++)
        ((float *)call->input_gradient)[i] = ((const float *)call->input)[i];
    return 0;
}

static int float_backward(void *user, const remat_tape_call *call)
{
    floats *t = user;
    float *saved = call->saved, *gradient = call->input_gradient;
    const float *from = call->output_gradient;
    uint16_t half[2 * FLOATS];
    float rounded[2 * FLOATS];
    const half_kernels *kernels = half_kernels_list(0);
    if (t->precision != REMAT_FP32) {
        half_pack(kernels, t->precision, true, t->states[call->layer], half, 2 * FLOATS);
        half_unpack(kernels, t->precision, half, rounded, 2 * FLOATS);
        bool exact = memcmp(saved, t->states[call->layer], sizeof rounded) == 0;
        t->exact_states += exact;
        t->rounded_states += !exact && memcmp(saved, rounded, sizeof rounded) == 0;
    }
    for (int i = 0; i < FLOATS; i++) {
        gradient[i] = from[i] * saved[FLOATS + i] * t->scale;
        t->weight_gradient += from[i] * (saved[i] - 0.1f) / t->scale;
    }
    return 0;
}

static remat_profile *float_profile(fixture *f, uint32_t layers, size_t state)
{
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_set_input_bytes(profile, FLOATS * sizeof(float)));
    for (uint32_t i = 0; i < layers; i++) {
        remat_layer_options layer;
        remat_layer_options_init(&layer);
        layer.activation_bytes = (state ? state : 2 * FLOATS) * sizeof(float);
        layer.output_bytes = FLOATS * sizeof(float);
        layer.recompute_flops = 1;
        expect_ok(f, remat_profile_add_layer(profile, &layer));
    }
    return profile;
}

static remat_status run_floats(fixture *f, floats *t, const remat_tape_options *options, float *gradient,
                               remat_tape_statistics *statistics)
{
    remat_profile *profile = float_profile(f, t->layers, t->state);
    remat_tape_callbacks callbacks = {float_forward, float_backward, float_loss, t};
    remat_tape *tape;
    float input[FLOATS];
    for (int i = 0; i < FLOATS; i++)
        input[i] = 0.02f * (float)(i - 50);
    t->weight_gradient = 0;
    t->exact_states = t->rounded_states = 0;
    expect_ok(f, remat_tape_create(f->context, profile, &callbacks, options, &tape));
    remat_status status = remat_tape_run(tape, input, gradient);
    if (statistics)
        remat_tape_get_statistics(tape, statistics);
    remat_tape_destroy(tape);
    remat_profile_destroy(profile);
    return status;
}

static double relative_difference(const float *a, const float *b)
{
    double difference = 0, sum = 0;
    for (int i = 0; i < FLOATS; i++) {
        difference += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        sum += (double)a[i] * (double)a[i];
    }
    return sqrt(difference / sum);
}

/* ---- 16 bits ---- */

static void sixteen_bits_take_half_and_are_close(void **state)
{
    fixture *f = *state;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        floats t = {.scale = 1.2f, .layers = 40};
        float exact[FLOATS], rounded[FLOATS];
        remat_tape_statistics full, half;
        remat_tape_options options;
        remat_tape_options_init(&options);
        expect_ok(f, run_floats(f, &t, &options, exact, &full));
        float weight = t.weight_gradient;
        options.store = bf16 ? REMAT_TAPE_BF16 : REMAT_TAPE_FP16;
        t.precision = bf16 ? REMAT_BF16 : REMAT_FP16;
        expect_ok(f, run_floats(f, &t, &options, rounded, &half));
        /* The last state is used by the loss and then at once; all others waited. */
        assert_int_equal(t.exact_states, 1);
        assert_int_equal(t.rounded_states, 39);
        double away = relative_difference(exact, rounded), limit = bf16 ? 0.05 : 0.005;
        print_message("%s: gradient %.2g away, arena %llu of %llu bytes\n", bf16 ? "bf16" : "fp16", away,
                      (unsigned long long)half.arena_bytes, (unsigned long long)full.arena_bytes);
        assert_true(away > 0 && away < limit);
        assert_true(fabsf(t.weight_gradient - weight) < (float)limit * fabsf(weight));
        assert_true(half.arena_bytes < full.arena_bytes * 6 / 10);
        assert_int_equal(half.stored_bytes, 39 * 2 * FLOATS * sizeof(float));
        assert_int_equal(half.restored_bytes, half.stored_bytes);
        assert_int_equal(half.store.overflows, 0);
    }
}

/* Every plan can be run with 16 bits; what is made again starts from rounded numbers. */
static void sixteen_bits_go_with_every_strategy(void **state)
{
    fixture *f = *state;
    static const char *const strategies[] = {"none", "full", "sqrt", "every-nth:3", "revolve:4", "online:5", "largest:7"};
    floats t = {.scale = 1.1f, .layers = 30};
    float exact[FLOATS], rounded[FLOATS];
    remat_tape_options options;
    remat_tape_options_init(&options);
    expect_ok(f, run_floats(f, &t, &options, exact, NULL));
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++)
        for (uint32_t wait = 0; wait < 20; wait += 5) {
            remat_tape_statistics memory, half;
            options.strategy = strategies[i];
            options.store = REMAT_TAPE_MEMORY;
            float same[FLOATS];
            expect_ok(f, run_floats(f, &t, &options, same, &memory));
            assert_memory_equal(same, exact, sizeof exact);
            options.store = REMAT_TAPE_FP16;
            options.wait_steps = wait;
            expect_ok(f, run_floats(f, &t, &options, rounded, &half));
            assert_true(relative_difference(exact, rounded) < 0.01);
            assert_true(half.arena_bytes <= memory.arena_bytes + 1024);
        }
}

static void overflow_is_an_error_or_saturates_or_is_kept(void **state)
{
    fixture *f = *state;
    floats t = {.scale = 3e5f, .layers = 12};
    float exact[FLOATS], other[FLOATS];
    remat_tape_statistics statistics;
    remat_tape_options options;
    remat_tape_options_init(&options);
    expect_ok(f, run_floats(f, &t, &options, exact, NULL));
    options.store = REMAT_TAPE_FP16;
    expect_status(f, run_floats(f, &t, &options, other, &statistics), REMAT_CHECK_FAILED);
    expect_message(f, "layer 0: number 0 of its state");
    expect_message(f, "too large for fp16");
    assert_true(statistics.store.overflows > 0);
    options.overflow = REMAT_OVERFLOW_SATURATE;
    expect_ok(f, run_floats(f, &t, &options, other, &statistics));
    assert_true(statistics.store.overflows > 0);
    assert_int_equal(statistics.store.kept_full, 0);
    options.overflow = REMAT_OVERFLOW_KEEP_FULL;
    expect_ok(f, run_floats(f, &t, &options, other, &statistics));
    assert_memory_equal(other, exact, sizeof exact); /* every state has such numbers: all were kept in full */
    assert_int_equal(statistics.store.kept_full, 11);
    options.store = REMAT_TAPE_BF16;
    options.overflow = REMAT_OVERFLOW_ERROR;
    expect_ok(f, run_floats(f, &t, &options, other, &statistics));
    assert_int_equal(statistics.store.overflows, 0);
}

/* With the store in the plan's hands only the layers that it names are rounded. */
static void a_plan_can_name_the_store(void **state)
{
    fixture *f = *state;
    floats t = {.scale = 1.1f, .layers = 3, .precision = REMAT_FP16};
    static const char text[] =
        "{\"format\": \"remat-plan\", \"version\": 1, \"schedule\": ["
        "{\"op\": \"forward\", \"layer\": 0, \"save\": \"keep\"}, {\"op\": \"forward\", \"layer\": 1, \"save\": \"fp16\"},"
        "{\"op\": \"forward\", \"layer\": 2, \"save\": \"keep\"}, {\"op\": \"loss\"}, {\"op\": \"backward\", \"layer\": 2},"
        "{\"op\": \"drop\", \"what\": \"x\", \"layer\": 2},"
        "{\"op\": \"backward\", \"layer\": 1}, {\"op\": \"backward\", \"layer\": 0}]}";
    remat_profile *profile = float_profile(f, 3, 0), *chain;
    remat_plan *plan;
    remat_tape_options options;
    float gradient[FLOATS];
    remat_tape_options_init(&options);
    options.store = REMAT_TAPE_FP16;
    options.store_planned = true;
    expect_ok(f, remat_tape_profile(f->context, profile, &options, &chain));
    assert_int_equal(remat_profile_layer(chain, 1)->mode_count, 2);
    assert_string_equal(remat_profile_layer(chain, 1)->modes[1].name, "fp16");
    assert_int_equal(remat_profile_layer(chain, 1)->modes[1].activation_bytes, 448); /* 800 is 832 rounded; its half */
    assert_false(remat_profile_layer(chain, 1)->modes[1].lossless);
    expect_ok(f, read_plan_text(f, text, chain, &plan));
    options.plan = plan;
    expect_ok(f, run_floats(f, &t, &options, gradient, NULL));
    assert_int_equal(t.exact_states, 2);
    assert_int_equal(t.rounded_states, 1);
    remat_plan_destroy(plan);
    remat_profile_destroy(chain);
    remat_profile_destroy(profile);
}

/* The planner itself chooses 16 bits where they save recomputation; lossy modes need no more permission than the choice
 * of the store. */
static void the_planner_chooses_the_store(void **state)
{
    fixture *f = *state;
    floats t = {.scale = 1.1f, .layers = 12, .state = 10 * FLOATS, .precision = REMAT_FP16};
    float exact[FLOATS], rounded[FLOATS];
    remat_tape_statistics all, within;
    remat_tape_options options;
    remat_tape_options_init(&options);
    expect_ok(f, run_floats(f, &t, &options, exact, &all));
    options.budget_bytes = all.arena_bytes * 8 / 10;
    expect_ok(f, run_floats(f, &t, &options, rounded, &within));
    assert_memory_equal(exact, rounded, sizeof exact);
    assert_true(within.recomputes > 0);
    options.store = REMAT_TAPE_FP16;
    options.store_planned = true;
    expect_ok(f, run_floats(f, &t, &options, rounded, &within));
    assert_int_equal(within.recomputes, 0);
    assert_true(t.rounded_states > 0 && t.exact_states > 0 && t.rounded_states + t.exact_states == 12);
    assert_true(within.arena_bytes <= options.budget_bytes);
    assert_true(relative_difference(exact, rounded) < 0.01);
    /* On disk nothing is rounded. */
    options.store = REMAT_TAPE_DISK;
    options.directory = toy_directory();
    options.write_steps = options.read_steps = 1;
    expect_ok(f, run_floats(f, &t, &options, rounded, &within));
    assert_memory_equal(exact, rounded, sizeof exact);
    assert_int_equal(within.recomputes, 0);
    assert_true(within.store.blocks_written > 0);
    assert_true(within.arena_bytes <= options.budget_bytes);
}

static void bytes_cannot_be_rounded(void **state)
{
    fixture *f = *state;
    remat_profile *profile = toy_equal_profile(f->context, 3, 62);
    remat_tape_callbacks callbacks = {float_forward, float_backward, float_loss, NULL};
    remat_tape_options options;
    remat_tape *tape;
    remat_tape_options_init(&options);
    options.store = REMAT_TAPE_FP16;
    expect_status(f, remat_tape_create(f->context, profile, &callbacks, &options, &tape), REMAT_INVALID);
    expect_message(f, "multiple of 4");
    options.element = REMAT_BYTES;
    expect_status(f, remat_tape_create(f->context, profile, &callbacks, &options, &tape), REMAT_INVALID);
    expect_message(f, "element");
    options.element = REMAT_FLOATS;
    options.verify = REMAT_VERIFY_HASHES;
    expect_status(f, remat_tape_create(f->context, profile, &callbacks, &options, &tape), REMAT_INVALID);
    expect_message(f, "verify");
    remat_profile_destroy(profile);
}

/* ---- disk ---- */

typedef struct disk_case {
    remat_profile *profile;
    toy t;
    remat_tape_options options;
    remat_tape *tape;
} disk_case;

static void disk_begin(fixture *f, disk_case *c, uint32_t layers, uint64_t bytes, const char *strategy)
{
    c->profile = toy_equal_profile(f->context, layers, bytes);
    toy_begin(&c->t, c->profile, layers, false);
    remat_tape_callbacks callbacks = toy_callbacks(&c->t);
    remat_tape_options_init(&c->options);
    c->options.strategy = strategy;
    c->options.element = REMAT_BYTES;
    c->options.store = REMAT_TAPE_DISK;
    c->options.directory = toy_directory();
    expect_ok(f, remat_tape_create(f->context, c->profile, &callbacks, &c->options, &c->tape));
}

static void disk_end(disk_case *c)
{
    remat_tape_destroy(c->tape);
    toy_end(&c->t);
    remat_profile_destroy(c->profile);
}

static void on_disk_the_arena_does_not_grow_with_the_chain(void **state)
{
    fixture *f = *state;
    uint64_t arena = 0;
    for (uint32_t layers = 100; layers <= 400; layers *= 2) {
        disk_case c;
        disk_begin(f, &c, layers, 4000, "none");
        assert_true(toy_agrees(f->context, c.tape, &c.t, 0, layers));
        remat_tape_statistics statistics;
        remat_tape_get_statistics(c.tape, &statistics);
        assert_true(statistics.store.blocks_written > layers - 12);
        assert_int_equal(statistics.store.blocks_read, statistics.store.blocks_written);
        assert_int_equal(statistics.store.bytes_written, statistics.store.blocks_written * 4000);
        assert_int_equal(statistics.stored_bytes, statistics.store.bytes_written);
        assert_true(arena == 0 || arena == statistics.arena_bytes);
        assert_true(statistics.arena_bytes <= 4032 * 12);
        arena = statistics.arena_bytes;
        disk_end(&c);
    }
}

/* A state that comes back several times is written once. */
static void a_state_is_written_once(void **state)
{
    fixture *f = *state;
    disk_case c;
    disk_begin(f, &c, 300, 640, "revolve:5");
    assert_true(toy_agrees(f->context, c.tape, &c.t, 0, 5));
    remat_tape_statistics statistics;
    remat_tape_get_statistics(c.tape, &statistics);
    assert_true(statistics.store.blocks_read > statistics.store.blocks_written);
    disk_end(&c);
}

/* ---- faults of the disk, one by one ---- */

typedef enum fault { FAULT_WRITE, FAULT_FULL, FAULT_SHORT, FAULT_READ, FAULT_END, FAULT_FLIP, FAULTS } fault;

typedef struct faulty_disk {
    disk_io system;
    fault kind;
    uint64_t writes, reads, fail_at; /* from 1 */
} faulty_disk;

static int faulty_open(void *user, const char *directory)
{
    faulty_disk *disk = user;
    return disk->system.open(NULL, directory);
}

static int faulty_reserve(void *user, int file, uint64_t bytes)
{
    faulty_disk *disk = user;
    return disk->system.reserve(NULL, file, bytes);
}

static int faulty_close(void *user, int file)
{
    faulty_disk *disk = user;
    return disk->system.close(NULL, file);
}

static ssize_t faulty_write(void *user, int file, const void *from, size_t bytes, uint64_t offset)
{
    faulty_disk *disk = user;
    if (++disk->writes == disk->fail_at && disk->kind <= FAULT_SHORT) {
        errno = disk->kind == FAULT_FULL ? ENOSPC : EIO;
        if (disk->kind != FAULT_SHORT)
            return -1;
        return bytes > 1 ? disk->system.write(NULL, file, from, bytes / 2, offset) : 0;
    }
    return disk->system.write(NULL, file, from, bytes, offset);
}

static ssize_t faulty_read(void *user, int file, void *to, size_t bytes, uint64_t offset)
{
    faulty_disk *disk = user;
    bool now = ++disk->reads == disk->fail_at;
    if (now && disk->kind == FAULT_READ) {
        errno = EIO;
        return -1;
    }
    if (now && disk->kind == FAULT_END)
        return 0;
    ssize_t got = disk->system.read(NULL, file, to, bytes, offset);
    if (now && disk->kind == FAULT_FLIP && got > 0)
        ((unsigned char *)to)[(size_t)got / 3] ^= 4;
    return got;
}

/* Either the run fails with REMAT_IO or, where the store could make up for it, the gradient is right; and the next run
 * is right in any case. */
static void faults_end_in_errors_and_never_in_wrong_gradients(void **state)
{
    fixture *f = *state;
    unsigned failed = 0, repaired = 0;
    for (int planned = 0; planned < 2; planned++)
        for (int kind = 0; kind < FAULTS; kind++)
            for (uint64_t at = 1; at < LESS_WHEN_SANITIZED(60u, 25u); at++) {
                disk_case c;
                disk_begin(f, &c, 40, 200, planned ? "revolve:6" : "none");
                faulty_disk disk = {.system = disk_io_system(), .kind = (fault)kind, .fail_at = at};
                disk_io io = {faulty_open, faulty_reserve, faulty_write, faulty_read, faulty_close, &disk};
                expect_ok(f, tape_store_open(c.tape, toy_directory(), &io));
                unsigned char input[200] = {1}, got[200], wanted[200];
                toy reference;
                toy_begin(&reference, c.profile, 40, false);
                toy_reference(&reference, 0, 0, input, wanted);
                remat_status status = remat_tape_run(c.tape, input, got);
                bool reached = (kind <= FAULT_SHORT ? disk.writes : disk.reads) >= at;
                if (status == REMAT_OK) {
                    assert_memory_equal(got, wanted, 200);
                    assert_true(!reached || kind == FAULT_SHORT);
                    repaired += reached;
                } else {
                    expect_status(f, status, REMAT_IO);
                    failed++;
                }
                disk.fail_at = 0;
                remat_tape_set_step(c.tape, 0);
                expect_ok(f, remat_tape_run(c.tape, input, got));
                assert_memory_equal(got, wanted, 200);
                toy_end(&reference);
                disk_end(&c);
            }
    print_message("%u faults reported, %u made up for\n", failed, repaired);
    assert_true(failed > 100);
}

/* ---- a slow disk ---- */

static ssize_t slow_write(void *user, int file, const void *from, size_t bytes, uint64_t offset)
{
    faulty_disk *disk = user;
    usleep(2000);
    return disk->system.write(NULL, file, from, bytes, offset);
}

static void a_disk_that_does_not_keep_up_is_told(void **state)
{
    fixture *f = *state;
    disk_case c;
    disk_begin(f, &c, 40, 200, "none");
    faulty_disk disk = {.system = disk_io_system()};
    disk_io io = {faulty_open, faulty_reserve, slow_write, faulty_read, faulty_close, &disk};
    expect_ok(f, tape_store_open(c.tape, toy_directory(), &io));
    assert_true(toy_agrees(f->context, c.tape, &c.t, 0, 3)); /* no room is given away before it is written */
    remat_tape_statistics statistics;
    remat_tape_get_statistics(c.tape, &statistics);
    assert_false(statistics.store.kept_up);
    assert_true(statistics.store.wait_ns > 20000000 && statistics.store_ns >= statistics.store.wait_ns);
    expect_text(remat_tape_remark(c.tape), "the disk did not keep up");
    disk_end(&c);
}

static void a_missing_directory_is_an_error(void **state)
{
    fixture *f = *state;
    remat_profile *profile = toy_equal_profile(f->context, 30, 100);
    toy t;
    toy_begin(&t, profile, 30, false);
    remat_tape_callbacks callbacks = toy_callbacks(&t);
    remat_tape_options options;
    remat_tape *tape;
    remat_tape_options_init(&options);
    options.store = REMAT_TAPE_DISK;
    options.directory = "/there/is/no/such/directory";
    expect_status(f, remat_tape_create(f->context, profile, &callbacks, &options, &tape), REMAT_IO);
    expect_message(f, "/there/is/no");
    assert_null(tape);
    toy_end(&t);
    remat_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(sixteen_bits_take_half_and_are_close),
        FIXTURE_TEST(sixteen_bits_go_with_every_strategy),
        FIXTURE_TEST(overflow_is_an_error_or_saturates_or_is_kept),
        FIXTURE_TEST(a_plan_can_name_the_store),
        FIXTURE_TEST(the_planner_chooses_the_store),
        FIXTURE_TEST(bytes_cannot_be_rounded),
        FIXTURE_TEST(on_disk_the_arena_does_not_grow_with_the_chain),
        FIXTURE_TEST(a_state_is_written_once),
        FIXTURE_TEST(faults_end_in_errors_and_never_in_wrong_gradients),
        FIXTURE_TEST(a_disk_that_does_not_keep_up_is_told),
        FIXTURE_TEST(a_missing_directory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
