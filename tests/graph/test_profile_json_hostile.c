/* Profiles in JSON that are wrong, by mistake or on purpose. */
#include "support/fixture.h"

/* One good layer, so that the wrong one is layer 1, on line 3. */
#define BEGIN                                                         \
    "{\"format\": \"remat-profile\", \"version\": 1, \"layers\": [\n" \
    "{\"index\": 0, \"type\": \"other\", \"activation_bytes\": 1, \"recompute_flops\": 1},\n"
#define END "]}"

static void refused(fixture *f, const char *text, const char *field, const char *reason)
{
    remat_profile *profile;
    expect_status(f, read_profile_text(f, text, &profile), REMAT_BAD_INPUT);
    expect_message(f, "text:");
    expect_message(f, reason);
    if (field)
        assert_string_equal(remat_context_error(f->context)->field, field);
}

static void refused_layer(fixture *f, const char *layer, const char *field, const char *reason)
{
    char text[20000];
    snprintf(text, sizeof text, BEGIN "%s" END, layer);
    refused(f, text, field, reason);
    assert_int_equal(remat_context_error(f->context)->layer, 1);
    assert_int_equal(remat_context_error(f->context)->line, 3);
}

static void every_number_must_be_whole_and_in_range(void **state)
{
    fixture *f = *state;
    static const char *const fields[] = {
        "index",        "activation_bytes", "recompute_flops",         "output_bytes",
        "forward_cost", "backward_cost",    "forward_workspace_bytes", "backward_workspace_bytes"};
    static const char *const values[] = {"9223372036854775808",
                                         "18446744073709551616",
                                         "1e400",
                                         "-1",
                                         "1.5",
                                         "1.0",
                                         "1e3",
                                         "\"1\"",
                                         "true",
                                         "null",
                                         "[]",
                                         "{}",
                                         "99999999999999999999999999"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            char layer[300];
            snprintf(layer, sizeof layer, "{\"%s\": %s}", fields[i], values[k]);
            refused_layer(f, layer, fields[i], "it must be a whole number from 0 to 2^63 - 1");
        }
}

static void figures_of_the_chain_are_checked_too(void **state)
{
    fixture *f = *state;
    static const char *const fields[] = {"input_bytes", "input_gradient_bytes", "loss_workspace_bytes"};
    static const char *const values[] = {"9223372036854775808", "-1", "1.5", "\"1\"", "null"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            char text[200];
            snprintf(text, sizeof text, "{\"format\": \"remat-profile\", \"version\": 1, \"%s\": %s, \"layers\": []}",
                     fields[i], values[k]);
            refused(f, text, fields[i], "whole number");
        }
    refused(f, "{\"name\": 5}", "name", "string");
    refused(f, "{\"cost_unit\": []}", "cost_unit", "string");
    refused(f, "{\"algorithms\": 5}", "algorithms", "string");
}

static void sums_past_two_to_the_63_are_refused(void **state)
{
    fixture *f = *state;
    refused_layer(f,
                  "{\"index\": 1, \"type\": \"other\", \"activation_bytes\": 4611686018427387904, "
                  "\"recompute_flops\": 1}",
                  "activation_bytes", "sum to less than 2^63");
    refused_layer(f,
                  "{\"index\": 1, \"type\": \"other\", \"activation_bytes\": 1, "
                  "\"recompute_flops\": 4611686018427387904}",
                  "backward_cost", "below 2^63");
    refused_layer(f,
                  "{\"index\": 1, \"type\": \"other\", \"activation_bytes\": 1, \"recompute_flops\": 1, "
                  "\"forward_cost\": 4611686018427387904, \"backward_cost\": 4611686018427387904}",
                  "forward_cost", "sum to less than 2^63");
    refused(f, "{\"input_bytes\": 4611686018427387904}", "input_bytes", "sum to less than 2^63");
    refused(f, "{\"loss_workspace_bytes\": 9223372036854775807, \"input_gradient_bytes\": 1}", "input_gradient_bytes",
            "sum to less than 2^63");
}

