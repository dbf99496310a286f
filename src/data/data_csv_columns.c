/* Which columns of a CSV file are inputs and which are labels. */
#include "data/data_csv.h"

#include "base/checked.h"

#include <stdlib.h>

remat_status csv_count_labels(const csv_set *csv, const char *text, uint64_t *count)
{
    char *end;
    uint64_t wanted = csv->set.needs->labels.values;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = "labels";
    text = text ? text : "1";
    *count = strtoull(text, &end, 10);
    if (end == text || *end || *text == '-' || *count > CSV_LONGEST_LINE)
        return remat_fail(csv->set.context, REMAT_INVALID, &place,
                          "'%.40s' is not allowed; of csv it is the number of label columns, the last ones; "
                          "target = NAME names them",
                          text);
    if (wanted && wanted != *count)
        return remat_fail(csv->set.context, REMAT_INVALID, &place,
                          "%llu label columns; the loss takes %llu values a sample, so it must be labels = %llu",
                          (unsigned long long)*count, (unsigned long long)wanted, (unsigned long long)wanted);
    return REMAT_OK;
}

/* The labels are the last columns. They may be missing in a file for predictions. */
static remat_status choose_last_labels(csv_set *csv, const csv_table *table, const char *text, uint64_t inputs,
                                       const column_list *ignored)
{
    uint64_t count, wanted = csv->set.needs->labels.values;
    REMAT_TRY(csv_count_labels(csv, text, &count));
    /* Columns of words make several inputs each; weights know how many columns there were. */
    uint64_t expected = csv->encoding_is_given && csv->encoding->column_count ? csv->encoding->column_count : inputs;
    if (!wanted && table->columns - ignored->count == expected)
        return REMAT_OK;
    if (count > table->columns)
        count = table->columns;
    for (uint64_t c = table->columns - count; c < table->columns; c++)
        REMAT_TRY(column_list_add(csv->set.context, &csv->labels, c));
    return REMAT_OK;
}

static remat_status choose_labels(csv_set *csv, const csv_table *table, const char *label_count, uint64_t inputs,
                                  const column_list *ignored)
{
    const dataset_settings *settings = csv->settings;
    uint64_t wanted = csv->set.needs->labels.values;
    if (!settings->target)
        return choose_last_labels(csv, table, label_count, inputs, ignored);
    REMAT_TRY(csv_columns_find(table, "target", settings->target, wanted == 0, &csv->labels));
    if (!wanted || csv->labels.count == wanted)
        return REMAT_OK;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = "target";
    return remat_fail(csv->set.context, REMAT_INVALID, &place, "%zu columns; the loss takes %llu values a sample",
                      csv->labels.count, (unsigned long long)wanted);
}

/* The columns that the weights were trained with, by their names. */
static remat_status choose_known_inputs(csv_set *csv, const csv_table *table)
{
    for (size_t i = 0; i < csv->encoding->column_count; i++)
        REMAT_TRY(csv_column_find(table, "columns", csv->encoding->columns[i].name, &csv->inputs));
    return REMAT_OK;
}

static bool knows_names(const csv_set *csv)
{
    const data_encoding *encoding = csv->encoding;
    for (size_t i = 0; i < encoding->column_count; i++)
        if (!encoding->columns[i].name)
            return false;
    return csv->encoding_is_given && encoding->column_count;
}

static remat_status choose_inputs(csv_set *csv, const csv_table *table, const column_list *ignored)
{
    const dataset_settings *settings = csv->settings;
    if (knows_names(csv) && table->header.count)
        return choose_known_inputs(csv, table);
    if (settings->columns)
        return csv_columns_find(table, "columns", settings->columns, false, &csv->inputs);
    for (uint64_t c = 0; c < table->columns; c++)
        if (!column_list_has(&csv->labels, c) && !column_list_has(ignored, c))
            REMAT_TRY(column_list_add(csv->set.context, &csv->inputs, c));
    return REMAT_OK;
}

static remat_status check_roles(const csv_set *csv)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = csv->path;
    for (size_t i = 0; i < csv->inputs.count; i++)
        if (csv->set.needs->labels.values && column_list_has(&csv->labels, csv->inputs.columns[i]))
            return remat_fail(csv->set.context, REMAT_BAD_INPUT, &place,
                              "column %u is an input and a label; the model would read the answer",
                              csv->inputs.columns[i] + 1);
    return REMAT_OK;
}

/* ---- names ---- */

static remat_status keep_names(csv_set *csv, const csv_table *table)
{
    data_encoding *encoding = csv->encoding;
    const dataset_settings *settings = csv->settings;
    bool has_names = table->header.count > 0;
    if (!has_names && settings->normalize == NORMALIZE_NONE && settings->missing != MISSING_MEAN)
        return REMAT_OK;
    for (size_t i = 0; i < csv->inputs.count; i++)
        REMAT_TRY(data_encoding_add_column(encoding, has_names ? table->header.names[csv->inputs.columns[i]] : NULL));
    for (size_t i = 0; has_names && i < csv->labels.count; i++)
        REMAT_TRY(name_list_add(encoding->context, &encoding->targets, table->header.names[csv->labels.columns[i]]));
    return REMAT_OK;
}

static remat_status choose_roles(csv_set *csv, const csv_table *table, const char *label_count, uint64_t inputs)
{
    column_list ignored = {0};
    remat_status status = REMAT_OK;
    if (csv->settings->ignore)
        status = csv_columns_find(table, "ignore", csv->settings->ignore, csv->encoding_is_given, &ignored);
    if (status == REMAT_OK)
        status = choose_labels(csv, table, label_count, inputs, &ignored);
    if (status == REMAT_OK)
        status = choose_inputs(csv, table, &ignored);
    column_list_end(csv->set.context, &ignored);
    return status;
}

remat_status csv_choose_columns(csv_set *csv, const csv_table *table, const char *label_count)
{
    uint64_t inputs = 0;
    for (size_t i = 0; i < csv->set.needs->input_count; i++)
        if (!remat_add(&inputs, csv->set.needs->inputs[i].values))
            return remat_fail(csv->set.context, REMAT_INVALID, NULL, "the inputs have 2^63 values or more");
    REMAT_TRY(choose_roles(csv, table, label_count, inputs));
    REMAT_TRY(check_roles(csv));
    if (csv->set.needs->labels.values == 0)
        csv->labels.count = 0; /* nobody reads them */
    csv->columns = table->columns;
    if (!csv->encoding_is_given)
        return keep_names(csv, table);
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = csv->path;
    if (csv->encoding->column_count && csv->encoding->column_count != csv->inputs.count)
        return remat_fail(csv->set.context, REMAT_BAD_INPUT, &place,
                          "the weights were trained with %zu columns of inputs, and the file has %zu",
                          csv->encoding->column_count, csv->inputs.count);
    return REMAT_OK;
}
