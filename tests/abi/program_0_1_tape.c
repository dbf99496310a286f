/* Checkpointers and tapes. */
#include "program_0_1.h"

/* ---- checkpointers ---- */

static remat_status double_layer(void *user, uint64_t layer, const float *input, size_t input_count, float *output,
                                 size_t output_count)
{
    ++*(uint64_t *)user;
    for (size_t i = 0; i < output_count; i++)
        output[i] = 2 * input[i % input_count] + (float)layer;
    return REMAT_OK;
}

void use_checkpointers(remat_context *context)
{
    GUARDED(remat_checkpointer_options, options);
    remat_checkpointer_options_init(options);
    INTACT(options);
    CHECK(options->struct_size == sizeof *options && options->keep_every_n == 4 && options->max_kept == 64);
    options->keep_every_n = 3;
    options->precision = REMAT_FP16;
    options->overflow = REMAT_OVERFLOW_SATURATE;
    remat_checkpointer *cp;
    OK(context, remat_checkpointer_create(context, options, &cp));
    CHECK(remat_checkpointer_get_options(cp)->keep_every_n == 3);
    remat_checkpointer_layer layers[6];
    for (uint64_t i = 0; i < 6; i++)
        layers[i] = (remat_checkpointer_layer){i, 4};
    const float input[4] = {1, 2, 3, 4};
    float output[4], wanted[4];
    uint64_t calls = 0;
    OK(context, remat_checkpointer_forward(cp, layers, 6, input, 4, double_layer, &calls, output));
    CHECK(calls == 6 && output[0] == 121);
    CHECK(remat_checkpointer_keeps(cp, 3) && !remat_checkpointer_keeps(cp, 4));
    CHECK(remat_checkpointer_count(cp) == 2 && remat_checkpointer_kept_bytes(cp) == 16);
    CHECK(remat_checkpointer_input_bytes(cp) == 16 && remat_checkpointer_avoided_bytes(cp) == 6 * 16 - 16);
    CHECK(remat_checkpointer_missed(cp) == 0);
    OK(context, remat_checkpointer_recompute(cp, 4, layers, 6, double_layer, &calls, wanted));
    CHECK(calls == 7 && 2 * wanted[1] + 5 == output[1]);
    size_t count = 0;
    CHECK(remat_checkpointer_has(cp, 3, &count) && count == 4 && !remat_checkpointer_has(cp, 4, NULL));
    OK(context, remat_checkpointer_get(cp, 3, wanted, 4));
    const float large[1] = {1e6f};
    OK(context, remat_checkpointer_save(cp, 9, large, 1));
    GUARDED(remat_store_counters, counters);
    remat_checkpointer_count_overflows(cp, counters);
    INTACT(counters);
    CHECK(counters->overflows == 1 && counters->kept_full == 0 && counters->kept_up);
    remat_checkpointer_clear(cp);
    CHECK(remat_checkpointer_count(cp) == 0);
    remat_checkpointer_destroy(cp);
}

/* ---- tapes: layer i turns x into 1.5 x + i ---- */

enum { FLOATS = 64 };

typedef struct work {
    uint64_t calls[4];
    double drawn;
} work;

static int forward(void *user, const remat_tape_call *call)
{
    work *done = user;
    const float *x = call->input;
    float *y = call->output;
    done->calls[call->phase]++;
    done->drawn += (double)remat_random_uniform(&call->random, 0);
    CHECK(call->mode == REMAT_NO_SAVE || call->saved);
    for (size_t i = 0; i < FLOATS; i++)
        y[i] = 1.5f * x[i] + (float)call->layer;
    return 0;
}

static int backward(void *user, const remat_tape_call *call)
{
    work *done = user;
    const float *dy = call->output_gradient;
    float *dx = call->input_gradient;
    done->calls[call->phase]++;
    for (size_t i = 0; i < FLOATS; i++)
        dx[i] = 1.5f * dy[i];
    return 0;
}

static int loss(void *user, const remat_tape_call *call)
{
    work *done = user;
    const float *x = call->input;
    float *dx = call->input_gradient;
    done->calls[call->phase]++;
    for (size_t i = 0; i < FLOATS; i++)
        dx[i] = x[i];
    return 0;
}

static int progress(void *user, uint64_t done, uint64_t total, remat_tape_phase phase, uint32_t layer)
{
    (void)layer;
    CHECK(remat_tape_phase_name(phase)[0] != '\0' && (total == 0 || done <= total));
    ++*(uint64_t *)user;
    return 0;
}