static void a_missing_key_is_named(void **state)
{
    fixture *f = *state;
    refused_layer(f, "{\"type\": \"other\", \"activation_bytes\": 1, \"recompute_flops\": 1}", "index", "missing");
    refused_layer(f, "{\"index\": 1, \"activation_bytes\": 1, \"recompute_flops\": 1}", "type", "missing");
    refused_layer(f, "{\"index\": 1, \"type\": \"other\", \"recompute_flops\": 1}", "activation_bytes", "missing");
    refused_layer(f, "{\"index\": 1, \"type\": \"other\", \"activation_bytes\": 1}", "recompute_flops", "missing");
    refused_layer(f, "{}", "index", "missing");
    refused(f, "{}", "format", "missing");
    refused(f, "{\"format\": \"remat-profile\", \"layers\": []}", "version", "missing");
    refused(f, "{\"format\": \"remat-profile\", \"version\": 1}", "layers", "missing");
}

static void other_formats_and_versions_are_refused(void **state)
{
    fixture *f = *state;
    refused(f, "{\"format\": \"remat-plan\"}", "format", "'remat-plan' was found");
    refused(f, "{\"format\": 1}", "format", "must be a string");
    refused(f, "{\"format\": \"remat-profile\", \"version\": 2}", "version", "2 is unknown");
    refused(f, "{\"format\": \"remat-profile\", \"version\": 0}", "version", "0 is unknown");
    refused(f, "{\"version\": \"1\"}", "version", "whole number");
    refused(f, "{\"version\": 1.0}", "version", "whole number");
}

static void every_key_stands_once(void **state)
{
    fixture *f = *state;
    refused_layer(f, "{\"index\": 1, \"index\": 1}", "index", "twice");
    refused_layer(f, "{\"type\": \"other\", \"type\": \"other\"}", "type", "twice");
    refused_layer(f, "{\"name\": \"a\", \"name\": \"a\"}", "name", "twice");
    refused_layer(f, "{\"modes\": [], \"modes\": []}", "modes", "twice");
    refused_layer(f, "{\"modes\": [{\"name\": \"m\", \"name\": \"m\"}]}", "modes.name", "twice");
    refused(f, "{\"version\": 1, \"version\": 1}", "version", "twice");
    refused(f, "{\"layers\": [], \"layers\": []}", "layers", "twice");
}

#define LAYER "{\"index\": 1, \"type\": \"other\", \"activation_bytes\": 9, \"recompute_flops\": 1, "

static void wrong_layers_name_what_is_wrong(void **state)
{
    fixture *f = *state;
    refused_layer(f, "{\"index\": 0, \"type\": \"other\", \"activation_bytes\": 1, \"recompute_flops\": 1}", "index",
                  "unique");
    refused_layer(f, "{\"type\": \"Attention\"}", "type", "attention ffn embedding norm other");
    refused_layer(f, "{\"type\": \"\"}", "type", "not a type");
    refused_layer(f, "{\"type\": 3}", "type", "string");
    refused_layer(f, "{\"name\": 3}", "name", "string");
    refused_layer(f, LAYER "\"output_bytes\": 10}", "output_bytes", "larger than activation_bytes 9");
    refused_layer(f, "[]", NULL, "a layer must be an object");
    refused_layer(f, "1", NULL, "a layer must be an object");
    refused_layer(f, "null", NULL, "a layer must be an object");
    refused(f, "{\"layers\": {}}", "layers", "must be an array");
    refused(f, "[]", NULL, "must be an object");
    refused(f, "[{\"index\": 0}]", NULL, "must be an object");
}

