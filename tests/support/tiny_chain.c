#include "support/tiny_chain.h"

typedef enum sizes { MIXED, EQUAL, HEAVY, ZEROS, HUGE_SIZES, SIZE_KINDS } sizes;

typedef struct character {
    sizes bytes;
    bool workspaces, whole_outputs, odd_modes;
    uint64_t cost_unit;
    uint64_t most_cost;
} character;

static uint64_t below(test_random *random, uint64_t bound)
{
    return test_random_below(random, bound);
}

static uint64_t bytes_of(test_random *random, const character *is)
{
    uint64_t size = 1;
    switch (is->bytes) {
    case EQUAL: return 10;
    case ZEROS: return below(random, 4);
    case HUGE_SIZES: return below(random, (uint64_t)1 << 57);
    case HEAVY:
        while (size < 2000 && below(random, 3))
            size *= 2;
        return size + below(random, size);
    default: return 1 + below(random, 20);
    }
}

static uint64_t cost_of(test_random *random, const character *is)
{
    return is->cost_unit * below(random, is->most_cost + 1);
}

static void make_mode(test_random *random, const character *is, const remat_layer_options *layer,
                      remat_mode_options *mode)
{
    remat_mode_options_init(mode);
    mode->holds_output = below(random, 2);
    mode->lossless = below(random, 10) < 7;
    uint64_t least = mode->holds_output && !is->odd_modes ? layer->output_bytes : 0;
    mode->activation_bytes = least + below(random, layer->activation_bytes - least + 1);
    mode->forward_cost = is->odd_modes ? cost_of(random, is) : layer->forward_cost + cost_of(random, is) / 4;
    mode->backward_cost = layer->backward_cost + cost_of(random, is) / 2;
    if (is->workspaces && below(random, 2))
        mode->forward_workspace_bytes = bytes_of(random, is) / 2;
    if (is->workspaces && below(random, 2))
        mode->backward_workspace_bytes = bytes_of(random, is);
}

static void add_layer(fixture *f, remat_profile *profile, test_random *random, const character *is, size_t most_modes)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    remat_layer_options layer;
    remat_mode_options modes[4];
    remat_layer_options_init(&layer);
    layer.activation_bytes = bytes_of(random, is);
    bool whole_output = is->whole_outputs || below(random, 3) == 0;
    layer.output_bytes = whole_output ? layer.activation_bytes : below(random, layer.activation_bytes + 1);
    layer.forward_cost = layer.recompute_flops = cost_of(random, is);
    layer.backward_cost = below(random, 2) ? 2 * layer.forward_cost : cost_of(random, is);
    if (is->workspaces) {
        layer.forward_workspace_bytes = bytes_of(random, is);
        layer.backward_workspace_bytes = bytes_of(random, is) / 2;
    }
    layer.modes = modes;
    layer.mode_count = below(random, most_modes + 1);
    for (size_t k = 0; k < layer.mode_count; k++) {
        make_mode(random, is, &layer, &modes[k]);
        modes[k].name = names[k];
    }
    expect_ok(f, remat_profile_add_layer(profile, &layer));
}

remat_profile *tiny_chain(fixture *f, test_random *random, size_t layers, size_t most_modes)
{
    remat_profile *profile;
    character is = {
        .bytes = (sizes)below(random, SIZE_KINDS),
        .workspaces = below(random, 2),
        .whole_outputs = below(random, 4) == 0,
        .odd_modes = below(random, 3) == 0,
        .cost_unit = below(random, 8) ? 1 : (uint64_t)1 << 54, /* 2^54 * 10 * 4 * layers is below 2^63 for 12 layers */
        .most_cost = below(random, 8) ? 10 : 1,
    };
    assert_true(most_modes <= 4);
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_set_input_bytes(profile, bytes_of(random, &is)));
    if (below(random, 2))
        expect_ok(f, remat_profile_set_input_gradient_bytes(profile, below(random, 2) * bytes_of(random, &is)));
    if (is.workspaces)
        expect_ok(f, remat_profile_set_loss_workspace_bytes(profile, bytes_of(random, &is)));
    for (size_t i = 0; i < layers; i++)
        add_layer(f, profile, random, &is, most_modes);
    return profile;
}

void tiny_chain_print(const remat_profile *profile)
{
    char *text = written_profile(profile);
    print_error("%s\n", text);
    free(text);
}
