/* Columns of a CSV file by their names or numbers. */
#include "data/csv_table.h"

#include "base/alloc.h"
#include "base/names.h"
#include "base/nearest.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST_NAME = 256 };

remat_status column_list_add(remat_context *context, column_list *list, uint64_t column)
{
    REMAT_TRY(remat_grow(context, (void **)&list->columns, &list->capacity, list->count + 1, sizeof *list->columns));
    list->columns[list->count++] = (uint32_t)column;
    return REMAT_OK;
}

bool column_list_has(const column_list *list, uint64_t column)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->columns[i] == column)
            return true;
    return false;
}

void column_list_end(remat_context *context, column_list *list)
{
    remat_release(context, list->columns, list->capacity, sizeof *list->columns);
    *list = (column_list){0};
}

/* By its name as it is written, then by its name in another case, then by its number. */
static bool find(const csv_table *table, const char *name, uint64_t *column)
{
    for (int exact = 1; exact >= 0; exact--)
        for (*column = 0; *column < table->header.count; ++*column)
            if (exact ? strcmp(table->header.names[*column], name) == 0
                      : names_equal(table->header.names[*column], name))
                return true;
    char *end;
    unsigned long number = strtoul(name, &end, 10);
    *column = number - 1;
    return *name >= '0' && *name <= '9' && !*end && number >= 1 && number <= table->columns;
}

static remat_status fail_unknown(const csv_table *table, const char *key, const char *name)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = table->reader->place.file;
    place.field = key;
    if (!table->header.count)
        return remat_fail(table->context, REMAT_BAD_INPUT, &place,
                          "there is no column '%.60s': the file names no columns and has %llu; "
                          "header = true takes the names from the first line",
                          name, (unsigned long long)table->columns);
    const char *nearest = nearest_name(name, (const char *const *)table->header.names, table->header.count);
    if (nearest)
        return remat_fail(table->context, REMAT_BAD_INPUT, &place, "there is no column '%.60s'; did you mean '%.60s'?",
                          name, nearest);
    char list[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < table->header.count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.60s", used ? ", " : "", table->header.names[i]);
    return remat_fail(table->context, REMAT_BAD_INPUT, &place, "there is no column '%.60s'; there are %s", name, list);
}

remat_status csv_column_find(const csv_table *table, const char *key, const char *name, column_list *found)
{
    uint64_t column;
    if (!find(table, name, &column))
        return fail_unknown(table, key, name);
    return column_list_add(table->context, found, column);
}

static void copy_name(char name[LONGEST_NAME], const char *from, size_t length)
{
    while (length && (*from == ' ' || *from == '\t'))
        from++, length--;
    while (length && (from[length - 1] == ' ' || from[length - 1] == '\t'))
        length--;
    length = length < LONGEST_NAME ? length : LONGEST_NAME - 1;
    memcpy(name, from, length);
    name[length] = '\0';
}

static remat_status add_range(const csv_table *table, const char *key, const char *item, const char *dots,
                              size_t length, column_list *found)
{
    char first[LONGEST_NAME], last[LONGEST_NAME];
    uint64_t from, to;
    copy_name(first, item, (size_t)(dots - item));
    copy_name(last, dots + 2, length - (size_t)(dots - item) - 2);
    if (!find(table, first, &from))
        return fail_unknown(table, key, first);
    if (!find(table, last, &to))
        return fail_unknown(table, key, last);
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = key;
    if (to < from)
        return remat_fail(table->context, REMAT_BAD_INPUT, &place, "'%.60s' comes after '%.60s' in the file", first,
                          last);
    for (; from <= to; from++)
        REMAT_TRY(column_list_add(table->context, found, from));
    return REMAT_OK;
}

remat_status csv_columns_find(const csv_table *table, const char *key, const char *list, bool optional,
                              column_list *found)
{
    for (bool more = true; more;) {
        size_t length = strcspn(list, ",");
        const char *dots = memmem(list, length, "..", 2);
        char name[LONGEST_NAME];
        uint64_t column;
        copy_name(name, list, length);
        if (find(table, name, &column))
            REMAT_TRY(column_list_add(table->context, found, column));
        else if (dots)
            REMAT_TRY(add_range(table, key, list, dots, length, found));
        else if (!optional)
            return fail_unknown(table, key, name);
        more = list[length] == ',';
        list += length + more;
    }
    return REMAT_OK;
}
