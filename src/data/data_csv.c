/* Samples from a CSV file: one row for each sample. They are held in memory in the types that the network reads.
 *
 * The file is read several times: how much there is; which classes, where labels are words; the values; and where columns
 * are normalized or gaps filled, the statistics of the training samples and the values once more. */
#include "data/data_csv.h"

#include "base/alloc.h"
#include "base/checked.h"

#include <math.h>
#include <string.h>

static void close_csv(data_set *set)
{
    csv_set *csv = (csv_set *)set;
    remat_release(set->context, csv->values, csv->value_count, sizeof *csv->values);
    remat_release(set->context, csv->rows, set->samples, sizeof *csv->rows);
    remat_release(set->context, csv->seen, csv->seen_count, sizeof *csv->seen);
    remat_release(set->context, csv->class_order, csv->class_count, sizeof *csv->class_order);
    column_list_end(set->context, &csv->inputs);
    column_list_end(set->context, &csv->labels);
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

static remat_status read_class(data_set *set, uint64_t sample, int32_t *id)
{
    const csv_set *csv = (const csv_set *)set;
    *id = csv->values[(sample + 1) * csv->kept - 1].id;
    return REMAT_OK;
}

static uint64_t row_of(const data_set *set, uint64_t sample)
{
    const csv_set *csv = (const csv_set *)set;
    return csv->rows ? csv->rows[sample] : sample + 1;
}

/* ---- scanning ---- */

static bool lacks_value(const csv_table *table, const column_list *columns)
{
    for (size_t i = 0; i < columns->count; i++)
        if (csv_is_missing(table->cells[columns->columns[i]]))
            return true;
    return false;
}

static remat_status scan_rows(csv_set *csv, csv_table *table, csv_row_fn visit, void *user, uint64_t *samples)
{
    *samples = 0;
    for (uint64_t row = 1;; row++) {
        bool more;
        REMAT_TRY(csv_table_next(table, &more));
        if (!more) {
            csv->dropped = row - 1 - *samples;
            return REMAT_OK;
        }
        if (csv->settings->missing == MISSING_DROP &&
            (lacks_value(table, &csv->inputs) || lacks_value(table, &csv->labels)))
            continue;
        REMAT_TRY(visit(csv, table, (*samples)++, row, user));
    }
}

remat_status csv_scan(csv_set *csv, csv_row_fn visit, void *user, uint64_t *samples)
{
    csv_table table;
    remat_status status = csv_table_open(csv->set.context, csv->path, csv->settings, &table);
    if (status == REMAT_OK)
        status = scan_rows(csv, &table, visit, user, samples);
    csv_table_close(&table);
    return status;
}

typedef struct counted_scan {
    csv_row_fn visit;
    void *user;
} counted_scan;

static remat_status visit_counted(csv_set *csv, const csv_table *table, uint64_t sample, uint64_t row, void *user)
{
    const counted_scan *scan = user;
    if (sample == csv->set.samples)
        return csv_fail(table->reader, "the file has become longer while it was read");
    return scan->visit(csv, table, sample, row, scan->user);
}

remat_status csv_scan_counted(csv_set *csv, csv_row_fn visit, void *user)
{
    uint64_t samples = 0;
    counted_scan scan = {visit, user};
    REMAT_TRY(csv_scan(csv, visit_counted, &scan, &samples));
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = csv->path;
    if (samples == csv->set.samples)
        return REMAT_OK;
    return remat_fail(csv->set.context, REMAT_BAD_INPUT, &place, "the file has become shorter while it was read");
}

/* ---- the first scan ---- */

static remat_status count_row(csv_set *csv, const csv_table *table, uint64_t sample, uint64_t row, void *user)
{
    double number;
    (void)sample;
    (void)row;
    (void)user;
    for (size_t i = 0; i < csv->inputs.count; i++) {
        const char *cell = table->cells[csv->inputs.columns[i]];
        if (!csv_is_missing(cell) && csv->settings->words == WORDS_ONEHOT)
            csv->seen[i] |= csv_is_number(cell, &number) ? CSV_SEEN_NUMBER : CSV_SEEN_WORD;
    }
    for (size_t i = 0; csv_has_classes(csv) && i < csv->labels.count; i++) {
        const char *cell = table->cells[csv->labels.columns[i]];
        bool is_number = csv_is_number(cell, &number);
        uint64_t *line = is_number ? &csv->number_line : &csv->word_line;
        if (csv_is_missing(cell) || *line)
            continue;
        *line = table->reader->place.line;
        if (!is_number)
            csv->word_column = csv->labels.columns[i];
    }
    return REMAT_OK;
}

static remat_status count_rows(csv_set *csv)
{
    csv->seen = remat_alloc_zeroed(csv->set.context, csv->inputs.count, sizeof *csv->seen);
    if (!csv->seen)
        return REMAT_NO_MEMORY;
    csv->seen_count = csv->inputs.count;
    REMAT_TRY(csv_scan(csv, count_row, NULL, &csv->set.samples));
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = csv->path;
    if (csv->set.samples)
        return REMAT_OK;
    return remat_fail(csv->set.context, REMAT_BAD_INPUT, &place,
                      csv->dropped ? "every row has a missing value" : "no rows of numbers");
}

/* ---- values ---- */

static remat_status put_number(const csv_table *table, uint64_t column, double number, const column_encoding *encoding,
                               csv_value *to)
{
    to->number = (float)(encoding ? (number - encoding->shift) / encoding->scale : number);
    return isfinite(to->number) ? REMAT_OK : csv_table_fail(table, column, "is too large for a float");
}

static remat_status put_id(const csv_set *csv, const csv_table *table, const data_field *field, uint64_t column,
                           double number, csv_value *to)
{
    if (number != floor(number))
        return csv_table_fail(table, column, "is not allowed; it must be a whole number");
    if (number < INT32_MIN || number > INT32_MAX)
        return csv_table_fail(table, column, "is out of range; whole numbers here are below 2^31");
    to->id = (int32_t)number;
    if (data_id_is_good(field, to->id))
        return REMAT_OK;
    char what[40];
    snprintf(what, sizeof what, "column %llu", (unsigned long long)column + 1);
    return data_fail_id(csv->set.context, &table->reader->place, field, what, to->id);
}

/* The number that stands for a missing one. */
static remat_status replace_missing(const csv_set *csv, const csv_table *table, const data_field *field,
                                    uint64_t column, const column_encoding *encoding, double *number)
{
    *number = 0;
    if (csv->settings->missing == MISSING_ZERO)
        return REMAT_OK;
    if (csv->settings->missing != MISSING_MEAN)
        return csv_table_fail(table, column,
                              "is a missing value; missing = mean, zero or drop in [Dataset] says what to do");
    if (data_field_is_integer(field))
        return csv_table_fail(table, column, "is a missing token, and tokens have no mean; use missing = drop");
    if (encoding && isnan(encoding->fill) && csv->encoding_is_given)
        return csv_table_fail(table, column, "is a missing value, and the weights were trained without missing = mean");
    *number = encoding && isfinite(encoding->fill) ? encoding->fill : 0; /* 0: the mean is not known yet */
    return REMAT_OK;
}

/* Such as 1,5: digits with one comma between. */
static bool has_decimal_comma(const char *cell)
{
    const char *at = cell + (*cell == '-');
    size_t before = strspn(at, "0123456789"), behind;
    if (at[before] != ',')
        return false;
    behind = strspn(at + before + 1, "0123456789");
    return behind > 0 && !at[before + 1 + behind];
}

static const char *not_a_number(const csv_table *table, const char *cell)
{
    if (has_decimal_comma(cell))
        return "is not a number; decimals are written with a point, such as 1.5";
    return table->header.count || table->reader->place.line > 1
               ? "is not a number; ignore = COLUMN leaves a column out, and words = onehot takes columns of words"
               : "is not a number; header = true takes the first line as column names";
}

static remat_status put_input(const csv_set *csv, const csv_table *table, const data_field *field, size_t input,
                              csv_value *to)
{
    uint64_t column = csv->inputs.columns[input];
    const column_encoding *encoding = input < csv->encoding->column_count ? &csv->encoding->columns[input] : NULL;
    const char *cell = table->cells[column];
    double number;
    if (encoding && encoding->words.count)
        return csv_put_words(csv, table, input, to);
    if (csv_is_missing(cell))
        REMAT_TRY(replace_missing(csv, table, field, column, encoding, &number));
    else if (!csv_is_number(cell, &number))
        return csv_table_fail(table, column, not_a_number(table, cell));
    if (data_field_is_integer(field))
        return put_id(csv, table, field, column, number, to);
    return put_number(table, column, number, encoding, to);
}

static remat_status put_label(const csv_set *csv, const csv_table *table, uint64_t column, csv_value *to)
{
    const data_field *field = &csv->set.needs->labels;
    const char *cell = table->cells[column];
    double number;
    if (csv_is_missing(cell))
        return csv_table_fail(table, column, "is a missing label; missing = drop leaves such rows out");
    if (csv->class_count)
        return csv_class_of(csv, table, column, &to->id);
    if (!csv_is_number(cell, &number))
        return csv_table_fail(table, column,
                              data_field_is_integer(field) ? "is not a number"
                                                           : "is not a number; words are labels for a cross_entropy, "
                                                             "with one unit for each of them");
    if (data_field_is_integer(field))
        return put_id(csv, table, field, column, number, to);
    return put_number(table, column, number, NULL, to);
}

static void count_missing(csv_set *csv, const csv_table *table, size_t input)
{
    if (!csv_is_missing(table->cells[csv->inputs.columns[input]]))
        return;
    bool is_word = input < csv->encoding->column_count && csv->encoding->columns[input].words.count;
    *(is_word ? &csv->missing_words : &csv->missing) += 1;
}

static remat_status put_row(csv_set *csv, const csv_table *table, uint64_t sample, uint64_t row, void *user)
{
    csv_value *to = csv->values + sample * csv->kept;
    const data_needs *needs = csv->set.needs;
    uint64_t at = 0;
    (void)user;
    for (size_t i = 0; i < csv->inputs.count; i++) {
        REMAT_TRY(put_input(csv, table, csv_field_of(needs, at), i, to + at));
        count_missing(csv, table, i);
        at += csv_width(csv, i);
    }
    to += at;
    for (size_t i = 0; i < csv->labels.count; i++)
        REMAT_TRY(put_label(csv, table, csv->labels.columns[i], to++));
    if (csv->rows)
        csv->rows[sample] = row;
    return REMAT_OK;
}

static remat_status allocate(csv_set *csv)
{
    uint64_t values;
    if (!remat_multiply(csv->set.samples, csv->kept, &values))
        return remat_fail(csv->set.context, REMAT_NO_MEMORY, NULL, "the file has 2^63 numbers or more");
    csv->values = remat_alloc(csv->set.context, values, sizeof *csv->values);
    if (!csv->values)
        return REMAT_NO_MEMORY;
    csv->value_count = values;
    if (!csv->dropped)
        return REMAT_OK;
    csv->rows = remat_alloc(csv->set.context, csv->set.samples, sizeof *csv->rows);
    return csv->rows ? REMAT_OK : REMAT_NO_MEMORY;
}

/* ---- opening ---- */

static void warn_of_missing(const csv_set *csv)
{
    if (csv->dropped)
        remat_warn(csv->set.context, NULL, "%.200s: %llu of %llu rows %s missing values and %s left out", csv->path,
                   (unsigned long long)csv->dropped, (unsigned long long)(csv->dropped + csv->set.samples),
                   csv->dropped == 1 ? "has" : "have", csv->dropped == 1 ? "is" : "are");
    if (csv->missing)
        remat_warn(csv->set.context, NULL, "%.200s: %llu missing value%s by %s", csv->path,
                   (unsigned long long)csv->missing, csv->missing == 1 ? " is replaced" : "s are replaced",
                   csv->settings->missing == MISSING_MEAN ? "the mean of the column" : "0");
    if (csv->missing_words)
        remat_warn(csv->set.context, NULL, "%.200s: %llu missing word%s only zeros", csv->path,
                   (unsigned long long)csv->missing_words, csv->missing_words == 1 ? " becomes" : "s become");
}

static remat_status fit_csv(data_set *set, const data_split *split)
{
    csv_set *csv = (csv_set *)set;
    const dataset_settings *settings = csv->settings;
    if (csv->encoding_is_given || (settings->normalize == NORMALIZE_NONE && settings->missing != MISSING_MEAN))
        return REMAT_OK;
    REMAT_TRY(csv_find_statistics(csv, split));
    return csv_scan_counted(csv, put_row, NULL);
}

static remat_status choose_columns(csv_set *csv, const char *label_count)
{
    csv_table table;
    remat_status status = csv_table_open(csv->set.context, csv->path, csv->settings, &table);
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = csv->path;
    if (status == REMAT_OK && table.columns == 0)
        status = remat_fail(csv->set.context, REMAT_BAD_INPUT, &place, "no rows of numbers");
    if (status == REMAT_OK)
        status = csv_choose_columns(csv, &table, label_count);
    csv_table_close(&table);
    return status;
}

static remat_status open_csv(csv_set *csv, const data_request *request)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = "inputs";
    if (!request->inputs || data_path_count(request->inputs) != 1)
        return remat_fail(request->context, REMAT_INVALID, &place, "name one CSV file");
    uint64_t labels;
    if (!csv->settings->target)
        REMAT_TRY(csv_count_labels(csv, request->labels, &labels));
    csv->path = data_path_at(request->context, request->folder, request->inputs, 0);
    if (!csv->path)
        return REMAT_NO_MEMORY;
    REMAT_TRY(choose_columns(csv, request->labels));
    REMAT_TRY(count_rows(csv));
    REMAT_TRY(csv_find_words(csv));
    REMAT_TRY(csv_find_classes(csv));
    REMAT_TRY(allocate(csv));
    REMAT_TRY(csv_scan_counted(csv, put_row, NULL));
    warn_of_missing(csv);
    return REMAT_OK;
}

remat_status data_csv_open(const data_request *request, data_set **set)
{
    csv_set *csv = remat_alloc_zeroed(request->context, 1, sizeof *csv);
    if (!csv)
        return REMAT_NO_MEMORY;
    csv->set = (data_set){.context = request->context,
                          .needs = request->needs,
                          .read = read_csv,
                          .close = close_csv,
                          .read_class = read_class,
                          .fit = fit_csv,
                          .row = row_of};
    csv->settings = request->settings;
    csv->encoding = request->encoding;
    csv->encoding_is_given = request->encoding_is_given;
    remat_status status = open_csv(csv, request);
    if (status == REMAT_OK)
        *set = &csv->set;
    else
        close_csv(&csv->set);
    return status;
}
