/* Patterns that split texts: what each finds first. */
#include "support/fixture.h"
#include "support/memory_failures.h"

#include "data/tokenizer/split_pattern.h"

static const struct {
    const char *pattern, *text, *found; /* "": nothing */
} cases[] = {
    {"a+b", "xaaab", "aaab"},
    {"a+?b?", "aab", "a"},
    {"a{2,3}?b", "aaab", "aaab"},
    {"a{2,3}?c", "aaab", ""},
    {"a{2}", "aaab", "aa"},
    {"a{2,}", "aaab", "aaa"},
    {"a{,2}b", "aaab", "aab"},
    {"a{4}", "aaab", ""},
    {"a{2}?b", "ab aab", "aab"},
    {"a++b", "aab", "aab"},
    {"a++ab", "aab", ""},
    {"a*ab", "aaab", "aaab"},
    {"a?b|c", "xc", "c"},
    {"(?:ab)+", "xababa", "abab"},
    {"(?:ab)+?", "abab", "ab"},
    {"(?:ab)+?c", "ababc", "ababc"},
    {"(?:ab){2}", "ababab", "abab"},
    {"(?:ab){1,2}c", "abababc", "ababc"},
    {"(?:ab){1,2}?", "abab", "ab"},
    {"(?:ab)*c", "ababc", "ababc"},
    {"(?:ab|cd|ef)+", "xefabcdx", "efabcd"},
    {"(a|b)c", "abc", "bc"},
    {"a(?=b)", "acab", "a"},
    {"\\w+(?!\\S)", "ab- cd", "cd"},
    {"(?i:k's)", "x\xe2\x84\xaa'\xc5\xbf", "\xe2\x84\xaa'\xc5\xbf"},
    {"(?i:[kS1-]+)", "K-sk1", "K-sk1"},
    {"(?i:a)a", "AA Aa", "Aa"},
    {"[^a-c\\n]+", "abc\nde", "de"},
    {"[]a]+", "x]a]", "]a]"},
    {"[a-]+", "x-a-", "-a-"},
    {"[\\x41\\u0042\\x{1F600}c-\\x64]+", "xABcd\xf0\x9f\x98\x80", "ABcd\xf0\x9f\x98\x80"},
    {"[\\s\\d]+", "a 1\xc2\xa0\xd9\xa1", " 1\xc2\xa0\xd9\xa1"},
    {"[\\w]+", " \xc3\xa9_1", "\xc3\xa9_1"},
    {"\\S+", " ab ", "ab"},
    {"\\P{L}+", "a1 b", "1 "},
    {"\\p{^L}+", "a1 b", "1 "},
    {"\\P{^L}+", "1ab2", "ab"},
    {"[^\\p{L}\\p{Nd}]+", "a1- b", "- "},
    {"\\p{Lu}\\p{Ll}*", "x\xf0\x90\x90\x80y", "\xf0\x90\x90\x80y"}, /* a letter behind the table */
    {".+", "\nab\nc", "ab"},
    {"\\.\\*\\0?\\f?\\v?\\t", "..*\t", ".*\t"},
    {"a|", "", ""},
};
enum { CASES = sizeof cases / sizeof *cases };

static remat_status find(remat_context *context, const char *pattern_text, const char *text, size_t *start, size_t *end)
{
    split_pattern *pattern;
    remat_status status = split_pattern_compile(context, pattern_text, NULL, &pattern);
    if (status == REMAT_OK) {
        pattern_search search = split_pattern_begin((const unsigned char *)text, strlen(text));
        status = split_pattern_find(pattern, &search, 0, start, end);
    }
    split_pattern_destroy(pattern);
    return status;
}

static void matches_are_those_of_regular_expressions(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i + 1 < CASES; i++) {
        size_t start = 0, end = 0;
        expect_ok(f, find(f->context, cases[i].pattern, cases[i].text, &start, &end));
        if (end - start != strlen(cases[i].found) || strncmp(cases[i].text + start, cases[i].found, end - start) != 0)
            fail_msg("'%s' finds '%.*s' in '%s', not '%s'", cases[i].pattern, (int)(end - start), cases[i].text + start,
                     cases[i].text, cases[i].found);
    }
    size_t start, end;
    expect_status(f, find(f->context, cases[CASES - 1].pattern, "", &start, &end), REMAT_BAD_INPUT);
    expect_message(f, "the pattern matches an empty text");
}

/* Backtracking ends, deep or long, with the same message. */
static void hostile_matches_end(void **state)
{
    fixture *f = *state;
    size_t start, end;
    char many[5000];
    memset(many, 'a', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    expect_status(f, find(f->context, "(?:a|b)+", many, &start, &end), REMAT_BAD_INPUT);
    expect_message(f, "takes too many steps");
    expect_status(f, find(f->context, "a*?a*?a*?a*?b", many, &start, &end), REMAT_BAD_INPUT);
    expect_message(f, "takes too many steps");
    expect_status(f, find(f->context, "a*a*a*a*b", many, &start, &end), REMAT_BAD_INPUT);
    expect_message(f, "takes too many steps");
}

static remat_status find_once(remat_context *context, void *user)
{
    const size_t i = *(const size_t *)user;
    size_t start, end;
    return find(context, cases[i].pattern, cases[i].text, &start, &end);
}

static void failed_allocations_are_survived(void **state)
{
    (void)state;
    for (size_t i = 0; i + 1 < CASES; i++)
        expect_failures_without_reserve_survived(cases[i].pattern, find_once, &i, 4, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(matches_are_those_of_regular_expressions),
        FIXTURE_TEST(hostile_matches_end),
        FIXTURE_TEST(failed_allocations_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
