/* Plan files cut short, damaged, or nothing of the kind: always an error or an answer, never a crash. */
#include "support/chains.h"

#define BEGIN "{\"format\": \"remat-plan\", \"version\": 1"

static remat_status check_bytes(fixture *f, const void *bytes, size_t length, const remat_profile *profile)
{
    remat_figures figures;
    FILE *stream = stream_of(bytes, length);
    remat_status status = remat_plan_check(f->context, stream, "text", profile, &figures);
    fclose(stream);
    return status;
}

/* A schedule that is cut keeps its good steps; what is missing is the rest of the text, or of the plan. */
static void a_plan_cut_anywhere_is_refused(void **state)
{
    fixture *f = *state;
    remat_profile *profile = six_layers(f);
    remat_plan *plan = plan_by(f, profile, "every-nth:2"), *read;
    char *text = written_plan(plan);
    for (size_t length = 0; length + 1 < strlen(text); length++) { /* all but the new line at the end */
        expect_status(f, check_bytes(f, text, length, profile), REMAT_BAD_INPUT);
        FILE *stream = stream_of(text, length);
        expect_status(f, remat_plan_read(f->context, stream, "text", profile, &read), REMAT_BAD_INPUT);
        assert_null(read);
        fclose(stream);
    }
    free(text);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void a_nul_byte_anywhere_is_refused(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 2, 10, 10);
    remat_plan *plan = plan_by(f, profile, "full");
    char *text = written_plan(plan);
    size_t length = strlen(text);
    for (size_t at = 0; at < length; at++) {
        char before = text[at];
        text[at] = '\0';
        expect_status(f, check_bytes(f, text, length, profile), REMAT_BAD_INPUT);
        text[at] = before;
    }
    free(text);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void any_byte_may_be_any_other(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    remat_profile *profile = six_layers(f);
    remat_plan *plan = plan_by(f, profile, "full:2");
    char *text = written_plan(plan);
    size_t length = strlen(text);
    char *damaged = malloc(length);
    for (int round = 0; round < LESS_WHEN_SANITIZED(10000, 2000); round++) {
        memcpy(damaged, text, length);
        for (uint64_t times = 1 + test_random_below(&random, 3); times > 0; times--)
            damaged[test_random_below(&random, length)] = (char)test_random_below(&random, 256);
        remat_status status = check_bytes(f, damaged, length, profile);
        assert_true(status == REMAT_OK || status == REMAT_BAD_INPUT || status == REMAT_CHECK_FAILED);
    }
    free(damaged);
    free(text);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void noise_is_refused(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    print_message("seed %llu\n", (unsigned long long)seed);
    remat_profile *profile = equal_layers(f, 2, 10, 10);
    for (int round = 0; round < 2000; round++) {
        char bytes[200];
        size_t length = test_random_below(&random, sizeof bytes);
        for (size_t i = 0; i < length; i++)
            bytes[i] = (char)test_random_below(&random, round % 2 ? 256 : 128);
        expect_status(f, check_bytes(f, bytes, length, profile), REMAT_BAD_INPUT);
    }
    remat_profile_destroy(profile);
}

static void what_is_no_plan_is_refused(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 0, 0, 0);
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"", "the text ends"},
        {"[]", "must be an object"},
        {"{}", "format"},
        {"hello", "a value should stand"},
        {"{\"format\": \"remat-profile\"}", "'remat-profile' was found"},
        {"{\"format\": \"remat-plan\", \"version\": 2}", "2 is unknown"},
        {BEGIN "}", "schedule"},
        {BEGIN ", \"schedule\": null}", "must be an array"},
        {BEGIN ", \"schedule\": {}}", "must be an array"},
        {BEGIN ", \"schedule\": [], \"schedule\": []}", "twice"},
        {BEGIN ", \"schedule\": []}}", "end of the text"},
        {BEGIN ", \"schedule\": []", "the text ends"},
        {BEGIN ", \"schedule\": [], \"peak_bytes\": -1}", "whole number"},
        {BEGIN ", \"schedule\": [], \"peak_bytes\": 1e400}", "whole number"},
        {BEGIN ", \"schedule\": [], \"peak_bytes\": 9223372036854775808}", "whole number"},
        {BEGIN ", \"schedule\": [], \"peak_bytes\": 0, \"peak_bytes\": 0}", "twice"},
        {BEGIN ", \"schedule\": [], \"feasible\": 1}", "true or false"},
        {BEGIN ", \"schedule\": [], \"strategy\": 1}", "string"},
        {BEGIN ", \"schedule\": [], \"layers\": {}}", "must be an array"},
        {BEGIN ", \"feasible\": false}", "infeasible"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_status(f, check_bytes(f, cases[i].text, strlen(cases[i].text), profile), REMAT_BAD_INPUT);
        expect_message(f, cases[i].reason);
    }
    expect_ok(f, check_bytes(f, BEGIN ", \"schedule\": []}", strlen(BEGIN ", \"schedule\": []}"), profile));
    remat_profile_destroy(profile);
}

static void deep_nesting_is_refused(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 0, 0, 0);
    static char text[200000];
    size_t used = (size_t)snprintf(text, sizeof text, BEGIN ", \"deep\": ");
    memset(text + used, '[', 100000);
    expect_status(f, check_bytes(f, text, used + 100000, profile), REMAT_BAD_INPUT);
    expect_message(f, "nested deeper");
    remat_profile_destroy(profile);
}

/* A stream of steps is read in constant memory, whatever its length. */
static void a_long_schedule_is_checked_in_little_memory(void **state)
{
    fixture *f = *state;
    remat_profile *profile = equal_layers(f, 1, 10, 10);
    capture text;
    capture_begin(&text);
    fputs(BEGIN ", \"schedule\": [", text.stream);
    for (int i = 0; i < 100000; i++)
        fputs("{\"op\": \"forward\", \"layer\": 0}, {\"op\": \"drop\", \"what\": \"x\", \"layer\": 1},\n", text.stream);
    fputs("{\"op\": \"forward\", \"layer\": 0, \"save\": \"keep\"}, {\"op\": \"loss\"}, "
          "{\"op\": \"backward\", \"layer\": 0}]}",
          text.stream);
    capture_end(&text);
    remat_figures figures;
    FILE *stream = stream_of(text.text, text.length);
    expect_ok(f, remat_plan_check(f->context, stream, "text", profile, &figures));
    assert_int_equal(figures.steps, 200003);
    assert_int_equal(figures.recompute_flops, 1000000);
    assert_true(remat_context_peak_bytes(f->context) < 300000);
    fclose(stream);
    free(text.text);
    remat_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_plan_cut_anywhere_is_refused),
        FIXTURE_TEST(a_nul_byte_anywhere_is_refused),
        FIXTURE_TEST(any_byte_may_be_any_other),
        FIXTURE_TEST(noise_is_refused),
        FIXTURE_TEST(what_is_no_plan_is_refused),
        FIXTURE_TEST(deep_nesting_is_refused),
        FIXTURE_TEST(a_long_schedule_is_checked_in_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
