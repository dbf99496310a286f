/* Filters, tests and methods. */
#include "data/tokenizer/jinja.h"

#include <stdio.h>
#include <string.h>

/* ---- strings ---- */

/* Takes characters of a set from the ends of a text. */
static jinja_value strip(const jinja_value *text, const jinja_value *set, bool left, bool right)
{
    const char *among = set && set->kind == VALUE_STRING ? set->text : " \t\r\n\v\f";
    size_t begin = 0, end = text->length;
    while (left && begin < end && text->text[begin] && strchr(among, text->text[begin]))
        begin++;
    while (right && end > begin && text->text[end - 1] && strchr(among, text->text[end - 1]))
        end--;
    return jinja_string(text->text + begin, end - begin);
}

static remat_status stripped(jinja_run *run, const jinja_value *text, const jinja_value *set, bool left, bool right,
                             jinja_value *result)
{
    jinja_value part = strip(text, set, left, right);
    return jinja_copy(run, part.text, part.length, result);
}

static char upper(char letter)
{
    return letter >= 'a' && letter <= 'z' ? (char)(letter - 'a' + 'A') : letter;
}

static char lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

/* 'u' upper, 'l' lower, 'c' the first letter upper, 't' that of every word; ASCII letters only. */
static remat_status change_case(jinja_run *run, const jinja_value *text, char how, jinja_value *result)
{
    char *copy = text_pool_part(run->pool, text->text, text->length);
    if (!copy)
        return REMAT_NO_MEMORY;
    bool is_first = true;
    for (size_t i = 0; i < text->length; i++) {
        bool up = how == 'u' || (how != 'l' && is_first);
        copy[i] = up ? upper(copy[i]) : lower(copy[i]);
        is_first = how == 't' && strchr(" \t\n-_", copy[i]) != NULL;
    }
    *result = jinja_string(copy, text->length);
    return REMAT_OK;
}

static remat_status replace(jinja_run *run, const jinja_value *text, const jinja_value *from, const jinja_value *to,
                            jinja_value *result)
{
    if (from->kind != VALUE_STRING || to->kind != VALUE_STRING || from->length == 0)
        return jinja_fail(run, "replace takes two texts", "");
    size_t count = 0;
    for (const char *at = text->text; (at = strstr(at, from->text)); at += from->length)
        count++;
    size_t length = text->length - count * from->length + count * to->length, put = 0;
    char *made = text_pool_take(run->pool, length + 1, 1);
    if (!made)
        return REMAT_NO_MEMORY;
    const char *at = text->text;
    for (const char *found; (found = strstr(at, from->text)); at = found + from->length) {
        memcpy(made + put, at, (size_t)(found - at));
        put += (size_t)(found - at);
        memcpy(made + put, to->text, to->length);
        put += to->length;
    }
    memcpy(made + put, at, length - put);
    *result = jinja_string(made, length);
    return REMAT_OK;
}

static remat_status split(jinja_run *run, const jinja_value *text, const jinja_value *by, int64_t most,
                          jinja_value *result)
{
    REMAT_TRY(jinja_list_make(run, VALUE_LIST, result));
    const char *at = text->text, *end = text->text + text->length;
    bool blanks = !by || by->kind != VALUE_STRING || by->length == 0;
    while (at <= end) {
        if (blanks)
            at += strspn(at, " \t\r\n");
        if (blanks && at >= end)
            return REMAT_OK;
        const char *next = most == 0 ? NULL : blanks ? strpbrk(at, " \t\r\n") : strstr(at, by->text);
        jinja_value part;
        REMAT_TRY(jinja_copy(run, at, (size_t)((next ? next : end) - at), &part));
        REMAT_TRY(jinja_list_add(run, result, part));
        if (!next)
            return REMAT_OK;
        most--;
        at = next + (blanks ? 1 : by->length);
    }
    return REMAT_OK;
}

static bool has_end(const jinja_value *text, const jinja_value *part, bool at_start)
{
    if (part->kind != VALUE_STRING || part->length > text->length)
        return false;
    return memcmp(at_start ? text->text : text->text + text->length - part->length, part->text, part->length) == 0;
}

/* ---- dictionaries ---- */

/* keys, values, or items as lists of two. */
static remat_status list_of(jinja_run *run, const jinja_value *dictionary, char what, jinja_value *result)
{
    REMAT_TRY(jinja_list_make(run, VALUE_LIST, result));
    for (size_t i = 0; i < dictionary->list->count; i++) {
        jinja_value pair = what == 'k' ? dictionary->list->keys[i] : dictionary->list->items[i];
        if (what == 'i') {
            REMAT_TRY(jinja_list_make(run, VALUE_LIST, &pair));
            REMAT_TRY(jinja_list_add(run, &pair, dictionary->list->keys[i]));
            REMAT_TRY(jinja_list_add(run, &pair, dictionary->list->items[i]));
        }
        REMAT_TRY(jinja_list_add(run, result, pair));
    }
    return REMAT_OK;
}

