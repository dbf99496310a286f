/* Reading Python's pickles as plain values: numbers, texts, sequences, dictionaries. Calls of functions and objects of
 * classes are kept as what they were made of; nothing is run. Protocols 2 to 5. */
#ifndef REMAT_DATA_PICKLE_H
#define REMAT_DATA_PICKLE_H

#include <stdbool.h>

#include "base/error.h"

typedef enum pickle_kind {
    PICKLE_OTHER,    /* None, floating-point numbers, bytes, objects */
    PICKLE_INTEGER,  /* also True and False */
    PICKLE_TEXT,     /* UTF-8, no NUL at its end */
    PICKLE_SEQUENCE, /* a tuple or a list */
    PICKLE_DICT,     /* also an OrderedDict */
    PICKLE_GLOBAL,   /* "module name" of a function or a class */
    PICKLE_CALL,     /* text is "module name" of the function; the items are its arguments */
    PICKLE_STORAGE,  /* a persistent id; the items are those of its tuple */
} pickle_kind;

enum { PICKLE_NONE = UINT32_MAX };

typedef struct pickle_value {
    pickle_kind kind;
    int64_t integer;
    const char *text; /* in the bytes that were read; of globals in a copy */
    uint32_t length;
    uint32_t first, last; /* items; PICKLE_NONE */
} pickle_value;

typedef struct pickle_item {
    uint32_t key, value; /* values; the key only in a dictionary */
    uint32_t next;
} pickle_item;

typedef struct pickle {
    remat_context *context;
    pickle_value *values;
    size_t value_count, value_capacity;
    pickle_item *items;
    size_t item_count, item_capacity;
    uint32_t *stack, *memo;
    size_t stack_count, stack_capacity, memo_count, memo_capacity;
    uint32_t result; /* a value */
} pickle;

/* Reads a pickle from bytes that must live as long. REMAT_BAD_INPUT, with `place`; REMAT_NO_MEMORY. pickle_release
 * releases what was allocated, also after a failure. */
remat_status pickle_read(remat_context *context, const unsigned char *bytes, size_t count, const remat_place *place,
                         pickle *made);
void pickle_release(pickle *made);

/* Whether a text or a global is this one. */
bool pickle_is(const pickle_value *value, const char *text);

#endif
