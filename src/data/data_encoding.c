#include "data/data_encoding.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

void data_encoding_begin(data_encoding *encoding, remat_context *context)
{
    *encoding = (data_encoding){.context = context};
}

void name_list_end(remat_context *context, name_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        remat_text_release(context, list->names[i]);
    remat_release(context, list->names, list->capacity, sizeof *list->names);
    *list = (name_list){0};
}

void data_encoding_end(data_encoding *encoding)
{
    remat_context *context = encoding->context;
    if (!context)
        return;
    name_list_end(context, &encoding->classes);
    name_list_end(context, &encoding->targets);
    for (size_t i = 0; i < encoding->column_count; i++) {
        remat_text_release(context, encoding->columns[i].name);
        name_list_end(context, &encoding->columns[i].words);
    }
    remat_release(context, encoding->columns, encoding->column_capacity, sizeof *encoding->columns);
    data_encoding_begin(encoding, context);
}

bool data_encoding_is_empty(const data_encoding *encoding)
{
    return !encoding->has_split_seed && !encoding->classes.count && !encoding->targets.count && !encoding->column_count;
}

remat_status name_list_add(remat_context *context, name_list *list, const char *name)
{
    REMAT_TRY(remat_grow(context, (void **)&list->names, &list->capacity, list->count + 1, sizeof *list->names));
    char *copy = remat_text_copy(context, name);
    if (!copy)
        return REMAT_NO_MEMORY;
    list->names[list->count++] = copy;
    return REMAT_OK;
}

remat_status data_encoding_add_column(data_encoding *encoding, const char *name)
{
    REMAT_TRY(remat_grow(encoding->context, (void **)&encoding->columns, &encoding->column_capacity,
                         encoding->column_count + 1, sizeof *encoding->columns));
    column_encoding column = {.scale = 1, .fill = NAN};
    if (name && !(column.name = remat_text_copy(encoding->context, name)))
        return REMAT_NO_MEMORY;
    encoding->columns[encoding->column_count++] = column;
    return REMAT_OK;
}

static remat_status copy_names(remat_context *context, const name_list *from, name_list *to)
{
    for (size_t i = 0; i < from->count; i++)
        REMAT_TRY(name_list_add(context, to, from->names[i]));
    return REMAT_OK;
}

remat_status data_encoding_copy(const data_encoding *from, data_encoding *to)
{
    to->has_split_seed = from->has_split_seed;
    to->split_seed = from->split_seed;
    REMAT_TRY(copy_names(to->context, &from->classes, &to->classes));
    REMAT_TRY(copy_names(to->context, &from->targets, &to->targets));
    for (size_t i = 0; i < from->column_count; i++) {
        REMAT_TRY(data_encoding_add_column(to, from->columns[i].name));
        column_encoding *made = &to->columns[i];
        made->shift = from->columns[i].shift;
        made->scale = from->columns[i].scale;
        made->fill = from->columns[i].fill;
        REMAT_TRY(copy_names(to->context, &from->columns[i].words, &made->words));
    }
    return REMAT_OK;
}

size_t data_encoding_find_class(const data_encoding *encoding, const char *name)
{
    for (size_t i = 0; i < encoding->classes.count; i++)
        if (strcmp(encoding->classes.names[i], name) == 0)
            return i;
    return SIZE_MAX;
}
