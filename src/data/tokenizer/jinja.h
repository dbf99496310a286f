/* Chat templates inside: the tree that jinja_parse.c builds, which jinja_run.c and jinja_value.c evaluate. */
#ifndef REMAT_DATA_TOKENIZER_JINJA_H
#define REMAT_DATA_TOKENIZER_JINJA_H

#include "base/text_pool.h"
#include "data/tokenizer/chat_template.h"

typedef enum jinja_kind {
    /* statements */
    JINJA_TEXT,
    JINJA_OUTPUT, /* a */
    JINJA_IF,     /* a: condition, b: then, c: else */
    JINJA_FOR,    /* text and second: names, a: list, b: body, c: else, d: condition */
    JINJA_SET,    /* d: what is set, a: value, or b: a block whose text it is */
    JINJA_MACRO,  /* text: name, a: parameters, b: body */
    JINJA_BLOCK,  /* b: body */
    JINJA_BREAK,
    JINJA_CONTINUE,
    /* expressions */
    JINJA_STRING,
    JINJA_INTEGER,
    JINJA_CONSTANT, /* integer: 0 none, 1 false, 2 true */
    JINJA_NAME,
    JINJA_LIST,       /* a: items */
    JINJA_DICTIONARY, /* a: keys, each with its value in b */
    JINJA_ATTRIBUTE,  /* a, text */
    JINJA_INDEX,      /* a[b] */
    JINJA_SLICE,      /* a[b:c:d] */
    JINJA_CALL,       /* a(b ...); an argument with text is named */
    JINJA_FILTER,     /* a | text(b ...) */
    JINJA_TEST,       /* a is text(b ...) */
    JINJA_NOT,
    JINJA_NEGATIVE,
    JINJA_AND,
    JINJA_OR,
    JINJA_BINARY, /* a text b */
    JINJA_CHOICE, /* b if a else c */
} jinja_kind;

typedef struct jinja_node {
    jinja_kind kind;
    uint64_t line;
    const char *text, *second; /* terminated */
    size_t length;
    int64_t integer;
    struct jinja_node *a, *b, *c, *d;
    struct jinja_node *next; /* in a list */
} jinja_node;

struct chat_template {
    remat_context *context;
    text_pool tree;   /* nodes and texts */
    text_pool values; /* of the last call */
    const char *name;
    jinja_node *body;
    char *out;
    size_t length, capacity;
};

remat_status jinja_parse(chat_template *template, const char *text);

/* ---- values ---- */

typedef enum value_kind {
    VALUE_UNDEFINED, /* with `self`: if it is called, the method `text` of that */
    VALUE_NONE,
    VALUE_BOOLEAN,
    VALUE_INTEGER,
    VALUE_STRING,
    VALUE_LIST,
    VALUE_DICTIONARY,
    VALUE_FUNCTION, /* text: its name */
    VALUE_MACRO,
} value_kind;

typedef struct jinja_value {
    value_kind kind;
    int64_t integer;
    const char *text; /* terminated */
    size_t length;
    struct jinja_list *list; /* shared by all copies of the value */
    const struct jinja_value *self;
    const jinja_node *macro;
} jinja_value;

/* Items, with keys in a dictionary. */
typedef struct jinja_list {
    jinja_value *items, *keys;
    size_t count, capacity;
} jinja_list;

typedef struct jinja_run {
    chat_template *template;
    remat_context *context;
    text_pool *pool;
    uint64_t line, steps;
    unsigned depth;
} jinja_run;

/* REMAT_BAD_INPUT at the line of the template that runs. */
remat_status jinja_fail(const jinja_run *run, const char *format, const char *what);

jinja_value jinja_string(const char *text, size_t length);
jinja_value jinja_integer(int64_t integer);
jinja_value jinja_boolean(bool is_true);
/* Copies the bytes. */
remat_status jinja_copy(jinja_run *run, const char *text, size_t length, jinja_value *value);
remat_status jinja_list_make(jinja_run *run, value_kind kind, jinja_value *value);
/* Appends an item, or sets that of a key. */
remat_status jinja_list_add(jinja_run *run, jinja_value *list, jinja_value item);
remat_status jinja_set_key(jinja_run *run, jinja_value *dictionary, jinja_value key, jinja_value item);
bool jinja_find_key(const jinja_value *dictionary, const char *key, jinja_value *item);

bool jinja_is_true(const jinja_value *value);
bool jinja_equal(const jinja_value *a, const jinja_value *b);
/* Whether the item is in a list, a key in a dictionary, a text in a text. */
bool jinja_contains(const jinja_value *in, const jinja_value *item);
/* The text that {{ }} writes. */
remat_status jinja_text(jinja_run *run, const jinja_value *value, jinja_value *text);
remat_status jinja_json(jinja_run *run, const jinja_value *value, jinja_value *text);

/* Filters, and methods of strings and dictionaries, by name. */
remat_status jinja_filter(jinja_run *run, const char *name, const jinja_value *of, const jinja_value *arguments,
                          size_t count, jinja_value *result);
remat_status jinja_method(jinja_run *run, const jinja_value *self, const char *name, const jinja_value *arguments,
                          size_t count, jinja_value *result);
remat_status jinja_test(jinja_run *run, const char *name, const jinja_value *of, const jinja_value *arguments,
                        size_t count, bool *result);

#endif
