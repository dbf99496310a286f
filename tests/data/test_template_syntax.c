/* The grammar of chat templates: what Jinja 3.1 writes for each template, and that every beginning of one is refused by the
 * line where it breaks off. */
#include "support/fixture.h"
#include "support/memory_failures.h"

#include "data/tokenizer/chat_template.h"

static const chat_message talk[] = {{"system", ""}, {"user", "Hi"}, {"assistant", "Hello"}};

static const struct {
    const char *template, *text;
} cases[] = {
    {"{%- set Ab_1 = 1 -%} {%+ if Ab_1 -%} {{- Ab_1 -}} {%- endif +%}\n{#- a -#} b {##}{# - #} c", "1b  c"},
    {"{{ 'a' -}}  \n {{ 'b' }}\t {%- if 1 %}\n\t \tc{% endif %}\n {% if 1 %}d{% endif %}{", "ab\t \tcd{"},
    {"{% set d = {'b': 1, 'c': [1, 2,], 'd': {},} %}{{ d['b'] }}{{ d['z'] is defined }}{{ d.c[-2] }}{{ d.c[2] is "
     "defined }}{{ d.c[-3] is defined }}",
     "1False1FalseFalse"},
    {"{{ [1, 2, 3][none:2]|join }}{{ [1, 2, 3][2:0:-1]|join }}{{ [1, 2, 3][:0:-1]|join }}{{ [1, 2, 3][9::-2]|join }}{{ "
     "'abc'[::1] }}",
     "12323231abc"},
    {"{{ [1, [2]] == [1, [2]] }}{{ [1] == [1, 2] }}{{ [1, 2] == [1, 3] }}{{ {'a': 1} == {'a': 1} }}{{ {'a': 1} == "
     "{'b': 1} }}{{ {} == [] }}",
     "TrueFalseFalseTrueFalseFalse"},
    {"{{ none == none }}{{ x == y }}{{ true == 1 }}{{ 0 == false }}{{ 1 == '1' }}{{ 'a' == 'b' }}{{ 'a' == 'ab' }}{% "
     "set l = [1] %}{{ l == l }}",
     "TrueTrueTrueTrueFalseFalseFalseTrue"},
    {"{{ 'a\\n\\t\\r\\\\\\'\\\"\\q' }}{{ \"it's\" }}", "a\n\t\r\\'\"\\qit's"},
    {"{{ 'x\\n\\r\\t\\\\\010\014\001\037'|tojson }}", "\"x\\n\\r\\t\\\\\\b\\f\\u0001\\u001f\""},
    {"{{ 'a' is eq 'a' }}{{ 1 is not none }}{{ 1 is defined and 2 is defined }}{{ 1 is defined or 0 }}{{ 'a' if 1 is "
     "defined else 'b' }}{{ [1] is eq [1] }}{{ 'b' is eq \"b\" }}{{ 1 is eq(1) }}",
     "TrueTrueTrueTrueaTrueTrueTrue"},
    {"{% set a = 2 %}{{ 2 is eq a }}{{ (1 is defined) is true }}{{ 'x' if 1 is odd }}{{ 2 is odd }}{{ 2 is even }}{{ 3 "
     "is even }}",
     "TrueTruexFalseTrueFalse"},
    {"{% for a in [1, 2, 3] if a is odd and a not in [3] %}{{ a }}{% endfor %}{% for a in x %}{% else %}-{% endfor "
     "%}{% for a, b in [[1, 2]] %}{{ a ~ b }}{% endfor %}",
     "1-12"},
    {"{% for a in [1, 2, 3] %}{{ loop.previtem|default('-') }}{{ loop.nextitem|default('-') }}{{ loop.revindex }}{{ "
     "loop.revindex0 }}{{ loop.first }}{% endfor %}",
     "-232True1321False2-10False"},
    {"{{ not not 1 }}{{ 1 if 0 else 2 if 0 else 3 }}{{ 1 - -1 }}{{ 2 - 3 * 4 % 5 // 2 }}{{ 1 ~ 2 ~ 'a' }}{{ ((1)) }}{{ "
     "(1, 'a')[1] }}{{ (1,)|length }}",
     "True32112a1a1"},
    {"{% macro f() %}{% endmacro %}[{{ f() }}]{% macro g(a=1, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ g() }}{{ g(b=2) "
     "}}{{ g(1 == 1) }}",
     "[]1112TrueTrue"},
    {"{% set s %}{% endset %}[{{ s }}]{% set ns = namespace() %}{% set ns.a %}b{% endset %}{{ ns.a }}{{ dict(a=1).a "
     "}}{{ dict() }}",
     "[]b1{}"},
    {"{{ messages|selectattr('role', 'in', ['user', 'system'])|list|length }}{{ messages|rejectattr('role', 'eq', "
     "'user')|list|length }}{{ messages|selectattr('frob', 'defined')|list|length }}",
     "220"},
    {"{{ 'a'|default('d', false) }}{{ ''|default('d', true) }}{{ 'a'|d(default_value='x') }}{{ "
     "x|default(default_value='x') }}",
     "adax"},
    {"{% if 0 %}a{% elif 0 %}b{% elif 1 %}c{% else %}d{% endif %}{% if 0 %}a{% elif 0 %}b{% endif %}", "c"},
    {"{% for a in range(9) %}{% if a == 2 %}{% continue %}{% elif a > 3 %}{% break %}{% endif %}{{ a }}{% endfor %}",
     "013"},
    {"{% for k, v in {'a': [], 'b': none}|items %}{{ k }}{{ v is none }}{% endfor %}{{ 1 in {} }}{{ 'a' in {'b': 1, "
     "'a': 2} }}{{ 1 in [] }}",
     "aFalsebTrueFalseTrueFalse"},
    {"{% set m = 2147483647 * 2147483647 * 2 + 8589934588 %}{{ range(m, m + 1, 2)|length }}{{ range(0 - m, 0 - m - 1, "
     "-5)|length }}",
     "11"},
    {"{{ ['a', 1, none, true, [1], x]|join('-') }}{{ ['a', 'b']|join(1) if false }}", "a-1-None-True-[1]-"},
    {"{{ 'ab' < 'abc' }}{{ 1 < 2 }}{{ 2 > 1 }}{{ 'a' >= 'b' }}{{ 1 <= 0 }}{{ not 1 in [1] }}{{ 1 not in [2] }}",
     "TrueTrueTrueFalseFalseFalseTrue"},
    {"{{ {1: 'a', 'k': 'b'}.k }}{{ {'a': 1}.get('b', {}) }}{{ namespace(a=1).a }}", "b{}1"},
    {"{{ 5 % 3 }}{{ 5 % -3 }}{{ -6 % 3 }}{{ 1 % -1 }}{{ -1 // 1 }}{{ 4 - -1 * -1 }}{{ 2 * -1 }}", "2-100-13-2"},
    /* What transformers marks as the model's own words is written as it stands. */
    {"{% generation %}a{% endgeneration %}", "a"},
    {"", ""},
};
enum { CASES = sizeof cases / sizeof *cases };