static void wrong_modes_name_what_is_wrong(void **state)
{
    fixture *f = *state;
    refused_layer(f, LAYER "\"modes\": 1}", "modes", "array");
    refused_layer(f, LAYER "\"modes\": [1]}", "modes", "object");
    refused_layer(f, LAYER "\"modes\": [{\"activation_bytes\": 1}]}", "modes.name", "needs a name");
    refused_layer(f, LAYER "\"modes\": [{\"name\": \"m\"}]}", "modes.activation_bytes", "missing");
    refused_layer(f, LAYER "\"modes\": [{\"name\": \"keep\", \"activation_bytes\": 1}]}", "modes.name", "reserved");
    refused_layer(f, LAYER "\"modes\": [{\"name\": \"recompute\", \"activation_bytes\": 1}]}", "modes.name",
                  "reserved");
    refused_layer(f,
                  LAYER "\"modes\": [{\"name\": \"m\", \"activation_bytes\": 1}, {\"name\": \"m\", "
                        "\"activation_bytes\": 2}]}",
                  "modes.name", "twice");
    refused_layer(f, LAYER "\"modes\": [{\"holds_output\": 1}]}", "modes.holds_output", "true or false");
    refused_layer(f, LAYER "\"modes\": [{\"lossless\": \"no\"}]}", "modes.lossless", "true or false");
    refused_layer(f, LAYER "\"modes\": [{\"forward_cost\": -1}]}", "modes.forward_cost", "whole number");
    refused_layer(f, LAYER "\"modes\": [{\"name\": \"m\", \"activation_bytes\": 9223372036854775807}]}",
                  "activation_bytes", "sum to less than 2^63");
}

static void a_layer_has_255_modes_at_most(void **state)
{
    fixture *f = *state;
    for (int count = 255; count <= 257; count++) {
        static char text[20000];
        int length = snprintf(text, sizeof text, BEGIN LAYER "\"modes\": [");
        for (int i = 0; i < count; i++)
            length += snprintf(text + length, sizeof text - (size_t)length,
                               "%s{\"name\": \"m%d\", \"activation_bytes\": 1}", i ? ", " : "", i);
        snprintf(text + length, sizeof text - (size_t)length, "]}" END);
        remat_profile *profile;
        if (count > 255) {
            refused(f, text, "modes", "255");
            continue;
        }
        expect_ok(f, read_profile_text(f, text, &profile));
        remat_profile_destroy(profile);
    }
}

static void long_names_are_refused_before_they_do_harm(void **state)
{
    fixture *f = *state;
    static char name[1200], layer[4000], long_key[1200];
    memset(name, 'n', 1024);
    snprintf(layer, sizeof layer, LAYER "\"name\": \"%s\"}", name);
    refused_layer(f, layer, "name", "at most 1023");
    snprintf(layer, sizeof layer, LAYER "\"modes\": [{\"name\": \"%s\"}]}", name);
    refused_layer(f, layer, "modes.name", "at most 1023");
    memset(long_key, 'k', sizeof long_key - 1);
    snprintf(layer, sizeof layer, LAYER "\"%s\": 1, \"type\": 1}", long_key);
    refused_layer(f, layer, "type", "twice");
    assert_int_equal(f->warnings, 1);
}

static void text_behind_the_profile_is_refused(void **state)
{
    fixture *f = *state;
    refused(f, "{\"format\": \"remat-profile\", \"version\": 1, \"layers\": []}}", NULL, "end of the text");
    refused(f, "{\"format\": \"remat-profile\", \"version\": 1, \"layers\": []}{}", NULL, "end of the text");
    refused(f, "{\"format\": \"remat-profile\", \"version\": 1, \"layers\": [],}", NULL, "a key");
}

static void deep_nesting_under_an_unknown_key_is_refused(void **state)
{
    fixture *f = *state;
    static char text[200000];
    size_t length = (size_t)snprintf(text, sizeof text, "{\"deep\": ");
    memset(text + length, '[', 100000);
    text[length + 100000] = '\0';
    refused(f, text, NULL, "nested deeper");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(every_number_must_be_whole_and_in_range),
        FIXTURE_TEST(figures_of_the_chain_are_checked_too),
        FIXTURE_TEST(sums_past_two_to_the_63_are_refused),
        FIXTURE_TEST(a_missing_key_is_named),
        FIXTURE_TEST(other_formats_and_versions_are_refused),
        FIXTURE_TEST(every_key_stands_once),
        FIXTURE_TEST(wrong_layers_name_what_is_wrong),
        FIXTURE_TEST(wrong_modes_name_what_is_wrong),
        FIXTURE_TEST(a_layer_has_255_modes_at_most),
        FIXTURE_TEST(long_names_are_refused_before_they_do_harm),
        FIXTURE_TEST(text_behind_the_profile_is_refused),
        FIXTURE_TEST(deep_nesting_under_an_unknown_key_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
