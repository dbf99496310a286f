#include "data/tokenizer/jinja.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ITEMS = 1000000, DEEPEST = 50 };

remat_status jinja_fail(const jinja_run *run, const char *format, const char *what)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = run->template->name;
    char text[200];
    snprintf(text, sizeof text, "%.60s", what);
    if (strstr(format, "%s"))
        return remat_fail(run->context, REMAT_BAD_INPUT, &place, "line %llu of the chat template: %.*s'%s'%s",
                          (unsigned long long)run->line, (int)(strstr(format, "%s") - format), format, text,
                          strstr(format, "%s") + 2);
    return remat_fail(run->context, REMAT_BAD_INPUT, &place, "line %llu of the chat template: %s",
                      (unsigned long long)run->line, format);
}

/* ---- making ---- */

jinja_value jinja_string(const char *text, size_t length)
{
    return (jinja_value){.kind = VALUE_STRING, .text = text, .length = length};
}

jinja_value jinja_integer(int64_t integer)
{
    return (jinja_value){.kind = VALUE_INTEGER, .integer = integer};
}

jinja_value jinja_boolean(bool is_true)
{
    return (jinja_value){.kind = VALUE_BOOLEAN, .integer = is_true};
}

remat_status jinja_copy(jinja_run *run, const char *text, size_t length, jinja_value *value)
{
    const char *copy = text_pool_part(run->pool, text, length);
    if (!copy)
        return REMAT_NO_MEMORY;
    *value = jinja_string(copy, length);
    return REMAT_OK;
}

remat_status jinja_list_make(jinja_run *run, value_kind kind, jinja_value *value)
{
    jinja_list *list = text_pool_take(run->pool, 1, sizeof *list);
    if (!list)
        return REMAT_NO_MEMORY;
    *value = (jinja_value){.kind = kind, .list = list};
    return REMAT_OK;
}

static remat_status grow(jinja_run *run, jinja_list *list, bool keys)
{
    if (list->count < list->capacity)
        return REMAT_OK;
    size_t wanted = list->capacity ? 2 * list->capacity : 8;
    if (wanted > MOST_ITEMS)
        return jinja_fail(run, "a list is too long", "");
    jinja_value *items = text_pool_take(run->pool, wanted, sizeof *items);
    jinja_value *names = keys ? text_pool_take(run->pool, wanted, sizeof *names) : NULL;
    if (!items || (keys && !names))
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < list->count; i++) {
        items[i] = list->items[i];
        if (keys)
            names[i] = list->keys[i];
    }
    list->items = items;
    list->keys = names;
    list->capacity = wanted;
    return REMAT_OK;
}

remat_status jinja_list_add(jinja_run *run, jinja_value *list, jinja_value item)
{
    REMAT_TRY(grow(run, list->list, false));
    list->list->items[list->list->count++] = item;
    return REMAT_OK;
}

remat_status jinja_set_key(jinja_run *run, jinja_value *dictionary, jinja_value key, jinja_value item)
{
    jinja_list *list = dictionary->list;
    for (size_t i = 0; i < list->count; i++)
        if (jinja_equal(&list->keys[i], &key)) {
            list->items[i] = item;
            return REMAT_OK;
        }
    REMAT_TRY(grow(run, list, true));
    list->keys[list->count] = key;
    list->items[list->count++] = item;
    return REMAT_OK;
}

bool jinja_find_key(const jinja_value *dictionary, const char *key, jinja_value *item)
{
    const jinja_list *list = dictionary->list;
    for (size_t i = 0; i < list->count; i++)
        if (list->keys[i].kind == VALUE_STRING && strcmp(list->keys[i].text, key) == 0) {
            *item = list->items[i];
            return true;
        }
    return false;
}

/* ---- asking ---- */

bool jinja_is_true(const jinja_value *value)
{
    switch (value->kind) {
    case VALUE_UNDEFINED:
    case VALUE_NONE: return false;
    case VALUE_BOOLEAN:
    case VALUE_INTEGER: return value->integer != 0;
    case VALUE_STRING: return value->length > 0;
    case VALUE_LIST:
    case VALUE_DICTIONARY: return value->list->count > 0;
    default: return true;
    }
}

/* A dictionary may hold itself: the depth has a limit. */
static bool equal(const jinja_value *a, const jinja_value *b, unsigned depth)
{
    bool numbers = (a->kind == VALUE_BOOLEAN || a->kind == VALUE_INTEGER) &&
                   (b->kind == VALUE_BOOLEAN || b->kind == VALUE_INTEGER);
    if (numbers)
        return a->integer == b->integer;
    if (a->kind != b->kind)
        return false;
    if (a->kind == VALUE_STRING)
        return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
    if (a->kind != VALUE_LIST && a->kind != VALUE_DICTIONARY)
        return a->kind == VALUE_NONE || a->kind == VALUE_UNDEFINED;
    if (a->list == b->list || depth == DEEPEST)
        return a->list == b->list;
    bool same = a->list->count == b->list->count;
    for (size_t i = 0; same && i < a->list->count; i++)
        same = equal(&a->list->items[i], &b->list->items[i], depth + 1) &&
               (a->kind == VALUE_LIST || equal(&a->list->keys[i], &b->list->keys[i], depth + 1));
    return same;
}

