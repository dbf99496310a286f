#include "support/jansson_verdict.h"
#include "support/json_drain.h"

static void what_is_no_json_is_refused(void **state)
{
    fixture *f = *state;
    static const char *const bad[] = {"",
                                      " ",
                                      "\n",
                                      "x",
                                      "tru",
                                      "True",
                                      "nul",
                                      "NaN",
                                      "Infinity",
                                      "-",
                                      "+1",
                                      "01",
                                      "-01",
                                      "00",
                                      ".5",
                                      "1.",
                                      "1.e3",
                                      "1e",
                                      "1e+",
                                      "0x10",
                                      "1 2",
                                      "[1 2]",
                                      "[1,]",
                                      "[,1]",
                                      "[,]",
                                      "[1,,2]",
                                      "[",
                                      "]",
                                      "{",
                                      "}",
                                      "[}",
                                      "{]",
                                      "[1}",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\" 1}",
                                      "{\"a\":1,}",
                                      "{,}",
                                      "{\"a\":1 \"b\":2}",
                                      "{a:1}",
                                      "{1:1}",
                                      "{'a':1}",
                                      "{\"a\":1}}",
                                      "[]]",
                                      "\"",
                                      "\"abc",
                                      "\"\\",
                                      "\"\\x\"",
                                      "\"\\u\"",
                                      "\"\\u12\"",
                                      "\"\\u12g4\"",
                                      "\"\\U0041\"",
                                      "\"\\u0000\"",
                                      "\"\\ud800\"",
                                      "\"\\ud800x\"",
                                      "\"\\ud800\\n\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"\\udc00\"",
                                      "\"\\udc00\\ud800\"",
                                      "\"\\ud800\\ud800\"",
                                      "\"\t\"",
                                      "\"\n\"",
                                      "\"\x01\"",
                                      "\"\xff\"",
                                      "\"\xc3\"",
                                      "\"\xc3\\u00a9\"",
                                      "\"\xed\xa0\x80\"",
                                      "\"\xc0\x80\"",
                                      "\xef\xbb\xbf",
                                      "\xef\xbb\xbf\xef\xbb\xbf[]",
                                      "[\xef\xbb\xbf]",
                                      " \xef\xbb\xbf[]",
                                      "\xef\xbb[]",
                                      "// c\n[]",
                                      "/* c */[]",
                                      "[1] // c",
                                      "'a'",
                                      "undefined",
                                      "{\"a\":1}{\"b\":2}",
                                      "[1]x",
                                      "truefalse",
                                      "\f[]",
                                      "\v[]",
                                      "\xa0[]",
                                      "1_000",
                                      "[1;2]",
                                      "(1)"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (json_drain_text(f, bad[i]) != REMAT_BAD_INPUT)
            fail_msg("accepted: %s", bad[i]);
    expect_ok(f, json_drain_text(f, "\xef\xbb\xbf[]")); /* a byte order mark may come first, as in other files */
}

static void nul_bytes_are_named_wherever_they_stand(void **state)
{
    fixture *f = *state;
    static const char text[] = "{\"key\": [1, \"text\", true]}";
    for (size_t at = 0; at <= strlen(text); at++) {
        char bytes[sizeof text];
        memcpy(bytes, text, sizeof text);
        bytes[at] = '\0';
        expect_status(f, json_drain(f, bytes, sizeof text), REMAT_BAD_INPUT);
        expect_message(f, "NUL byte");
    }
}

static const char valid[] = "{\"format\": \"remat-profile\", \"n\": [0, -1, 2.5e+10, true, false, null],\n"
                            " \"text\": \"q\\\"\\\\\\u00e9\\ud83c\\udf89\xc3\xa9\", \"o\": {\"a\": {\"b\": [[], {}]}}}";

static void a_text_cut_anywhere_is_refused(void **state)
{
    fixture *f = *state;
    expect_ok(f, json_drain_text(f, valid));
    for (size_t length = 0; length < strlen(valid); length++)
        expect_status(f, json_drain(f, valid, length), REMAT_BAD_INPUT);
}

/* The text from `open`, `depth` times, and back. */
static char *nested(const char *open, const char *close, size_t depth)
{
    size_t a = strlen(open), b = strlen(close);
    char *text = malloc(depth * (a + b) + 2), *to = text;
    for (size_t i = 0; i < depth; i++, to += a)
        memcpy(to, open, a);
    *to++ = '1';
    for (size_t i = 0; i < depth; i++, to += b)
        memcpy(to, close, b);
    *to = '\0';
    return text;
}

static void nesting_ends_at_64_levels(void **state)
{
    fixture *f = *state;
    static const struct {
        size_t depth;
        remat_status status;
    } cases[] = {
        {1, REMAT_OK}, {64, REMAT_OK}, {65, REMAT_BAD_INPUT}, {66, REMAT_BAD_INPUT}, {1000000, REMAT_BAD_INPUT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *arrays = nested("[", "]", cases[i].depth), *objects = nested("{\"a\":", "}", cases[i].depth);
        expect_status(f, json_drain_text(f, arrays), cases[i].status);
        expect_status(f, json_drain_text(f, objects), cases[i].status);
        if (cases[i].status != REMAT_OK)
            expect_message(f, "nested deeper than 64");
        free(arrays);
        free(objects);
    }
}

static void endless_numbers_and_strings_are_refused_without_much_memory(void **state)
{
    fixture *f = *state;
    size_t length = (size_t)17 << 20;
    char *text = malloc(length);
    memset(text, '1', length);
    expect_status(f, json_drain(f, text, length), REMAT_BAD_INPUT);
    text[0] = '"';
    expect_status(f, json_drain(f, text, length), REMAT_BAD_INPUT);
    expect_message(f, "longer than 16 MiB");
    assert_true(remat_context_peak_bytes(f->context) < (uint64_t)64 << 20);
    free(text);
}

/* Jansson turns numbers into machine words and refuses what does not fit; our tokens keep their text. */
static bool has_large_number(const char *text, size_t length)
{
    size_t digits = 0;
    bool exponent = false;
    for (size_t i = 0; i < length; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';
        exponent = (exponent && (digit || text[i] == '+' || text[i] == '-')) || text[i] == 'e' || text[i] == 'E';
        digits = digit ? digits + 1 : 0;
        if (digits > 15 || (exponent && digits > 2))
            return true;
    }
    return false;
}

static void damage(char *text, size_t *length, test_random *random)
{
    static const char letters[] = "{}[]\",:\\u0123456789-+.eE tfn\n\x80\xc3\xff";
    size_t at = test_random_below(random, *length);
    switch (test_random_below(random, 4)) {
    case 0: text[at] = letters[test_random_below(random, sizeof letters - 1)]; break;
    case 1: text[at] = (char)(1 + test_random_below(random, 255)); break; /* Jansson loses a NUL behind a number */
    case 2: memmove(text + at, text + at + 1, --*length - at); break;
    default:
        memmove(text + at + 1, text + at, (*length)++ - at);
        text[at] = letters[test_random_below(random, sizeof letters - 1)];
    }
}

static void damaged_texts_are_judged_as_jansson_judges_them(void **state)
{
    fixture *f = *state;
    uint64_t seed = test_seed();
    test_random random = {seed};
    size_t accepted = 0;
    for (int round = 0; round < 20000; round++) {
        char text[400];
        size_t length = strlen(valid);
        memcpy(text, valid, length);
        for (uint64_t times = 1 + test_random_below(&random, 3); times > 0; times--)
            damage(text, &length, &random);
        if (has_large_number(text, length))
            continue;
        bool theirs = jansson_accepts(text, length), ours = json_drain(f, text, length) == REMAT_OK;
        if (ours != theirs)
            fail_msg("seed %llu, round %d: %s, jansson %s: %.*s", (unsigned long long)seed, round,
                     ours ? "accepted" : "refused", theirs ? "accepts" : "refuses", (int)length, text);
        accepted += ours;
    }
    assert_true(accepted > 100); /* otherwise nothing was compared */
}

static void without_memory_the_reader_says_so(void **state)
{
    fixture *f = *state;
    FILE *stream = stream_of("[]", 2);
    json_reader *reader = (json_reader *)stream;
    f->memory.fail_at = f->memory.calls + 1;
    expect_status(f, json_reader_create(f->context, stream, "text", &reader), REMAT_NO_MEMORY);
    assert_null(reader);
    fclose(stream);
    for (uint64_t n = 2; n < 6; n++) {
        f->memory.fail_at = f->memory.calls + n;
        remat_status status = json_drain_text(f, "[\"a longer text that has to grow more than once\"]");
        assert_true(status == REMAT_NO_MEMORY || (n > 3 && status == REMAT_OK));
    }
    f->memory.fail_at = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(what_is_no_json_is_refused),
        FIXTURE_TEST(nul_bytes_are_named_wherever_they_stand),
        FIXTURE_TEST(a_text_cut_anywhere_is_refused),
        FIXTURE_TEST(nesting_ends_at_64_levels),
        FIXTURE_TEST(endless_numbers_and_strings_are_refused_without_much_memory),
        FIXTURE_TEST(damaged_texts_are_judged_as_jansson_judges_them),
        FIXTURE_TEST(without_memory_the_reader_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