static remat_status render(remat_context *context, const char *template_text, chat_template **template,
                           const char **text)
{
    const chat_values values = {"<s>", "</s>", false};
    size_t length;
    remat_status status = chat_template_compile(context, template_text, "config.json", template);
    FLOW(status, chat_template_render(*template, talk, 3, &values, text, &length));
    return status;
}

static void texts_are_those_of_jinja(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < CASES; i++) {
        chat_template *template;
        const char *text;
        if (render(f->context, cases[i].template, &template, &text) != REMAT_OK)
            fail_msg("%s: %s", cases[i].template, remat_context_message(f->context));
        if (strcmp(text, cases[i].text) != 0)
            fail_msg("%s: '%s', wanted '%s'", cases[i].template, text, cases[i].text);
        chat_template_destroy(template);
    }
}

static void beginnings_are_refused_by_line(void **state)
{
    fixture *f = *state;
    unsigned refused = 0;
    for (size_t i = 0; i < CASES; i++)
        for (size_t length = strlen(cases[i].template); length-- > 0;) {
            char *part = strndup(cases[i].template, length);
            chat_template *template;
            const char *text;
            remat_status status = render(f->context, part, &template, &text);
            if (status != REMAT_OK) {
                expect_status(f, status, REMAT_BAD_INPUT);
                expect_message(f, "config.json: line ");
                refused++;
            }
            chat_template_destroy(template);
            free(part);
        }
    assert_true(refused > 1000);
}

static void expect_refused(fixture *f, const char *text, const char *message)
{
    chat_template *template;
    const char *out;
    expect_status(f, render(f->context, text, &template, &out), REMAT_BAD_INPUT);
    expect_message(f, message);
    chat_template_destroy(template);
}

