/* Every word of chat templates: what it writes, judged as Jinja has it, and what is refused. */
#include "support/fixture.h"
#include "support/memory_failures.h"

#include "data/tokenizer/chat_template.h"

static const chat_message talk[] = {{"system", ""}, {"user", "Hi"}, {"assistant", "Hello"}};

static const struct {
    const char *template, *text;
} cases[] = {
    /* texts */
    {"{{ '  a b '|trim }}|{{ 5|trim }}", "a b|5"},
    {"{{ 'xxaxx'.strip('x') }}{{ '  a'.lstrip() }}{{ 'a  '.rstrip() }}|{{ ''.strip() }}{{ ' \t\n'.strip() }}|",
     "aaa||"},
    {"{{ 'xax'.lstrip('x') }}{{ 'xax'.rstrip('x') }}", "axxa"},
    {"{{ 'a b_c-d'.title() }}{{ 'hELLO wORLD'|capitalize }}{{ 'AZ[@`{'|lower }}{{ 'az[@`{'.upper() }}",
     "A B_C-DHello worldaz[@`{AZ[@`{"},
    {"{{ 'it'|title }}{{ 'UP'.capitalize() }}{{ 'a-b-'|replace('-', '+') }}{{ 'a-b'.replace('-', '') }}", "ItUpa+b+ab"},
    {"{{ ' a  b c '.split()|join('/') }} {{ 'a,b,c'.split(',', 1)|join('/') }} {{ 'a b c'.split(none, 1)|join('/') }}",
     "a/b/c a/b,c a/b c"},
    {"{{ ''.split()|length }}{{ ''.split(',')|length }}{{ 'a,'.split(',')|length }}", "012"},
    {"{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith('bc') }}{{ 'a'.endswith('abc') }}{{ 'abc'.startswith('b') }}",
     "TrueTrueFalseFalse"},
    {"{{ (1|string) + 'a' }}{{ 'b'|safe }}{{ 'äb'|length }}{{ 'a' ~ 1 ~ true }}", "1ab2a1True"},
    {"{{ 'hello'[1:3] }}{{ 'abc'[-1] }}{{ 'abc'[0] }}{{ 'abc'[2:1] }}{{ 'abc'[:-1] }}", "elcaab"},
    /* lists and dictionaries */
    {"{% set d = {'a': 1, 'b': 2} %}{{ d.keys()|list|join(',') }} {{ d.values()|list|join(',') }} {{ d.get('a') }} "
     "{{ d.get('z', 5) }} {{ d.get('z') }} {{ d|length }} {{ d|list|join }}",
     "a,b 1,2 1 5 None 2 ab"},
    {"{% for k, v in {'a': 1}.items() %}{{ k }}={{ v }}{% endfor %}{% for k, v in {'b': 2}|items %}{{ k }}={{ v }}{% "
     "endfor %}",
     "a=1b=2"},
    {"{% for k in {'x': 1, 'y': 2} %}{{ k }}{% endfor %}", "xy"},
    {"{% set l = [1] %}{% set _ = l.append(2) %}{{ l|join(',') }}{{ [1]|count }}{{ ([1] + [2, 3])|join(',') }}",
     "1,211,2,3"},
    {"{{ [1, 2]|first }}{{ [1, 2]|last }}{{ []|first }}{{ []|last }}{{ ['a', 'b']|join }}", "12ab"},
    {"{{ [1, 2, 3, 4][1:3]|join }} {{ [1, 2, 3][::-1]|join }} {{ [1, 2, 3][-2:]|join }} {{ [1, 2, 3][:9]|join }} "
     "{{ [1, 2, 3][5:1]|join }} {{ [1, 2, 3, 4][::2]|join }} {{ [1, 2, 3][-9:]|join }} {{ [1, 2][0] }}{{ [1, 2][-1] }}",
     "23 321 23 123  13 123 12"},
    {"{{ messages|selectattr('role', 'equalto', 'user')|list|length }}{{ messages|selectattr('content')|list|length }}"
     "{{ messages|rejectattr('content')|list|length }}{{ [1]|selectattr('a')|list|length }}",
     "1210"},
    {"{{ {'a': [1, none, true, false, 'x\"'], 'b': {}}|tojson }}",
     "{\"a\": [1, null, true, false, \"x\\\"\"], \"b\": {}}"},
    /* numbers and comparisons */
    {"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 5 // -1 }} {{ 5 % -1 }} {{ 2 * 3 - 1 }} {{ 6 // -3 }}",
     "3 -4 2 -2 -5 0 5 -2"},
    {"{{ 'a' < 'b' }} {{ 2 <= 2 }} {{ 3 >= 4 }} {{ 'a' > 'b' }} {{ 1 != 2 }} {{ 'b' >= 'b' }} {{ 'a' <= 'B' }}",
     "True True False False True True False"},
    {"{{ 'a' in 'cat' }} {{ 'a' not in ['b'] }} {{ 'k' in {'k': 1} }} {{ 1 in [2] }}", "True True True False"},
    {"{{ not true }}{{ -1 }}{{ true and 0 }}{{ '' or 'x' }}{{ 'a' if false }}|{{ 'a' if 1 else 'b' }}", "False-10x|a"},
    {"{{ range(3)|join }} {{ range(1, 4)|join }} {{ range(5, 0, -2)|join }} {{ range(0)|length }}", "012 123 531 0"},
    /* tests */
    {"{{ 1 is number }} {{ 'a' is number }} {{ true is true }} {{ false is true }} {{ false is false }} {{ 3 is odd }} "
     "{{ 3 is even }} {{ 'a' is iterable }} {{ 1 is iterable }} {{ {} is mapping }} {{ [] is sequence }}",
     "True False True False True True False True False True True"},
    {"{{ x is undefined }} {{ x is defined }} {{ none is none }} {{ 'a' is string }} {{ 1 is integer }} {{ true is "
     "boolean }} "
     "{{ 'a' is in ['a'] }} {{ 1 is eq 1 }} {{ 1 is ne 1 }} {{ 1 is not equalto(1) }} {{ {} is iterable }}",
     "True False True True True True True True False False True"},
    /* what is not there is undefined, as of a dictionary */
    {"{{ [1]['a'] }}{{ 'x'.frob is defined }}{{ 'x'['frob'] is undefined }}{{ messages[0].frob|default('d') }}{{ "
     "[].x|d(1) }}",
     "FalseTrued1"},
    /* defaults */
    {"{{ x|default('d') }}{{ ''|default('d', true) }}{{ ''|d('e') }}{{ 'a'|default('d', true) }}{{ x|default }}{{ "
     "x|length }}",
     "dda0"},
    /* statements */
    {"{% macro f(a, b='x') %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, 2) }}{{ f(1, b=3) }}{{ f(b=1, a=2) }}",
     "1x121321"},
    {"{% set ns = namespace(x=1) %}{% for a in [1, 2] %}{% set ns.x = ns.x + a %}{% endfor %}{{ ns.x }}", "4"},
    {"{% for a in [1, 2, 3] if a != 2 %}{{ a }}{{ loop.index }}{{ loop.last }}{% else %}no{% endfor %}"
     "{% for a in [] %}{% else %}none{% endfor %}",
     "11False32Truenone"},
    {"{% if false %}a{% elif 1 %}b{% else %}c{% endif %}{% if [] %}a{% elif {} %}b{% else %}c{% endif %}", "bc"},
    {"{% set t %}in {{ 1 }}{% endset %}{{ t|upper }}", "IN 1"},
};

