/* Samples from a CSV file: one row for each sample. They are held in memory in the types that the network reads. */
#include "data/data_set.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/csv_reader.h"
#include "base/input.h"
#include "base/number_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number of a column, by the type of the field that it belongs to. */
typedef union csv_value {
    float number;
    int32_t id;
} csv_value;

typedef struct csv_set {
    data_set set;
    char *path;
    uint64_t columns;       /* in a row of the file */
    uint64_t kept;          /* of these, from the first on */
    csv_value *values;      /* samples x kept */
    uint64_t value_count;   /* allocated */
    uint64_t label_columns; /* at the end of a row; where nobody wants them they are not kept */
} csv_set;

static void close_csv(data_set *set)
{
    csv_set *csv = (csv_set *)set;
    remat_release(set->context, csv->values, csv->value_count, sizeof *csv->values);
    remat_text_release(set->context, csv->path);
    remat_release(set->context, csv, 1, sizeof *csv);
}

static const csv_value *copy_field(const data_field *field, const csv_value *from, void *to)
{
    for (uint64_t i = 0; i < field->values; i++) {
        if (data_field_is_integer(field))
            ((int32_t *)to)[i] = from[i].id;
        else
            ((float *)to)[i] = (float)from[i].number;
    }
    return from + field->values;
}

static remat_status read_csv(data_set *set, uint64_t sample, void *const *inputs, void *labels)
{
    csv_set *csv = (csv_set *)set;
    const csv_value *from = csv->values + sample * csv->kept;
    for (size_t i = 0; i < set->needs->input_count; i++)
        from = copy_field(&set->needs->inputs[i], from, inputs[i]);
    if (labels)
        copy_field(&set->needs->labels, from, labels);
    return REMAT_OK;
}

/* ---- rows ---- */

/* One number at *at, which moves behind its comma, or to NULL behind the last. A cell may stand in quotes. */
static bool take_number(const char **at, double *value)
{
    static const char blanks[] = " \t";
    const char *text = *at + strspn(*at, blanks);
    bool quoted = *text == '"';
    if (quoted)
        text += 1 + strspn(text + 1, blanks);
    if (!number_parse(text, &text, value))
        return false;
    text += strspn(text, blanks);
    if (quoted && *text++ != '"')
        return false;
    text += strspn(text, blanks);
    *at = *text == ',' ? text + 1 : NULL;
    return *text == ',' || *text == '\0';
}

/* A number that is too large even for a double. */
static bool is_too_large(const char *cell)
{
    double value = 0;
    number_parse(cell + strspn(cell, " \t\""), &cell, &value);
    return isinf(value);
}

static remat_status fail_cell(csv_reader *reader, uint64_t column, const char *cell)
{
    while (*cell == ' ' || *cell == '\t')
        cell++;
    int length = (int)(strcspn(cell, ",") < 40 ? strcspn(cell, ",") : 40);
    if (is_too_large(cell))
        return remat_fail(reader->context, REMAT_BAD_INPUT, &reader->place,
                          "column %llu: '%.*s' is too large for a float", (unsigned long long)column + 1, length, cell);
    return remat_fail(reader->context, REMAT_BAD_INPUT, &reader->place,
                      "column %llu: '%.*s' is not a number; a row must hold numbers with commas between",
                      (unsigned long long)column + 1, length, cell);
}

static remat_status put_value(csv_reader *reader, const data_field *field, uint64_t column, double number,
                              csv_value *to)
{
    if (!data_field_is_integer(field)) {
        to->number = (float)number;
        if (isfinite(to->number))
            return REMAT_OK;
        return remat_fail(reader->context, REMAT_BAD_INPUT, &reader->place, "column %llu: %g is too large for a float",
                          (unsigned long long)column + 1, number);
    }
    char what[40];
    snprintf(what, sizeof what, "column %llu", (unsigned long long)column + 1);
    if (number != floor(number) || number < INT32_MIN || number > INT32_MAX)
        return remat_fail(reader->context, REMAT_BAD_INPUT, &reader->place,
                          "%s: %g is not allowed; it must be a whole number", what, number);
    to->id = (int32_t)number;
    if (data_id_is_good(field, to->id))
        return REMAT_OK;
    return data_fail_id(reader->context, &reader->place, field, what, to->id);
}

/* The field of the network that reads this column; NULL where none does. */
static const data_field *field_of(const data_needs *needs, uint64_t column)
{
    for (size_t i = 0; i < needs->input_count; i++) {
        if (column < needs->inputs[i].values)
            return &needs->inputs[i];
        column -= needs->inputs[i].values;
    }
    return column < needs->labels.values ? &needs->labels : NULL;
}

static remat_status read_row(const csv_set *csv, csv_reader *reader, csv_value *to)
{
    const char *at = reader->line;
    uint64_t column = 0;
    for (; at; column++) {
        const char *cell = at;
        double number;
        if (!take_number(&at, &number))
            return fail_cell(reader, column, cell);
        const data_field *field = field_of(csv->set.needs, column);
        if (field && column < csv->columns)
            REMAT_TRY(put_value(reader, field, column, number, &to[column]));
    }
    if (column == csv->columns)
        return REMAT_OK;
    return remat_fail(reader->context, REMAT_BAD_INPUT, &reader->place, "%llu numbers; the first row has %llu",
                      (unsigned long long)column, (unsigned long long)csv->columns);
}

