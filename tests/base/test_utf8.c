#include "support/cases.h"

#include "base/utf8.h"

#include <stdbool.h>

static void well_formed_text_is_valid(void **state)
{
    (void)state;
    static const char *const good[] = {"",
                                       "plain",
                                       "\x7f",
                                       "é",
                                       "€",
                                       "🎉",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xef\xbf\xbf",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf",
                                       "a\xc3\xa9"
                                       "b\xe2\x82\xac"
                                       "c"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(remat_utf8_valid(good[i]));
}

static void broken_text_is_not(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\x80", /* starts with a continuation */
        "\xc3", /* ends too early */
        "\xe2\x82",
        "\xf0\x9f\x8e",
        "\xc3(", /* not continued */
        "\xe2(\xac",
        "\xc0\x80", /* overlong */
        "\xc1\xbf",
        "\xe0\x9f\xbf",
        "\xf0\x8f\xbf\xbf",
        "\xed\xa0\x80", /* a surrogate */
        "\xed\xbf\xbf",
        "\xf4\x90\x80\x80", /* past U+10FFFF */
        "\xf5\x80\x80\x80",
        "\xff",
        "\xfe",
        "ok until \xff here",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(remat_utf8_valid(bad[i]));
}

/* One code point as text. */
static void encode(uint32_t code, char text[5])
{
    int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned leads[] = {0, 0xc0, 0xe0, 0xf0};
    text[0] = (char)(leads[more] | code >> (6 * more));
    for (int i = 1; i <= more; i++)
        text[i] = (char)(0x80 | (code >> (6 * (more - i)) & 0x3f));
    text[more + 1] = '\0';
}

static void every_code_point_is_valid_but_the_surrogates(void **state)
{
    (void)state;
    for (uint32_t code = 1; code < 0x110400; code++) {
        char text[5];
        encode(code, text);
        bool good = code < 0x110000 && !(code >= 0xd800 && code < 0xe000);
        if (remat_utf8_valid(text) != good)
            fail_msg("U+%04X", code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed_text_is_valid),
        cmocka_unit_test(broken_text_is_not),
        cmocka_unit_test(every_code_point_is_valid_but_the_surrogates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
