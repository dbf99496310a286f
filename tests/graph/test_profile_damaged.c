/* Profiles cut short or damaged at every byte, in both formats: always an answer, never a crash, no byte lost. */
#include "support/fixture.h"
#include "support/random_profile.h"

static const char json[] =
    "{\"format\": \"remat-profile\", \"version\": 1, \"name\": \"q\\\"\\u00e9\", \"input_bytes\": 4096,\n"
    " \"extra\": [1, {\"a\": null}], \"layers\": [\n"
    "  {\"index\": 0, \"name\": \"h0.attn\", \"type\": \"attention\", \"activation_bytes\": 1024,\n"
    "   \"recompute_flops\": 2000000, \"modes\": [{\"name\": \"half\", \"activation_bytes\": 512,\n"
    "   \"holds_output\": false, \"lossless\": true}]},\n"
    "  {\"index\": 1, \"type\": \"ffn\", \"activation_bytes\": 10, \"recompute_flops\": 20, \"output_bytes\": 5}]}";

static const char csv[] = "index,name,type,activation_bytes,recompute_flops,output_bytes,odd\r\n"
                          "0,\"h0,\"\"a\"\"\",attention,1024,2000000,,x\r\n"
                          "7,h1,ffn,512,1000000,256,\r\n";

static void json_cut_anywhere_is_refused(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, read_profile_text(f, json, &profile));
    remat_profile_destroy(profile);
    for (size_t length = 0; length < strlen(json); length++)
        expect_status(f, read_profile_bytes(f, json, length, &profile), REMAT_BAD_INPUT);
}

/* A shorter CSV may well be a profile: its last number cut, or its last line missing. */
static void csv_cut_anywhere_is_read_or_refused(void **state)
{
    fixture *f = *state;
    for (size_t length = 0; length <= strlen(csv); length++) {
        remat_profile *profile;
        remat_status status = read_profile_bytes(f, csv, length, &profile);
        if (status != REMAT_OK)
            expect_status(f, status, REMAT_BAD_INPUT);
        remat_profile_destroy(profile);
    }
}

static void a_nul_byte_anywhere_is_refused(void **state)
{
    fixture *f = *state;
    for (int kind = 0; kind < 2; kind++) {
        const char *text = kind ? csv : json;
        size_t length = strlen(text);
        char *bytes = malloc(length);
        for (size_t at = 0; at < length; at++) {
            remat_profile *profile;
            memcpy(bytes, text, length);
            bytes[at] = '\0';
            expect_status(f, read_profile_bytes(f, bytes, length, &profile), REMAT_BAD_INPUT);
            expect_message(f, "NUL byte");
        }
        free(bytes);
    }
}

static void every_byte_may_be_any_other(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < LESS_WHEN_SANITIZED(20000, 4000); round++) {
        const char *text = round % 2 ? csv : json;
        char bytes[sizeof json + sizeof csv];
        size_t length = strlen(text);
        memcpy(bytes, text, length);
        for (uint64_t times = 1 + test_random_below(&random, 4); times > 0; times--)
            bytes[test_random_below(&random, length)] = (char)test_random_below(&random, 256);
        remat_profile *profile;
        remat_status status = read_profile_bytes(f, bytes, length, &profile);
        assert_true(status == REMAT_OK || status == REMAT_BAD_INPUT);
        if (status == REMAT_OK) { /* whatever was understood can be written */
            char *again = written_profile(profile);
            free(again);
        }
        remat_profile_destroy(profile);
    }
}

static void noise_is_refused(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 2000; round++) {
        char bytes[200];
        size_t length = test_random_below(&random, sizeof bytes);
        for (size_t i = 0; i < length; i++)
            bytes[i] = (char)test_random_below(&random, round % 2 ? 256 : 128);
        remat_profile *profile;
        expect_status(f, read_profile_bytes(f, bytes, length, &profile), REMAT_BAD_INPUT);
    }
}

/* A byte order mark is three bytes or none; what only begins like one must not be swallowed. */
static void half_a_byte_order_mark_is_not_swallowed(void **state)
{
    fixture *f = *state;
    static const char *const starts[] = {"\xef", "\xef\xbb"};
    for (size_t i = 0; i < 2; i++) {
        char text[300];
        remat_profile *profile;
        snprintf(text, sizeof text, "%sindex,type,activation_bytes,recompute_flops\n0,norm,10,5\n", starts[i]);
        expect_status(f, read_profile_text(f, text, &profile), REMAT_BAD_INPUT);
        assert_string_equal(remat_context_error(f->context)->field, "index"); /* no column has just that name */
        snprintf(text, sizeof text, "%s,index,type,activation_bytes,recompute_flops\nx,0,norm,10,5\n", "\xef\xbc\xa1");
        expect_ok(f, read_profile_text(f, text, &profile));
        expect_text(f->warning, "\xef\xbc\xa1"); /* U+FF21 starts with the same byte */
        remat_profile_destroy(profile);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(json_cut_anywhere_is_refused),
        FIXTURE_TEST(csv_cut_anywhere_is_read_or_refused),
        FIXTURE_TEST(a_nul_byte_anywhere_is_refused),
        FIXTURE_TEST(every_byte_may_be_any_other),
        FIXTURE_TEST(noise_is_refused),
        FIXTURE_TEST(half_a_byte_order_mark_is_not_swallowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
