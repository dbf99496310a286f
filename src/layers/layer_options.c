/* Properties: from text to the fields of a type's options. */
#include "layers/layer_options.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/names.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_LIST = 512 };

static remat_place place_of(const layer_property *property)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = property->key;
    return place;
}

/* ---- what a property may be, for messages ---- */

static void write_range(char text[LAYER_ALLOWED_TEXT], const char *what, const layer_property *property)
{
    if (property->max != 0)
        snprintf(text, LAYER_ALLOWED_TEXT, "%s from %.15g to %.15g", what, property->min, property->max);
    else
        snprintf(text, LAYER_ALLOWED_TEXT, "%s of at least %.15g", what, property->min);
}

static void write_choices(char text[LAYER_ALLOWED_TEXT], const layer_property *property)
{
    size_t used = (size_t)snprintf(text, LAYER_ALLOWED_TEXT, "one of");
    for (size_t i = 0; property->choices[i] && used < LAYER_ALLOWED_TEXT; i++)
        used += (size_t)snprintf(text + used, LAYER_ALLOWED_TEXT - used, "%s %s", i ? "," : "", property->choices[i]);
}

const char *layer_property_allowed(const layer_property *property, char text[LAYER_ALLOWED_TEXT])
{
    const char *plain = "any text";
    text[0] = 0;
    switch (property->kind) {
    case LAYER_COUNT: write_range(text, "a whole number", property); return text;
    case LAYER_NUMBER: write_range(text, "a number", property); return text;
    case LAYER_CHOICE: write_choices(text, property); return text;
    case LAYER_PAIR: write_range(text, "one whole number, or two with a comma between,", property); return text;
    case LAYER_FLAG: plain = "true or false"; break;
    case LAYER_DIMS: plain = "a shape: w, h:w or c:h:w"; break;
    case LAYER_TEXT: break;
    }
    snprintf(text, LAYER_ALLOWED_TEXT, "%s", plain);
    return text;
}

static remat_status fail_text(remat_context *context, const layer_property *property, const char *text)
{
    remat_place place = place_of(property);
    char allowed[LAYER_ALLOWED_TEXT];
    switch (property->kind) {
    case LAYER_COUNT:
    case LAYER_NUMBER:
    case LAYER_CHOICE: break;
    case LAYER_FLAG: return remat_fail(context, REMAT_INVALID, &place, "'%.60s' is neither true nor false", text);
    case LAYER_PAIR:
        write_range(allowed, "", property);
        return remat_fail(context, REMAT_INVALID, &place,
                          "'%.60s' is neither one whole number nor two with a comma between%s, such as 3 or 3,5", text,
                          allowed);
    case LAYER_DIMS:
        return remat_fail(
            context, REMAT_INVALID, &place,
            "'%.60s' is not a shape; write w, h:w or c:h:w in whole numbers of at least 1, such as 3:32:32", text);
    case LAYER_TEXT: return remat_fail(context, REMAT_INVALID, &place, "'%.60s' does not fit", text);
    }
    return remat_fail(context, REMAT_INVALID, &place, "'%.60s' is not %s", text,
                      layer_property_allowed(property, allowed));
}

/* ---- reading ---- */

static const char *skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

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

/* strtod that always reads a point, whatever locale the program has set, and decimal numbers only. */
static bool read_number(const char *text, double *number)
{
    text = skip_blanks(text);
    if (!*text || text[strspn(text, "0123456789.eE+- \t")])
        return false;
    char *end;
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0) {
        *number = strtod(text, &end);
    } else {
        *number = strtod_l(text, &end, plain);
        freelocale(plain);
    }
    return end != text && !*skip_blanks(end) && isfinite(*number);
}

void layer_number_write(const char *key, double number, char *text, size_t size)
{
    snprintf(text, size, "%s=%.17g", key, number);
    char *comma = strchr(text, ',');
    if (comma)
        *comma = '.';
}

