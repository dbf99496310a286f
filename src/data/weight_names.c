#include "data/weight_names.h"

#include "base/alloc.h"
#include "base/input.h"
#include "base/text_pool.h"

#include <string.h>

typedef struct name_rule {
    const char *ours, *theirs;
    bool transposed;
} name_rule;

struct weight_names {
    remat_context *context;
    text_pool pool;
    name_rule *rules;
    size_t count, capacity;
};

enum { LINE = 2 * WEIGHT_NAME_TEXT };

/* ---- reading ---- */

static char *trim(char *text)
{
    text += strspn(text, " \t\r\n");
    for (size_t length = strlen(text); length && strchr(" \t\r\n", text[length - 1]);)
        text[--length] = '\0';
    return text;
}

static remat_status add_rule(weight_names *names, char *line, const remat_place *place)
{
    char *comment = strchr(line, '#');
    if (comment)
        *comment = '\0';
    line = trim(line);
    if (!*line)
        return REMAT_OK;
    char *equals = strchr(line, '=');
    if (!equals)
        return remat_fail(names->context, REMAT_BAD_INPUT, place,
                          "'%.80s' is no rule; a rule is OUR_NAME = THEIR_NAME, and '#' begins a comment", line);
    *equals = '\0';
    char *ours = trim(line), *theirs = trim(equals + 1), *word = theirs + strcspn(theirs, " \t");
    bool transposed = false;
    if (*word) {
        transposed = strcmp(trim(word), "transposed") == 0;
        if (!transposed)
            return remat_fail(names->context, REMAT_BAD_INPUT, place,
                              "'%.80s' is behind the name; only 'transposed' may be there", trim(word));
        *word = '\0';
    }
    if (!*ours || !*theirs || strpbrk(ours, " \t"))
        return remat_fail(names->context, REMAT_BAD_INPUT, place, "a name is missing, or has a blank in it");
    const bool any = strcmp(ours, "*") == 0;
    if (strchr(any ? "" : ours, '*') || any != (strchr(theirs, '*') != NULL))
        return remat_fail(names->context, REMAT_BAD_INPUT, place, "'*' stands alone, for every name: * = model.*");
    REMAT_TRY(
        remat_grow(names->context, (void **)&names->rules, &names->capacity, names->count + 1, sizeof *names->rules));
    name_rule *rule = &names->rules[names->count];
    *rule = (name_rule){text_pool_text(&names->pool, ours), text_pool_text(&names->pool, theirs), transposed};
    if (!rule->ours || !rule->theirs)
        return REMAT_NO_MEMORY;
    names->count++;
    return REMAT_OK;
}

static remat_status read_lines(weight_names *names, FILE *stream, const char *path)
{
    char line[LINE];
    remat_place place = REMAT_PLACE_NOWHERE;
    uint64_t bytes = 0;
    place.file = path;
    for (place.line = 1; fgets(line, sizeof line, stream); place.line++) {
        REMAT_TRY(input_check_length(names->context, path, bytes += strlen(line)));
        if (strlen(line) == sizeof line - 1 && line[sizeof line - 2] != '\n')
            return remat_fail(names->context, REMAT_BAD_INPUT, &place, "the line is longer than %d bytes", LINE - 1);
        REMAT_TRY(add_rule(names, line, &place));
    }
    place.line = REMAT_NOWHERE;
    return ferror(stream) ? remat_fail(names->context, REMAT_IO, &place, "reading failed") : REMAT_OK;
}

remat_status weight_names_read(remat_context *context, FILE *stream, const char *path, weight_names **names)
{
    *names = NULL;
    weight_names *made = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    text_pool_begin(&made->pool, context);
    remat_status status = read_lines(made, stream, path);
    if (status == REMAT_OK)
        *names = made;
    else
        weight_names_destroy(made);
    return status;
}

remat_status weight_names_load(remat_context *context, const char *path, weight_names **names)
{
    FILE *stream;
    *names = NULL;
    REMAT_TRY(input_open(context, path, &stream));
    remat_status status = weight_names_read(context, stream, path, names);
    fclose(stream);
    return status;
}

void weight_names_destroy(weight_names *names)
{
    if (!names)
        return;
    remat_context *context = names->context;
    remat_release(context, names->rules, names->capacity, sizeof *names->rules);
    text_pool_end(&names->pool);
    remat_release(context, names, 1, sizeof *names);
}

/* ---- looking up ---- */

/* Whether a name has the form of a pattern. The digits at its {i} are in *number, *length of them; NULL: it has none. */
static bool fits(const char *pattern, const char *name, const char **number, int *length)
{
    *number = NULL;
    for (; *pattern; pattern++, name++) {
        if (strncmp(pattern, "{i}", 3) == 0) {
            const int digits = (int)strspn(name, "0123456789");
            if (digits == 0 || (*number && (digits != *length || strncmp(name, *number, (size_t)digits) != 0)))
                return false;
            *number = name;
            *length = digits;
            pattern += 2;
            name += digits - 1;
        } else if (*pattern != *name)
            return false;
    }
    return *name == '\0';
}

/* Copies a text with `value` in place of every `mark`. */
static void replace(const char *text, const char *mark, const char *value, int length, char to[WEIGHT_NAME_TEXT])
{
    size_t used = 0;
    to[0] = '\0';
    while (*text && used < WEIGHT_NAME_TEXT) {
        const bool marked = strncmp(text, mark, strlen(mark)) == 0;
        used +=
            (size_t)snprintf(to + used, WEIGHT_NAME_TEXT - used, "%.*s", marked ? length : 1, marked ? value : text);
        text += marked ? strlen(mark) : 1;
    }
}

bool weight_names_find(const weight_names *names, const char *ours, char theirs[WEIGHT_NAME_TEXT], bool *transposed)
{
    for (size_t i = 0; names && i < names->count; i++) {
        const char *number;
        int length = 0;
        if (!fits(names->rules[i].ours, ours, &number, &length))
            continue;
        if (number)
            replace(names->rules[i].theirs, "{i}", number, length, theirs);
        else
            snprintf(theirs, WEIGHT_NAME_TEXT, "%s", names->rules[i].theirs);
        *transposed = names->rules[i].transposed;
        return true;
    }
    return false;
}

bool weight_names_find_any(const weight_names *names, const char *ours, char theirs[WEIGHT_NAME_TEXT])
{
    for (size_t i = 0; names && i < names->count; i++)
        if (strcmp(names->rules[i].ours, "*") == 0) {
            replace(names->rules[i].theirs, "*", ours, (int)strlen(ours), theirs);
            return true;
        }
    return false;
}
