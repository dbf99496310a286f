#include "arena/lifetimes_csv.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/csv_reader.h"
#include "base/options.h"
#include "base/utf8.h"

#include <string.h>

typedef enum column_kind {
    COLUMN_ID,
    COLUMN_LOWER,
    COLUMN_UPPER,
    COLUMN_SIZE,
    COLUMN_REQUIRED,
    COLUMN_OFFSET = COLUMN_REQUIRED, /* of an earlier placement */
    COLUMN_OTHER
} column_kind;

static const char *const column_names[] = {"id", "lower", "upper", "size", "offset"};

typedef struct lifetimes_reader {
    remat_lifetime_table *table;
    csv_reader *csv;
    column_kind kinds[CSV_MOST_COLUMNS];
    uint64_t total; /* of the sizes so far */
} lifetimes_reader;

/* ---- text that is kept ---- */

static remat_status keep_byte(remat_lifetime_table *table, char byte)
{
    if (table->text_bytes == table->text_room) {
        void *text = table->text;
        REMAT_TRY(remat_grow(table->context, &text, &table->text_room, table->text_bytes + 1, 1));
        table->text = text;
    }
    table->text[table->text_bytes++] = byte;
    return REMAT_OK;
}

static remat_status keep_text(remat_lifetime_table *table, const char *text)
{
    for (; *text; text++)
        REMAT_TRY(keep_byte(table, *text));
    return REMAT_OK;
}

/* Whether reading the bare cell would give something else. */
static bool needs_quotes(const char *cell)
{
    size_t length = strlen(cell);
    return strpbrk(cell, ",\"\r") || strchr(" \t", cell[0]) || strchr(" \t", cell[length ? length - 1 : 0]);
}

static remat_status keep_cell(remat_lifetime_table *table, const char *cell)
{
    if (!*cell || !needs_quotes(cell))
        return keep_text(table, cell);
    REMAT_TRY(keep_byte(table, '"'));
    for (; *cell; cell++) {
        if (*cell == '"')
            REMAT_TRY(keep_byte(table, '"'));
        REMAT_TRY(keep_byte(table, *cell));
    }
    return keep_byte(table, '"');
}

/* The line that was just split, as it will be written. */
static remat_status keep_line(lifetimes_reader *reader)
{
    bool first = true;
    for (size_t i = 0; i < reader->csv->cell_count; i++) {
        if (reader->kinds[i] == COLUMN_OFFSET)
            continue;
        if (!first)
            REMAT_TRY(keep_byte(reader->table, ','));
        REMAT_TRY(keep_cell(reader->table, reader->csv->cells[i]));
        first = false;
    }
    return keep_byte(reader->table, '\0');
}

/* ---- the header ---- */

static column_kind find_kind(const char *name)
{
    for (size_t i = 0; i < COLUMN_OTHER; i++)
        if (strcmp(column_names[i], name) == 0)
            return (column_kind)i;
    return COLUMN_OTHER;
}

static remat_status require_columns(csv_reader *csv, const bool seen[COLUMN_OTHER])
{
    for (size_t i = 0; i < COLUMN_REQUIRED; i++) {
        if (seen[i])
            continue;
        csv->place.field = column_names[i];
        return csv_fail(csv, "the column is missing; the first line must name id, lower, upper and size");
    }
    return REMAT_OK;
}

static remat_status read_header(lifetimes_reader *reader)
{
    csv_reader *csv = reader->csv;
    bool seen[COLUMN_OTHER] = {false};
    REMAT_TRY(csv_read_header(csv, "the file is empty; its first line must name id, lower, upper and size"));
    for (size_t i = 0; i < csv->cell_count; i++) {
        column_kind kind = reader->kinds[i] = find_kind(csv->cells[i]);
        if (kind == COLUMN_OTHER) {
            remat_warn(csv->context, &csv->place, "the column '%.60s' is unknown; it is passed on as it is",
                       csv->cells[i]);
        } else if (seen[kind]) {
            csv->place.field = column_names[kind];
            return csv_fail(csv, "the column is there twice; once is enough");
        } else {
            seen[kind] = true;
        }
    }
    if (!seen[COLUMN_OFFSET] && csv->cell_count == CSV_MOST_COLUMNS)
        return csv_fail(csv, "64 columns leave no room for the column of the offsets");
    REMAT_TRY(require_columns(csv, seen));
    return keep_line(reader);
}

/* ---- the rows ---- */

static remat_status read_cells(lifetimes_reader *reader, remat_lifetime *row, const char **id)
{
    csv_reader *csv = reader->csv;
    uint64_t *figures[] = {NULL, &row->lower, &row->upper, &row->size};
    for (size_t i = 0; i < csv->cell_count; i++) {
        column_kind kind = reader->kinds[i];
        if (kind == COLUMN_ID)
            *id = csv->cells[i];
        if (kind == COLUMN_ID || kind >= COLUMN_REQUIRED)
            continue;
        csv->place.field = column_names[kind];
        REMAT_TRY(csv_parse_number(csv, csv->cells[i], figures[kind]));
    }
    return REMAT_OK;
}

