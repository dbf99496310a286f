/* A pull reader for JSON: it returns one token at a time from a stream, with its line.
 *
 * Why not a library: schedules of 10^7 steps must be read in constant memory, errors must name the line, all memory
 * must come from the context's allocator, and hostile text must not take more memory than its size. Jansson and json-c
 * build trees of half a kilobyte a step without line numbers; yajl does not survive a failed allocation. */
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
/* Sets the line for a stream that does not start at line 1. */
void json_reader_set_line(json_reader *reader, uint64_t line);

/* Reads the next token. The grammar is checked: all tokens so far are well formed. REMAT_BAD_INPUT or REMAT_IO. */
remat_status json_next(json_reader *reader, json_token *token);

/* Skips a whole value. Call it after a key, or where a value is expected. */
remat_status json_skip(json_reader *reader);

/* Skips the rest of the value that begins with `token`, the last token read. */
remat_status json_skip_rest(json_reader *reader, const json_token *token);

remat_context *json_reader_context(const json_reader *reader);

/* The file and line of the last token. */
remat_place json_place(const json_reader *reader);

/* What to call a kind of token in an error: "a string". */
const char *json_kind_name(json_kind kind);

#endif
