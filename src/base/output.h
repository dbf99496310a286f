/* Buffered writing of text: fast enough for schedules of 10^7 steps, and one place that notices a full disk.
 * JSON is written by hand through it: the formats are few and flat. */
#ifndef REMAT_BASE_OUTPUT_H
#define REMAT_BASE_OUTPUT_H

#include <stdio.h>

#include "base/error.h"

typedef struct output {
    remat_context *context;
    FILE *stream;
    remat_status status; /* the first failure; later calls do nothing */
    size_t used;
    char buffer[1 << 15];
} output;

void output_begin(output *out, remat_context *context, FILE *stream);
void output_text(output *out, const char *text);
void output_number(output *out, uint64_t number);
/* A text for people: names from files, escaped as remat_text_escape does. */
void output_shown(output *out, const char *text);
/* A JSON string with its quotes. */
void output_quoted(output *out, const char *text);
/* "key": value, with `before` (such as ",\n ") in front. */
void output_field(output *out, const char *before, const char *key, uint64_t number);
void output_text_field(output *out, const char *before, const char *key, const char *text);
/* Writes out what is buffered; the first failure of all, REMAT_IO. */
remat_status output_end(output *out);

#endif
