/* Buffered writing of text. It is fast enough for schedules of 10^7 steps, and reports a full disk in one place. JSON
 * is written with these functions directly, because the formats are few and flat. */
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
/* A JSON string with its quotes. */
void output_quoted(output *out, const char *text);
/* "key": value, with `before` (such as ",\n ") in front. */
void output_field(output *out, const char *before, const char *key, uint64_t number);
void output_text_field(output *out, const char *before, const char *key, const char *text);
/* Writes the rest of the buffer. Returns the first failure of all calls, REMAT_IO. */
remat_status output_end(output *out);

/* Writes a file completely or not at all: to a temporary file beside `path`, which is then renamed to it. */
typedef remat_status (*output_fn)(const void *user, FILE *stream);
remat_status output_save(remat_context *context, const char *path, output_fn write, const void *user);

#endif