static void errors_say_what_is_missing(void **state)
{
    fixture *f = *state;
    static const char *const texts[][2] = {
        {"{{ [1 }}", "something is missing or not supported, at '}}'"},
        {"{{ 1.frob() }}", "the method 'frob' is not supported"},
        {"{{ 99999999999 }}", "a number is too large"},
        {"{{ a. }}", "a name should stand here"},
        {"{{ 'a'[] }}", "an index is missing"},
        {"{{ 'a'[1:2:1:1] }}", "something is missing or not supported, at '1] }}'"},
        {"{{ + }}", "a value should stand here"},
        {"{{ 'a\\", "a string is not closed"},
        {"{{ 1 not 2 }}", "the end of a tag should stand here"},
        {"{% for a on b %}{% endfor %}", "'in' should stand here"},
        {"{% set 1 = 2 %}", "only a name or an attribute is set"},
        {"{% set a() = 2 %}", "only a name or an attribute is set"},
        {"{% if 1 }}", "the end of a tag should stand here"},
        {"{% for a in [1] %}{% endif %}", "this statement is not supported, at 'endif %}'"},
        {"{% macro f(1) %}{{ 1 + 'a' }}{% endmacro %}{{ f(2) }}", "'+' takes two numbers, two texts or two lists"},
        {"{{ 1 - 'a' }}", "'-' takes two numbers, two texts or two lists"},
        {"{{ 'a' * 2 }}", "'*' takes two numbers, two texts or two lists"},
        {"{{ [1] - [1] }}", "'-' takes two numbers, two texts or two lists"},
        {"{{ 'a' < 1 }}", "'<' takes two numbers or two texts"},
        {"{{ [1][[1]] }}", "this cannot be indexed"},
        {"{{ {'a': 1}[1] }}", "this cannot be indexed"},
        {"{{ 'a'.b()() }}", "the method 'b' is not supported"},
        {"{{ (1)() }}", "the function '' is not known"},
        {"{{ [1]|selectattr('a', 1, 2)|x }}", "the filter 'x' is not supported"},
        {"{{ {'a': 1}|x }}", "the filter 'x' is not supported here"},
        {"{{ {}.get(1).x.y }}", "what has the attribute 'y' is not defined"},
        {"{{ frob(a) if x(1) else 2 }}", "the function 'x' is not known"},
        {"{% for a in [1] if frob(a) %}{% endfor %}", "the function 'frob' is not known"},
        {"{% for a in frob(1) %}{% endfor %}", "the function 'frob' is not known"},
        {"{% set ns = namespace() %}{% set ns.a = frob() %}", "the function 'frob' is not known"},
        {"{% set frob().a = 1 %}", "the function 'frob' is not known"},
        {"{{ [frob()] }}{{ {'a': 1} }}", "the function 'frob' is not known"},
        {"{{ {frob(): 1} }}", "the function 'frob' is not known"},
        {"{{ {'a': frob()} }}", "the function 'frob' is not known"},
        {"{{ [1][frob()] }}", "the function 'frob' is not known"},
        {"{{ [1][frob():] }}", "the function 'frob' is not known"},
        {"{{ 1|d(frob()) }}{{ 1 is eq(frob()) }}", "the function 'frob' is not known"},
        {"{{ 1 is eq(frob()) }}", "the function 'frob' is not known"},
        {"{% macro f(a=frob()) %}{% endmacro %}{{ f() }}", "the function 'frob' is not known"},
        {"{% set a %}{{ frob() }}{% endset %}", "the function 'frob' is not known"},
        {"{% if frob() %}{% endif %}", "the function 'frob' is not known"},
        {"{{ frob()[0] }}", "the function 'frob' is not known"},
        {"{{ 1 + frob() }}", "the function 'frob' is not known"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_refused(f, texts[i][0], texts[i][1]);
}

/* Bodies and conditions, nested or long, end; so does a dictionary that holds itself. */
static void hostile_templates_end(void **state)
{
    fixture *f = *state;
    char deep[4000] = "", loop[600] = "{% for a in range(99999) %}{{ 1";
    for (int i = 0; i < 150; i++)
        strcat(deep, "{% if 1 %}");
    expect_refused(f, deep, "nested too deeply");
    snprintf(deep, sizeof deep, "{%% if 0 %%}");
    for (int i = 0; i < 150; i++)
        strcat(deep, "{% elif 0 %}");
    expect_refused(f, deep, "nested too deeply");
    for (int i = 0; i < 100; i++)
        strcat(loop, "+1");
    strcat(loop, " }}{% endfor %}");
    expect_refused(f, loop, "too many steps");
    expect_refused(f, "{% for a in range(99999) %}{{}}{{1}}{{1}}{{1}}{{1}}{{1}}{% endfor %}", "a value should stand");
    expect_refused(f,
                   "{% for a in range(99999) %}{{1}} {{1}} {{1}} {{1}} {{1}} {{1}} {{1}} {{1}} {{1}} {{1}} {{1}} "
                   "{{1}} {{1}} {{1}}{% endfor %}",
                   "too many steps");
    expect_refused(f, "{% macro f() %}{% if 1 %}{{ f() }}{% endif %}{% endmacro %}{% if 1 %}{{ f() }}{% endif %}",
                   "too many steps");
    chat_template *template;
    const char *text;
    expect_ok(f, render(f->context,
                        "{% set a = namespace() %}{% set b = namespace() %}{% set a.x = a %}{% set b.x = b %}"
                        "{{ a == b }}{{ a|tojson|length }}",
                        &template, &text));
    expect_text(text, "False352");
    chat_template_destroy(template);
}

static remat_status render_once(remat_context *context, void *user)
{
    chat_template *template;
    const char *text;
    remat_status status = render(context, user, &template, &text);
    chat_template_destroy(template);
    return status;
}

static void failed_allocations_are_survived(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++)
        expect_failures_without_reserve_survived(cases[i].template, render_once, (void *)(uintptr_t)cases[i].template,
                                                 2, 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(texts_are_those_of_jinja),        FIXTURE_TEST(beginnings_are_refused_by_line),
        FIXTURE_TEST(errors_say_what_is_missing),      FIXTURE_TEST(hostile_templates_end),
        FIXTURE_TEST(failed_allocations_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
