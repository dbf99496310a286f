/* What a terminal would act on is shown as an escape, in texts, messages, warnings and JSON. */
#include <stdlib.h>
#include <string.h>

#include "support/fixture.h"

#include "base/error.h"
#include "base/output.h"
#include "base/utf8.h"

static void expect_escaped(const char *text, const char *wanted)
{
    char shown[256];
    assert_int_equal(remat_text_escape(text, shown, sizeof shown), strlen(wanted));
    assert_string_equal(shown, wanted);
    assert_int_equal(remat_text_escape(wanted, shown, sizeof shown), strlen(wanted)); /* once is enough */
    assert_string_equal(shown, wanted);
}

static void controls_become_escapes(void **state)
{
    (void)state;
    expect_escaped("", "");
    expect_escaped("fc1/ü 日本 \xf0\x9f\x98\x80 \\n", "fc1/ü 日本 \xf0\x9f\x98\x80 \\n");
    expect_escaped("a\nb\tc\rd", "a\\nb\\tc\\rd");
    expect_escaped("\x1b[31m\x07\x7f", "\\x1b[31m\\x07\\x7f");
    expect_escaped("\xc2\x85\xc2\x9b\xc2\xa0", "\\u0085\\u009b\xc2\xa0");
    expect_escaped("\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa8\xd8\x9c", "\\u202e\\u2066\\u2028\\u061c");
    expect_escaped("\xff\xc3", "\\xff\\xc3");                            /* no UTF-8, and cut short */
    expect_escaped("\xc0\x80\xed\xa0\x80", "\\xc0\\x80\\xed\\xa0\\x80"); /* overlong, half of a pair */
}

/* As much as there is room for, and no part of an escape or of a character. */
static void nothing_is_cut(void **state)
{
    (void)state;
    char shown[8];
    assert_int_equal(remat_text_escape("ab\x1b", shown, 6), 6);
    assert_string_equal(shown, "ab");
    assert_int_equal(remat_text_escape("a\xc3\xbc", shown, 3), 3);
    assert_string_equal(shown, "a");
    assert_int_equal(remat_text_escape("a\xc3\xbc", shown, 4), 3);
    assert_string_equal(shown, "a\xc3\xbc");
    assert_int_equal(remat_text_escape("\x1b", NULL, 0), 4);
}

static void take_warning(void *user, const char *message)
{
    snprintf(user, 128, "%s", message);
}

static void messages_and_warnings_are_escaped(void **state)
{
    fixture *f = *state;
    char warning[128] = "";
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = "a\x1b.json";
    place.field = "k\n";
    remat_fail(f->context, REMAT_BAD_INPUT, &place, "'%s' is odd", "\xe2\x80\xae");
    assert_string_equal(remat_context_message(f->context), "a\\x1b.json: k\\n: '\\u202e' is odd");
    assert_string_equal(remat_context_error(f->context)->file, "a\x1b.json"); /* for programs, as it was given */
    remat_fail_in_file(f->context, "b\x07", 3);
    assert_string_equal(remat_context_message(f->context), "b\\x07:3: a\\x1b.json: k\\n: '\\u202e' is odd");
    remat_context_on_warning(f->context, take_warning, warning);
    remat_warn(f->context, &place, "%s", "\xc2\x9b");
    assert_string_equal(warning, "a\\x1b.json: k\\n: \\u009b");
}

static void json_is_escaped(void **state)
{
    fixture *f = *state;
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    output *out = malloc(sizeof *out);
    assert_non_null(out);
    output_begin(out, f->context, stream);
    output_quoted(out, "\"\\\n\x7f\xc2\x9b\xe2\x80\xae\xff ü");
    output_shown(out, "\x1bü");
    expect_ok(f, output_end(out));
    fclose(stream);
    assert_string_equal(text, "\"\\\"\\\\\\u000a\\u007f\\u009b\\u202e\\ufffd ü\"\\x1bü");
    free(out);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(controls_become_escapes),
        FIXTURE_TEST(nothing_is_cut),
        FIXTURE_TEST(messages_and_warnings_are_escaped),
        FIXTURE_TEST(json_is_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
