/* Writing and reading again loses nothing. */
#include "graph/chain.h"
#include "support/fixture.h"
#include "support/random_profile.h"

#include <jansson.h>

static void expect_same_mode(const remat_mode *a, const remat_mode *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->activation_bytes, b->activation_bytes);
    assert_int_equal(a->forward_cost, b->forward_cost);
    assert_int_equal(a->backward_cost, b->backward_cost);
    assert_int_equal(a->forward_workspace_bytes, b->forward_workspace_bytes);
    assert_int_equal(a->backward_workspace_bytes, b->backward_workspace_bytes);
    assert_int_equal(a->holds_output, b->holds_output);
    assert_int_equal(a->lossless, b->lossless);
}

static void expect_same_profile(const remat_profile *a, const remat_profile *b)
{
    assert_string_equal(remat_profile_name(a), remat_profile_name(b));
    assert_string_equal(remat_profile_cost_unit(a), remat_profile_cost_unit(b));
    assert_int_equal(remat_profile_input_bytes(a), remat_profile_input_bytes(b));
    assert_int_equal(remat_profile_input_gradient_bytes(a), remat_profile_input_gradient_bytes(b));
    assert_int_equal(remat_profile_loss_workspace_bytes(a), remat_profile_loss_workspace_bytes(b));
    assert_int_equal(remat_profile_layer_count(a), remat_profile_layer_count(b));
    for (size_t i = 0; i < remat_profile_layer_count(a); i++) {
        const remat_layer *one = remat_profile_layer(a, i), *two = remat_profile_layer(b, i);
        assert_string_equal(one->name, two->name);
        assert_int_equal(one->index, two->index);
        assert_int_equal(one->type, two->type);
        assert_int_equal(one->recompute_flops, two->recompute_flops);
        assert_int_equal(one->output_bytes, two->output_bytes);
        assert_int_equal(one->mode_count, two->mode_count);
        for (size_t k = 0; k < one->mode_count; k++)
            expect_same_mode(&one->modes[k], &two->modes[k]);
    }
}

static void write_read_write_is_the_same_for_random_profiles(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    static const random_traits traits = {.most_layers = 30, .modes = true, .odd_names = true};
    for (int round = 0; round < LESS_WHEN_SANITIZED(1500, 300); round++) {
        remat_profile *profile = random_profile(f->context, &random, &traits), *read;
        char *once = written_profile(profile);
        expect_ok(f, read_profile_text(f, once, &read));
        assert_int_equal(f->warnings, 0);
        char *twice = written_profile(read);
        assert_string_equal(once, twice);
        expect_same_profile(profile, read);
        free(once);
        free(twice);
        remat_profile_destroy(read);
        remat_profile_destroy(profile);
    }
}

static void jansson_reads_what_is_written(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    static const random_traits traits = {.least_layers = 1, .most_layers = 10, .modes = true, .odd_names = true};
    for (int round = 0; round < 200; round++) {
        remat_profile *profile = random_profile(f->context, &random, &traits);
        char *text = written_profile(profile);
        json_t *tree = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *layers = json_object_get(tree, "layers");
        assert_string_equal(json_string_value(json_object_get(tree, "format")), "remat-profile");
        assert_int_equal(json_integer_value(json_object_get(tree, "version")), 1);
        assert_int_equal(json_array_size(layers), remat_profile_layer_count(profile));
        for (size_t i = 0; i < json_array_size(layers); i++) {
            const remat_layer *layer = remat_profile_layer(profile, i);
            json_t *entry = json_array_get(layers, i);
            assert_string_equal(json_string_value(json_object_get(entry, "name")), layer->name);
            assert_int_equal(json_integer_value(json_object_get(entry, "index")), layer->index);
            assert_int_equal(json_integer_value(json_object_get(entry, "activation_bytes")),
                             layer->modes[0].activation_bytes);
            assert_int_equal(json_array_size(json_object_get(entry, "modes")), layer->mode_count - 1);
        }
        json_decref(tree);
        free(text);
        remat_profile_destroy(profile);
    }
}

/* What comes from a CSV can be written as JSON and read again, whatever its names. */
static void a_csv_survives_as_json(void **state)
{
    fixture *f = *state;
    static char text[4000];
    char name[1100];
    memset(name, 'n', sizeof name);
    static const size_t lengths[] = {1, 1022, 1023, 1024, 1099};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        snprintf(text, sizeof text, "name,index,type,activation_bytes,recompute_flops\n%.*s,0,norm,10,5\n",
                 (int)lengths[i], name);
        remat_profile *profile, *read;
        if (read_profile_text(f, text, &profile) != REMAT_OK)
            continue; /* too long is an answer, but not one that comes when it is too late */
        char *written = written_profile(profile);
        expect_ok(f, read_profile_text(f, written, &read));
        expect_same_profile(profile, read);
        free(written);
        remat_profile_destroy(read);
        remat_profile_destroy(profile);
    }
}

/* They are the device's own words; a profile carries them from `remat profile` to `train --profile`. */
static void algorithms_come_through(void **state)
{
    fixture *f = *state;
    static char text[REMAT_LONGEST_ALGORITHMS + 200], words[REMAT_LONGEST_ALGORITHMS + 2];
    static const size_t lengths[] = {0, 1, 5000, REMAT_LONGEST_ALGORITHMS};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        remat_profile *profile, *read;
        memset(words, 'a', lengths[i]);
        words[lengths[i]] = 0;
        snprintf(text, sizeof text,
                 "{\"format\": \"remat-profile\", \"version\": 1, \"algorithms\": \"%s\", \"layers\": []}", words);
        expect_ok(f, read_profile_text(f, text, &profile));
        char *written = written_profile(profile);
        expect_ok(f, read_profile_text(f, written, &read));
        assert_string_equal(read->algorithms, words);
        free(written);
        remat_profile_destroy(read);
        remat_profile_destroy(profile);
    }
    memset(words, 'a', REMAT_LONGEST_ALGORITHMS + 1);
    snprintf(text, sizeof text,
             "{\"format\": \"remat-profile\", \"version\": 1, \"algorithms\": \"%s\", \"layers\": []}", words);
    remat_profile *none;
    expect_status(f, read_profile_text(f, text, &none), REMAT_BAD_INPUT);
    expect_message(f, "65537 bytes long; it may have at most 65536");
}

static void a_full_disk_is_noticed(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_add(profile, REMAT_OTHER, 1, 1));
    FILE *full = fopen("/dev/full", "w");
    expect_status(f, remat_profile_write(profile, full), REMAT_IO);
    fclose(full);
    expect_status(f, remat_profile_save(profile, "/dev/full"), REMAT_IO);
    expect_status(f, remat_profile_save(profile, "/nowhere/p.json"), REMAT_IO);
    remat_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(write_read_write_is_the_same_for_random_profiles),
        FIXTURE_TEST(jansson_reads_what_is_written),
        FIXTURE_TEST(a_csv_survives_as_json),
        FIXTURE_TEST(algorithms_come_through),
        FIXTURE_TEST(a_full_disk_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
