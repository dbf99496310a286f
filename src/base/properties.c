#include "base/properties.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/names.h"
#include "base/nearest.h"
#include "base/number_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_LIST = 512 };

static remat_place place_of(const property *about)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = about->key;
    return place;
}

/* ---- what a property may be, for messages ---- */

static void write_range(char text[PROPERTY_ALLOWED_TEXT], const char *what, const property *about)
{
    if (about->max != 0)
        text_print(text, PROPERTY_ALLOWED_TEXT, "%s from %.15g to %.15g", what, about->min, about->max);
    else
        text_print(text, PROPERTY_ALLOWED_TEXT, "%s of at least %.15g", what, about->min);
}

static void write_choices(char text[PROPERTY_ALLOWED_TEXT], const property *about)
{
    size_t used = (size_t)snprintf(text, PROPERTY_ALLOWED_TEXT, "one of");
    for (size_t i = 0; about->choices[i] && used < PROPERTY_ALLOWED_TEXT; i++)
        used += (size_t)snprintf(text + used, PROPERTY_ALLOWED_TEXT - used, "%s %s", i ? "," : "", about->choices[i]);
}

const char *property_allowed(const property *about, char text[PROPERTY_ALLOWED_TEXT])
{
    const char *plain = "any text";
    text[0] = 0;
    switch (about->kind) {
    case PROPERTY_COUNT: write_range(text, "a whole number", about); return text;
    case PROPERTY_NUMBER: write_range(text, "a number", about); return text;
    case PROPERTY_NUMBERS: write_range(text, "a list of up to 1000 numbers with commas between,", about); return text;
    case PROPERTY_CHOICE: write_choices(text, about); return text;
    case PROPERTY_PAIR: write_range(text, "one whole number, or two with a comma between,", about); return text;
    case PROPERTY_FLAG: plain = "true or false"; break;
    case PROPERTY_DIMS: plain = "a shape: w, h:w or c:h:w"; break;
    case PROPERTY_TEXT: break;
    }
    snprintf(text, PROPERTY_ALLOWED_TEXT, "%s", plain);
    return text;
}

static const char *skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

/* Whether a text is whole numbers as the property takes them, but one of them is too large. */
static bool is_too_large(const property *about, const char *text)
{
    const size_t most = about->kind == PROPERTY_COUNT ? 1 : about->kind == PROPERTY_PAIR ? 2 : 3;
    const char separator = about->kind == PROPERTY_DIMS ? ':' : ',';
    bool over = false;
    if (about->kind != PROPERTY_COUNT && about->kind != PROPERTY_PAIR && about->kind != PROPERTY_DIMS)
        return false;
    for (size_t i = 0; i < most; i++) {
        const char *digit = skip_blanks(text);
        double value = 0;
        if (*digit < '0' || *digit > '9')
            return false;
        for (; *digit >= '0' && *digit <= '9'; digit++)
            value = 10 * value + (*digit - '0');
        over |= value >= 0x1p63 || (about->max != 0 && value > about->max);
        text = skip_blanks(digit);
        if (!*text)
            return over;
        if (*text++ != separator)
            return false;
    }
    return false;
}

static remat_status fail_text(remat_context *context, const property *about, const char *text)
{
    remat_place place = place_of(about);
    char allowed[PROPERTY_ALLOWED_TEXT];
    if (is_too_large(about, text) && about->max != 0)
        return remat_fail(context, REMAT_INVALID, &place, "'%.60s' is too large; %.15g is the most", text, about->max);
    if (is_too_large(about, text))
        return remat_fail(context, REMAT_INVALID, &place, "'%.60s' is too large; it must be below 2^63", text);
    switch (about->kind) {
    case PROPERTY_COUNT:
    case PROPERTY_NUMBER:
    case PROPERTY_NUMBERS:
    case PROPERTY_CHOICE: break;
    case PROPERTY_FLAG: return remat_fail(context, REMAT_INVALID, &place, "'%.60s' is neither true nor false", text);
    case PROPERTY_PAIR:
        write_range(allowed, "", about);
        return remat_fail(context, REMAT_INVALID, &place,
                          "'%.60s' is neither one whole number nor two with a comma between%s, such as 3 or 3,5", text,
                          allowed);
    case PROPERTY_DIMS:
        return remat_fail(
            context, REMAT_INVALID, &place,
            "'%.60s' is not a shape; write w, h:w or c:h:w in whole numbers of at least 1, such as 3:32:32", text);
    case PROPERTY_TEXT: return remat_fail(context, REMAT_INVALID, &place, "'%.60s' does not fit", text);
    }
    return remat_fail(context, REMAT_INVALID, &place, "'%.60s' is not %s", text, property_allowed(about, allowed));
}

/* ---- reading ---- */

/* Digits with blanks around, moving *at behind them. */
static bool read_count(const char **at, uint64_t *count)
{
    const char *digit = skip_blanks(*at);
    if (*digit < '0' || *digit > '9')
        return false;
    for (*count = 0; *digit >= '0' && *digit <= '9'; digit++)
        if (!remat_multiply(*count, 10, count) || !remat_add(count, (uint64_t)(*digit - '0')))
            return false;
    *at = skip_blanks(digit);
    return true;
}

/* Up to `most` counts with `separator` between; how many there were, or 0 where the text is something else. */
static size_t read_counts(const char *text, char separator, size_t most, uint64_t *counts)
{
    for (size_t i = 0; i < most; i++) {
        if (!read_count(&text, &counts[i]))
            return 0;
        if (!*text)
            return i + 1;
        if (*text++ != separator)
            return 0;
    }
    return 0;
}

