/* Properties: keys with text values that fill the fields of a struct. Each layer type, [Model], [Optimizer] and
 * [Dataset] has a table of properties, and only this file reads their values.
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
    PROPERTY_COUNT,   /* uint64_t, min..max */
    PROPERTY_NUMBER,  /* double, min..max */
    PROPERTY_FLAG,    /* bool: true, false */
    PROPERTY_CHOICE,  /* uint32_t: position in choices */
    PROPERTY_PAIR,    /* uint64_t[2]: "3" or "3,5" */
    PROPERTY_DIMS,    /* uint64_t[3]: "w", "h:w" or "c:h:w"; missing leading ones are 1 */
    PROPERTY_NUMBERS, /* property_numbers: numbers with commas between, each min..max */
    PROPERTY_TEXT,    /* const char *, the text itself: it must live as long as the struct; NULL where it is empty */
} property_kind;

/* A list of numbers. */
enum { PROPERTY_MOST_NUMBERS = 1000 };
typedef struct property_numbers {
    size_t count;
    double values[PROPERTY_MOST_NUMBERS];
} property_numbers;

typedef struct property {
    const char *key;
    property_kind kind;
    size_t offset;              /* of the field */
    const char *default_text;   /* the default; NULL: the property is required */
    double min, max;            /* max 0: no upper limit */
    const char *const *choices; /* ends with NULL */
    const char *help;
} property;

/* Fills the fields with their default values. The table ends with a key NULL; a table NULL is empty. */
remat_status properties_init(remat_context *context, const property *table, void *fields);

/* Sets one field from text. `owner` names the owner of the properties in messages: "conv2d", "[Optimizer]".
 * REMAT_INVALID names the key and says what it may be or, for an unknown key, which keys there are. */
remat_status property_set(remat_context *context, const char *owner, const property *table, void *fields,
                          const char *key, const char *text);

/* The property of this key; NULL where there is none. */
const property *property_find(const property *table, const char *key);

/* Reads up to `most` counts with commas between, such as "3" or "3,5". Returns how many; 0 if the text is something else
 * or has more. */
size_t property_read_counts(const char *text, size_t most, uint64_t *counts);

/* Finds the position of a text in a list of choices that ends with NULL; false if it is not in the list. */
bool property_read_choice(const char *text, const char *const *choices, uint32_t *choice);

/* What a property may be, for messages and help: "a whole number from 1 to 64", "one of relu, gelu". Returns `text`. */
enum { PROPERTY_ALLOWED_TEXT = 512 };
const char *property_allowed(const property *property, char text[PROPERTY_ALLOWED_TEXT]);

/* The value of a property as text that property_set reads, for those of one value: counts, numbers, flags and choices;
 * otherwise "". Returns `text`. */
enum { PROPERTY_VALUE_TEXT = 64 };
const char *property_print(const property *about, const void *fields, char text[PROPERTY_VALUE_TEXT]);

#endif
