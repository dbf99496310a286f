#include "support/fixture.h"

#include <math.h>

static uint64_t parsed(fixture *f, const char *text)
{
    uint64_t bytes = 12345;
    expect_ok(f, remat_size_parse(f->context, text, &bytes));
    return bytes;
}

static void rejected(fixture *f, const char *text, const char *reason)
{
    uint64_t bytes = 12345;
    expect_status(f, remat_size_parse(f->context, text, &bytes), REMAT_INVALID);
    expect_message(f, reason);
    assert_int_equal(bytes, 12345); /* left alone */
}

static void sizes_read_with_every_unit(void **state)
{
    fixture *f = *state;
    assert_int_equal(parsed(f, "512"), 512);
    assert_int_equal(parsed(f, "0"), 0);
    assert_int_equal(parsed(f, "512B"), 512);
    assert_int_equal(parsed(f, "64KiB"), 65536);
    assert_int_equal(parsed(f, "64KB"), 64000);
    assert_int_equal(parsed(f, "3MB"), 3000000);
    assert_int_equal(parsed(f, "3MiB"), 3145728);
    assert_int_equal(parsed(f, "8GB"), 8000000000);
    assert_int_equal(parsed(f, "8GiB"), (uint64_t)8 << 30);
    assert_int_equal(parsed(f, "2TB"), 2000000000000);
    assert_int_equal(parsed(f, "2TiB"), (uint64_t)2 << 40);
    assert_int_equal(parsed(f, "8 GiB"), (uint64_t)8 << 30);
    assert_int_equal(parsed(f, "8gib"), (uint64_t)8 << 30);
    assert_int_equal(parsed(f, "007"), 7);
}

static void fractions_are_exact_and_cut_off(void **state)
{
    fixture *f = *state;
    assert_int_equal(parsed(f, "1.5GiB"), (uint64_t)3 << 29);
    assert_int_equal(parsed(f, "0.1GB"), 100000000);
    assert_int_equal(parsed(f, "0.3KB"), 300);
    assert_int_equal(parsed(f, ".5KiB"), 512);
    assert_int_equal(parsed(f, "2.KiB"), 2048);
    assert_int_equal(parsed(f, "1.9"), 1); /* a budget never grows */
    assert_int_equal(parsed(f, "0.9999B"), 0);
    assert_int_equal(parsed(f, "1.00000000000000000000000000000000001KiB"), 1024);
    assert_int_equal(parsed(f, "0.99999999999999999999999999999999999KiB"), 1023);
    assert_int_equal(parsed(f, "0.333333333333333333333333GB"), 333333333);
}

/* 2^-20 has 20 decimals, 2^-40 has 40: no digit may be left out where every one of them counts. */
static void fractions_of_a_power_of_two_are_exact(void **state)
{
    fixture *f = *state;
    assert_int_equal(parsed(f, "0.0009765625KiB"), 1);
    assert_int_equal(parsed(f, "0.00000095367431640625MiB"), 1);
    assert_int_equal(parsed(f, "0.000000000931322574615478515625GiB"), 1);
    assert_int_equal(parsed(f, "0.0000000000009094947017729282379150390625TiB"), 1);
    assert_int_equal(parsed(f, "7.000000000931322574615478515625GiB"), ((uint64_t)7 << 30) + 1);
}

static void sizes_end_below_two_to_the_63(void **state)
{
    fixture *f = *state;
    assert_int_equal(parsed(f, "9223372036854775807"), INT64_MAX);
    assert_int_equal(parsed(f, "8388607TiB"), (uint64_t)8388607 << 40);
    assert_int_equal(parsed(f, "7EiB"), (uint64_t)7 << 60);
    assert_int_equal(parsed(f, "1.5PB"), 1500000000000000u);
    rejected(f, "9223372036854775808", "too large");
    rejected(f, "18446744073709551616", "too large");
    rejected(f, "99999999999999999999999999999999999999", "too large");
    rejected(f, "8388608TiB", "below 2^63");
    rejected(f, "8EiB", "below 2^63");
    rejected(f, "9223372036854775807KB", "too large");
    rejected(f, "8388607.99999999999999999999TiB9", "unknown unit");
}

static void a_bare_letter_is_ambiguous_and_the_error_names_both_readings(void **state)
{
    fixture *f = *state;
    rejected(f, "8G", "'8G' is ambiguous");
    expect_message(f, "GB for 10^9");
    expect_message(f, "GiB for 2^30");
    rejected(f, "8k", "KB for 10^3");
    rejected(f, "1.5M", "MiB for 2^20");
    rejected(f, "1 T", "TB for 10^12");
}

