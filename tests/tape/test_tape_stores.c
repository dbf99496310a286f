/* Stores as the user sees them: how close 16 bits are, what overflow does, and that a plan can choose. */
#include "base/half.h"
#include "test_tape_toy.h"

#include <math.h>

/* ---- a chain of floats ---- */

enum { FLOATS = 100 };

/* x_{i+1} = sin(x_i) * scale + 0.1; the state is the output and the cosine. */
typedef struct floats {
    float scale, gain; /* gain: what the gradient is multiplied with a layer; 0: as the mathematics says */
    bool fails;        /* in the first backward */
    size_t state;      /* how many floats a state has; 0: just those two. The others are 0 */
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
    if (t->fails)
        return 7;
    if (t->precision != REMAT_FP32) {
        half_pack(kernels, t->precision, true, t->states[call->layer], half, 2 * FLOATS);
        half_unpack(kernels, t->precision, half, rounded, 2 * FLOATS);
        bool exact = memcmp(saved, t->states[call->layer], sizeof rounded) == 0;
        t->exact_states += exact;
        t->rounded_states += !exact && memcmp(saved, rounded, sizeof rounded) == 0;
    }
    for (int i = 0; i < FLOATS; i++) {
        gradient[i] = from[i] * saved[FLOATS + i] * (t->gain > 0 ? t->gain : t->scale);
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
    static const char *const strategies[] = {"none",      "full",     "sqrt",     "every-nth:3",
                                             "revolve:4", "online:5", "largest:7"};
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
    floats t = {.scale = 3e5f, .gain = 1.5f, .layers = 12};
    float exact[FLOATS], other[FLOATS];
    remat_tape_statistics statistics;
    remat_tape_options options;
    remat_tape_options_init(&options);
    expect_ok(f, run_floats(f, &t, &options, exact, NULL));
    assert_true(isfinite(exact[0]) && exact[0] != 0);
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
    t.fails = true; /* what was kept in full is given back then, too: the fixture counts */
    assert_int_equal((int)run_floats(f, &t, &options, other, &statistics), 7);
    t.fails = false;
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
    static const char text[] = "{\"format\": \"remat-plan\", \"version\": 1, \"schedule\": ["
                               "{\"op\": \"forward\", \"layer\": 0, \"save\": \"keep\"},"
                               "{\"op\": \"forward\", \"layer\": 1, \"save\": \"fp16\"},"
                               "{\"op\": \"forward\", \"layer\": 2, \"save\": \"keep\"},"
                               "{\"op\": \"loss\"}, {\"op\": \"backward\", \"layer\": 2},"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(sixteen_bits_take_half_and_are_close),
        FIXTURE_TEST(sixteen_bits_go_with_every_strategy),
        FIXTURE_TEST(overflow_is_an_error_or_saturates_or_is_kept),
        FIXTURE_TEST(a_plan_can_name_the_store),
        FIXTURE_TEST(the_planner_chooses_the_store),
        FIXTURE_TEST(bytes_cannot_be_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
