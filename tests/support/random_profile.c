#include "support/random_profile.h"

/* What the layers of one chain have in common. */
typedef struct character {
    uint64_t most_bytes, most_cost;
    unsigned zero_percent, mode_percent, default_percent;
    bool workspaces, whole_outputs, scattered_indexes, odd_names;
} character;

static uint64_t below(test_random *random, uint64_t bound)
{
    return test_random_below(random, bound);
}

static bool percent(test_random *random, unsigned share)
{
    return below(random, 100) < share;
}

static uint64_t bytes_of(test_random *random, const character *is)
{
    return percent(random, is->zero_percent) ? 0 : below(random, is->most_bytes + 1);
}

static uint64_t workspace_of(test_random *random, const character *is)
{
    return is->workspaces ? bytes_of(random, is) : 0;
}

static uint64_t cost_of(test_random *random, const character *is)
{
    return percent(random, is->zero_percent) ? 0 : below(random, is->most_cost + 1);
}

static const char *name_of(test_random *random, const character *is, size_t i, char text[64])
{
    static const char *const odd[] = {"\"q\"", "back\\slash", "tab\tnew\nline", "\x01\x1f\x7f", "Größe ∑ 🎉", "a/b", ""};
    if (percent(random, is->default_percent))
        return NULL;
    if (is->odd_names)
        snprintf(text, 64, "%zu%s", i, odd[below(random, sizeof odd / sizeof odd[0])]);
    else
        snprintf(text, 64, "h%zu", i);
    return text;
}

static void add_modes(test_random *random, const character *is, remat_layer_options *layer, remat_mode_options modes[3],
                      char names[3][64])
{
    layer->modes = modes;
    layer->mode_count = percent(random, is->mode_percent) ? 1 + below(random, 3) : 0;
    for (size_t k = 0; k < layer->mode_count; k++) {
        remat_mode_options_init(&modes[k]);
        snprintf(names[k], 64, "mode%zu%s", k, is->odd_names ? "\"∑\n" : "");
        modes[k].name = names[k];
        modes[k].activation_bytes = bytes_of(random, is);
        modes[k].holds_output = percent(random, 50);
        modes[k].lossless = percent(random, 70);
        if (percent(random, 50))
            modes[k].forward_cost = cost_of(random, is);
        if (percent(random, 50))
            modes[k].backward_cost = cost_of(random, is);
        if (percent(random, 30))
            modes[k].forward_workspace_bytes = workspace_of(random, is);
        if (percent(random, 30))
            modes[k].backward_workspace_bytes = workspace_of(random, is);
    }
}

static void add_layer(remat_profile *profile, test_random *random, const character *is, size_t i)
{
    remat_layer_options layer;
    remat_mode_options modes[3];
    char name[64], mode_names[3][64];
    remat_layer_options_init(&layer);
    layer.name = name_of(random, is, i, name);
    layer.type = (remat_layer_type)below(random, REMAT_OTHER + 1);
    if (is->scattered_indexes) /* unique and in no order */
        layer.index = (uint64_t)(i * 7919 % 10007) << below(random, 2) * 40;
    layer.activation_bytes = bytes_of(random, is);
    layer.recompute_flops = cost_of(random, is);
    if (!is->whole_outputs && percent(random, 80))
        layer.output_bytes = below(random, layer.activation_bytes + 1);
    if (!percent(random, is->default_percent)) {
        layer.forward_cost = cost_of(random, is);
        layer.backward_cost = cost_of(random, is);
    }
    if (is->workspaces) {
        layer.forward_workspace_bytes = workspace_of(random, is);
        layer.backward_workspace_bytes = workspace_of(random, is);
    }
    add_modes(random, is, &layer, modes, mode_names);
    assert_int_equal(remat_profile_add_layer(profile, &layer), REMAT_OK);
}

static character random_character(test_random *random, const random_traits *traits)
{
    static const uint64_t sizes[] = {3, 20, 1000, (uint64_t)1 << 32, (uint64_t)1 << 48};
    static const unsigned zeros[] = {0, 0, 10, 50};
    return (character){
        .most_bytes = sizes[below(random, 5)],
        .most_cost = sizes[below(random, 5)],
        .zero_percent = zeros[below(random, 4)],
        .mode_percent = traits->modes ? 60 : 0,
        .default_percent = (unsigned)below(random, 101),
        .workspaces = percent(random, 50),
        .whole_outputs = percent(random, 25),
        .scattered_indexes = percent(random, 50),
        .odd_names = traits->odd_names,
    };
}