static bool read_flag(const char *text, bool *flag)
{
    *flag = layer_names_equal(text, "true");
    return *flag || layer_names_equal(text, "false");
}

static bool read_choice(const char *text, const char *const *choices, uint32_t *choice)
{
    for (*choice = 0; choices[*choice]; ++*choice)
        if (layer_names_equal(text, choices[*choice]))
            return true;
    return false;
}

static bool in_range(const layer_property *property, double value)
{
    return value >= property->min && (property->max == 0 || value <= property->max);
}

bool layer_pair_read(const char *text, uint64_t pair[2])
{
    size_t count = read_counts(text, ',', 2, pair);
    if (count == 1)
        pair[1] = pair[0];
    return count > 0;
}

static bool read_dims(const char *text, layer_shape *shape)
{
    uint64_t dims[3];
    size_t count = read_counts(text, ':', 3, dims);
    if (count == 0)
        return false;
    shape->w = dims[count - 1];
    shape->h = count > 1 ? dims[count - 2] : 1;
    shape->c = count > 2 ? dims[0] : 1;
    return shape->c > 0 && shape->h > 0 && shape->w > 0;
}

static bool set_field(const layer_property *property, void *field, const char *text)
{
    switch (property->kind) {
    case LAYER_COUNT: {
        uint64_t *count = field;
        return read_counts(text, 0, 1, count) && in_range(property, (double)*count);
    }
    case LAYER_NUMBER: return read_number(text, field) && in_range(property, *(double *)field);
    case LAYER_FLAG: return read_flag(text, field);
    case LAYER_CHOICE: return read_choice(text, property->choices, field);
    case LAYER_PAIR: {
        uint64_t *pair = field;
        return layer_pair_read(text, pair) && in_range(property, (double)pair[0]) &&
               in_range(property, (double)pair[1]);
    }
    case LAYER_DIMS: return read_dims(text, field);
    case LAYER_TEXT: *(const char **)field = *text ? text : NULL; return true;
    }
    return false;
}

static remat_status set_property(remat_context *context, const layer_property *property, void *options,
                                 const char *text)
{
    if (!set_field(property, (char *)options + property->offset, text))
        return fail_text(context, property, text);
    return REMAT_OK;
}

/* ---- a type's properties ---- */

static const layer_property *find_property(const layer_type *type, const char *key)
{
    for (const layer_property *property = type->properties; property && property->key; property++)
        if (layer_names_equal(property->key, key))
            return property;
    return NULL;
}

remat_status layer_options_init(remat_context *context, const layer_type *type, void *options)
{
    for (const layer_property *property = type->properties; property && property->key; property++)
        if (property->standard)
            REMAT_TRY(set_property(context, property, options, property->standard));
    return REMAT_OK;
}

remat_status layer_options_set(remat_context *context, const layer_type *type, void *options, const char *key,
                               const char *text)
{
    const layer_property *property = find_property(type, key);
    if (property)
        return set_property(context, property, options, text);
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = key;
    if (!type->properties || !type->properties->key)
        return remat_fail(context, REMAT_INVALID, &place, "%s has no properties", type->name);
    char keys[LONGEST_LIST] = "";
    size_t used = 0;
    for (property = type->properties; property->key && used < sizeof keys; property++)
        used += (size_t)snprintf(keys + used, sizeof keys - used, "%s%s", used ? ", " : "", property->key);
    return remat_fail(context, REMAT_INVALID, &place, "%s has no such property; it has %s", type->name, keys);
}

const char *layer_options_missing(const layer_type *type, const char *const *keys_set, size_t count)
{
    for (const layer_property *property = type->properties; property && property->key; property++) {
        bool said = property->standard != NULL;
        for (size_t i = 0; i < count && !said; i++)
            said = layer_names_equal(keys_set[i], property->key);
        if (!said)
            return property->key;
    }
    return NULL;
}