static remat_profile *equal_layers(remat_context *context, size_t count)
{
    remat_profile *profile;
    OK(context, remat_profile_create(context, &profile));
    for (size_t i = 0; i < count; i++)
        OK(context, remat_profile_add(profile, REMAT_OTHER, FLOATS * sizeof(float), 100));
    OK(context, remat_profile_set_input_bytes(profile, FLOATS * sizeof(float)));
    return profile;
}

static void print_work(const work *done)
{
    for (int i = 0; i < 4; i++)
        printf("%llu ", (unsigned long long)done->calls[i]);
    printf("%.9g\n", done->drawn);
}

static void run_tape(remat_context *context, const remat_profile *profile, const remat_tape_options *options)
{
    work done = {{0}, 0};
    GUARDED(remat_tape_callbacks, callbacks);
    *callbacks = (remat_tape_callbacks){forward, backward, loss, &done};
    remat_tape *tape;
    OK(context, remat_tape_create(context, profile, callbacks, options, &tape));
    INTACT(callbacks);
    float x[FLOATS], dx[FLOATS];
    for (int i = 0; i < FLOATS; i++)
        x[i] = (float)i;
    remat_tape_set_step(tape, 7);
    OK(context, remat_tape_run(tape, x, dx));
    CHECK(remat_tape_step(tape) == 8);
    double factor = 1.5 * 1.5, wanted = 1; /* of x: 1.5^20; and what the layers add */
    for (int i = 0; i < 10; i++)
        wanted *= factor;
    CHECK((double)dx[0] > wanted && remat_tape_remark(tape)[0] == '\0');
    GUARDED(remat_tape_statistics, statistics);
    remat_tape_get_statistics(tape, statistics);
    INTACT(statistics);
    CHECK(statistics->runs == 1 && statistics->arena_bytes == remat_tape_arena_bytes(tape));
    CHECK(statistics->forwards == done.calls[REMAT_PHASE_FORWARD] && statistics->backwards == 10);
    CHECK(statistics->recomputes == done.calls[REMAT_PHASE_RECOMPUTE] && statistics->store.bytes_written == 0);
    uint64_t forwards = 0;
    for (size_t i = 0; i < 10; i++)
        forwards += remat_tape_forwards(tape, i);
    CHECK(forwards == statistics->forwards + statistics->recomputes);
    CHECK(remat_plan_get_figures(remat_tape_plan(tape))->feasible);
    printf("%llu %.9g ", (unsigned long long)remat_tape_arena_bytes(tape), (double)dx[5]);
    print_work(&done);
    remat_tape_destroy(tape);
}

static void run_online(remat_context *context, const remat_profile *layer)
{
    work done = {{0}, 0};
    const remat_tape_callbacks callbacks = {forward, backward, loss, &done};
    remat_tape *tape;
    OK(context, remat_tape_create_online(context, layer, 3, &callbacks, NULL, &tape));
    float x[FLOATS] = {1}, dx[FLOATS];
    OK(context, remat_tape_begin(tape, x));
    for (int i = 0; i < 9; i++)
        OK(context, remat_tape_advance(tape));
    CHECK(((const float *)remat_tape_output(tape))[0] > 38);
    OK(context, remat_tape_reverse(tape, dx));
    printf("%.9g ", (double)dx[0]);
    print_work(&done);
    remat_tape_destroy(tape);
}

void use_tapes(remat_context *context)
{
    remat_profile *profile = equal_layers(context, 10), *layer = equal_layers(context, 1), *chain;
    uint64_t least = 0, seen = 0;
    GUARDED(remat_tape_options, options);
    remat_tape_options_init(options);
    INTACT(options);
    CHECK(options->struct_size == sizeof *options && options->budget_bytes == REMAT_NO_BUDGET);
    CHECK(options->element == REMAT_FLOATS && options->write_steps == 4 && strcmp(options->directory, ".") == 0);
    options->progress = progress;
    options->progress_user = &seen;
    run_tape(context, profile, options);
    CHECK(seen == 21);
    options->budget_bytes = 8 * FLOATS * sizeof(float);
    run_tape(context, profile, options);
    options->budget_bytes = 100;
    options->least_bytes = &least;
    remat_tape *tape;
    const remat_tape_callbacks callbacks = {forward, backward, loss, NULL};
    FAILS(context, remat_tape_create(context, profile, &callbacks, options, &tape), REMAT_INFEASIBLE);
    CHECK(!tape && least > 100);
    printf("%llu\n", (unsigned long long)least);
    OK(context, remat_tape_profile(context, profile, options, &chain));
    CHECK(remat_profile_layer_count(chain) == 10);
    remat_profile_destroy(chain);
    run_online(context, layer);
    remat_profile_destroy(layer);
    remat_profile_destroy(profile);
}