remat_status jinja_method(jinja_run *run, const jinja_value *self, const char *name, const jinja_value *arguments,
                          size_t count, jinja_value *result)
{
    static const jinja_value none = {.kind = VALUE_NONE};
    const jinja_value *first = count > 0 ? &arguments[0] : &none, *second = count > 1 ? &arguments[1] : &none;
    if (self->kind == VALUE_STRING) {
        if (strcmp(name, "strip") == 0)
            return stripped(run, self, first, true, true, result);
        if (strcmp(name, "lstrip") == 0)
            return stripped(run, self, first, true, false, result);
        if (strcmp(name, "rstrip") == 0)
            return stripped(run, self, first, false, true, result);
        if (strcmp(name, "split") == 0)
            return split(run, self, first, second->kind == VALUE_INTEGER ? second->integer : -1, result);
        if (strcmp(name, "replace") == 0)
            return replace(run, self, first, second, result);
        *result = jinja_boolean(has_end(self, first, name[0] == 's'));
        if (strcmp(name, "startswith") == 0 || strcmp(name, "endswith") == 0)
            return REMAT_OK;
        if (strcmp(name, "upper") == 0 || strcmp(name, "lower") == 0 || strcmp(name, "capitalize") == 0 ||
            strcmp(name, "title") == 0)
            return change_case(run, self, name[0], result);
    }
    if (self->kind == VALUE_DICTIONARY) {
        if (strcmp(name, "items") == 0 || strcmp(name, "keys") == 0 || strcmp(name, "values") == 0)
            return list_of(run, self, name[0], result);
        if (strcmp(name, "get") == 0) {
            if (first->kind != VALUE_STRING || !jinja_find_key(self, first->text, result))
                *result = *second;
            return REMAT_OK;
        }
    }
    if (self->kind == VALUE_LIST && strcmp(name, "append") == 0) {
        jinja_value same = *self;
        *result = none;
        return jinja_list_add(run, &same, *first);
    }
    return jinja_fail(run, "the method %s is not supported", name);
}

/* ---- tests ---- */

remat_status jinja_test(jinja_run *run, const char *name, const jinja_value *of, const jinja_value *arguments,
                        size_t count, bool *result)
{
    static const jinja_value none = {.kind = VALUE_NONE};
    const jinja_value *first = count ? &arguments[0] : &none;
    const struct {
        const char *name;
        bool is_so;
    } tests[] = {
        {"defined", of->kind != VALUE_UNDEFINED},
        {"undefined", of->kind == VALUE_UNDEFINED},
        {"none", of->kind == VALUE_NONE},
        {"string", of->kind == VALUE_STRING},
        {"number", of->kind == VALUE_INTEGER || of->kind == VALUE_BOOLEAN},
        {"integer", of->kind == VALUE_INTEGER},
        {"boolean", of->kind == VALUE_BOOLEAN},
        {"true", of->kind == VALUE_BOOLEAN && of->integer},
        {"false", of->kind == VALUE_BOOLEAN && !of->integer},
        {"mapping", of->kind == VALUE_DICTIONARY},
        {"iterable", of->kind == VALUE_LIST || of->kind == VALUE_DICTIONARY || of->kind == VALUE_STRING},
        {"sequence", of->kind == VALUE_LIST || of->kind == VALUE_DICTIONARY || of->kind == VALUE_STRING},
        {"equalto", jinja_equal(of, first)},
        {"eq", jinja_equal(of, first)},
        {"==", jinja_equal(of, first)},
        {"ne", !jinja_equal(of, first)},
        {"in", jinja_contains(first, of)},
        {"odd", of->kind == VALUE_INTEGER && of->integer % 2 != 0},
        {"even", of->kind == VALUE_INTEGER && of->integer % 2 == 0},
    };
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        if (strcmp(name, tests[i].name) == 0) {
            *result = tests[i].is_so;
            return REMAT_OK;
        }
    return jinja_fail(run, "the test %s is not supported", name);
}

/* ---- filters ---- */

