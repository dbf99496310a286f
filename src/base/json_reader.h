/* A pull reader for JSON: one token at a time from a stream, with the line it stands in.
 *
 * Why not a library: schedules of 10^7 steps have to be read in constant memory, errors have to name the line, all
 * memory has to come through the context's hook, and hostile text must not cost more than it weighs. Jansson and
 * json-c build trees of half a kilobyte a step without line numbers; yajl does not survive a failed allocation. */
#ifndef REMAT_BASE_JSON_READER_H
#define REMAT_BASE_JSON_READER_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

typedef enum json_kind {
    JSON_END, /* of the text */
    JSON_OBJECT,
    JSON_OBJECT_END,
    JSON_ARRAY,
    JSON_ARRAY_END,
    JSON_KEY,
    JSON_STRING,
    JSON_INTEGER, /* no point and no exponent */
    JSON_REAL,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
} json_kind;

typedef struct json_token {
    json_kind kind;
    const char *text; /* of keys, strings and numbers: UTF-8, terminated; good until the next call */
    uint64_t integer; /* of JSON_INTEGER, where it is not negative and below 2^63 */
    bool in_range;    /* whether `integer` is good */
} json_token;

typedef struct json_reader json_reader;

/* `name` stands for the stream in messages and must outlive the reader. */
remat_status json_reader_create(remat_context *context, FILE *stream, const char *name, json_reader **reader);
void json_reader_destroy(json_reader *reader);
/* For a stream that does not stand in line 1. */
void json_reader_set_line(json_reader *reader, uint64_t line);

/* The next token. All grammar is checked: what comes out is well formed so far. REMAT_BAD_INPUT or REMAT_IO. */
remat_status json_next(json_reader *reader, json_token *token);

/* After a key, or where a value is expected: passes over the whole value. */
remat_status json_skip(json_reader *reader);

/* Passes over the rest of the value that `token`, just read, began. */
remat_status json_skip_rest(json_reader *reader, const json_token *token);

remat_context *json_reader_context(const json_reader *reader);

/* The file and line of the last token. */
remat_place json_place(const json_reader *reader);

/* How to call what a token is, in an error: "a string". */
const char *json_kind_name(json_kind kind);

#endif
