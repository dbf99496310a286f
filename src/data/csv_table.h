/* A CSV file as a table: rows of cells, with the delimiter and the column names found or stated. */
#ifndef REMAT_DATA_CSV_TABLE_H
#define REMAT_DATA_CSV_TABLE_H

#include "base/csv_reader.h"
#include "data/data_encoding.h"
#include "model/settings.h"

typedef struct csv_table {
    remat_context *context;
    FILE *stream;
    csv_reader *reader; /* its place is that of the current row */
    char delimiter;     /* ' ': any number of blanks */
    uint64_t columns;
    name_list header; /* the column names; none: the file has none */
    char **cells;     /* of the current row, inside the reader's line */
    size_t cell_capacity;
    bool is_first_row_read;
} csv_table;

/* Opens a file and reads its column names, if it has any. A table of zeros, and one whose opening failed, may be closed.
 * REMAT_IO, REMAT_BAD_INPUT, REMAT_NO_MEMORY. */
remat_status csv_table_open(remat_context *context, const char *path, const dataset_settings *settings,
                            csv_table *table);
void csv_table_close(csv_table *table);

/* Reads the next row, which must have as many cells as the first. *more is false at the end. */
remat_status csv_table_next(csv_table *table, bool *more);

/* Whether a cell says that its value is missing: it is empty, ?, NA, N/A, NaN, null or None. */
bool csv_is_missing(const char *cell);

/* Whether a cell is a number; *value is infinite for one that is too large. */
bool csv_is_number(const char *cell, double *value);

/* REMAT_BAD_INPUT for a cell of the current row: "FILE:LINE: column 3 (age): 'x' TEXT". */
remat_status csv_table_fail(const csv_table *table, uint64_t column, const char *text);

/* Columns that a list of the settings names, appended to `columns`: names, numbers from 1, and ranges a .. b. `key` is the
 * list's name in messages. A column that does not exist is left out if `optional`. REMAT_BAD_INPUT, REMAT_NO_MEMORY. */
typedef struct column_list {
    uint32_t *columns;
    size_t count, capacity;
} column_list;
remat_status csv_columns_find(const csv_table *table, const char *key, const char *list, bool optional,
                              column_list *found);
/* The same for one column by its name. */
remat_status csv_column_find(const csv_table *table, const char *key, const char *name, column_list *found);
remat_status column_list_add(remat_context *context, column_list *list, uint64_t column);
bool column_list_has(const column_list *list, uint64_t column);
void column_list_end(remat_context *context, column_list *list);

#endif