static bool read_number(const char *text, double *number)
{
    const char *end;
    return number_parse(skip_blanks(text), &end, number) && !*skip_blanks(end);
}

static bool read_flag(const char *text, bool *flag)
{
    *flag = names_equal(text, "true");
    return *flag || names_equal(text, "false");
}

bool property_read_choice(const char *text, const char *const *choices, uint32_t *choice)
{
    for (*choice = 0; choices[*choice]; ++*choice)
        if (names_equal(text, choices[*choice]))
            return true;
    return false;
}

static bool in_range(const property *about, double value)
{
    return value >= about->min && (about->max == 0 || value <= about->max);
}

size_t property_read_counts(const char *text, size_t most, uint64_t *counts)
{
    return read_counts(text, ',', most, counts);
}

static bool read_pair(const char *text, uint64_t pair[2])
{
    size_t count = read_counts(text, ',', 2, pair);
    if (count == 1)
        pair[1] = pair[0];
    return count > 0;
}

static bool read_dims(const char *text, uint64_t dims[3])
{
    uint64_t read[3];
    size_t count = read_counts(text, ':', 3, read);
    for (size_t i = 0; i < 3; i++)
        dims[i] = i + count >= 3 ? read[i + count - 3] : 1;
    return count > 0 && dims[0] > 0 && dims[1] > 0 && dims[2] > 0;
}

/* An empty text is an empty list. */
static bool read_numbers(const property *about, const char *text, property_numbers *numbers)
{
    const char *at = skip_blanks(text);
    for (numbers->count = 0; *at || numbers->count > 0; at = skip_blanks(at + 1)) {
        double *value = &numbers->values[numbers->count];
        if (numbers->count++ == PROPERTY_MOST_NUMBERS || !number_parse(at, &at, value) || !in_range(about, *value))
            return false;
        at = skip_blanks(at);
        if (*at != ',')
            return !*at;
    }
    return true;
}

static bool set_field(const property *about, void *field, const char *text)
{
    switch (about->kind) {
    case PROPERTY_COUNT: {
        uint64_t *count = field;
        return read_counts(text, 0, 1, count) && in_range(about, (double)*count);
    }
    case PROPERTY_NUMBER: return read_number(text, field) && in_range(about, *(double *)field);
    case PROPERTY_FLAG: return read_flag(text, field);
    case PROPERTY_CHOICE: return property_read_choice(text, about->choices, field);
    case PROPERTY_PAIR: {
        uint64_t *pair = field;
        return read_pair(text, pair) && in_range(about, (double)pair[0]) && in_range(about, (double)pair[1]);
    }
    case PROPERTY_DIMS: return read_dims(text, field);
    case PROPERTY_NUMBERS: return read_numbers(about, text, field);
    case PROPERTY_TEXT: *(const char **)field = *text ? text : NULL; return true;
    }
    return false;
}

static remat_status set(remat_context *context, const property *about, void *fields, const char *text)
{
    if (!set_field(about, (char *)fields + about->offset, text))
        return fail_text(context, about, text);
    return REMAT_OK;
}

/* ---- tables ---- */

const property *property_find(const property *table, const char *key)
{
    for (; table && table->key; table++)
        if (names_equal(table->key, key))
            return table;
    return NULL;
}

remat_status properties_init(remat_context *context, const property *table, void *fields)
{
    for (; table && table->key; table++)
        if (table->default_text)
            REMAT_TRY(set(context, table, fields, table->default_text));
    return REMAT_OK;
}

static remat_status fail_unknown(remat_context *context, const char *owner, const property *table, const char *key)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = key;
    if (!table || !table->key)
        return remat_fail(context, REMAT_INVALID, &place, "%s has no properties", owner);
    char keys[LONGEST_LIST] = "";
    size_t used = 0, least = name_distance_limit(key) + 1;
    const char *nearest = NULL;
    for (; table->key; table++) {
        size_t distance = name_distance(table->key, key, least);
        nearest = distance < least ? table->key : nearest;
        least = distance < least ? distance : least;
        if (used < sizeof keys)
            used += (size_t)snprintf(keys + used, sizeof keys - used, "%s%s", used ? ", " : "", table->key);
    }
    if (nearest)
        return remat_fail(context, REMAT_INVALID, &place, "%s has no such property; did you mean %s? It has %s", owner,
                          nearest, keys);
    return remat_fail(context, REMAT_INVALID, &place, "%s has no such property; it has %s", owner, keys);
}

remat_status property_set(remat_context *context, const char *owner, const property *table, void *fields,
                          const char *key, const char *text)
{
    const property *about = property_find(table, key);
    return about ? set(context, about, fields, text) : fail_unknown(context, owner, table, key);
}

const char *property_print(const property *about, const void *fields, char text[PROPERTY_VALUE_TEXT])
{
    const char *field = (const char *)fields + about->offset;
    text[0] = 0;
    switch (about->kind) {
    case PROPERTY_COUNT: snprintf(text, PROPERTY_VALUE_TEXT, "%" PRIu64, *(const uint64_t *)(const void *)field); break;
    case PROPERTY_NUMBER: number_print(*(const double *)(const void *)field, text); break;
    case PROPERTY_FLAG: snprintf(text, PROPERTY_VALUE_TEXT, *(const bool *)field ? "true" : "false"); break;
    case PROPERTY_CHOICE:
        snprintf(text, PROPERTY_VALUE_TEXT, "%s", about->choices[*(const uint32_t *)(const void *)field]);
        break;
    case PROPERTY_PAIR:
    case PROPERTY_DIMS:
    case PROPERTY_NUMBERS:
    case PROPERTY_TEXT: break;
    }
    return text;
}
