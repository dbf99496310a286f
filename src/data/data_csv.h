/* Samples from a CSV file: shared by the files data_csv*.c. */
#ifndef REMAT_DATA_DATA_CSV_H
#define REMAT_DATA_DATA_CSV_H

#include "data/csv_table.h"
#include "data/data_set.h"

/* A number of a column, by the type of the field that it belongs to. */
typedef union csv_value {
    float number;
    int32_t id;
} csv_value;

typedef struct csv_set {
    data_set set;
    char *path;
    const dataset_settings *settings; /* only while the source is opened */
    data_encoding *encoding;          /* of the source */
    bool encoding_is_given;
    column_list inputs, labels; /* columns of the file */
    uint64_t columns;           /* of the file, in all */
    uint8_t *seen;              /* of each column of inputs: CSV_SEEN_... */
    size_t seen_count;
    uint64_t kept;                            /* of these: values of a sample */
    csv_value *values;                        /* samples x kept */
    uint64_t value_count;                     /* allocated */
    uint64_t *rows;                           /* of each sample, where some rows are left out; otherwise NULL */
    uint64_t missing, missing_words, dropped; /* values that were replaced, words too; rows that were left out */
    uint32_t *class_order;                    /* classes by their names */
    size_t class_count;
    uint64_t word_line, number_line; /* of the first label that is a word, and a number; 0: none */
    uint64_t word_column;
} csv_set;

enum { CSV_SEEN_NUMBER = 1, CSV_SEEN_WORD = 2 };

/* One row of a scan, with its number among the samples and among the rows of the file. */
typedef remat_status (*csv_row_fn)(csv_set *csv, const csv_table *table, uint64_t sample, uint64_t row, void *user);

/* Reads the file from its first row to its last, without the rows that are left out. *samples is how many rows were
 * visited. */
remat_status csv_scan(csv_set *csv, csv_row_fn visit, void *user, uint64_t *samples);
/* The same for a file that was counted: another number of samples is REMAT_BAD_INPUT. */
remat_status csv_scan_counted(csv_set *csv, csv_row_fn visit, void *user);

/* data_csv_labels.c: finds the classes of labels that are words, and the class of a cell. */
remat_status csv_find_classes(csv_set *csv);
remat_status csv_class_of(const csv_set *csv, const csv_table *table, uint64_t column, int32_t *id);

/* data_csv_words.c: the words of columns of inputs, where the settings allow them; then whether the columns make as many
 * inputs as the model has. */
remat_status csv_find_words(csv_set *csv);
/* Writes a 1 for the word of a cell and 0 for all others; zeros where it is missing. */
remat_status csv_put_words(const csv_set *csv, const csv_table *table, size_t input, csv_value *to);
/* How many inputs a column makes. */
size_t csv_width(const csv_set *csv, size_t input);

/* data_csv_fit.c: finds the statistics of the columns over the training samples. */
remat_status csv_find_statistics(csv_set *csv, const data_split *split);

/* data_csv_columns.c: the number of label columns that `labels` says (NULL: 1), where no target is named. */
remat_status csv_count_labels(const csv_set *csv, const char *text, uint64_t *count);
/* Which columns are inputs and which are labels; names go to the encoding. */
remat_status csv_choose_columns(csv_set *csv, const csv_table *table, const char *label_count);

/* The field of the network that reads this value of a sample. */
static inline const data_field *csv_field_of(const data_needs *needs, uint64_t value)
{
    size_t i = 0;
    for (; i + 1 < needs->input_count && value >= needs->inputs[i].values; i++)
        value -= needs->inputs[i].values;
    return &needs->inputs[i];
}

/* Whether labels are classes. */
static inline bool csv_has_classes(const csv_set *csv)
{
    return csv->labels.count && data_field_is_integer(&csv->set.needs->labels);
}

#endif
