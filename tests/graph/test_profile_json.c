#include "support/fixture.h"

#include <unistd.h>

/* The example of the specification. */
static const char example[] =
    "{\"format\": \"remat-profile\", \"version\": 1, \"name\": \"gpt-24\", \"input_bytes\": 4096,\n"
    " \"layers\": [{\"index\": 0, \"name\": \"h0.attn\", \"type\": \"attention\", \"activation_bytes\": 1024,\n"
    "   \"recompute_flops\": 2000000, \"output_bytes\": 512, \"forward_workspace_bytes\": 0,\n"
    "   \"backward_workspace_bytes\": 0, \"forward_cost\": 2000000, \"backward_cost\": 4000000,\n"
    "   \"modes\": [{\"name\": \"half\", \"activation_bytes\": 512, \"backward_cost\": 4100000,\n"
    "     \"holds_output\": false}]}]}\n";

static void the_example_of_the_specification_reads(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, read_profile_text(f, example, &profile));
    assert_int_equal(f->warnings, 0);
    assert_string_equal(remat_profile_name(profile), "gpt-24");
    assert_int_equal(remat_profile_input_bytes(profile), 4096);
    assert_int_equal(remat_profile_input_gradient_bytes(profile), 4096);
    assert_int_equal(remat_profile_layer_count(profile), 1);
    const remat_layer *layer = remat_profile_layer(profile, 0);
    assert_string_equal(layer->name, "h0.attn");
    assert_int_equal(layer->type, REMAT_ATTENTION);
    assert_int_equal(layer->output_bytes, 512);
    assert_int_equal(layer->modes[0].backward_cost, 4000000);
    const remat_mode *half = &layer->modes[1];
    assert_string_equal(half->name, "half");
    assert_int_equal(half->activation_bytes, 512);
    assert_int_equal(half->forward_cost, 2000000);
    assert_int_equal(half->backward_cost, 4100000);
    assert_false(half->holds_output);
    assert_true(half->lossless);
    remat_profile_destroy(profile);
}

static void four_keys_are_enough_for_a_layer(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, read_profile_text(f,
                                   "{\"format\": \"remat-profile\", \"version\": 1, \"layers\": ["
                                   "{\"recompute_flops\": 10, \"type\": \"norm\", \"index\": 5, "
                                   "\"activation_bytes\": 100}]}",
                                   &profile));
    const remat_layer *layer = remat_profile_layer(profile, 0);
    assert_string_equal(layer->name, "layer5");
    assert_int_equal(layer->index, 5);
    assert_int_equal(layer->type, REMAT_NORM);
    assert_int_equal(layer->output_bytes, 100);
    assert_int_equal(layer->modes[0].forward_cost, 10);
    assert_int_equal(layer->modes[0].backward_cost, 20);
    assert_int_equal(layer->mode_count, 1);
    assert_int_equal(remat_profile_input_bytes(profile), 0);
    assert_int_equal(remat_profile_loss_workspace_bytes(profile), 0);
    remat_profile_destroy(profile);
}

static void keys_may_come_in_any_order(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, read_profile_text(f,
                                   "{\"layers\": [], \"loss_workspace_bytes\": 3, \"input_gradient_bytes\": 1,"
                                   "\"input_bytes\": 2, \"cost_unit\": \"ns\", \"algorithms\": \"x 1\", \"version\": 1,"
                                   "\"format\": \"remat-profile\"}",
                                   &profile));
    assert_int_equal(remat_profile_layer_count(profile), 0);
    assert_int_equal(remat_profile_input_bytes(profile), 2);
    assert_int_equal(remat_profile_input_gradient_bytes(profile), 1); /* set, though the input came later */
    assert_int_equal(remat_profile_loss_workspace_bytes(profile), 3);
    assert_string_equal(remat_profile_cost_unit(profile), "ns");
    remat_profile_destroy(profile);
}

static void every_type_reads(void **state)
{
    fixture *f = *state;
    static const char *const types[] = {"attention", "ffn", "embedding", "norm", "other"};
    for (size_t i = 0; i < 5; i++) {
        char text[300];
        remat_profile *profile;
        snprintf(text, sizeof text,
                 "{\"format\": \"remat-profile\", \"version\": 1, \"layers\": [{\"index\": 0, \"type\": \"%s\", "
                 "\"activation_bytes\": 1, \"recompute_flops\": 1}]}",
                 types[i]);
        expect_ok(f, read_profile_text(f, text, &profile));
        assert_int_equal(remat_profile_layer(profile, 0)->type, i);
        remat_profile_destroy(profile);
    }
}