static void garbage_is_no_size(void **state)
{
    fixture *f = *state;
    static const char *const texts[] = {"", " ", ".", "GiB", "-1", "-1GiB", "+1", "x", "nan", "inf", " 512", "\t1"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        rejected(f, texts[i], "is not a size");
    static const char *const units[] = {"1.2.3", "1e9",   "0x10",  "5 bytes", "5ZiB",  "8GBB",
                                        "1,000", "1_000", "8Gb/s", "8GB\n",   "8\xff", "8GiBG"};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        rejected(f, units[i], "unknown unit");
}

static void long_texts_are_cut_in_the_message(void **state)
{
    fixture *f = *state;
    char text[5000];
    memset(text, 'x', sizeof text);
    text[0] = '1';
    text[sizeof text - 1] = '\0';
    rejected(f, text, "1xxxx");
    memset(text, '9', sizeof text - 1);
    rejected(f, text, "9999");
}

static void counts_are_digits_only(void **state)
{
    fixture *f = *state;
    uint64_t count = 7;
    expect_ok(f, remat_count_parse(f->context, "0", &count));
    assert_int_equal(count, 0);
    expect_ok(f, remat_count_parse(f->context, "9223372036854775807", &count));
    assert_int_equal(count, INT64_MAX);
    static const char *const bad[] = {"",
                                      "-1",
                                      "+1",
                                      "1.0",
                                      "1e3",
                                      " 1",
                                      "1 ",
                                      "0x1",
                                      "1KB",
                                      "a",
                                      "1,0",
                                      "9223372036854775808",
                                      "99999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        count = 7;
        expect_status(f, remat_count_parse(f->context, bad[i], &count), REMAT_INVALID);
        assert_int_equal(count, 7);
    }
}

static void mebibytes_convert_or_are_invalid(void **state)
{
    fixture *f = *state;
    static const struct {
        double mib;
        uint64_t bytes;
    } good[] = {
        {0, 0}, {-0.0, 0}, {3, 3145728}, {0.5, 524288}, {100, 104857600}, {1e-9, 0}, {0x1p42, (uint64_t)1 << 62}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t bytes = 1;
        expect_ok(f, remat_size_from_mib(f->context, good[i].mib, &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
    const double bad[] = {-1, -1e-300, NAN, -NAN, INFINITY, -INFINITY, 0x1p43, 1e300};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t bytes = 1;
        expect_status(f, remat_size_from_mib(f->context, bad[i], &bytes), REMAT_INVALID);
        assert_int_equal(bytes, 1);
    }
}

static void sizes_print_exactly_or_with_three_figures(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {1, "1 B"},
        {512, "512 B"},
        {1023, "1023 B"},
        {1024, "1 KiB"},
        {65536, "64 KiB"},
        {1536, "1.50 KiB"},
        {(uint64_t)3 << 29, "1.50 GiB"},
        {10752, "10.5 KiB"},
        {103 * 1024 + 512 + 1, "104 KiB"},
        {10239, "10.0 KiB"},
        {(uint64_t)1 << 40, "1 TiB"},
        {(uint64_t)1 << 50, "1 PiB"},
        {(uint64_t)1 << 60, "1 EiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[REMAT_SIZE_TEXT];
        assert_ptr_equal(remat_size_print(cases[i].bytes, text), text);
        assert_string_equal(text, cases[i].text);
    }
}

/* What is printed reads back as at least as much, and a last figure less would not. */
static void sizes_print_up_so_that_they_are_enough(void **state)
{
    fixture *f = *state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1 KiB"},
        {1025, "1.01 KiB"},
        {1536, "1.50 KiB"},
        {26363392, "25.2 MiB"},
        {10239, "10.0 KiB"},
        {102399, "100 KiB"},
        {103 * 1024 + 1, "104 KiB"},
        {1048575, "1024 KiB"},
        {((uint64_t)1 << 60) + 1, "1.01 EiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    char text[REMAT_SIZE_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_ptr_equal(remat_size_print_up(cases[i].bytes, text), text);
        assert_string_equal(text, cases[i].text);
    }
    uint64_t bytes = 1;
    for (int i = 0; i < 20000; i++) {
        bytes = (bytes * 6364136223846793005u + 1442695040888963407u);
        uint64_t wanted = bytes >> (2 + i % 61); /* below 4 EiB */
        uint64_t read = parsed(f, remat_size_print_up(wanted, text));
        assert_true(read >= wanted);
        assert_true(read - wanted <= wanted / 100);
    }
}

static void counts_print_with_thousands_apart(void **state)
{
    (void)state;
    static const struct {
        uint64_t count;
        const char *text;
    } cases[] = {{0, "0"},
                 {999, "999"},
                 {1000, "1,000"},
                 {9000000, "9,000,000"},
                 {123456, "123,456"},
                 {UINT64_MAX, "18,446,744,073,709,551,615"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[REMAT_COUNT_TEXT];
        assert_string_equal(remat_count_print(cases[i].count, text), cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(sizes_read_with_every_unit),
        FIXTURE_TEST(fractions_are_exact_and_cut_off),
        FIXTURE_TEST(fractions_of_a_power_of_two_are_exact),
        FIXTURE_TEST(sizes_end_below_two_to_the_63),
        FIXTURE_TEST(a_bare_letter_is_ambiguous_and_the_error_names_both_readings),
        FIXTURE_TEST(garbage_is_no_size),
        FIXTURE_TEST(long_texts_are_cut_in_the_message),
        FIXTURE_TEST(counts_are_digits_only),
        FIXTURE_TEST(mebibytes_convert_or_are_invalid),
        cmocka_unit_test(sizes_print_exactly_or_with_three_figures),
        FIXTURE_TEST(sizes_print_up_so_that_they_are_enough),
        cmocka_unit_test(counts_print_with_thousands_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
