/* A chain to run tapes on. Every byte of every buffer counts: an output is a hash of the whole input, drawn out to its
 * length, and a gradient one of input, state and output gradient. One wrong bit anywhere changes everything after it.
 * The callbacks also check what they are given: alignment, overlaps, and that a state is the one that belongs to the
 * input. Static, because each test program is a file of its own. */
#ifndef TESTS_TAPE_TOY_H
#define TESTS_TAPE_TOY_H

#include "support/fixture.h"

#include <remat/remat.h>
#include <remat/tape.h>

#include <time.h>
#include <unistd.h>

static inline double toy_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Where files of the disk store go: in memory where there is such a place, because tests make thousands. */
static inline const char *toy_directory(void)
{
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

typedef struct toy {
    const remat_profile *profile;
    bool online; /* all layers are layer 0 of the profile */
    uint32_t layers;
    uint64_t *gradients;     /* one a layer: what a user would add to the gradients of weights */
    uint64_t *draws;         /* one a layer: the random number of its first forward */
    uint64_t calls, fail_at; /* the call that fails, from 1; 0: none */
    int fail_with;
    remat_tape_phase failed_phase;
    uint32_t failed_layer;
    uint64_t unsteady_layer; /* a layer whose recomputation differs, from 1; 0: none */
    size_t unsteady_byte;
    uint64_t wrong; /* things that were not as they should be */
} toy;

static inline uint64_t toy_mix(uint64_t hash, uint64_t value)
{
    hash ^= value + 0x9E3779B97F4A7C15u + (hash << 6) + (hash >> 2);
    hash *= 0xBF58476D1CE4E5B9u;
    return hash ^ hash >> 29;
}

static inline uint64_t toy_hash(uint64_t hash, const void *data, uint64_t bytes)
{
    const unsigned char *at = data;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = toy_mix(hash, word);
    }
    for (; bytes > 0; bytes--, at++)
        hash = toy_mix(hash, *at);
    return hash;
}

static inline void toy_draw_out(uint64_t seed, void *to, uint64_t bytes)
{
    unsigned char *at = to;
    for (uint64_t i = 0; bytes > 0; i++) {
        uint64_t word = toy_mix(seed, i), part = bytes < 8 ? bytes : 8;
        memcpy(at, &word, part);
        at += part;
        bytes -= part;
    }
}

static inline const remat_layer *toy_layer(const toy *t, uint32_t layer)
{
    return remat_profile_layer(t->profile, t->online ? 0 : layer);
}

static inline uint64_t toy_x_bytes(const toy *t, uint32_t i)
{
    return i == 0 ? remat_profile_input_bytes(t->profile) : toy_layer(t, i - 1)->output_bytes;
}

static inline uint64_t toy_y_bytes(const toy *t, uint32_t i)
{
    return i == 0 ? remat_profile_input_gradient_bytes(t->profile) : toy_layer(t, i - 1)->output_bytes;
}

/* The state of a layer, mode by mode: the output comes first where the mode holds it. */
static inline void toy_make_state(const toy *t, uint32_t i, uint16_t mode, const void *input, uint64_t draw,
                                  void *output, void *saved)
{
    const remat_layer *layer = toy_layer(t, i);
    uint64_t hash = toy_hash(toy_mix(i, draw), input, toy_x_bytes(t, i));
    toy_draw_out(hash, output, layer->output_bytes);
    if (mode == REMAT_NO_SAVE)
        return;
    const remat_mode *is = &layer->modes[mode];
    uint64_t skip = is->holds_output ? layer->output_bytes : 0;
    toy_draw_out(toy_mix(hash, 77u + mode), (unsigned char *)saved + skip, is->activation_bytes - skip);
}

/* ---- checking a call ---- */

typedef struct toy_range {
    const unsigned char *from;
    uint64_t bytes;
} toy_range;

static inline void toy_check_ranges(toy *t, const toy_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!ranges[i].from)
            continue;
        t->wrong += (uintptr_t)ranges[i].from % 64 != 0;
        for (size_t k = 0; k < i; k++)
            if (ranges[k].from && ranges[i].bytes && ranges[k].bytes)
                t->wrong += ranges[i].from < ranges[k].from + ranges[k].bytes &&
                            ranges[k].from < ranges[i].from + ranges[i].bytes;
    }
}

