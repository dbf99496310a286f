/* What cannot be added to a profile, and that the error names the layer and the field. */
#include "support/fixture.h"

static const uint64_t limit = (uint64_t)1 << 63;

/* A chain of two good layers: a third one goes wrong. */
static remat_profile *two_layers(fixture *f)
{
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_add(profile, REMAT_OTHER, 100, 10));
    expect_ok(f, remat_profile_add(profile, REMAT_OTHER, 100, 10));
    return profile;
}

static void refused(fixture *f, remat_profile *profile, const remat_layer_options *options, const char *field,
                    const char *reason)
{
    expect_status(f, remat_profile_add_layer(profile, options), REMAT_INVALID);
    const remat_error *error = remat_context_error(f->context);
    assert_string_equal(error->field, field);
    assert_int_equal(error->layer, 2);
    expect_message(f, "layer 2: ");
    expect_message(f, field);
    expect_message(f, reason);
    assert_int_equal(remat_profile_layer_count(profile), 2); /* left as it was */
}

static remat_layer_options good_layer(void)
{
    remat_layer_options options;
    remat_layer_options_init(&options);
    options.activation_bytes = 100;
    options.recompute_flops = 10;
    return options;
}

static void figures_must_be_below_two_to_the_63(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    const struct {
        size_t offset;
        const char *field;
    } fields[] = {
        {offsetof(remat_layer_options, activation_bytes), "activation_bytes"},
        {offsetof(remat_layer_options, forward_cost), "forward_cost"},
        {offsetof(remat_layer_options, backward_cost), "backward_cost"},
        {offsetof(remat_layer_options, forward_workspace_bytes), "forward_workspace_bytes"},
        {offsetof(remat_layer_options, backward_workspace_bytes), "backward_workspace_bytes"},
        {offsetof(remat_layer_options, index), "index"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        for (int k = 0; k < 2; k++) {
            remat_layer_options options = good_layer();
            *(uint64_t *)(void *)((char *)&options + fields[i].offset) = k ? limit : UINT64_MAX - 1;
            refused(f, profile, &options, fields[i].field, "below 2^63");
        }
    remat_layer_options options = good_layer();
    options.recompute_flops = limit;
    options.forward_cost = 1; /* otherwise the forward cost is the first to be wrong */
    refused(f, profile, &options, "recompute_flops", "below 2^63");
    options = good_layer();
    options.activation_bytes = UINT64_MAX; /* has no default */
    refused(f, profile, &options, "activation_bytes", "below 2^63");
    remat_profile_destroy(profile);
}

static void a_default_backward_cost_that_overflows_is_refused(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    remat_layer_options options = good_layer();
    options.recompute_flops = limit - 1;
    refused(f, profile, &options, "backward_cost", "below 2^63");
    remat_profile_destroy(profile);
}

static void the_output_is_part_of_the_activation(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    remat_layer_options options = good_layer();
    options.output_bytes = 101;
    refused(f, profile, &options, "output_bytes", "101 is larger than activation_bytes 100");
    options.output_bytes = UINT64_MAX - 1;
    refused(f, profile, &options, "output_bytes", "larger than activation_bytes");
    options.output_bytes = 100;
    expect_ok(f, remat_profile_add_layer(profile, &options));
    remat_profile_destroy(profile);
}

static void the_type_must_be_one_of_the_list(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    remat_layer_options options = good_layer();
    options.type = (remat_layer_type)5;
    refused(f, profile, &options, "type", "5");
    options.type = (remat_layer_type)-1;
    refused(f, profile, &options, "type", "must be");
    remat_profile_destroy(profile);
}

static void indexes_must_be_unique(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    remat_layer_options options = good_layer();
    options.index = 1;
    refused(f, profile, &options, "index", "unique");
    options.index = 7;
    expect_ok(f, remat_profile_add_layer(profile, &options));
    remat_profile_destroy(profile);
}

/* A layer that was refused has not taken its index. */
static void a_refused_layer_leaves_no_trace(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    uint64_t held = remat_context_bytes(f->context);
    remat_layer_options options = good_layer();
    options.index = 77;
    options.output_bytes = 101;
    refused(f, profile, &options, "output_bytes", "larger");
    assert_true(remat_context_bytes(f->context) >= held);
    options.output_bytes = 5;
    expect_ok(f, remat_profile_add_layer(profile, &options));
    remat_profile_destroy(profile);
}

static void sums_of_the_chain_must_stay_below_two_to_the_63(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    remat_layer_options options = good_layer();
    options.activation_bytes = limit - 1;
    options.output_bytes = 0;
    refused(f, profile, &options, "activation_bytes", "sum to less than 2^63");
    options = good_layer();
    options.forward_cost = options.backward_cost = limit / 2;
    refused(f, profile, &options, "forward_cost", "sum to less than 2^63");
    options = good_layer();
    options.activation_bytes = limit / 2; /* saved state, output and its gradient may all be live */
    options.output_bytes = limit / 4;
    refused(f, profile, &options, "activation_bytes", "sum to less than 2^63");
    options = good_layer();
    options.forward_workspace_bytes = limit - 10;
    refused(f, profile, &options, "activation_bytes", "sum to less than 2^63");
    expect_status(f, remat_profile_set_input_bytes(profile, limit / 2), REMAT_INVALID);
    assert_string_equal(remat_context_error(f->context)->field, "input_bytes");
    expect_status(f, remat_profile_set_input_gradient_bytes(profile, limit - 1), REMAT_INVALID);
    assert_string_equal(remat_context_error(f->context)->field, "input_gradient_bytes");
    expect_status(f, remat_profile_set_loss_workspace_bytes(profile, limit), REMAT_INVALID);
    assert_string_equal(remat_context_error(f->context)->field, "loss_workspace_bytes");
    assert_int_equal(remat_profile_input_bytes(profile), 0);
    remat_profile_destroy(profile);
}

static void refused_mode(fixture *f, remat_profile *profile, remat_mode_options *modes, size_t count, const char *field,
                         const char *reason)
{
    remat_layer_options options = good_layer();
    options.modes = modes;
    options.mode_count = count;
    refused(f, profile, &options, field, reason);
}

static void modes_need_names_of_their_own(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    remat_mode_options modes[2];
    remat_mode_options_init(&modes[0]);
    remat_mode_options_init(&modes[1]);
    refused_mode(f, profile, modes, 1, "modes.name", "needs a name");
    modes[0].name = "";
    refused_mode(f, profile, modes, 1, "modes.name", "needs a name");
    modes[0].name = "keep";
    refused_mode(f, profile, modes, 1, "modes.name", "'keep' is reserved");
    modes[0].name = "recompute";
    refused_mode(f, profile, modes, 1, "modes.name", "'recompute' is reserved");
    modes[0].name = "\xff";
    refused_mode(f, profile, modes, 1, "modes.name", "UTF-8");
    modes[0].name = modes[1].name = "half";
    refused_mode(f, profile, modes, 2, "modes.name", "'half' is there twice");
    remat_profile_destroy(profile);
}

static void modes_have_limits_too(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    static remat_mode_options modes[257];
    static char names[257][8];
    for (size_t i = 0; i < 257; i++) {
        remat_mode_options_init(&modes[i]);
        snprintf(names[i], sizeof names[i], "m%zu", i);
        modes[i].name = names[i];
    }
    refused_mode(f, profile, modes, 256, "modes", "255");
    refused_mode(f, profile, modes, SIZE_MAX, "modes", "255");
    modes[1].activation_bytes = limit;
    refused_mode(f, profile, modes, 2, "modes.activation_bytes", "below 2^63");
    modes[1].activation_bytes = 0;
    modes[1].forward_cost = limit;
    refused_mode(f, profile, modes, 2, "modes.forward_cost", "below 2^63");
    modes[1].forward_cost = REMAT_DEFAULT;
    modes[1].backward_workspace_bytes = limit;
    refused_mode(f, profile, modes, 2, "modes.backward_workspace_bytes", "below 2^63");
    modes[1].backward_workspace_bytes = REMAT_DEFAULT;
    modes[1].struct_size = 0;
    remat_layer_options options = good_layer();
    options.modes = modes;
    options.mode_count = 2;
    expect_status(f, remat_profile_add_layer(profile, &options), REMAT_INVALID);
    expect_message(f, "remat_mode_options_init");
    modes[1].struct_size = sizeof modes[1];
    options.mode_count = 255;
    expect_ok(f, remat_profile_add_layer(profile, &options));
    assert_int_equal(remat_profile_layer(profile, 2)->mode_count, 256);
    remat_profile_destroy(profile);
}

static void modes_that_are_counted_must_be_there(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    refused_mode(f, profile, NULL, 1, "modes", "");
    remat_profile_destroy(profile);
}

static void names_must_be_utf8(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    remat_layer_options options = good_layer();
    options.name = "\xc3(";
    refused(f, profile, &options, "name", "UTF-8");
    expect_status(f, remat_profile_set_name(profile, "\xff"), REMAT_INVALID);
    expect_status(f, remat_profile_set_cost_unit(profile, "\xff"), REMAT_INVALID);
    assert_string_equal(remat_profile_name(profile), "");
    remat_profile_destroy(profile);
}

/* The reader takes names of 1023 bytes; a profile that holds a longer one could be written but not read again. */
static void a_name_that_could_not_be_read_again_is_refused(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    static char name[1100];
    memset(name, 'n', 1024);
    remat_layer_options options = good_layer();
    options.name = name;
    refused(f, profile, &options, "name", "1023");
    remat_mode_options mode;
    remat_mode_options_init(&mode);
    mode.name = name;
    refused_mode(f, profile, &mode, 1, "modes.name", "1023");
    expect_status(f, remat_profile_set_name(profile, name), REMAT_INVALID);
    expect_status(f, remat_profile_set_cost_unit(profile, name), REMAT_INVALID);
    name[1023] = '\0';
    expect_ok(f, remat_profile_add_layer(profile, &options));
    expect_ok(f, remat_profile_set_name(profile, name));
    remat_profile_destroy(profile);
}

static void options_must_be_initialised(void **state)
{
    fixture *f = *state;
    remat_profile *profile = two_layers(f);
    remat_layer_options options = {0};
    expect_status(f, remat_profile_add_layer(profile, &options), REMAT_INVALID);
    expect_message(f, "remat_layer_options_init");
    assert_int_equal(remat_profile_layer_count(profile), 2);
    remat_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(figures_must_be_below_two_to_the_63),
        FIXTURE_TEST(a_default_backward_cost_that_overflows_is_refused),
        FIXTURE_TEST(the_output_is_part_of_the_activation),
        FIXTURE_TEST(the_type_must_be_one_of_the_list),
        FIXTURE_TEST(indexes_must_be_unique),
        FIXTURE_TEST(a_refused_layer_leaves_no_trace),
        FIXTURE_TEST(sums_of_the_chain_must_stay_below_two_to_the_63),
        FIXTURE_TEST(modes_need_names_of_their_own),
        FIXTURE_TEST(modes_have_limits_too),
        FIXTURE_TEST(modes_that_are_counted_must_be_there),
        FIXTURE_TEST(names_must_be_utf8),
        FIXTURE_TEST(a_name_that_could_not_be_read_again_is_refused),
        FIXTURE_TEST(options_must_be_initialised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
