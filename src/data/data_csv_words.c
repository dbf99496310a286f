/* Columns of inputs that are words: each word becomes an input of its own, 1 in the rows that have it and 0 in the others. */
#include "data/data_csv.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/nearest.h"
#include "base/search.h"
#include "base/utf8.h"

#include <string.h>

size_t csv_width(const csv_set *csv, size_t input)
{
    const data_encoding *encoding = csv->encoding;
    size_t words = input < encoding->column_count ? encoding->columns[input].words.count : 0;
    return words ? words : 1;
}

static uint64_t model_inputs(const csv_set *csv)
{
    uint64_t inputs = 0; /* the sum was checked when the columns were chosen */
    for (size_t i = 0; i < csv->set.needs->input_count; i++)
        inputs += csv->set.needs->inputs[i].values;
    return inputs;
}

/* ---- finding ---- */

/* A column with more different words is a column of texts, unless the model has so many inputs. */
enum { MOST_WORDS = 1000 };

static remat_status add_word(csv_set *csv, const csv_table *table, size_t input)
{
    uint64_t column = csv->inputs.columns[input];
    name_list *words = &csv->encoding->columns[input].words;
    const char *word = table->cells[column];
    size_t at = REMAT_FIRST(i, 0, words->count, strcmp(words->names[i], word) >= 0);
    if (at < words->count && strcmp(words->names[at], word) == 0)
        return REMAT_OK;
    if (!remat_utf8_valid(word))
        return csv_table_fail(table, column, "is not UTF-8; save the file as UTF-8");
    if (words->count >= MOST_WORDS && words->count >= model_inputs(csv)) /* up to here check_width says how many */
        return csv_table_fail(table, column,
                              "is one word too many: the column has more different words than the model has inputs; "
                              "ignore = COLUMN leaves it out");
    REMAT_TRY(name_list_add(csv->set.context, words, word));
    char *added = words->names[words->count - 1];
    memmove(&words->names[at + 1], &words->names[at], (words->count - 1 - at) * sizeof *words->names);
    words->names[at] = added;
    return REMAT_OK;
}

static remat_status add_words_of_row(csv_set *csv, const csv_table *table, uint64_t sample, uint64_t row, void *user)
{
    (void)sample;
    (void)row;
    (void)user;
    for (size_t i = 0; i < csv->inputs.count; i++)
        if (csv->seen[i] == CSV_SEEN_WORD && !csv_is_missing(table->cells[csv->inputs.columns[i]]))
            REMAT_TRY(add_word(csv, table, i));
    return REMAT_OK;
}

/* A column of words has no number in it: where it has, the word is a typing error. */
static bool has_words(const csv_set *csv)
{
    for (size_t i = 0; i < csv->seen_count; i++)
        if (csv->seen[i] == CSV_SEEN_WORD)
            return csv->settings->words == WORDS_ONEHOT && !csv->encoding_is_given;
    return false;
}

/* ---- whether it fits ---- */

/* " (age, colour: 3)" for a message; "" where the columns have no names. */
static void list_names(const csv_set *csv, char *list, size_t room)
{
    const data_encoding *encoding = csv->encoding;
    size_t used = 0;
    list[0] = '\0';
    for (size_t i = 0; i < encoding->column_count && encoding->columns[0].name && used < room; i++) {
        used += (size_t)snprintf(list + used, room - used, "%s%.40s", i ? ", " : " (", encoding->columns[i].name);
        if (csv_width(csv, i) > 1 && used < room)
            used += (size_t)snprintf(list + used, room - used, ": %zu", csv_width(csv, i));
        if (i + 1 == encoding->column_count && used < room)
            used += (size_t)snprintf(list + used, room - used, ")");
    }
}

/* The words of a column are real numbers for the model. */
static remat_status check_words(const csv_set *csv)
{
    uint64_t at = 0;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = csv->path;
    for (size_t i = 0; i < csv->inputs.count; i++)
        for (size_t k = 0, width = csv_width(csv, i); k < width; k++, at++)
            if (i < csv->encoding->column_count && csv->encoding->columns[i].words.count &&
                data_field_is_integer(csv_field_of(csv->set.needs, at)))
                return remat_fail(csv->set.context, REMAT_BAD_INPUT, &place,
                                  "column %u has words, and the model reads whole numbers there",
                                  csv->inputs.columns[i] + 1);
    return REMAT_OK;
}

static remat_status check_width(csv_set *csv)
{
    uint64_t wanted = model_inputs(csv), width = 0, labels = csv->labels.count;
    const dataset_settings *settings = csv->settings;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = csv->path;
    for (size_t i = 0; i < csv->inputs.count; i++)
        width += csv_width(csv, i);
    csv->kept = width + labels;
    if (width == wanted)
        return check_words(csv);
    if (csv->encoding_is_given)
        return remat_fail(csv->set.context, REMAT_BAD_INPUT, &place,
                          "the columns make %llu inputs, as the weights were trained, and the model takes %llu",
                          (unsigned long long)width, (unsigned long long)wanted);
    char list[240];
    list_names(csv, list, sizeof list);
    if (settings->columns || settings->target || settings->ignore || settings->words == WORDS_ONEHOT)
        return remat_fail(
            csv->set.context, REMAT_BAD_INPUT, &place,
            "%llu inputs in %zu columns%s; the model takes %llu: set input_shape = %llu, or leave columns "
            "out with ignore",
            (unsigned long long)width, csv->inputs.count, list, (unsigned long long)wanted, (unsigned long long)width);
    return remat_fail(csv->set.context, REMAT_BAD_INPUT, &place,
                      "%llu columns; the model needs %llu: %llu of inputs, then %llu of labels",
                      (unsigned long long)csv->columns, (unsigned long long)(wanted + labels),
                      (unsigned long long)wanted, (unsigned long long)labels);
}

remat_status csv_find_words(csv_set *csv)
{
    if (has_words(csv)) {
        data_encoding *encoding = csv->encoding;
        while (encoding->column_count < csv->inputs.count) /* the file has no column names */
            REMAT_TRY(data_encoding_add_column(encoding, NULL));
        REMAT_TRY(csv_scan_counted(csv, add_words_of_row, NULL));
    }
    return check_width(csv);
}

/* ---- values ---- */

static remat_status fail_unknown(const csv_table *table, uint64_t column, const name_list *words)
{
    char text[200];
    const char *nearest = nearest_name(table->cells[column], (const char *const *)words->names, words->count);
    snprintf(text, sizeof text, "is not a word of the training data%s%.60s%s", nearest ? "; did you mean '" : "",
             nearest ? nearest : "", nearest ? "'?" : "");
    return csv_table_fail(table, column, text);
}

remat_status csv_put_words(const csv_set *csv, const csv_table *table, size_t input, csv_value *to)
{
    uint64_t column = csv->inputs.columns[input];
    const name_list *words = &csv->encoding->columns[input].words;
    const char *cell = table->cells[column];
    bool found = csv_is_missing(cell);
    if (found && csv->settings->missing == MISSING_ERROR)
        return csv_table_fail(table, column,
                              "is a missing value; missing = mean, zero or drop in [Dataset] says what to do");
    for (size_t i = 0; i < words->count; i++) {
        bool is_it = strcmp(words->names[i], cell) == 0;
        to[i].number = is_it ? 1 : 0;
        found |= is_it;
    }
    return found ? REMAT_OK : fail_unknown(table, column, words);
}