/* Counts the call; the code to return, 0 to go on. */
static inline int toy_enter(toy *t, const remat_tape_call *call)
{
    if (++t->calls != t->fail_at)
        return 0;
    t->failed_phase = call->phase;
    t->failed_layer = call->layer;
    return t->fail_with;
}

static inline void toy_scribble(const remat_tape_call *call, uint64_t bytes)
{
    if (bytes > 0)
        memset(call->workspace, 0xA5, bytes);
}

static inline int toy_forward(void *user, const remat_tape_call *call)
{
    toy *t = user;
    const remat_layer *layer = toy_layer(t, call->layer);
    bool saves = call->mode != REMAT_NO_SAVE;
    const remat_mode *mode = &layer->modes[saves ? call->mode : REMAT_KEEP];
    int code = toy_enter(t, call);
    if (code)
        return code;
    t->wrong += call->layer >= t->layers || !call->input || !call->output || saves != (call->saved != NULL);
    t->wrong += call->output_gradient || call->input_gradient;
    t->wrong += saves && mode->holds_output && call->output != call->saved;
    t->wrong += (call->workspace != NULL) != (mode->forward_workspace_bytes > 0);
    bool apart = !saves || !mode->holds_output;
    toy_range ranges[] = {{call->input, toy_x_bytes(t, call->layer)},
                          {call->saved, saves ? mode->activation_bytes : 0},
                          {apart ? call->output : NULL, layer->output_bytes},
                          {call->workspace, mode->forward_workspace_bytes}};
    toy_check_ranges(t, ranges, 4);
    toy_scribble(call, mode->forward_workspace_bytes);
    uint64_t draw = remat_random_bits(&call->random, 3);
    if (call->phase == REMAT_PHASE_FORWARD)
        t->draws[call->layer] = draw;
    t->wrong += draw != t->draws[call->layer];
    toy_make_state(t, call->layer, call->mode, call->input, draw, call->output, call->saved);
    if (t->unsteady_layer == call->layer + 1u && call->phase == REMAT_PHASE_RECOMPUTE)
        ((unsigned char *)(saves ? call->saved : call->output))[t->unsteady_byte] ^= 1;
    return 0;
}

static inline int toy_loss(void *user, const remat_tape_call *call)
{
    toy *t = user;
    int code = toy_enter(t, call);
    if (code)
        return code;
    uint64_t workspace = remat_profile_loss_workspace_bytes(t->profile), bytes = toy_x_bytes(t, t->layers);
    t->wrong += !call->input || !call->input_gradient || call->saved || call->output || call->output_gradient;
    t->wrong += (call->workspace != NULL) != (workspace > 0) || call->layer != t->layers;
    toy_range ranges[] = {{call->input, bytes}, {call->input_gradient, bytes}, {call->workspace, workspace}};
    toy_check_ranges(t, ranges, 3);
    toy_scribble(call, workspace);
    toy_draw_out(toy_hash(5, call->input, bytes), call->input_gradient, bytes);
    return 0;
}

static inline int toy_backward(void *user, const remat_tape_call *call)
{
    toy *t = user;
    const remat_layer *layer = toy_layer(t, call->layer);
    const remat_mode *mode = &layer->modes[call->mode];
    int code = toy_enter(t, call);
    if (code)
        return code;
    uint64_t x_bytes = toy_x_bytes(t, call->layer), y_bytes = toy_y_bytes(t, call->layer);
    t->wrong += !call->input || !call->saved || call->output || !call->output_gradient || !call->input_gradient;
    t->wrong += (call->workspace != NULL) != (mode->backward_workspace_bytes > 0);
    toy_range ranges[] = {{call->input, x_bytes},
                          {call->saved, mode->activation_bytes},
                          {call->output_gradient, layer->output_bytes},
                          {call->input_gradient, y_bytes},
                          {call->workspace, mode->backward_workspace_bytes}};
    toy_check_ranges(t, ranges, 5);
    toy_scribble(call, mode->backward_workspace_bytes);
    /* The state must be the one that this input makes, in this mode. */
    unsigned char *output = malloc(layer->output_bytes + 1), *state = malloc(mode->activation_bytes + 1);
    uint64_t draw = remat_random_bits(&call->random, 3);
    toy_make_state(t, call->layer, call->mode, call->input, draw, mode->holds_output ? state : output, state);
    t->wrong += memcmp(state, call->saved, mode->activation_bytes) != 0;
    free(state);
    free(output);
    uint64_t hash = toy_hash(toy_mix(call->layer, draw), call->input, x_bytes);
    hash = toy_hash(hash, call->output_gradient, layer->output_bytes);
    t->gradients[call->layer] = toy_mix(t->gradients[call->layer], hash);
    toy_draw_out(hash, call->input_gradient, y_bytes);
    memset(call->saved, 0x5A, mode->activation_bytes); /* it is ours now */
    return 0;
}

