#include "data/csv_table.h"

#include "base/alloc.h"
#include "base/input.h"
#include "base/names.h"
#include "base/number_text.h"
#include "base/utf8.h"

#include <math.h>
#include <string.h>

static const char delimiters[] = {[DELIMITER_COMMA] = ',',
                                  [DELIMITER_SEMICOLON] = ';',
                                  [DELIMITER_TAB] = '\t',
                                  [DELIMITER_PIPE] = '|',
                                  [DELIMITER_SPACE] = ' '};

/* ---- cells ---- */

bool csv_is_missing(const char *cell)
{
    static const char *const words[] = {"", "?", "na", "n/a", "nan", "null", "none"};
    if ((*cell >= '0' && *cell <= '9') || *cell == '-' || *cell == '.')
        return false; /* most cells are numbers */
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (names_equal(cell, words[i]))
            return true;
    return false;
}

bool csv_is_number(const char *cell, double *value)
{
    const char *end;
    *value = 0;
    if (number_parse(cell, &end, value))
        return !*end;
    return isinf(*value); /* too large even for a double */
}

static bool is_blank(const csv_table *table, char letter)
{
    return letter == ' ' || (letter == '\t' && table->delimiter != '\t');
}

static char *skip_blanks(const csv_table *table, char *at)
{
    while (is_blank(table, *at))
        at++;
    return at;
}

/* Where a cell ends that begins at `at`: at its delimiter or at the end of the line. */
static char *find_end(const csv_table *table, char *at)
{
    return table->delimiter == ' ' ? at + strcspn(at, " \t") : at + strcspn(at, (char[]){table->delimiter, 0});
}

/* The quote that closes a cell which begins with one; the end of the line where there is none. */
static char *find_closing(char *cell)
{
    char *end = cell + 1;
    for (; *end && (*end != '"' || end[1] == '"'); end++)
        end += *end == '"';
    return end;
}

/* Takes quotes off, in place: doubled quotes become one. Returns what follows the closing quote, after blanks; NULL where
 * the cell is not one that is quoted as a whole. */
static char *unquote(const csv_table *table, char *cell)
{
    char *end = find_closing(cell);
    if (!*end)
        return NULL;
    char *behind = skip_blanks(table, end + 1);
    if (*behind && *behind != table->delimiter && table->delimiter != ' ')
        return NULL;
    char *to = cell;
    for (char *from = cell + 1; from < end; from++) {
        from += *from == '"';
        *to++ = *from;
    }
    *to = '\0';
    return behind;
}

/* Takes the cell at *at, which moves behind its delimiter, or to NULL behind the last. */
static char *take_cell(const csv_table *table, char **at)
{
    char *cell = skip_blanks(table, *at), *end = *cell == '"' ? unquote(table, cell) : NULL;
    if (!end) {
        end = find_end(table, cell);
        char *last = end;
        while (last > cell && is_blank(table, last[-1]))
            last--;
        bool more = *end != '\0';
        *last = '\0';
        *at = more ? end + 1 : NULL;
    } else {
        *at = *end ? end + (table->delimiter != ' ') : NULL;
    }
    if (table->delimiter == ' ' && *at) {
        *at = skip_blanks(table, *at);
        *at = **at ? *at : NULL;
    }
    return cell;
}

/* Splits the reader's line; *count is how many cells there are. */
static remat_status split(csv_table *table, size_t *count)
{
    *count = 0;
    for (char *at = table->reader->line; at; ++*count) {
        char *cell = skip_blanks(table, at);
        if (*cell == '"' && !*find_closing(cell))
            return remat_fail(table->context, REMAT_BAD_INPUT, &table->reader->place,
                              "cell %zu begins with a quote that is not closed in this line: %.40s", *count + 1, cell);
        cell = take_cell(table, &at);
        if (*count == table->cell_capacity)
            REMAT_TRY(remat_grow(table->context, (void **)&table->cells, &table->cell_capacity, *count + 1,
                                 sizeof *table->cells));
        table->cells[*count] = cell;
    }
    return REMAT_OK;
}

/* ---- the first line ---- */

