#include "profile/profile_read.h"

#include "base/alloc.h"
#include "base/checked.h"

#include <string.h>

enum { MOST_COLUMNS = 64, LONGEST_LINE = 1 << 16 };

/* What a column holds: a number of remat_profile_fields, or one of these. */
enum { COLUMN_UNKNOWN = -1, COLUMN_NAME = PROFILE_FIELD_COUNT, COLUMN_TYPE, COLUMN_KINDS };

typedef struct csv_file {
    remat_profile *chain;
    FILE *stream;
    remat_place place;
    int kinds[MOST_COLUMNS];
    size_t column_count;
    char *cells[MOST_COLUMNS]; /* of the current row, inside `line` */
    size_t cell_count;
    char line[LONGEST_LINE];
} csv_file;

static remat_status bad(csv_file *csv, const char *text)
{
    return remat_fail(csv->chain->context, REMAT_BAD_INPUT, &csv->place, "%s", text);
}

/* Reads a line without its end into csv->line. *more is false at the end of the file. */
static remat_status read_line(csv_file *csv, bool *more)
{
    size_t length = 0;
    int byte = getc(csv->stream);
    *more = byte != EOF;
    csv->place.line++;
    for (; byte != EOF && byte != '\n'; byte = getc(csv->stream)) {
        if (byte == 0)
            return bad(csv, "NUL byte; a profile is text");
        if (length == LONGEST_LINE - 1)
            return bad(csv, "the line is longer than 65535 bytes");
        csv->line[length++] = (char)byte;
    }
    if (ferror(csv->stream))
        return remat_fail(csv->chain->context, REMAT_IO, &csv->place, "reading failed");
    if (length > 0 && csv->line[length - 1] == '\r')
        length--;
    csv->line[length] = '\0';
    return REMAT_OK;
}

/* Takes a cell in quotes apart, in place: doubled quotes become one. Returns what follows its closing quote. */
static char *unquote(char *cell)
{
    char *from = cell + 1, *to = cell;
    for (; *from; from++) {
        if (*from == '"' && from[1] != '"')
            break;
        from += *from == '"';
        *to++ = *from;
    }
    if (!*from)
        return NULL;
    *to = '\0';
    return from + 1;
}