bool jinja_equal(const jinja_value *a, const jinja_value *b)
{
    return equal(a, b, 0);
}

bool jinja_contains(const jinja_value *in, const jinja_value *item)
{
    if (in->kind == VALUE_STRING)
        return item->kind == VALUE_STRING && memmem(in->text, in->length, item->text, item->length);
    if (in->kind != VALUE_LIST && in->kind != VALUE_DICTIONARY)
        return false;
    const jinja_value *among = in->kind == VALUE_LIST ? in->list->items : in->list->keys;
    for (size_t i = 0; i < in->list->count; i++)
        if (jinja_equal(&among[i], item))
            return true;
    return false;
}

/* ---- writing ---- */

remat_status jinja_text(jinja_run *run, const jinja_value *value, jinja_value *text)
{
    char digits[24];
    switch (value->kind) {
    case VALUE_STRING: *text = *value; return REMAT_OK;
    case VALUE_UNDEFINED: *text = jinja_string("", 0); return REMAT_OK;
    case VALUE_NONE: *text = jinja_string("None", 4); return REMAT_OK;
    case VALUE_BOOLEAN: *text = value->integer ? jinja_string("True", 4) : jinja_string("False", 5); return REMAT_OK;
    case VALUE_INTEGER:
        snprintf(digits, sizeof digits, "%lld", (long long)value->integer);
        return jinja_copy(run, digits, strlen(digits), text);
    default: return jinja_json(run, value, text);
    }
}

/* A text that grows. */
typedef struct json_text {
    remat_context *context;
    char *bytes;
    size_t length, capacity;
} json_text;

static remat_status put(json_text *to, const char *text, size_t length)
{
    REMAT_TRY(remat_grow(to->context, (void **)&to->bytes, &to->capacity, to->length + length, 1));
    memcpy(to->bytes + to->length, text, length);
    to->length += length;
    return REMAT_OK;
}

static remat_status put_string(json_text *to, const jinja_value *value)
{
    REMAT_TRY(put(to, "\"", 1));
    for (size_t i = 0; i < value->length; i++) {
        static const char from[] = "\"\\\n\r\t\b\f", letters[] = "\"\\nrtbf";
        const char *known = value->text[i] ? strchr(from, value->text[i]) : NULL;
        char escaped[8] = {'\\', known ? letters[known - from] : 'u'};
        if ((unsigned char)value->text[i] < 0x20 && !known)
            snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned char)value->text[i]);
        if (known || (unsigned char)value->text[i] < 0x20)
            REMAT_TRY(put(to, escaped, strlen(escaped)));
        else
            REMAT_TRY(put(to, value->text + i, 1));
    }
    return put(to, "\"", 1);
}

/* JSON with escapes only where they are needed, as transformers writes it. */
static remat_status put_json(json_text *to, const jinja_value *value, unsigned depth)
{
    const jinja_list *list = value->list;
    bool is_list = value->kind == VALUE_LIST;
    char digits[24];
    switch (value->kind) {
    case VALUE_BOOLEAN: return value->integer ? put(to, "true", 4) : put(to, "false", 5);
    case VALUE_INTEGER:
        snprintf(digits, sizeof digits, "%lld", (long long)value->integer);
        return put(to, digits, strlen(digits));
    case VALUE_STRING: return put_string(to, value);
    case VALUE_LIST:
    case VALUE_DICTIONARY:
        REMAT_TRY(put(to, is_list ? "[" : "{", 1));
        for (size_t i = 0; i < list->count && depth < DEEPEST; i++) {
            REMAT_TRY(put(to, ", ", i ? 2 : 0));
            if (!is_list) {
                REMAT_TRY(put_json(to, &list->keys[i], depth + 1));
                REMAT_TRY(put(to, ": ", 2));
            }
            REMAT_TRY(put_json(to, &list->items[i], depth + 1));
        }
        return put(to, is_list ? "]" : "}", 1);
    default: return put(to, "null", 4);
    }
}

remat_status jinja_json(jinja_run *run, const jinja_value *value, jinja_value *text)
{
    json_text to = {.context = run->context};
    remat_status status = put_json(&to, value, 0);
    if (status == REMAT_OK)
        status = jinja_copy(run, to.bytes, to.length, text);
    remat_release(to.context, to.bytes, to.capacity, 1);
    return status;
}
