/* Reading CSV line by line: cells that may stand in quotes, a first line of column names, errors with file and line. */
#ifndef REMAT_BASE_CSV_READER_H
#define REMAT_BASE_CSV_READER_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

enum { CSV_MOST_COLUMNS = 64, CSV_LONGEST_LINE = 1 << 16 };

typedef struct csv_reader {
    remat_context *context;
    FILE *stream;
    remat_place place; /* file and line of the current line; the caller may add layer and field */
    size_t column_count;
    char *cells[CSV_MOST_COLUMNS]; /* of the current line, inside `line` */
    size_t cell_count;
    char line[CSV_LONGEST_LINE];
} csv_reader;

/* A reader on a stream that stands at its beginning; `name` is for messages and stays the caller's, as the stream does.
 * NULL with REMAT_NO_MEMORY on the context. */
csv_reader *csv_reader_create(remat_context *context, FILE *stream, const char *name);
void csv_reader_destroy(csv_reader *reader);

/* The next line that is not blank, not split yet. *more is false at the end of the file. */
remat_status csv_next_line(csv_reader *reader, bool *more);

/* The first line, split; it says how many columns there are. `if_empty` is the message where there is none. */
remat_status csv_read_header(csv_reader *reader, const char *if_empty);

/* Splits the current line, which must have as many cells as the first one. Blanks around a cell are dropped; those inside
 * quotes stay. */
remat_status csv_split_row(csv_reader *reader);

/* REMAT_BAD_INPUT at the reader's place. */
remat_status csv_fail(csv_reader *reader, const char *text);

/* A whole number below 2^63. */
remat_status csv_parse_number(csv_reader *reader, const char *cell, uint64_t *value);

#endif