/* ---- the file, which is read twice: how much there is, then what it is ---- */

static uint64_t count_cells(const char *line)
{
    uint64_t cells = 1;
    for (; *line; line++)
        cells += *line == ',';
    return cells;
}

/* A first line without any number names the columns. One with a number here and a typing error there is data. */
static bool is_header(const char *line)
{
    for (const char *cell = line;; cell++) {
        const char *at = cell;
        double number;
        if (take_number(&at, &number) || is_too_large(cell))
            return false;
        cell += strcspn(cell, ",");
        if (!*cell)
            return true;
    }
}

/* `values` NULL: counts samples and columns. */
static remat_status scan(csv_set *csv, csv_reader *reader, csv_value *values)
{
    uint64_t rows = 0;
    for (bool first = true;; first = false) {
        bool more;
        REMAT_TRY(csv_next_line(reader, &more));
        if (!more)
            break;
        if (first && is_header(reader->line))
            continue;
        if (values && rows == csv->set.samples)
            return csv_fail(reader, "the file has become longer while it was read");
        if (values)
            REMAT_TRY(read_row(csv, reader, values + rows * csv->kept));
        else if (rows == 0)
            csv->columns = count_cells(reader->line);
        rows++;
    }
    reader->place.line = REMAT_NOWHERE;
    if (values && rows != csv->set.samples)
        return csv_fail(reader, "the file has become shorter while it was read");
    csv->set.samples = rows;
    return rows ? REMAT_OK : csv_fail(reader, "no rows of numbers");
}

static remat_status scan_file(csv_set *csv, csv_value *values)
{
    remat_context *context = csv->set.context;
    FILE *stream;
    REMAT_TRY(input_open_regular(context, csv->path, &stream));
    csv_reader *reader = csv_reader_create(context, stream, csv->path);
    if (reader)
        reader->most_bytes = UINT64_MAX;
    remat_status status = reader ? scan(csv, reader, values) : REMAT_NO_MEMORY;
    csv_reader_destroy(reader);
    fclose(stream);
    return status;
}

/* ---- opening ---- */

static remat_status read_label_columns(csv_set *csv, const data_request *request)
{
    const char *text = request->labels ? request->labels : "1";
    char *end;
    unsigned long long count = strtoull(text, &end, 10);
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = "labels";
    if (end == text || *end || *text == '-' || count > CSV_LONGEST_LINE)
        return remat_fail(request->context, REMAT_INVALID, &place,
                          "'%.40s' is not allowed; of csv it is the number of label columns, the last ones", text);
    uint64_t wanted = request->needs->labels.values;
    if (wanted && wanted != count)
        return remat_fail(request->context, REMAT_INVALID, &place,
                          "%llu label columns; the loss takes %llu values a sample, so it must be labels = %llu", count,
                          (unsigned long long)wanted, (unsigned long long)wanted);
    csv->label_columns = count;
    return REMAT_OK;
}

static remat_status check_columns(csv_set *csv, const data_request *request)
{
    uint64_t inputs = 0;
    for (size_t i = 0; i < request->needs->input_count; i++)
        if (!remat_add(&inputs, request->needs->inputs[i].values))
            return remat_fail(request->context, REMAT_INVALID, NULL, "the inputs have 2^63 values or more");
    csv->kept = inputs + request->needs->labels.values;
    /* Where nobody asks for labels, as in a prediction, the file may be without them. */
    if (csv->columns == inputs + csv->label_columns || (csv->columns == inputs && csv->kept == inputs))
        return REMAT_OK;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = csv->path;
    return remat_fail(request->context, REMAT_BAD_INPUT, &place,
                      "%llu columns; the model needs %llu: %llu of inputs, then %llu of labels",
                      (unsigned long long)csv->columns, (unsigned long long)(inputs + csv->label_columns),
                      (unsigned long long)inputs, (unsigned long long)csv->label_columns);
}

static remat_status open_csv(csv_set *csv, const data_request *request)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = "inputs";
    if (!request->inputs || data_path_count(request->inputs) != 1)
        return remat_fail(request->context, REMAT_INVALID, &place, "name one CSV file");
    REMAT_TRY(read_label_columns(csv, request));
    csv->path = data_path_at(request->context, request->folder, request->inputs, 0);
    if (!csv->path)
        return REMAT_NO_MEMORY;
    REMAT_TRY(scan_file(csv, NULL));
    REMAT_TRY(check_columns(csv, request));
    uint64_t values;
    if (!remat_multiply(csv->set.samples, csv->kept, &values))
        return remat_fail(request->context, REMAT_NO_MEMORY, NULL, "the file has 2^63 numbers or more");
    csv->values = remat_alloc(request->context, values, sizeof *csv->values);
    if (!csv->values)
        return REMAT_NO_MEMORY;
    csv->value_count = values;
    return scan_file(csv, csv->values);
}

remat_status data_csv_open(const data_request *request, data_set **set)
{
    csv_set *csv = remat_alloc_zeroed(request->context, 1, sizeof *csv);
    if (!csv)
        return REMAT_NO_MEMORY;
    csv->set = (data_set){request->context, request->needs, 0, read_csv, close_csv, false};
    remat_status status = open_csv(csv, request);
    if (status == REMAT_OK)
        *set = &csv->set;
    else
        close_csv(&csv->set);
    return status;
}