static remat_status check_row(lifetimes_reader *reader, const remat_lifetime *row)
{
    csv_reader *csv = reader->csv;
    csv->place.field = column_names[COLUMN_UPPER];
    if (row->lower >= row->upper)
        return remat_fail(csv->context, REMAT_BAD_INPUT, &csv->place,
                          "%llu is not above lower, %llu; a tensor lives from lower until just before upper",
                          (unsigned long long)row->upper, (unsigned long long)row->lower);
    csv->place.field = column_names[COLUMN_SIZE];
    if (!remat_add(&reader->total, row->size))
        return csv_fail(csv, "too large: all sizes must sum to less than 2^63");
    return REMAT_OK;
}

static remat_status make_room(remat_lifetime_table *table)
{
    void *rows = table->rows, *starts = table->starts;
    remat_status status = remat_grow(table->context, &rows, &table->row_room, table->count + 1, sizeof *table->rows);
    table->rows = rows;
    if (status == REMAT_OK)
        status = remat_grow(table->context, &starts, &table->start_room, table->count + 1, sizeof *table->starts);
    table->starts = starts;
    return status;
}

static remat_status read_row(lifetimes_reader *reader)
{
    remat_lifetime_table *table = reader->table;
    csv_reader *csv = reader->csv;
    remat_lifetime row = {0};
    const char *id = "";
    if (!remat_utf8_valid(csv->line))
        return csv_fail(csv, "the line is not UTF-8");
    REMAT_TRY(csv_split_row(csv));
    REMAT_TRY(read_cells(reader, &row, &id));
    REMAT_TRY(check_row(reader, &row));
    csv->place.field = NULL;
    REMAT_TRY(make_room(table));
    table->starts[table->count] = table->text_bytes;
    REMAT_TRY(keep_text(table, id));
    REMAT_TRY(keep_byte(table, '\0'));
    REMAT_TRY(keep_line(reader));
    table->rows[table->count++] = row;
    return REMAT_OK;
}

static remat_status read_rows(lifetimes_reader *reader)
{
    for (bool more;;) {
        REMAT_TRY(csv_next_line(reader->csv, &more));
        if (!more)
            return REMAT_OK;
        REMAT_TRY(read_row(reader));
    }
}

/* ---- the table ---- */

static remat_status fill_table(remat_lifetime_table *table, FILE *stream, const char *name)
{
    lifetimes_reader reader = {.table = table, .csv = csv_reader_create(table->context, stream, name)};
    if (!reader.csv)
        return REMAT_NO_MEMORY;
    remat_status status = read_header(&reader);
    if (status == REMAT_OK)
        status = read_rows(&reader);
    csv_reader_destroy(reader.csv);
    return status;
}

remat_status remat_lifetime_table_read(remat_context *context, FILE *stream, const char *name,
                                       remat_lifetime_table **table)
{
    *table = remat_alloc_zeroed(context, 1, sizeof **table);
    if (!*table)
        return REMAT_NO_MEMORY;
    (*table)->context = context;
    remat_status status = fill_table(*table, stream, name);
    if (status != REMAT_OK) {
        remat_lifetime_table_destroy(*table);
        *table = NULL;
    }
    return status;
}

void remat_lifetime_table_destroy(remat_lifetime_table *table)
{
    if (!table)
        return;
    remat_release(table->context, table->rows, table->row_room, sizeof *table->rows);
    remat_release(table->context, table->starts, table->start_room, sizeof *table->starts);
    remat_release(table->context, table->text, table->text_room, 1);
    remat_release(table->context, table, 1, sizeof *table);
}

size_t remat_lifetime_table_count(const remat_lifetime_table *table)
{
    return table->count;
}

remat_status remat_lifetime_table_get_sized(const remat_lifetime_table *table, size_t row, remat_lifetime *lifetime,
                                            size_t lifetime_size)
{
    if (row >= table->count)
        return remat_fail(table->context, REMAT_INVALID, NULL, "there is no row %zu: the table has %zu", row,
                          table->count);
    remat_struct_give(lifetime, lifetime_size, &table->rows[row], sizeof *table->rows);
    return REMAT_OK;
}

const char *remat_lifetime_table_id(const remat_lifetime_table *table, size_t row)
{
    return row < table->count ? table->text + table->starts[row] : NULL;
}

remat_status remat_lifetime_table_place_sized(remat_lifetime_table *table, const remat_arena_options *options,
                                              remat_arena_result *result, size_t result_size)
{
    return remat_arena_place_sized(table->context, table->rows, sizeof *table->rows, table->count, options, result,
                                   result_size);
}

remat_status remat_lifetime_table_check(const remat_lifetime_table *table, uint64_t alignment, uint64_t height)
{
    return remat_arena_check(table->context, table->rows, table->count, alignment, height);
}