static void words_write_what_jinja_does(void **state)
{
    fixture *f = *state;
    const chat_values values = {"<s>", "</s>", false};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        chat_template *template;
        const char *text;
        size_t length;
        expect_ok(f, chat_template_compile(f->context, cases[i].template, "case", &template));
        remat_status status = chat_template_render(template, talk, 3, &values, &text, &length);
        if (status != REMAT_OK)
            fail_msg("%s: %s", cases[i].template, remat_context_message(f->context));
        if (strcmp(text, cases[i].text) != 0)
            fail_msg("%s: '%s', wanted '%s'", cases[i].template, text, cases[i].text);
        chat_template_destroy(template);
    }
}

static void what_makes_no_sense_is_refused(void **state)
{
    fixture *f = *state;
    static const char *const templates[] = {
        "{{ 'a'|replace('', 'b') }}",
        "{{ 'a'|replace(1, 'b') }}",
        "{{ 'a'|replace('a', 2) }}",
        "{{ [1]|selectattr }}",
        "{{ [1]|selectattr(1) }}",
        "{{ messages|selectattr('role', 'frob') }}",
        "{{ 1|length }}",
        "{{ 1|tojson(2) }}",
        "{{ 1|upper }}",
        "{{ 1|items }}",
        "{{ 1|list }}",
        "{{ [1]|frob }}",
        "{{ {}.frob() }}",
        "{{ [].frob() }}",
        "{{ 1 .frob() }}",
        "{{ 'abc'[::2] }}",
        "{{ [1][::0] }}",
        "{{ [1][::9999999999] }}",
        "{{ [1][::-9999999999] }}",
        "{{ [1]['a':] }}",
        "{{ 1[0] }}",
        "{{ {}[1:] }}",
        "{{ 9223372036854775807 + 1 }}",
        "{{ 9223372036854775807 * 2 }}",
        "{{ (0 - 9223372036854775807 - 1) // -1 }}",
        "{{ 0 - 9223372036854775807 - 2 }}",
        "{{ 1 / 2 }}",
        "{{ 1 % 0 }}",
        "{{ -'a' }}",
        "{{ [1] + 1 }}",
        "{{ 1 + [1] }}",
        "{{ 1 < 'a' }}",
        "{{ [] < [] }}",
        "{{ range('a') }}",
        "{{ range(1, 2, 0) }}",
        "{{ range(1, 2, 9999999999) }}",
        "{{ range() }}",
        "{{ raise_exception() }}",
        "{{ raise_exception(1) }}",
        "{{ 'a'('b') }}",
        "{% for a, b in [1] %}{% endfor %}",
        "{% for a, b in [[1, 2, 3]] %}{% endfor %}",
        "{% for a in 1 %}{% endfor %}",
        "{% set x.y = 1 %}",
        "{% set x = 1 %}{% set x.y = 1 %}",
        "{% macro f(a) %}{{ a.b.c }}{% endmacro %}{{ f() }}",
        "{{ f(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33) }}",
    };
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        chat_template *template;
        const chat_values values = {0};
        const char *text;
        size_t length;
        remat_status status = chat_template_compile(f->context, templates[i], "config.json", &template);
        if (status == REMAT_OK)
            status = chat_template_render(template, talk, 3, &values, &text, &length);
        if (status != REMAT_BAD_INPUT)
            fail_msg("%s: status %d, '%s'", templates[i], status, status == REMAT_OK ? text : "");
        expect_message(f, "config.json: line 1");
        chat_template_destroy(template);
    }
}

static remat_status render_all(remat_context *context, void *user)
{
    const chat_values values = {"<s>", "</s>", true};
    remat_status status = REMAT_OK;
    const char *text;
    size_t length;
    chat_template *template;
    status = chat_template_compile(context, cases[*(const size_t *)user].template, "name", &template);
    FLOW(status, chat_template_render(template, talk, 3, &values, &text, &length));
    chat_template_destroy(template);
    return status;
}

static void failed_allocations_are_survived(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_failures_without_reserve_survived(cases[i].template, render_all, &i, 2, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(words_write_what_jinja_does),
        FIXTURE_TEST(what_makes_no_sense_is_refused),
        FIXTURE_TEST(failed_allocations_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
