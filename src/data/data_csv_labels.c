/* Labels of a CSV file that are words: which classes there are. */
#include "data/data_csv.h"

#include "base/alloc.h"
#include "base/nearest.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/utf8.h"

#include <string.h>

/* ---- finding ---- */

static remat_status fail_too_many(const csv_set *csv, const csv_table *table, const name_list *classes)
{
    return remat_fail(csv->set.context, REMAT_BAD_INPUT, &table->reader->place,
                      "more than %llu different labels: '%.40s', '%.40s', ...; the model has %llu classes, "
                      "which are the units of its last layer",
                      (unsigned long long)csv->set.needs->labels.bound, classes->names[0],
                      classes->count > 1 ? classes->names[1] : table->cells[csv->labels.columns[0]],
                      (unsigned long long)csv->set.needs->labels.bound);
}

/* Adds a name at its place in alphabetical order. */
static remat_status add_class(csv_set *csv, const csv_table *table, uint64_t column)
{
    name_list *classes = &csv->encoding->classes;
    char *name = table->cells[column];
    size_t at = REMAT_FIRST(i, 0, classes->count, strcmp(classes->names[i], name) >= 0);
    if (at < classes->count && strcmp(classes->names[at], name) == 0)
        return REMAT_OK;
    if (!remat_utf8_valid(name))
        return csv_table_fail(table, column, "is not UTF-8; save the file as UTF-8");
    if (classes->count == csv->set.needs->labels.bound)
        return fail_too_many(csv, table, classes);
    REMAT_TRY(name_list_add(csv->set.context, classes, name));
    char *added = classes->names[classes->count - 1];
    memmove(&classes->names[at + 1], &classes->names[at], (classes->count - 1 - at) * sizeof *classes->names);
    classes->names[at] = added;
    return REMAT_OK;
}

static remat_status add_classes_of_row(csv_set *csv, const csv_table *table, uint64_t sample, uint64_t row, void *user)
{
    (void)sample;
    (void)row;
    (void)user;
    for (size_t i = 0; i < csv->labels.count; i++)
        if (!csv_is_missing(table->cells[csv->labels.columns[i]]))
            REMAT_TRY(add_class(csv, table, csv->labels.columns[i]));
    return REMAT_OK;
}

/* The names of the settings, in their order. */
static remat_status take_stated_classes(csv_set *csv)
{
    remat_context *context = csv->set.context;
    const char *list = csv->settings->classes;
    for (size_t i = 0; i < data_path_count(list); i++) {
        char *name = data_path_at(context, NULL, list, i);
        remat_status status = name ? name_list_add(context, &csv->encoding->classes, name) : REMAT_NO_MEMORY;
        remat_text_release(context, name);
        REMAT_TRY(status);
    }
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = "classes";
    if (csv->encoding->classes.count > csv->set.needs->labels.bound)
        return remat_fail(context, REMAT_INVALID, &place, "%zu names; the model has %llu classes",
                          csv->encoding->classes.count, (unsigned long long)csv->set.needs->labels.bound);
    return REMAT_OK;
}

static remat_status fail_mixed(const csv_set *csv)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = csv->path;
    place.line = csv->word_line;
    return remat_fail(csv->set.context, REMAT_BAD_INPUT, &place,
                      "column %llu: the label is a word, and that of line %llu is a number; %s",
                      (unsigned long long)csv->word_column + 1, (unsigned long long)csv->number_line,
                      csv->word_line < csv->number_line ? "header = true takes the first line as column names"
                                                        : "classes = A, B, ... says that both are names of classes");
}

static bool class_before(const void *user, uint32_t a, uint32_t b)
{
    const name_list *classes = user;
    return strcmp(classes->names[a], classes->names[b]) < 0;
}

remat_status csv_find_classes(csv_set *csv)
{
    data_encoding *encoding = csv->encoding;
    if (!csv_has_classes(csv))
        return REMAT_OK;
    if (!csv->encoding_is_given && csv->settings->classes) {
        REMAT_TRY(take_stated_classes(csv));
    } else if (!csv->encoding_is_given && csv->word_line) {
        if (csv->number_line)
            return fail_mixed(csv);
        REMAT_TRY(csv_scan_counted(csv, add_classes_of_row, NULL));
    }
    if (!encoding->classes.count)
        return REMAT_OK;
    if (encoding->classes.count > csv->set.needs->labels.bound)
        return remat_fail(csv->set.context, REMAT_BAD_INPUT, NULL,
                          "the weights were trained with %zu classes, and the model has %llu", encoding->classes.count,
                          (unsigned long long)csv->set.needs->labels.bound);
    if (!csv->encoding_is_given && encoding->classes.count < csv->set.needs->labels.bound)
        remat_warn(csv->set.context, NULL, "%.200s: the labels have %zu classes, and the model has %llu", csv->path,
                   encoding->classes.count, (unsigned long long)csv->set.needs->labels.bound);
    csv->class_count = encoding->classes.count;
    return remat_order(csv->set.context, csv->class_count, class_before, &encoding->classes, &csv->class_order);
}

/* ---- the class of a cell ---- */

static remat_status fail_unknown(const csv_set *csv, const csv_table *table, uint64_t column)
{
    const name_list *classes = &csv->encoding->classes;
    const char *nearest = nearest_name(table->cells[column], (const char *const *)classes->names, classes->count);
    char text[256], list[160] = "";
    size_t used = 0;
    for (size_t i = 0; i < classes->count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.40s", used ? ", " : "", classes->names[i]);
    if (nearest)
        snprintf(text, sizeof text, "is not a class; did you mean '%.60s'?", nearest);
    else
        snprintf(text, sizeof text, "is not a class; the classes are %s", list);
    return csv_table_fail(table, column, text);
}

remat_status csv_class_of(const csv_set *csv, const csv_table *table, uint64_t column, int32_t *id)
{
    const name_list *classes = &csv->encoding->classes;
    const char *name = table->cells[column];
    size_t at = REMAT_FIRST(i, 0, csv->class_count, strcmp(classes->names[csv->class_order[i]], name) >= 0);
    if (at == csv->class_count || strcmp(classes->names[csv->class_order[at]], name) != 0)
        return fail_unknown(csv, table, column);
    *id = (int32_t)csv->class_order[at];
    return REMAT_OK;
}
