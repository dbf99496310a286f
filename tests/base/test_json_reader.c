#include "support/json_drain.h"

static void tokens_come_in_order(void **state)
{
    fixture *f = *state;
    static const char text[] = " {\"a\": [1, -2, 3.5, \"s\"], \"b\": {}, \"c\": [true, false, null]} ";
    json_source source = json_source_open(f, text, strlen(text));
    static const json_kind kinds[] = {JSON_OBJECT,     JSON_KEY,       JSON_ARRAY,      JSON_INTEGER, JSON_INTEGER,
                                      JSON_REAL,       JSON_STRING,    JSON_ARRAY_END,  JSON_KEY,     JSON_OBJECT,
                                      JSON_OBJECT_END, JSON_KEY,       JSON_ARRAY,      JSON_TRUE,    JSON_FALSE,
                                      JSON_NULL,       JSON_ARRAY_END, JSON_OBJECT_END, JSON_END,     JSON_END};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        json_expect(f, &source, kinds[i]);
    json_source_close(&source);
}

static void any_value_may_stand_alone(void **state)
{
    fixture *f = *state;
    static const char *const texts[] = {"1",      "\"\"", "true", "null", "[]", "{}", "-0", " \t\r\n false \t\r\n ",
                                        "[[],{}]"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        expect_ok(f, json_drain_text(f, texts[i]));
}

static void one_number(fixture *f, const char *text, json_kind kind, bool in_range, uint64_t value)
{
    json_source source = json_source_open(f, text, strlen(text));
    json_token token = json_expect(f, &source, kind);
    assert_string_equal(token.text, text);
    assert_int_equal(token.in_range, in_range);
    if (in_range)
        assert_int_equal(token.integer, value);
    json_expect(f, &source, JSON_END);
    json_source_close(&source);
}

static void whole_numbers_are_exact_up_to_the_limit(void **state)
{
    fixture *f = *state;
    one_number(f, "0", JSON_INTEGER, true, 0);
    one_number(f, "-0", JSON_INTEGER, true, 0);
    one_number(f, "10", JSON_INTEGER, true, 10);
    one_number(f, "9007199254740993", JSON_INTEGER, true, 9007199254740993); /* no double holds it */
    one_number(f, "9223372036854775807", JSON_INTEGER, true, INT64_MAX);
    one_number(f, "9223372036854775808", JSON_INTEGER, false, 0);
    one_number(f, "18446744073709551615", JSON_INTEGER, false, 0);
    one_number(f, "18446744073709551617", JSON_INTEGER, false, 0); /* 2^64 + 1 must not become 1 */
    one_number(f, "100000000000000000000000000000000000000000", JSON_INTEGER, false, 0);
    one_number(f, "-1", JSON_INTEGER, false, 0);
}

static void numbers_with_a_fraction_or_exponent_are_never_whole(void **state)
{
    fixture *f = *state;
    static const char *const reals[] = {"1.0", "1.5", "1e3", "1E+3", "1e-3", "-1.5e400", "0e0", "0.0", "1e400"};
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++)
        one_number(f, reals[i], JSON_REAL, false, 0);
}

static void one_string(fixture *f, const char *quoted, const char *text)
{
    json_source source = json_source_open(f, quoted, strlen(quoted));
    assert_string_equal(json_expect(f, &source, JSON_STRING).text, text);
    json_expect(f, &source, JSON_END);
    json_source_close(&source);
}

static void strings_are_unescaped(void **state)
{
    fixture *f = *state;
    one_string(f, "\"\"", "");
    one_string(f, "\"a b\"", "a b");
    one_string(f, "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t");
    one_string(f, "\"\\u0041\\u00e9\\u20AC\"", "Aé€");
    one_string(f, "\"\\ud83c\\uDF89\"", "🎉");
    one_string(f, "\"\\uffff\\u0001\"", "\xef\xbf\xbf\x01");
    one_string(f, "\"é€🎉\x7f\"", "é€🎉\x7f");
}

