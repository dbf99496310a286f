#include "data/data_set.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

size_t data_first_bad_id(const data_field *field, const int32_t *ids, size_t count)
{
    size_t at = 0;
    while (at < count && data_id_is_good(field, ids[at]))
        at++;
    return at;
}

remat_status data_fail_id(remat_context *context, const remat_place *place, const data_field *field, const char *what,
                          int64_t id)
{
    return remat_fail(context, REMAT_BAD_INPUT, place, "%s holds the number %lld; it must be from 0 to %llu%s", what,
                      (long long)id, (unsigned long long)field->bound - 1,
                      field->skips ? ", or negative for a label that counts nothing" : "");
}

/* ---- paths ---- */

remat_status data_replace_files(remat_context *context, const char *data_path, const char *labels_path,
                                dataset_settings *settings)
{
    static const char jsonl[] = ".jsonl";
    const size_t length = strlen(data_path), end = sizeof jsonl - 1;
    const bool is_jsonl = length > end && strcmp(data_path + length - end, jsonl) == 0;
    if (is_jsonl)
        settings->type = DATASET_JSONL;
    if (settings->type == DATASET_NONE || settings->type == DATASET_RANDOM)
        return remat_fail(
            context, REMAT_INVALID, NULL,
            "'%.200s' cannot be read: its name does not end in .jsonl, and the [Dataset] of the model does not say of "
            "which type it is",
            data_path);
    settings->is_here = true;
    settings->inputs = data_path;
    settings->validation_inputs = settings->validation_labels = NULL;
    if (settings->type != DATASET_CSV || labels_path)
        settings->labels = labels_path;
    return REMAT_OK;
}

size_t data_path_count(const char *list)
{
    size_t count = 1;
    for (const char *at = list; *at; at++)
        count += *at == ',';
    return count;
}

char *data_path_at(remat_context *context, const char *folder, const char *list, size_t position)
{
    for (; position; position--)
        list = strchr(list, ',') + 1;
    static const char blanks[] = " \t";
    list += strspn(list, blanks);
    size_t length = strcspn(list, ",");
    while (length && strchr(blanks, list[length - 1]))
        length--;
    bool relative = folder && *folder && list[0] != '/';
    size_t bytes = (relative ? strlen(folder) + 1 : 0) + length + 1;
    char *path = remat_alloc(context, bytes, 1);
    if (path)
        snprintf(path, bytes, "%s%s%.*s", relative ? folder : "", relative ? "/" : "", (int)length, list);
    return path;
}
