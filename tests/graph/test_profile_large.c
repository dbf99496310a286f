/* A million layers are read and written. If the time were not linear, this would not end before CTest stops it. */
#include "support/fixture.h"

enum { LAYERS = LESS_WHEN_SANITIZED(1000000, 100000) };

static void read_all(fixture *f, const capture *text, remat_profile **profile)
{
    expect_ok(f, read_profile_bytes(f, text->text, text->length, profile));
    assert_int_equal(remat_profile_layer_count(*profile), LAYERS);
    assert_int_equal(remat_profile_layer(*profile, LAYERS - 1)->modes[0].activation_bytes, LAYERS);
}

static void a_million_layers_in_json(void **state)
{
    fixture *f = *state;
    capture text;
    capture_begin(&text);
    fputs("{\"format\": \"remat-profile\", \"version\": 1, \"layers\": [", text.stream);
    for (int i = 0; i < LAYERS; i++)
        fprintf(text.stream,
                "%s{\"index\": %d, \"name\": \"h%d\", \"type\": \"ffn\", \"activation_bytes\": %d, "
                "\"recompute_flops\": 1000, \"output_bytes\": 1}",
                i ? ",\n" : "", i, i, i + 1);
    fputs("]}", text.stream);
    capture_end(&text);
    remat_profile *profile;
    read_all(f, &text, &profile);
    free(text.text);
    expect_ok(f, remat_profile_save(profile, "/dev/null"));
    remat_profile_destroy(profile);
}

static void a_million_layers_in_csv(void **state)
{
    fixture *f = *state;
    capture text;
    capture_begin(&text);
    fputs("index,type,activation_bytes,recompute_flops\n", text.stream);
    for (int i = 0; i < LAYERS; i++) /* indexes as a packed pair: layer << 32 */
        fprintf(text.stream, "%llu,norm,%d,1000\n", (unsigned long long)i << 32, i + 1);
    capture_end(&text);
    remat_profile *profile;
    read_all(f, &text, &profile);
    remat_profile_destroy(profile);
    free(text.text);
}

static void a_late_mistake_among_many_layers_is_found_in_its_line(void **state)
{
    fixture *f = *state;
    capture text;
    capture_begin(&text);
    fputs("index,type,activation_bytes,recompute_flops\n", text.stream);
    for (int i = 0; i < 50000; i++)
        fprintf(text.stream, "%d,norm,1,1\n", i);
    fputs("49999,norm,1,1\n", text.stream);
    capture_end(&text);
    remat_profile *profile;
    expect_status(f, read_profile_bytes(f, text.text, text.length, &profile), REMAT_BAD_INPUT);
    assert_int_equal(remat_context_error(f->context)->line, 50002);
    assert_int_equal(remat_context_error(f->context)->layer, 50000);
    free(text.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_million_layers_in_json),
        FIXTURE_TEST(a_million_layers_in_csv),
        FIXTURE_TEST(a_late_mistake_among_many_layers_is_found_in_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