remat_profile *random_profile(remat_context *context, test_random *random, const random_traits *traits)
{
    remat_profile *profile;
    character is = random_character(random, traits);
    size_t n = traits->least_layers + below(random, traits->most_layers - traits->least_layers + 1);
    assert_int_equal(remat_profile_create(context, &profile), REMAT_OK);
    if (percent(random, 50))
        assert_int_equal(remat_profile_set_input_bytes(profile, bytes_of(random, &is)), REMAT_OK);
    if (percent(random, 30))
        assert_int_equal(remat_profile_set_input_gradient_bytes(profile, bytes_of(random, &is)), REMAT_OK);
    if (percent(random, 30))
        assert_int_equal(remat_profile_set_loss_workspace_bytes(profile, bytes_of(random, &is)), REMAT_OK);
    if (percent(random, 50))
        assert_int_equal(remat_profile_set_name(profile, is.odd_names ? "na\"me\\∑" : "chain"), REMAT_OK);
    if (percent(random, 50))
        assert_int_equal(remat_profile_set_cost_unit(profile, "ns"), REMAT_OK);
    for (size_t i = 0; i < n; i++)
        add_layer(profile, random, &is, i);
    return profile;
}

/* ---- schedules ---- */

typedef struct wanderer {
    slow_replay *replay;
    test_random *random;
    step_list *steps;
} wanderer;

static bool try_step(wanderer *w, remat_op op, size_t layer, uint16_t save)
{
    if (!slow_replay_step(w->replay, (remat_step){(uint32_t)layer, save, (uint8_t)op}))
        return false;
    step_list_add(w->steps, op, layer, save);
    return true;
}

static uint16_t any_mode(wanderer *w, size_t layer)
{
    return (uint16_t)below(w->random, remat_profile_layer(w->replay->profile, layer)->mode_count);
}

/* Now and then something is dropped, needed or not; never the input, from which everything can be made again. */
static void drop_something(wanderer *w)
{
    if (!percent(w->random, 12) || w->replay->n == 0)
        return;
    size_t i = below(w->random, w->replay->n);
    if (percent(w->random, 50))
        try_step(w, REMAT_DROP_STATE, i, REMAT_NO_SAVE);
    else
        try_step(w, REMAT_DROP_X, i + 1, REMAT_NO_SAVE);
}

/* Runs layers forward, from the nearest input that can be read, until x_i can be. */
static void make_readable(wanderer *w, size_t i)
{
    while (!slow_replay_readable(w->replay, i)) {
        size_t from = i;
        while (!slow_replay_readable(w->replay, from))
            from--;
        bool saves = !w->replay->s[from] && percent(w->random, 40);
        try_step(w, REMAT_FORWARD, from, saves ? any_mode(w, from) : REMAT_NO_SAVE);
        drop_something(w);
    }
}

static void go_backward(wanderer *w, size_t i)
{
    while (!try_step(w, REMAT_BACKWARD, i, REMAT_NO_SAVE)) {
        make_readable(w, i);
        if (!w->replay->s[i] && !try_step(w, REMAT_FORWARD, i, any_mode(w, i))) /* x_{i+1} is in the way */
            try_step(w, REMAT_DROP_X, i + 1, REMAT_NO_SAVE);
        drop_something(w);
    }
}

void random_schedule(const remat_profile *profile, test_random *random, step_list *steps)
{
    wanderer w = {slow_replay_start(profile), random, steps};
    size_t n = w.replay->n;
    if (n > 0) {
        while (!try_step(&w, REMAT_LOSS, 0, REMAT_NO_SAVE))
            make_readable(&w, n);
        for (size_t i = n; i-- > 0;) {
            drop_something(&w);
            go_backward(&w, i);
        }
    }
    assert_true(slow_replay_complete(w.replay));
    slow_replay_end(w.replay);
}