static void long_strings_are_whole(void **state)
{
    fixture *f = *state;
    size_t length = 300000; /* many buffers of the reader */
    char *text = malloc(length + 3);
    for (size_t i = 0; i < length; i++)
        text[i + 1] = (char)('a' + i % 26);
    text[0] = text[length + 1] = '"';
    text[length + 2] = '\0';
    json_source source = json_source_open(f, text, length + 2);
    json_token token = json_expect(f, &source, JSON_STRING);
    assert_int_equal(strlen(token.text), length);
    assert_memory_equal(token.text, text + 1, length);
    json_source_close(&source);
    free(text);
}

static void values_can_be_passed_over(void **state)
{
    fixture *f = *state;
    static const char text[] = "{\"skip\": {\"deep\": [1, {\"x\": []}, \"]}\"]}, \"take\": 7, \"last\": [0]}";
    json_source source = json_source_open(f, text, strlen(text));
    json_expect(f, &source, JSON_OBJECT);
    json_expect(f, &source, JSON_KEY);
    expect_ok(f, json_skip(source.reader));
    assert_string_equal(json_expect(f, &source, JSON_KEY).text, "take");
    assert_int_equal(json_expect(f, &source, JSON_INTEGER).integer, 7);
    json_expect(f, &source, JSON_KEY);
    json_token token = json_expect(f, &source, JSON_ARRAY);
    expect_ok(f, json_skip_rest(source.reader, &token));
    json_expect(f, &source, JSON_OBJECT_END);
    json_expect(f, &source, JSON_END);
    json_source_close(&source);
}

static void every_token_knows_its_line(void **state)
{
    fixture *f = *state;
    static const char text[] = "\n\n{\n\"a\":\r\n1,\n\n\"b\"\n: [\n2]\n}";
    static const uint64_t lines[] = {3, 4, 5, 7, 8, 9, 9, 10};
    json_source source = json_source_open(f, text, strlen(text));
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        json_token token;
        expect_ok(f, json_next(source.reader, &token));
        remat_place place = json_place(source.reader);
        assert_int_equal(place.line, lines[i]);
        assert_string_equal(place.file, "text");
    }
    json_source_close(&source);
}

static void errors_name_their_line(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *text;
        uint64_t line;
    } cases[] = {{"x", 1},          {"\n\nx", 3},        {"{\n\"a\": 1,\n}", 3},
                 {"[1,\n2\n3]", 3}, {"{\"a\"\n\n1}", 3}, {"[\n\"abc\ndef\"]", 2},
                 {"[1]\n\n\n]", 4}, {"[\n1,\n", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_status(f, json_drain_text(f, cases[i].text), REMAT_BAD_INPUT);
        assert_int_equal(remat_context_error(f->context)->line, cases[i].line);
        assert_string_equal(remat_context_error(f->context)->file, "text");
    }
}

/* A directory opens but cannot be read. */
static void a_stream_that_fails_is_an_input_error(void **state)
{
    fixture *f = *state;
    FILE *stream = fopen("/", "r");
    json_reader *reader;
    json_token token;
    expect_ok(f, json_reader_create(f->context, stream, "folder", &reader));
    expect_status(f, json_next(reader, &token), REMAT_IO);
    json_reader_destroy(reader);
    fclose(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(tokens_come_in_order),
        FIXTURE_TEST(any_value_may_stand_alone),
        FIXTURE_TEST(whole_numbers_are_exact_up_to_the_limit),
        FIXTURE_TEST(numbers_with_a_fraction_or_exponent_are_never_whole),
        FIXTURE_TEST(strings_are_unescaped),
        FIXTURE_TEST(long_strings_are_whole),
        FIXTURE_TEST(values_can_be_passed_over),
        FIXTURE_TEST(every_token_knows_its_line),
        FIXTURE_TEST(errors_name_their_line),
        FIXTURE_TEST(a_stream_that_fails_is_an_input_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
