#include "support/fixture.h"

static remat_profile *empty(fixture *f)
{
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    return profile;
}

static void an_empty_chain_has_no_layers_and_no_names(void **state)
{
    fixture *f = *state;
    remat_profile *profile = empty(f);
    assert_int_equal(remat_profile_layer_count(profile), 0);
    assert_null(remat_profile_layer(profile, 0));
    assert_string_equal(remat_profile_name(profile), "");
    assert_string_equal(remat_profile_cost_unit(profile), "");
    assert_int_equal(remat_profile_input_bytes(profile), 0);
    assert_int_equal(remat_profile_input_gradient_bytes(profile), 0);
    assert_int_equal(remat_profile_loss_workspace_bytes(profile), 0);
    remat_profile_destroy(profile);
}

static void a_short_addition_gets_every_default(void **state)
{
    fixture *f = *state;
    remat_profile *profile = empty(f);
    expect_ok(f, remat_profile_add(profile, REMAT_ATTENTION, 1024, 2000000));
    expect_ok(f, remat_profile_add(profile, REMAT_FFN, 512, 1000000));
    assert_int_equal(remat_profile_layer_count(profile), 2);
    const remat_layer *layer = remat_profile_layer(profile, 1);
    assert_int_equal(layer->index, 1);
    assert_string_equal(layer->name, "layer1");
    assert_int_equal(layer->type, REMAT_FFN);
    assert_int_equal(layer->recompute_flops, 1000000);
    assert_int_equal(layer->output_bytes, 512);
    assert_int_equal(layer->mode_count, 1);
    const remat_mode *keep = &layer->modes[REMAT_KEEP];
    assert_string_equal(keep->name, "keep");
    assert_int_equal(keep->activation_bytes, 512);
    assert_int_equal(keep->forward_cost, 1000000);
    assert_int_equal(keep->backward_cost, 2000000);
    assert_int_equal(keep->forward_workspace_bytes, 0);
    assert_int_equal(keep->backward_workspace_bytes, 0);
    assert_true(keep->holds_output && keep->lossless);
    assert_null(remat_profile_layer(profile, 2));
    remat_profile_destroy(profile);
}

static void the_backward_cost_follows_the_forward_cost(void **state)
{
    fixture *f = *state;
    remat_profile *profile = empty(f);
    remat_layer_options options;
    remat_layer_options_init(&options);
    options.recompute_flops = 1000;
    options.forward_cost = 7;
    expect_ok(f, remat_profile_add_layer(profile, &options));
    assert_int_equal(remat_profile_layer(profile, 0)->modes[0].backward_cost, 14);
    assert_int_equal(remat_profile_layer(profile, 0)->type, REMAT_OTHER);
    remat_profile_destroy(profile);
}

static void the_name_follows_the_index(void **state)
{
    fixture *f = *state;
    remat_profile *profile = empty(f);
    remat_layer_options options;
    remat_layer_options_init(&options);
    options.index = INT64_MAX;
    expect_ok(f, remat_profile_add_layer(profile, &options));
    assert_string_equal(remat_profile_layer(profile, 0)->name, "layer9223372036854775807");
    expect_ok(f, remat_profile_add(profile, REMAT_NORM, 1, 1)); /* the default is the position, not the next index */
    assert_int_equal(remat_profile_layer(profile, 1)->index, 1);
    remat_profile_destroy(profile);
}

static void everything_said_is_kept(void **state)
{
    fixture *f = *state;
    remat_profile *profile = empty(f);
    char name[] = "block", mode_name[] = "half";
    remat_mode_options modes[2];
    remat_mode_options_init(&modes[0]);
    modes[0].name = mode_name;
    modes[0].activation_bytes = 50;
    modes[0].backward_cost = 9;
    modes[0].holds_output = modes[0].lossless = false;
    remat_mode_options_init(&modes[1]);
    modes[1].name = "slim";
    modes[1].forward_workspace_bytes = 1;
    remat_layer_options options;
    remat_layer_options_init(&options);
    options = (remat_layer_options){sizeof options, 42, name, REMAT_NORM, 100, 5, 60, 6, 7, 8, 9, modes, 2};
    expect_ok(f, remat_profile_add_layer(profile, &options));
    name[0] = mode_name[0] = 'X'; /* the profile has copies */
    const remat_layer *layer = remat_profile_layer(profile, 0);
    assert_string_equal(layer->name, "block");
    assert_int_equal(layer->index, 42);
    assert_int_equal(layer->output_bytes, 60);
    assert_int_equal(layer->mode_count, 3);
    const remat_mode *half = &layer->modes[1], *slim = &layer->modes[2];
    assert_string_equal(half->name, "half");
    assert_int_equal(half->activation_bytes, 50);
    assert_int_equal(half->forward_cost, 6); /* the layer's */
    assert_int_equal(half->backward_cost, 9);
    assert_int_equal(half->forward_workspace_bytes, 8);
    assert_int_equal(half->backward_workspace_bytes, 9);
    assert_false(half->holds_output || half->lossless);
    assert_int_equal(slim->activation_bytes, 0);
    assert_int_equal(slim->forward_workspace_bytes, 1);
    assert_true(slim->holds_output && slim->lossless);
    remat_profile_destroy(profile);
}