static inline remat_tape_callbacks toy_callbacks(toy *t)
{
    return (remat_tape_callbacks){toy_forward, toy_backward, toy_loss, t};
}

static inline void toy_begin(toy *t, const remat_profile *profile, uint32_t layers, bool online)
{
    *t = (toy){.profile = profile, .layers = layers, .online = online};
    t->gradients = calloc(layers + 1, sizeof *t->gradients);
    t->draws = calloc(layers + 1, sizeof *t->draws);
}

static inline void toy_end(toy *t)
{
    free(t->gradients);
    free(t->draws);
}

/* Everything kept, with plain loops and malloc, apart from the library: the right answer. `t->gradients` is set. */
static inline void toy_reference(toy *t, uint64_t seed, uint32_t step, const void *input, void *input_gradient)
{
    unsigned char **x = calloc(t->layers + 1u, sizeof *x);
    for (uint32_t i = 0; i <= t->layers; i++)
        x[i] = malloc(toy_x_bytes(t, i) + 1);
    memcpy(x[0], input, toy_x_bytes(t, 0));
    for (uint32_t i = 0; i < t->layers; i++) {
        remat_random random = remat_random_stream(seed, i, step);
        toy_make_state(t, i, REMAT_NO_SAVE, x[i], remat_random_bits(&random, 3), x[i + 1], NULL);
    }
    uint64_t bytes = toy_x_bytes(t, t->layers);
    unsigned char *y = malloc(bytes + 1);
    toy_draw_out(toy_hash(5, x[t->layers], bytes), y, bytes);
    for (uint32_t i = t->layers; i-- > 0;) {
        remat_random random = remat_random_stream(seed, i, step);
        uint64_t hash = toy_hash(toy_mix(i, remat_random_bits(&random, 3)), x[i], toy_x_bytes(t, i));
        hash = toy_hash(hash, y, toy_layer(t, i)->output_bytes);
        t->gradients[i] = toy_mix(t->gradients[i], hash);
        free(y);
        y = malloc(toy_y_bytes(t, i) + 1);
        toy_draw_out(hash, y, toy_y_bytes(t, i));
    }
    if (t->layers > 0)
        memcpy(input_gradient, y, toy_y_bytes(t, 0));
    free(y);
    for (uint32_t i = 0; i <= t->layers; i++)
        free(x[i]);
    free(x);
}

/* ---- random chains that are small enough to run ---- */

typedef struct toy_traits {
    uint32_t least_layers, most_layers;
    uint64_t most_bytes;
    bool modes, equal_layers, floats;
} toy_traits;

static inline uint64_t toy_bytes(test_random *random, const toy_traits *traits)
{
    uint64_t bytes = test_random_below(random, 10) == 0 ? 0 : test_random_below(random, traits->most_bytes + 1);
    return traits->floats ? bytes / 4 * 4 : bytes;
}