/* Those items of a list whose attribute is true, or passes a test. */
static remat_status select_items(jinja_run *run, const jinja_value *of, const jinja_value *arguments, size_t count,
                                 bool wanted, jinja_value *result)
{
    if (of->kind != VALUE_LIST || count == 0 || arguments[0].kind != VALUE_STRING)
        return jinja_fail(run, "selectattr takes a list and the name of an attribute", "");
    REMAT_TRY(jinja_list_make(run, VALUE_LIST, result));
    for (size_t i = 0; i < of->list->count; i++) {
        jinja_value item = of->list->items[i], value = {.kind = VALUE_UNDEFINED};
        if (item.kind == VALUE_DICTIONARY)
            jinja_find_key(&item, arguments[0].text, &value);
        bool passes = jinja_is_true(&value);
        if (count > 1 && arguments[1].kind == VALUE_STRING)
            REMAT_TRY(jinja_test(run, arguments[1].text, &value, arguments + 2, count - 2, &passes));
        if (passes == wanted)
            REMAT_TRY(jinja_list_add(run, result, item));
    }
    return REMAT_OK;
}

static remat_status join(jinja_run *run, const jinja_value *of, const jinja_value *by, jinja_value *result)
{
    *result = jinja_string("", 0);
    for (size_t i = 0; i < of->list->count; i++) {
        jinja_value item;
        REMAT_TRY(jinja_text(run, &of->list->items[i], &item));
        bool between = i > 0 && by && by->kind == VALUE_STRING;
        const char *pieces[] = {result->text, between ? by->text : "", item.text, NULL};
        const char *joined = text_pool_join(run->pool, pieces);
        if (!joined)
            return REMAT_NO_MEMORY;
        *result = jinja_string(joined, strlen(joined));
    }
    return REMAT_OK;
}

static size_t characters(const jinja_value *text)
{
    size_t count = 0;
    for (size_t i = 0; i < text->length; i++)
        count += (text->text[i] & 0xc0) != 0x80;
    return count;
}

static remat_status filter_list(jinja_run *run, const char *name, const jinja_value *of, const jinja_value *arguments,
                                size_t count, jinja_value *result)
{
    bool is_first = strcmp(name, "first") == 0;
    if (is_first || strcmp(name, "last") == 0) {
        *result = (jinja_value){.kind = VALUE_UNDEFINED};
        if (of->list->count)
            *result = of->list->items[is_first ? 0 : of->list->count - 1];
        return REMAT_OK;
    }
    if (strcmp(name, "join") == 0)
        return join(run, of, count ? arguments : NULL, result);
    if (strcmp(name, "selectattr") == 0 || strcmp(name, "rejectattr") == 0)
        return select_items(run, of, arguments, count, name[0] == 's', result);
    return jinja_fail(run, "the filter %s is not supported", name);
}

remat_status jinja_filter(jinja_run *run, const char *name, const jinja_value *of, const jinja_value *arguments,
                          size_t count, jinja_value *result)
{
    bool has_items = of->kind == VALUE_LIST || of->kind == VALUE_DICTIONARY;
    if (strcmp(name, "default") == 0 || strcmp(name, "d") == 0) {
        bool missing = of->kind == VALUE_UNDEFINED || (count > 1 && jinja_is_true(&arguments[1]) && !jinja_is_true(of));
        *result = missing && count ? arguments[0] : missing ? jinja_string("", 0) : *of;
        return REMAT_OK;
    }
    if (strcmp(name, "tojson") == 0)
        return count ? jinja_fail(run, "tojson with arguments is not supported", "") : jinja_json(run, of, result);
    if (strcmp(name, "string") == 0)
        return jinja_text(run, of, result);
    if (strcmp(name, "safe") == 0) {
        *result = *of;
        return REMAT_OK;
    }
    if (strcmp(name, "length") == 0 || strcmp(name, "count") == 0) {
        if (!has_items && of->kind != VALUE_STRING && of->kind != VALUE_UNDEFINED)
            return jinja_fail(run, "this has no length", "");
        *result = jinja_integer(has_items                  ? (int64_t)of->list->count
                                : of->kind == VALUE_STRING ? (int64_t)characters(of)
                                                           : 0);
        return REMAT_OK;
    }
    if (strcmp(name, "list") == 0 && has_items) {
        if (of->kind == VALUE_DICTIONARY)
            return list_of(run, of, 'k', result);
        *result = *of;
        return REMAT_OK;
    }
    if (of->kind == VALUE_LIST)
        return filter_list(run, name, of, arguments, count, result);
    if (strcmp(name, "trim") == 0) {
        jinja_value text;
        REMAT_TRY(jinja_text(run, of, &text));
        return stripped(run, &text, NULL, true, true, result);
    }
    if (of->kind == VALUE_DICTIONARY && strcmp(name, "items") == 0)
        return list_of(run, of, 'i', result);
    static const char *const same[] = {"upper", "lower", "capitalize", "title", "replace"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        if (of->kind == VALUE_STRING && strcmp(name, same[i]) == 0)
            return jinja_method(run, of, name, arguments, count, result);
    return jinja_fail(run, "the filter %s is not supported here", name);
}
