/* Statistics of the columns of a CSV file, over the training samples: for `normalize` and `missing = mean`. */
#include "data/data_csv.h"
#include "data/data_split.h"

#include "base/alloc.h"

#include <math.h>

/* Of one column, by Welford's method: one pass, in the order of the file. */
typedef struct column_statistics {
    uint64_t count;
    double mean, squares, least, most;
} column_statistics;

typedef struct statistics_scan {
    const data_split *split;
    uint64_t next; /* place in the split's list of training samples */
    column_statistics *columns;
} statistics_scan;

static bool is_training(statistics_scan *scan, uint64_t sample)
{
    const data_split *split = scan->split;
    if (scan->next == split->training || data_split_sample(split, DATA_TRAINING, scan->next) != sample)
        return false;
    scan->next++;
    return true;
}

static void add_value(column_statistics *column, double value)
{
    double before = value - column->mean;
    column->least = column->count && column->least < value ? column->least : value;
    column->most = column->count && column->most > value ? column->most : value;
    column->mean += before / (double)++column->count;
    column->squares += before * (value - column->mean);
}

static remat_status add_row(csv_set *csv, const csv_table *table, uint64_t sample, uint64_t row, void *user)
{
    statistics_scan *scan = user;
    (void)row;
    if (!is_training(scan, sample))
        return REMAT_OK;
    for (size_t i = 0; i < csv->inputs.count; i++) {
        double value;
        const char *cell = table->cells[csv->inputs.columns[i]];
        if (!csv_is_missing(cell) && csv_is_number(cell, &value))
            add_value(&scan->columns[i], value);
    }
    return REMAT_OK;
}

static remat_status set_column(const csv_set *csv, size_t i, const column_statistics *found)
{
    column_encoding *column = &csv->encoding->columns[i];
    if (column->words.count)
        return REMAT_OK;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = csv->path;
    if (found->count == 0)
        return remat_fail(csv->set.context, REMAT_BAD_INPUT, &place,
                          "column %u has no value in the training samples; leave it out with ignore = %u",
                          csv->inputs.columns[i] + 1, csv->inputs.columns[i] + 1);
    double range = found->most - found->least, deviation = sqrt(found->squares / (double)found->count);
    column->fill = found->mean;
    if (csv->settings->normalize == NORMALIZE_NONE)
        return REMAT_OK;
    bool standard = csv->settings->normalize == NORMALIZE_STANDARD;
    column->shift = standard ? found->mean : found->least;
    column->scale = standard ? deviation : range;
    if (!(column->scale > 0)) /* all values are equal */
        column->scale = 1;
    if (isfinite(column->shift) && isfinite(column->scale))
        return REMAT_OK;
    return remat_fail(csv->set.context, REMAT_BAD_INPUT, &place, "column %u: the values are too large to be normalized",
                      csv->inputs.columns[i] + 1);
}

remat_status csv_find_statistics(csv_set *csv, const data_split *split)
{
    size_t count = csv->inputs.count;
    statistics_scan scan = {.split = split,
                            .columns = remat_alloc_zeroed(csv->set.context, count, sizeof *scan.columns)};
    if (!scan.columns)
        return REMAT_NO_MEMORY;
    remat_status status = csv_scan_counted(csv, add_row, &scan);
    for (size_t i = 0; i < count && status == REMAT_OK; i++)
        status = set_column(csv, i, &scan.columns[i]);
    remat_release(csv->set.context, scan.columns, count, sizeof *scan.columns);
    return status;
}
