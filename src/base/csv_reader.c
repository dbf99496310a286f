#include "base/csv_reader.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/input.h"

#include <errno.h>
#include <string.h>

csv_reader *csv_reader_create(remat_context *context, FILE *stream, const char *name)
{
    csv_reader *reader = remat_alloc(context, 1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->context = context;
    reader->stream = stream;
    reader->place = REMAT_PLACE_NOWHERE;
    reader->place.file = name;
    reader->place.line = 0;
    reader->bytes = 0;
    reader->most_bytes = INPUT_MOST_BYTES;
    reader->column_count = reader->cell_count = 0;
    return reader;
}

void csv_reader_destroy(csv_reader *reader)
{
    if (reader)
        remat_release(reader->context, reader, 1, sizeof *reader);
}

remat_status csv_fail(csv_reader *reader, const char *text)
{
    return remat_fail(reader->context, REMAT_BAD_INPUT, &reader->place, "%s", text);
}

/* ---- lines ---- */

/* A byte order mark is no part of the first column's name. */
static void drop_mark(csv_reader *reader)
{
    static const char mark[] = "\xef\xbb\xbf";
    if (reader->place.line == 1 && strncmp(reader->line, mark, 3) == 0)
        memmove(reader->line, reader->line + 3, strlen(reader->line + 3) + 1);
}

/* Reads a line without its end into reader->line. */
static remat_status read_line(csv_reader *reader, bool *more)
{
    size_t length = 0;
    int byte = getc(reader->stream);
    *more = byte != EOF;
    reader->place.line++;
    for (; byte != EOF && byte != '\n'; byte = getc(reader->stream)) {
        if (byte == 0)
            return csv_fail(reader, "NUL byte; a CSV file is text");
        if (length == CSV_LONGEST_LINE - 1)
            return csv_fail(reader, "the line is longer than 65535 bytes");
        reader->line[length++] = (char)byte;
    }
    reader->bytes += length + 1;
    if (reader->bytes > reader->most_bytes)
        return input_check_length(reader->context, reader->place.file, reader->bytes);
    if (ferror(reader->stream))
        return remat_fail(reader->context, REMAT_IO, &reader->place, "reading failed: %s", strerror(errno));
    if (length > 0 && reader->line[length - 1] == '\r')
        length--;
    reader->line[length] = '\0';
    drop_mark(reader);
    return REMAT_OK;
}

static char *skip_blanks(char *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

remat_status csv_next_line(csv_reader *reader, bool *more)
{
    do
        REMAT_TRY(read_line(reader, more));
    while (*more && !*skip_blanks(reader->line));
    return REMAT_OK;
}

/* ---- cells ---- */

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

static void trim_end(char *cell)
{
    for (size_t length = strlen(cell); length > 0 && (cell[length - 1] == ' ' || cell[length - 1] == '\t'); length--)
        cell[length - 1] = '\0';
}

/* Takes the cell at `*at`, which moves behind its comma, or to NULL behind the last cell. */
static remat_status take_cell(csv_reader *reader, char **at)
{
    char *cell = skip_blanks(*at), *end;
    bool quoted = *cell == '"';
    if (quoted) {
        end = unquote(cell);
        if (!end)
            return csv_fail(reader, "a quoted cell does not end on its line");
        end = skip_blanks(end);
        if (*end && *end != ',')
            return csv_fail(reader, "text behind a closing quote; expected a comma");
    } else {
        end = cell + strcspn(cell, ",");
    }
    *at = *end ? end + 1 : NULL;
    *end = '\0';
    if (!quoted)
        trim_end(cell);
    reader->cells[reader->cell_count++] = cell;
    return REMAT_OK;
}

static remat_status split(csv_reader *reader)
{
    reader->cell_count = 0;
    for (char *at = reader->line; at;) {
        if (reader->cell_count == CSV_MOST_COLUMNS)
            return csv_fail(reader, "more than 64 columns");
        REMAT_TRY(take_cell(reader, &at));
    }
    return REMAT_OK;
}

remat_status csv_read_header(csv_reader *reader, const char *if_empty)
{
    bool more;
    REMAT_TRY(csv_next_line(reader, &more));
    if (!more)
        return csv_fail(reader, if_empty);
    REMAT_TRY(split(reader));
    reader->column_count = reader->cell_count;
    return REMAT_OK;
}

remat_status csv_split_row(csv_reader *reader)
{
    REMAT_TRY(split(reader));
    if (reader->cell_count == reader->column_count)
        return REMAT_OK;
    return remat_fail(reader->context, REMAT_BAD_INPUT, &reader->place, "%zu cells; the first line names %zu columns",
                      reader->cell_count, reader->column_count);
}

remat_status csv_parse_number(csv_reader *reader, const char *cell, uint64_t *value)
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
    return remat_fail(reader->context, REMAT_BAD_INPUT, &reader->place,
                      "'%.40s' is not allowed; it must be a whole number from 0 to 2^63 - 1", cell);
}