static inline void toy_add_layer(remat_profile *profile, test_random *random, const toy_traits *traits)
{
    remat_layer_options layer;
    remat_mode_options modes[2];
    remat_layer_options_init(&layer);
    layer.type = (remat_layer_type)test_random_below(random, REMAT_OTHER + 1);
    layer.activation_bytes = toy_bytes(random, traits);
    layer.recompute_flops = test_random_below(random, 1000);
    if (test_random_below(random, 2)) {
        layer.output_bytes = test_random_below(random, layer.activation_bytes + 1);
        layer.output_bytes -= traits->floats ? layer.output_bytes % 4 : 0;
    }
    if (test_random_below(random, 3) == 0) {
        layer.forward_workspace_bytes = toy_bytes(random, traits);
        layer.backward_workspace_bytes = toy_bytes(random, traits);
    }
    layer.modes = modes;
    layer.mode_count = traits->modes ? test_random_below(random, 3) : 0;
    for (size_t k = 0; k < layer.mode_count; k++) {
        uint64_t output = layer.output_bytes == REMAT_DEFAULT ? layer.activation_bytes : layer.output_bytes;
        remat_mode_options_init(&modes[k]);
        modes[k].name = k ? "b" : "a";
        modes[k].activation_bytes = toy_bytes(random, traits);
        modes[k].holds_output = modes[k].activation_bytes >= output && test_random_below(random, 2);
    }
    assert_int_equal(remat_profile_add_layer(profile, &layer), REMAT_OK);
}

static inline remat_profile *toy_profile(remat_context *context, test_random *random, const toy_traits *traits)
{
    remat_profile *profile;
    uint32_t n =
        traits->least_layers + (uint32_t)test_random_below(random, traits->most_layers - traits->least_layers + 1);
    assert_int_equal(remat_profile_create(context, &profile), REMAT_OK);
    assert_int_equal(remat_profile_set_input_bytes(profile, toy_bytes(random, traits)), REMAT_OK);
    if (test_random_below(random, 3) == 0)
        assert_int_equal(remat_profile_set_input_gradient_bytes(profile, toy_bytes(random, traits)), REMAT_OK);
    if (test_random_below(random, 3) == 0)
        assert_int_equal(remat_profile_set_loss_workspace_bytes(profile, toy_bytes(random, traits)), REMAT_OK);
    test_random same = *random;
    for (uint32_t i = 0; i < n; i++) {
        test_random copy = same;
        toy_add_layer(profile, traits->equal_layers ? &copy : random, traits);
        if (traits->equal_layers)
            *random = copy;
    }
    return profile;
}

/* A chain of equal layers, states only: `bytes` in, out and saved. */
static inline remat_profile *toy_equal_profile(remat_context *context, uint32_t layers, uint64_t bytes)
{
    remat_profile *profile;
    assert_int_equal(remat_profile_create(context, &profile), REMAT_OK);
    assert_int_equal(remat_profile_set_input_bytes(profile, bytes), REMAT_OK);
    for (uint32_t i = 0; i < layers; i++)
        assert_int_equal(remat_profile_add(profile, REMAT_OTHER, bytes, 1), REMAT_OK);
    return profile;
}

/* Runs a tape twice and compares both runs with the reference; false where something differs. */
static inline bool toy_agrees(remat_context *context, remat_tape *tape, toy *t, uint64_t seed, uint64_t data)
{
    uint64_t in = toy_x_bytes(t, 0), out = toy_y_bytes(t, 0);
    unsigned char *input = malloc(in + 1), *got = calloc(out + 1, 1), *wanted = calloc(out + 1, 1);
    toy reference;
    toy_begin(&reference, t->profile, t->layers, t->online);
    memset(t->gradients, 0, t->layers * sizeof *t->gradients);
    bool same = true;
    for (int run = 0; same && run < 2; run++) {
        uint32_t step = remat_tape_step(tape);
        toy_draw_out(data + (uint64_t)run, input, in);
        toy_reference(&reference, seed, step, input, wanted);
        remat_status status = remat_tape_run(tape, input, got);
        if (status != REMAT_OK)
            print_error("the run failed: %s\n", remat_context_message(context));
        same = status == REMAT_OK && t->wrong == 0 && memcmp(got, wanted, out) == 0 &&
               memcmp(t->gradients, reference.gradients, t->layers * sizeof *t->gradients) == 0;
    }
    toy_end(&reference);
    free(input);
    free(got);
    free(wanted);
    return same;
}

#endif
