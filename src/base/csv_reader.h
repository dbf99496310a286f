/* Reads CSV line by line. Cells may be quoted, the first line has the column names, and errors have the file and the
 * line. */
#ifndef REMAT_BASE_CSV_READER_H
#define REMAT_BASE_CSV_READER_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

enum { CSV_MOST_COLUMNS = 64, CSV_LONGEST_LINE = 1 << 16 };

typedef struct csv_reader {
    remat_context *context;
    FILE *stream;
    remat_place place;          /* file and line of the current line; the caller may add layer and field */
    uint64_t bytes, most_bytes; /* read so far; more are refused */
    size_t column_count;
    char *cells[CSV_MOST_COLUMNS]; /* of the current line, inside `line` */
    size_t cell_count;
    char line[CSV_LONGEST_LINE];
} csv_reader;

/* Makes a reader for a stream that is at its beginning. `name` is for messages. Stream and name belong to the caller
 * and must outlive the reader. It reads INPUT_MOST_BYTES; the caller may set most_bytes to more. NULL if there is no
 * memory. */
csv_reader *csv_reader_create(remat_context *context, FILE *stream, const char *name);
void csv_reader_destroy(csv_reader *reader);

/* Reads the next line that is not blank, and does not split it yet. *more is false at the end of the file. */
remat_status csv_next_line(csv_reader *reader, bool *more);

/* Reads and splits the first line, which sets the number of columns. `if_empty` is the message for an empty file. */
remat_status csv_read_header(csv_reader *reader, const char *if_empty);

/* Splits the current line, which must have as many cells as the first one. Blanks around a cell are dropped, except
 * inside quotes. */
remat_status csv_split_row(csv_reader *reader);

/* Fails with REMAT_BAD_INPUT at the current line. */
remat_status csv_fail(csv_reader *reader, const char *text);

/* Reads a whole number below 2^63. */
remat_status csv_parse_number(csv_reader *reader, const char *cell, uint64_t *value);

#endif
