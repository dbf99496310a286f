#include "support/damaged_text.h"

#include <stdlib.h>

static bool is_refused(fixture *f, const char *text, text_reader read, void *user, const char *part)
{
    remat_status status = read(f->context, text, user);
    if (status == REMAT_OK)
        return false;
    if (status != REMAT_BAD_INPUT)
        fail_msg("status %d, '%s', of '%s'", status, remat_context_message(f->context), text);
    if (!strstr(remat_context_message(f->context), part))
        fail_msg("the message '%s' has no '%s', of '%s'", remat_context_message(f->context), part, text);
    return true;
}

unsigned expect_beginnings_judged(fixture *f, const char *text, text_reader read, void *user, const char *part)
{
    unsigned refused = 0;
    for (size_t length = strlen(text); length-- > 0;) {
        char *beginning = strndup(text, length);
        refused += is_refused(f, beginning, read, user, part);
        free(beginning);
    }
    return refused;
}

/* The end of the value that begins here: of a string, of an object or list, of a number or word. */
static const char *end_of_value(const char *at)
{
    unsigned depth = 0;
    do {
        if (*at == '"') {
            for (at++; *at != '"'; at++)
                at += *at == '\\';
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']') {
            depth--;
        } else if (depth == 0) {
            return at + strcspn(at, ",]} \n");
        }
        at++;
    } while (depth > 0);
    return at;
}

unsigned expect_other_values_judged(fixture *f, const char *json, text_reader read, void *user, const char *part)
{
    static const char *const others[] = {"null", "true", "-1",    "7",      "99999999999", "1.5", "\"x\"",
                                         "\"\"", "[]",   "[[1]]", "[\"\"]", "[{}, 1]",     "{}",  "{\"\": 1}"};
    unsigned refused = 0;
    for (const char *at = json; *at; at++) {
        if (!strchr(":[,{", *at))
            continue;
        const char *begin = at + 1 + strspn(at + 1, " \n");
        if (strchr("]}", *begin))
            continue;
        const char *end = end_of_value(begin);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            char *text = malloc(strlen(json) + 20);
            sprintf(text, "%.*s%s%s", (int)(begin - json), json, others[i], end);
            refused += is_refused(f, text, read, user, part);
            free(text);
        }
        if (*begin == '"')
            at = end - 1; /* signs inside a string are none */
    }
    return refused;
}