/* The delimiter that is there most often outside of quotes; the first of equals. Without any, blanks. */
static char detect_delimiter(const char *line)
{
    size_t counts[sizeof delimiters] = {0}, best = DELIMITER_COMMA;
    bool quoted = false;
    for (const char *at = line; *at; at++) {
        quoted ^= *at == '"';
        for (size_t d = DELIMITER_COMMA; !quoted && d < DELIMITER_SPACE; d++)
            counts[d] += *at == delimiters[d];
    }
    for (size_t d = DELIMITER_COMMA; d < DELIMITER_SPACE; d++)
        best = counts[d] > counts[best] ? d : best;
    line += strspn(line, " \t");
    return counts[best] == 0 && line[strcspn(line, " ")] ? ' ' : delimiters[best];
}

/* Whether one of the cells is in the list as a name. */
static bool names_cell(const csv_table *table, const char *list, size_t count)
{
    while (list && *list) {
        list += strspn(list, " \t");
        size_t length = strcspn(list, ","), end = length;
        while (end && (list[end - 1] == ' ' || list[end - 1] == '\t'))
            end--;
        double number;
        for (size_t i = 0; i < count; i++)
            if (end && strlen(table->cells[i]) == end && memcmp(table->cells[i], list, end) == 0 &&
                !csv_is_number(table->cells[i], &number))
                return true;
        list += length + (list[length] == ',');
    }
    return false;
}

/* A first line without any number names the columns, and so does one with a name that the settings have. One with a number
 * here and a typing error there is data. */
static bool is_header(const csv_table *table, const dataset_settings *settings, size_t count)
{
    if (settings->header != HEADER_AUTO)
        return settings->header == HEADER_TRUE;
    double number;
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any |= csv_is_number(table->cells[i], &number);
    return !any || names_cell(table, settings->columns, count) || names_cell(table, settings->target, count) ||
           names_cell(table, settings->ignore, count);
}

static remat_status keep_header(csv_table *table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!remat_utf8_valid(table->cells[i]))
            return csv_fail(table->reader, "the column names are not UTF-8; save the file as UTF-8");
        REMAT_TRY(name_list_add(table->context, &table->header, table->cells[i]));
    }
    return REMAT_OK;
}

static remat_status open_table(csv_table *table, const char *path, const dataset_settings *settings)
{
    bool more;
    size_t count;
    REMAT_TRY(input_open_regular(table->context, path, &table->stream));
    table->reader = csv_reader_create(table->context, table->stream, path);
    if (!table->reader)
        return REMAT_NO_MEMORY;
    table->reader->most_bytes = UINT64_MAX;
    REMAT_TRY(csv_next_line(table->reader, &more));
    if (!more)
        return REMAT_OK;
    table->delimiter =
        settings->delimiter == DELIMITER_AUTO ? detect_delimiter(table->reader->line) : delimiters[settings->delimiter];
    REMAT_TRY(split(table, &count));
    table->columns = count;
    if (is_header(table, settings, count))
        return keep_header(table, count);
    table->is_first_row_read = true;
    return REMAT_OK;
}

remat_status csv_table_open(remat_context *context, const char *path, const dataset_settings *settings,
                            csv_table *table)
{
    *table = (csv_table){.context = context};
    return open_table(table, path, settings);
}

void csv_table_close(csv_table *table)
{
    if (!table->context)
        return;
    name_list_end(table->context, &table->header);
    remat_release(table->context, table->cells, table->cell_capacity, sizeof *table->cells);
    csv_reader_destroy(table->reader);
    if (table->stream)
        fclose(table->stream);
    *table = (csv_table){0};
}

/* ---- rows ---- */

remat_status csv_table_next(csv_table *table, bool *more)
{
    if (table->is_first_row_read) {
        table->is_first_row_read = false;
        *more = true;
        return REMAT_OK;
    }
    REMAT_TRY(csv_next_line(table->reader, more));
    if (!*more)
        return REMAT_OK;
    size_t count;
    REMAT_TRY(split(table, &count));
    if (count == table->columns)
        return REMAT_OK;
    return remat_fail(table->context, REMAT_BAD_INPUT, &table->reader->place, "%zu cells; the first row has %llu",
                      count, (unsigned long long)table->columns);
}

remat_status csv_table_fail(const csv_table *table, uint64_t column, const char *text)
{
    const char *name = column < table->header.count ? table->header.names[column] : NULL;
    return remat_fail(table->context, REMAT_BAD_INPUT, &table->reader->place, "column %llu%s%.60s%s: '%.40s' %s",
                      (unsigned long long)column + 1, name ? " (" : "", name ? name : "", name ? ")" : "",
                      table->cells[column], text);
}
