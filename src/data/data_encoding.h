/* How a dataset becomes numbers: the names of classes, the columns of a table with their statistics, and the seed of the
 * split. It is found when a model is trained and saved with its weights, so that predictions read new data in the same
 * way. */
#ifndef REMAT_DATA_DATA_ENCODING_H
#define REMAT_DATA_DATA_ENCODING_H

#include <stdbool.h>

#include "base/error.h"

typedef struct name_list {
    char **names;
    size_t count, capacity;
} name_list;

/* A column of inputs: the network gets (value - shift) / scale, with `fill` for a value that is missing;
 * NaN: no mean is known. */
typedef struct column_encoding {
    char *name; /* NULL: the file had no column names */
    double shift, scale, fill;
    name_list words; /* where there are any, the column makes an input of each: 1 for the word of the row, else 0 */
} column_encoding;

typedef struct data_encoding {
    remat_context *context;
    bool has_split_seed;
    uint64_t split_seed;
    name_list classes; /* none: labels are numbers */
    name_list targets; /* names of the label columns; none: not known */
    column_encoding *columns;
    size_t column_count, column_capacity;
} data_encoding;

void data_encoding_begin(data_encoding *encoding, remat_context *context);
void data_encoding_end(data_encoding *encoding);

/* Whether it says anything. */
bool data_encoding_is_empty(const data_encoding *encoding);

/* Copies one that was begun. After a failure `to` can only be ended. REMAT_NO_MEMORY. */
remat_status data_encoding_copy(const data_encoding *from, data_encoding *to);

void name_list_end(remat_context *context, name_list *list);
/* Each adds a copy of the name. A column has shift 0, scale 1 and no fill at first; `name` may be NULL. */
remat_status name_list_add(remat_context *context, name_list *list, const char *name);
remat_status data_encoding_add_column(data_encoding *encoding, const char *name);

/* The position of a class name; SIZE_MAX where there is none. */
size_t data_encoding_find_class(const data_encoding *encoding, const char *name);

/* As one line of JSON, for the metadata of weights. The caller releases *text with remat_text_release. The same encoding
 * gives the same text. REMAT_NO_MEMORY. */
remat_status data_encoding_write(const data_encoding *encoding, char **text);

/* Reads it into one that was begun; `name` is the file in messages. After a failure it can only be ended.
 * REMAT_BAD_INPUT, REMAT_NO_MEMORY. */
remat_status data_encoding_read(data_encoding *encoding, const char *text, const char *name);

#endif