static void the_largest_numbers_are_exact(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, read_profile_text(f,
                                   "{\"format\": \"remat-profile\", \"version\": 1, \"layers\": ["
                                   "{\"index\": 9223372036854775807, \"type\": \"other\", \"activation_bytes\": "
                                   "9223372036854775807, \"output_bytes\": 0, \"recompute_flops\": "
                                   "9223372036854775807, \"forward_cost\": 9223372036854775806, \"backward_cost\": "
                                   "1}]}",
                                   &profile));
    const remat_layer *layer = remat_profile_layer(profile, 0);
    assert_int_equal(layer->index, INT64_MAX);
    assert_int_equal(layer->modes[0].activation_bytes, INT64_MAX);
    assert_int_equal(layer->recompute_flops, INT64_MAX);
    assert_int_equal(layer->modes[0].forward_cost, INT64_MAX - 1);
    remat_profile_destroy(profile);
}

static void unknown_keys_are_warned_about_and_passed_over(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, read_profile_text(f,
                                   "{\"format\": \"remat-profile\", \"version\": 1, \"made by\": {\"a\": [1, {}]},\n"
                                   "\"layers\": [{\"index\": 0, \"type\": \"other\", \"activation_bytes\": 1,\n"
                                   "\"recompute_flops\": 1, \"colour\": \"red\", \"modes\": [{\"name\": \"m\",\n"
                                   "\"activation_bytes\": 1, \"speed\": null}]}]}",
                                   &profile));
    assert_int_equal(f->warnings, 3);
    expect_text(f->warning, "text:4: layer 0: the key 'speed' is unknown");
    assert_int_equal(remat_profile_layer(profile, 0)->mode_count, 2);
    remat_profile_destroy(profile);
}

static void a_byte_order_mark_and_white_space_may_come_first(void **state)
{
    fixture *f = *state;
    static const char *const starts[] = {"\xef\xbb\xbf", "\xef\xbb\xbf\n ", "\r\n\t "};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        char text[1000];
        remat_profile *profile;
        snprintf(text, sizeof text, "%s%s", starts[i], example);
        expect_ok(f, read_profile_text(f, text, &profile));
        remat_profile_destroy(profile);
    }
    remat_profile *profile;
    expect_status(f, read_profile_text(f, "\n\n\n{\n\"version\": 7}", &profile), REMAT_BAD_INPUT);
    assert_int_equal(remat_context_error(f->context)->line, 5); /* white space counts */
}

static void lines_may_end_in_carriage_returns(void **state)
{
    fixture *f = *state;
    char text[1000], *to = text;
    for (const char *from = example; *from; from++) {
        if (*from == '\n')
            *to++ = '\r';
        *to++ = *from;
    }
    *to = '\0';
    remat_profile *profile;
    expect_ok(f, read_profile_text(f, text, &profile));
    remat_profile_destroy(profile);
}

static void files_load_by_their_path(void **state)
{
    fixture *f = *state;
    char path[] = "/tmp/remat-profile-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, example, strlen(example)), strlen(example));
    close(descriptor);
    remat_profile *profile;
    expect_ok(f, remat_profile_load(f->context, path, &profile));
    assert_int_equal(remat_profile_layer_count(profile), 1);
    expect_ok(f, remat_profile_save(profile, path));
    remat_profile_destroy(profile);
    expect_ok(f, remat_profile_load(f->context, path, &profile));
    remat_profile_destroy(profile);
    unlink(path);
    expect_status(f, remat_profile_load(f->context, path, &profile), REMAT_IO);
    assert_null(profile);
    expect_message(f, path);
    expect_status(f, remat_profile_load(f->context, "/", &profile), REMAT_IO); /* a folder */
}

static void the_shipped_example_reads(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, remat_profile_load(f->context, "examples/transformer.json", &profile));
    assert_int_equal(f->warnings, 0);
    remat_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(the_example_of_the_specification_reads),
        FIXTURE_TEST(four_keys_are_enough_for_a_layer),
        FIXTURE_TEST(keys_may_come_in_any_order),
        FIXTURE_TEST(every_type_reads),
        FIXTURE_TEST(the_largest_numbers_are_exact),
        FIXTURE_TEST(unknown_keys_are_warned_about_and_passed_over),
        FIXTURE_TEST(a_byte_order_mark_and_white_space_may_come_first),
        FIXTURE_TEST(lines_may_end_in_carriage_returns),
        FIXTURE_TEST(files_load_by_their_path),
        FIXTURE_TEST(the_shipped_example_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