static void the_input_gradient_follows_the_input_until_it_is_set(void **state)
{
    fixture *f = *state;
    remat_profile *profile = empty(f);
    expect_ok(f, remat_profile_set_input_bytes(profile, 100));
    assert_int_equal(remat_profile_input_gradient_bytes(profile), 100);
    expect_ok(f, remat_profile_set_input_bytes(profile, 60));
    assert_int_equal(remat_profile_input_gradient_bytes(profile), 60);
    expect_ok(f, remat_profile_set_input_gradient_bytes(profile, 0));
    expect_ok(f, remat_profile_set_input_bytes(profile, 80));
    assert_int_equal(remat_profile_input_bytes(profile), 80);
    assert_int_equal(remat_profile_input_gradient_bytes(profile), 0);
    expect_ok(f, remat_profile_set_loss_workspace_bytes(profile, 5));
    assert_int_equal(remat_profile_loss_workspace_bytes(profile), 5);
    remat_profile_destroy(profile);
}

/* The running sum that guards against overflow must not count a figure twice that was only replaced. */
static void figures_can_be_set_again_and_again(void **state)
{
    fixture *f = *state;
    remat_profile *profile = empty(f);
    uint64_t large = ((uint64_t)1 << 62) - 1;
    for (int i = 0; i < 10; i++) {
        expect_ok(f, remat_profile_set_input_bytes(profile, large));
        expect_ok(f, remat_profile_set_input_bytes(profile, 0));
    }
    for (int i = 0; i < 10; i++) {
        expect_ok(f, remat_profile_set_input_gradient_bytes(profile, large));
        expect_ok(f, remat_profile_set_loss_workspace_bytes(profile, large));
        expect_ok(f, remat_profile_set_input_bytes(profile, 1));
        expect_ok(f, remat_profile_set_input_bytes(profile, 0));
    }
    expect_status(f, remat_profile_set_input_bytes(profile, 100), REMAT_INVALID);
    remat_profile_destroy(profile);
}

static void names_are_copied_replaced_and_taken_away(void **state)
{
    fixture *f = *state;
    remat_profile *profile = empty(f);
    char name[] = "first";
    expect_ok(f, remat_profile_set_name(profile, name));
    name[0] = 'X';
    assert_string_equal(remat_profile_name(profile), "first");
    expect_ok(f, remat_profile_set_name(profile, remat_profile_name(profile))); /* its own text */
    assert_string_equal(remat_profile_name(profile), "first");
    expect_ok(f, remat_profile_set_name(profile, NULL));
    assert_string_equal(remat_profile_name(profile), "");
    expect_ok(f, remat_profile_set_cost_unit(profile, "ns"));
    assert_string_equal(remat_profile_cost_unit(profile), "ns");
    remat_profile_destroy(profile);
}

static void the_cost_ratio_is_flops_for_each_byte(void **state)
{
    fixture *f = *state;
    remat_profile *profile = empty(f);
    expect_ok(f, remat_profile_add(profile, REMAT_ATTENTION, 1024, 2048000));
    expect_ok(f, remat_profile_add(profile, REMAT_ATTENTION, 0, 100));
    assert_true(remat_layer_cost_ratio(remat_profile_layer(profile, 0)) == 2000.0);
    assert_true(remat_layer_cost_ratio(remat_profile_layer(profile, 1)) == 0.0);
    remat_profile_destroy(profile);
}

static void layer_types_have_names(void **state)
{
    (void)state;
    assert_string_equal(remat_layer_type_name(REMAT_ATTENTION), "attention");
    assert_string_equal(remat_layer_type_name(REMAT_FFN), "ffn");
    assert_string_equal(remat_layer_type_name(REMAT_EMBEDDING), "embedding");
    assert_string_equal(remat_layer_type_name(REMAT_NORM), "norm");
    assert_string_equal(remat_layer_type_name(REMAT_OTHER), "other");
    assert_string_equal(remat_layer_type_name((remat_layer_type)77), "unknown");
}

/* A program built against an older header has smaller mode structs; they stand one behind the other all the same. */
static void modes_of_an_older_kind_are_read_one_by_one(void **state)
{
    fixture *f = *state;
    struct older_mode {
        size_t struct_size;
        const char *name;
        uint64_t activation_bytes;
    } modes[2] = {{sizeof modes[0], "a", 10}, {sizeof modes[0], "b", 20}};
    assert_int_equal(sizeof modes[0], offsetof(remat_mode_options, forward_cost));
    remat_profile *profile = empty(f);
    remat_layer_options options;
    remat_layer_options_init(&options);
    options.activation_bytes = options.forward_cost = 30;
    options.modes = (const remat_mode_options *)(const void *)modes;
    options.mode_count = 2;
    expect_ok(f, remat_profile_add_layer(profile, &options));
    const remat_layer *layer = remat_profile_layer(profile, 0);
    assert_string_equal(layer->modes[2].name, "b");
    assert_int_equal(layer->modes[2].activation_bytes, 20);
    assert_int_equal(layer->modes[2].forward_cost, 30);
    assert_true(layer->modes[2].holds_output);
    remat_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(an_empty_chain_has_no_layers_and_no_names),
        FIXTURE_TEST(a_short_addition_gets_every_default),
        FIXTURE_TEST(the_backward_cost_follows_the_forward_cost),
        FIXTURE_TEST(the_name_follows_the_index),
        FIXTURE_TEST(everything_said_is_kept),
        FIXTURE_TEST(the_input_gradient_follows_the_input_until_it_is_set),
        FIXTURE_TEST(figures_can_be_set_again_and_again),
        FIXTURE_TEST(names_are_copied_replaced_and_taken_away),
        FIXTURE_TEST(the_cost_ratio_is_flops_for_each_byte),
        cmocka_unit_test(layer_types_have_names),
        FIXTURE_TEST(modes_of_an_older_kind_are_read_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