static char *skip_blanks(char *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

static void trim_end(char *cell)
{
    for (size_t length = strlen(cell); length > 0 && (cell[length - 1] == ' ' || cell[length - 1] == '\t'); length--)
        cell[length - 1] = '\0';
}

static remat_status split_line(csv_file *csv)
{
    csv->cell_count = 0;
    for (char *at = csv->line;;) {
        if (csv->cell_count == MOST_COLUMNS)
            return bad(csv, "more than 64 columns");
        at = skip_blanks(at);
        char *cell = at, *end;
        if (*cell == '"') {
            end = unquote(cell);
            if (!end)
                return bad(csv, "a quoted cell does not end on its line");
            end = skip_blanks(end);
            if (*end && *end != ',')
                return bad(csv, "text behind a closing quote; expected a comma");
        } else {
            end = cell + strcspn(cell, ",");
        }
        bool last = *end == '\0', quoted = *cell == '"';
        *end = '\0';
        if (!quoted)
            trim_end(cell);
        csv->cells[csv->cell_count++] = cell;
        if (last)
            return REMAT_OK;
        at = end + 1;
    }
}

/* ---- the header ---- */

static int column_kind(const char *name)
{
    if (strcmp(name, "name") == 0)
        return COLUMN_NAME;
    if (strcmp(name, "type") == 0)
        return COLUMN_TYPE;
    return remat_profile_field_find(name);
}

static remat_status require_columns(csv_file *csv, const bool seen[COLUMN_KINDS])
{
    csv->place.field = seen[COLUMN_TYPE] ? NULL : "type";
    for (size_t i = 0; i < PROFILE_FIELD_COUNT; i++)
        if (remat_profile_fields[i].required && !seen[i])
            csv->place.field = remat_profile_fields[i].name;
    if (csv->place.field)
        return bad(csv, "the column is missing; the first line must name index, type, activation_bytes and "
                        "recompute_flops");
    return REMAT_OK;
}

static remat_status read_header(csv_file *csv)
{
    bool more, seen[COLUMN_KINDS] = {false};
    do
        REMAT_TRY(read_line(csv, &more));
    while (more && !*skip_blanks(csv->line));
    if (!more)
        return bad(csv, "the file is empty; a profile is a JSON object or a CSV with a line of column names");
    REMAT_TRY(split_line(csv));
    csv->column_count = csv->cell_count;
    for (size_t i = 0; i < csv->cell_count; i++) {
        int kind = csv->kinds[i] = column_kind(csv->cells[i]);
        if (kind == COLUMN_UNKNOWN)
            remat_warn(csv->chain->context, &csv->place, "the column '%.60s' is unknown and ignored", csv->cells[i]);
        else if (seen[kind]) {
            csv->place.field = csv->cells[i];
            return bad(csv, "the column is there twice; once is enough");
        } else
            seen[kind] = true;
    }
    return require_columns(csv, seen);
}

/* ---- the rows ---- */

static remat_status parse_number(csv_file *csv, const char *cell, uint64_t *value)
{
    *value = 0;
    bool good = *cell != '\0';
    for (const char *at = cell; good && *at; at++) {
        uint64_t ten_times;
        good = *at >= '0' && *at <= '9' && remat_multiply(*value, 10, &ten_times) &&
               remat_add(&ten_times, (uint64_t)(*at - '0'));
        if (good)
            *value = ten_times;
    }
    if (good)
        return REMAT_OK;
    return remat_fail(csv->chain->context, REMAT_BAD_INPUT, &csv->place,
                      "'%.40s' is not allowed; it must be a whole number from 0 to 2^63 - 1", cell);
}

static remat_status read_cell(csv_file *csv, int kind, char *cell, remat_layer_options *options)
{
    if (kind == COLUMN_NAME) {
        options->name = *cell ? cell : NULL;
        return REMAT_OK;
    }
    if (kind == COLUMN_TYPE) {
        csv->place.field = "type";
        return remat_layer_type_parse(csv->chain->context, cell, &csv->place, &options->type);
    }
    const profile_field *field = &remat_profile_fields[kind];
    csv->place.field = field->name;
    if (!*cell && !field->required)
        return REMAT_OK; /* an empty cell asks for the default */
    return parse_number(csv, cell, (uint64_t *)(void *)((char *)options + field->offset));
}

static remat_status read_row(csv_file *csv)
{
    remat_layer_options options;
    remat_layer_options_init(&options);
    csv->place.layer = csv->chain->layer_count;
    REMAT_TRY(split_line(csv));
    if (csv->cell_count != csv->column_count)
        return remat_fail(csv->chain->context, REMAT_BAD_INPUT, &csv->place,
                          "%zu cells; the first line names %zu columns", csv->cell_count, csv->column_count);
    for (size_t i = 0; i < csv->cell_count; i++)
        if (csv->kinds[i] != COLUMN_UNKNOWN)
            REMAT_TRY(read_cell(csv, csv->kinds[i], csv->cells[i], &options));
    csv->place.field = NULL;
    return remat_chain_add(csv->chain, &options, &csv->place);
}

remat_status remat_profile_read_csv(remat_profile *chain, FILE *stream, const char *name)
{
    csv_file *csv = remat_alloc(chain->context, 1, sizeof *csv);
    if (!csv)
        return REMAT_NO_MEMORY;
    csv->chain = chain;
    csv->stream = stream;
    csv->place = REMAT_PLACE_NOWHERE;
    csv->place.file = name;
    csv->place.line = 0;
    remat_status status = read_header(csv);
    for (bool more = true; status == REMAT_OK && more;) {
        csv->place.layer = REMAT_NOWHERE;
        status = read_line(csv, &more);
        if (status == REMAT_OK && more && *skip_blanks(csv->line))
            status = read_row(csv);
    }
    remat_release(chain->context, csv, 1, sizeof *csv);
    return status;
}
