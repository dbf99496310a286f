#include "graph/profile_read.h"

#include "base/csv_reader.h"

#include <string.h>

/* What a column holds: a number of remat_profile_fields, or one of these. */
enum { COLUMN_UNKNOWN = -1, COLUMN_NAME = PROFILE_FIELD_COUNT, COLUMN_TYPE, COLUMN_KINDS };

typedef struct profile_table {
    remat_profile *chain;
    csv_reader *csv;
    int kinds[CSV_MOST_COLUMNS];
} profile_table;

/* ---- the header ---- */

static int column_kind(const char *name)
{
    if (strcmp(name, "name") == 0)
        return COLUMN_NAME;
    if (strcmp(name, "type") == 0)
        return COLUMN_TYPE;
    return remat_profile_field_find(name);
}

static remat_status require_columns(csv_reader *csv, const bool seen[COLUMN_KINDS])
{
    csv->place.field = seen[COLUMN_TYPE] ? NULL : "type";
    for (size_t i = 0; i < PROFILE_FIELD_COUNT; i++)
        if (remat_profile_fields[i].required && !seen[i])
            csv->place.field = remat_profile_fields[i].name;
    if (csv->place.field)
        return csv_fail(csv, "the column is missing; the first line must name index, type, activation_bytes and "
                             "recompute_flops");
    return REMAT_OK;
}

static remat_status read_header(profile_table *table)
{
    csv_reader *csv = table->csv;
    bool seen[COLUMN_KINDS] = {false};
    REMAT_TRY(
        csv_read_header(csv, "the file is empty; a profile is a JSON object or a CSV with a line of column names"));
    for (size_t i = 0; i < csv->cell_count; i++) {
        int kind = table->kinds[i] = column_kind(csv->cells[i]);
        if (kind == COLUMN_UNKNOWN)
            remat_warn(csv->context, &csv->place, "the column '%.60s' is unknown and ignored", csv->cells[i]);
        else if (seen[kind]) {
            csv->place.field = csv->cells[i];
            return csv_fail(csv, "the column is there twice; once is enough");
        } else
            seen[kind] = true;
    }
    return require_columns(csv, seen);
}

/* ---- the rows ---- */

static remat_status read_cell(csv_reader *csv, int kind, char *cell, remat_layer_options *options)
{
    if (kind == COLUMN_NAME) {
        options->name = *cell ? cell : NULL;
        return REMAT_OK;
    }
    if (kind == COLUMN_TYPE) {
        csv->place.field = "type";
        return remat_layer_type_parse(csv->context, cell, &csv->place, &options->type);
    }
    const profile_field *field = &remat_profile_fields[kind];
    csv->place.field = field->name;
    if (!*cell && !field->required)
        return REMAT_OK; /* an empty cell asks for the default */
    return csv_parse_number(csv, cell, (uint64_t *)(void *)((char *)options + field->offset));
}

static remat_status read_row(profile_table *table)
{
    csv_reader *csv = table->csv;
    remat_layer_options options;
    remat_layer_options_init(&options);
    csv->place.layer = table->chain->layer_count;
    REMAT_TRY(csv_split_row(csv));
    for (size_t i = 0; i < csv->cell_count; i++)
        if (table->kinds[i] != COLUMN_UNKNOWN)
            REMAT_TRY(read_cell(csv, table->kinds[i], csv->cells[i], &options));
    csv->place.field = NULL;
    return remat_chain_add(table->chain, &options, &csv->place);
}

static remat_status read_rows(profile_table *table)
{
    for (bool more = true;;) {
        table->csv->place.layer = REMAT_NOWHERE;
        REMAT_TRY(csv_next_line(table->csv, &more));
        if (!more)
            return REMAT_OK;
        REMAT_TRY(read_row(table));
    }
}

remat_status remat_profile_read_csv(remat_profile *chain, FILE *stream, const char *name, uint64_t line)
{
    profile_table table = {.chain = chain, .csv = csv_reader_create(chain->context, stream, name)};
    if (!table.csv)
        return REMAT_NO_MEMORY;
    table.csv->place.line = line - 1; /* the reader counts before it reads */
    remat_status status = read_header(&table);
    if (status == REMAT_OK)
        status = read_rows(&table);
    csv_reader_destroy(table.csv);
    return status;
}
