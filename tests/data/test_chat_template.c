/* Chat templates against what Jinja made of them (tests/data/chats/make_chats.py). */
#include "support/fixture.h"
#include "support/memory_failures.h"

#include "data/tokenizer/chat_template.h"

#include <jansson.h>

enum { MOST_MESSAGES = 8 };

static size_t take_messages(const json_t *from, chat_message *messages)
{
    size_t count = json_array_size(from);
    assert_true(count <= MOST_MESSAGES);
    for (size_t i = 0; i < count; i++) {
        const json_t *message = json_array_get(from, i);
        messages[i] = (chat_message){json_string_value(json_object_get(message, "role")),
                                     json_string_value(json_object_get(message, "content"))};
    }
    return count;
}

static void compare(fixture *f, const json_t *templates, const json_t *chat)
{
    const char *name = json_string_value(json_object_get(chat, "template")), *text;
    const json_t *wanted = json_object_get(chat, "text");
    chat_message messages[MOST_MESSAGES];
    size_t count = take_messages(json_object_get(chat, "messages"), messages), length;
    const chat_values values = {"<s>", "</s>", json_is_true(json_object_get(chat, "generation"))};
    chat_template *template;
    expect_ok(f,
              chat_template_compile(f->context, json_string_value(json_object_get(templates, name)), name, &template));
    remat_status status = chat_template_render(template, messages, count, &values, &text, &length);
    expect_status(f, status, json_is_null(wanted) ? REMAT_BAD_INPUT : REMAT_OK);
    if (status == REMAT_OK && strcmp(text, json_string_value(wanted)) != 0)
        fail_msg("%s: '%s', wanted '%s'", name, text, json_string_value(wanted));
    chat_template_destroy(template);
}

static void texts_are_those_of_jinja(void **state)
{
    json_t *file = json_load_file("tests/data/chats/chats.json", 0, NULL);
    assert_non_null(file);
    const json_t *chats = json_object_get(file, "chats");
    assert_true(json_array_size(chats) > 50);
    for (size_t i = 0; i < json_array_size(chats); i++)
        compare(*state, json_object_get(file, "templates"), json_array_get(chats, i));
    json_decref(file);
}

static const chat_message hello[] = {{"user", "Hi"}, {"assistant", "Hello"}};

/* REMAT_BAD_INPUT from compiling or running. */
static void expect_refused(fixture *f, const char *text, const char *message)
{
    chat_template *template;
    const chat_values values = {0};
    const char *out;
    size_t length;
    remat_status status = chat_template_compile(f->context, text, "config.json", &template);
    if (status == REMAT_OK)
        status = chat_template_render(template, hello, 2, &values, &out, &length);
    chat_template_destroy(template);
    expect_status(f, status, REMAT_BAD_INPUT);
    expect_message(f, message);
    expect_message(f, "config.json: line ");
}

static void broken_templates_name_the_line(void **state)
{
    fixture *f = *state;
    expect_refused(f, "{% if a %}\n", "line 2 of the chat template: the template ends inside a block");
    expect_refused(f, "\n{% frobnicate %}",
                   "line 2 of the chat template: this statement is not supported, at 'frobnicate %}'");
    expect_refused(f, "{{ 'a }}", "a string is not closed");
    expect_refused(f, "{{ a b }}", "the end of a tag should stand here");
    expect_refused(f, "{{ 1.5 }}", "numbers with a fraction are not supported");
    expect_refused(f, "{# ", "a comment is not closed");
    expect_refused(f, "{{ messages | frob }}", "the filter 'frob' is not supported");
    expect_refused(f, "{{ messages is frob }}", "the test 'frob' is not supported");
    expect_refused(f, "{{ 'a'.frob() }}", "the method 'frob' is not supported");
    expect_refused(f, "{{ frob(1) }}", "the function 'frob' is not known");
    expect_refused(f, "{{ a.b }}", "what has the attribute 'b' is not defined");
    expect_refused(f, "\n\n{{ 'a' + 1 }}",
                   "line 3 of the chat template: '+' takes two numbers, two texts or two lists");
    expect_refused(f, "{{ 1 // 0 }}", "a division by zero");
    expect_refused(f, "{{ raise_exception('no ' + messages[0].role) }}", "the template says 'no user'");
}

static void hostile_templates_end(void **state)
{
    fixture *f = *state;
    expect_refused(f, "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
                   "too many steps");
    expect_refused(f, "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "too many steps");
    expect_refused(f, "{{ range(1000000000) }}", "a range is too long");
    char deep[2000] = {0};
    memset(deep, '(', sizeof deep - 1);
    memcpy(deep, "{{", 2);
    expect_refused(f, deep, "nested too deeply");
}

static remat_status render_once(remat_context *context, void *user)
{
    chat_template *template;
    const chat_values values = {"<s>", "</s>", true};
    const char *text;
    size_t length;
    remat_status status = chat_template_compile(context, user, "name", &template);
    FLOW(status, chat_template_render(template, hello, 2, &values, &text, &length));
    chat_template_destroy(template);
    return status;
}

static void failed_allocations_are_survived(void **state)
{
    (void)state;
    static char text[] =
        "{% for m in messages %}{{ m.role + m.content|tojson ~ loop.index }}{% endfor %}{{ 'a,b'.split(',') }}";
    expect_failures_survived("a chat template", render_once, text, 4, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(texts_are_those_of_jinja),
        FIXTURE_TEST(broken_templates_name_the_line),
        FIXTURE_TEST(hostile_templates_end),
        FIXTURE_TEST(failed_allocations_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
