/* Numbers in text are the same in every locale. The locales are loaded, not assumed to be installed. */
#include "support/comma_locale.h"
#include "support/fixture.h"

#include "base/error.h"
#include "base/number_text.h"
#include "base/properties.h"
#include <remat/units.h>

#include <math.h>
#include <pthread.h>

typedef struct fields {
    double number;
} fields;

static const property properties[] = {
    {.key = "number", .kind = PROPERTY_NUMBER, .offset = offsetof(fields, number), .min = 0.25, .max = 1.5},
    {0},
};

static void numbers_are_plain(fixture *f)
{
    char text[100];
    const char *end;
    double value;
    fields to = {0};
    text_print(text, sizeof text, "%g %.3f %.2e %a %s", 0.5, 1234567.25, 1.5, 1.5, "a,b");
    assert_string_equal(text, "0.5 1234567.250 1.50e+00 0x1.8p+0 a,b");
    number_print(0.1, text);
    assert_string_equal(text, "0.1");
    assert_true(number_parse("2.5,3", &end, &value) && value == 2.5 && *end == ',');
    assert_true(number_parse_hex("0x1.8p+1", &value) && value == 3);
    assert_string_equal(remat_size_print(1536, text), "1.50 KiB");
    expect_status(f, remat_fail(f->context, REMAT_INVALID, NULL, "%g", -0.5), REMAT_INVALID);
    expect_message(f, "-0.5");
    expect_ok(f, property_set(f->context, "it", properties, &to, "number", " 0.75 "));
    assert_true(to.number == 0.75);
    expect_status(f, property_set(f->context, "it", properties, &to, "number", "0,75"), REMAT_INVALID);
    expect_message(f, "'0,75' is not a number from 0.25 to 1.5");
}

static void the_program_has_a_locale(void **state)
{
    static const char *const points[] = {".", ",", "\xd9\xab", "::"};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        comma_locale_set(points[i]);
        numbers_are_plain(*state);
        char text[16];
        snprintf(text, sizeof text, "%.0f%s", 0.0, points[i]);
        size_t length = strlen(text);
        snprintf(text, sizeof text, "%.1f", 0.5);
        assert_memory_equal(text + 1, points[i], length - 1); /* the locale is still the program's */
    }
    setlocale(LC_NUMERIC, "C");
}

static void *in_a_thread(void *locale)
{
    uselocale((locale_t)locale);
    fixture *f;
    void *state;
    fixture_setup(&state);
    f = state;
    for (int turn = 0; turn < 100; turn++)
        numbers_are_plain(f);
    assert_true(uselocale((locale_t)0) == (locale_t)locale);
    fixture_teardown(&state);
    uselocale(LC_GLOBAL_LOCALE);
    return NULL;
}

static void threads_have_locales(void **state)
{
    (void)state;
    pthread_t threads[4];
    locale_t locales[4];
    for (size_t i = 0; i < 4; i++)
        locales[i] = comma_locale_make(i % 2 ? "," : "'");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, in_a_thread, locales[i]), 0);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        freelocale(locales[i]);
    }
}

static void every_number_comes_back(void **state)
{
    (void)state;
    test_random random = {test_seed()};
    comma_locale_set(",");
    for (int turn = 0; turn < 2000; turn++) {
        union {
            uint64_t bits;
            double value;
        } any = {.bits = test_random_next(&random)};
        double value = turn == 0 ? 0.5 : any.value, back;
        char text[NUMBER_TEXT];
        const char *at;
        number_print(value, text);
        if (!isfinite(value)) {
            assert_string_equal(text, "null");
            continue;
        }
        assert_null(strchr(text, ','));
        assert_true(number_parse(text, &at, &back));
        assert_true(*at == '\0' && back == value);
        text_print(text, sizeof text, "%a", fabs(value));
        assert_true(number_parse_hex(text, &back) && back == fabs(value));
    }
    setlocale(LC_NUMERIC, "C");
}

static void what_is_no_number_is_refused(void **state)
{
    (void)state;
    static const char *const decimal[] = {"",  " ",  " 1", "nan",   "inf", "0x1p3", "-",
                                          ".", "e5", "1e", "1e999", "--1", "1.2.3"};
    static const char *const hex[] = {"",        " ",  "1.5",     "nan",     "-inf",  "infinity",  "inf ",
                                      "-0x1p+0", "0x", "0x1p+0 ", "0x1,8p0", "0xp+1", "0x1p+1024", "0x1p+0x"};
    double value;
    const char *end;
    for (size_t i = 0; i < sizeof decimal / sizeof decimal[0]; i++)
        assert_false(number_parse(decimal[i], &end, &value));
    for (size_t i = 0; i < sizeof hex / sizeof hex[0]; i++)
        assert_false(number_parse_hex(hex[i], &value));
    assert_true(number_parse_hex("inf", &value) && isinf(value));
    assert_true(number_parse_hex("0x0p+0", &value) && value == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(the_program_has_a_locale),
        FIXTURE_TEST(threads_have_locales),
        FIXTURE_TEST(every_number_comes_back),
        FIXTURE_TEST(what_is_no_number_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
