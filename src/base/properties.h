/* Properties: keys with values as text that become the fields of a struct. Layers, [Model], [Optimizer] and [Dataset] have a
 * table of them each, and this is the one place that reads them.
 *
 *     typedef struct dropout_options { double rate; } dropout_options;
 *     static const property properties[] = {
 *         {"rate", PROPERTY_NUMBER, offsetof(dropout_options, rate), "0.5", 0, 1, NULL, "the share of values that become 0"},
 *         {0},
 *     };
 */
#ifndef REMAT_BASE_PROPERTIES_H
#define REMAT_BASE_PROPERTIES_H

#include <stdbool.h>
#include <stddef.h>

#include <remat/context.h>

typedef enum property_kind {
    PROPERTY_COUNT,  /* uint64_t, min..max */
    PROPERTY_NUMBER, /* double, min..max */
    PROPERTY_FLAG,   /* bool: true, false */
    PROPERTY_CHOICE, /* uint32_t: position in choices */
    PROPERTY_PAIR,   /* uint64_t[2]: "3" or "3,5" */
    PROPERTY_DIMS,   /* uint64_t[3]: "w", "h:w" or "c:h:w"; missing leading ones are 1 */
    PROPERTY_TEXT,   /* const char *, the text itself: it must live as long as the struct; NULL where it is empty */
} property_kind;

typedef struct property {
    const char *key;
    property_kind kind;
    size_t offset;              /* of the field */
    const char *default_text;   /* the value where nothing is said; NULL: it must be said */
    double min, max;            /* max 0: no upper limit */
    const char *const *choices; /* ends with NULL */
    const char *help;
} property;

/* Fills the fields with their default values. The table ends with a key NULL; a table NULL is empty. */
remat_status properties_init(remat_context *context, const property *table, void *fields);

/* Sets one field from text. `owner` is who has the properties, for messages: "conv2d", "[Optimizer]". REMAT_INVALID names the
 * key and says what it may be or, for an unknown key, which keys there are. */
remat_status property_set(remat_context *context, const char *owner, const property *table, void *fields,
                          const char *key, const char *text);

/* The property of this key; NULL where there is none. */
const property *property_find(const property *table, const char *key);

/* "3" or "3,5" as two counts; false where the text is something else. */
bool property_read_pair(const char *text, uint64_t pair[2]);

/* The position of a text in a list of choices that ends with NULL; false where it is none of them. */
bool property_read_choice(const char *text, const char *const *choices, uint32_t *choice);

/* What a property may be, for messages and help: "a whole number from 1 to 64", "one of relu, gelu". Returns `text`. */
enum { PROPERTY_ALLOWED_TEXT = 512 };
const char *property_allowed(const property *property, char text[PROPERTY_ALLOWED_TEXT]);

#endif
