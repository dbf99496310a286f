/* Whether an output would replace a file that the model's data comes from. */
#include <limits.h>
#include <remat/model.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/data_set.h"
#include "model/network.h"

/* Whether `file`, which exists, is in the folder or below it. */
static bool is_inside(const char *file, const char *folder)
{
    char whole[PATH_MAX], outer[PATH_MAX];
    if (!realpath(file, whole) || !realpath(folder, outer))
        return false;
    size_t length = strlen(outer);
    return strncmp(whole, outer, length) == 0 && whole[length] == '/';
}

static bool is_read(const dataset_settings *settings, const char *path, const struct stat *file, const char *source)
{
    struct stat read;
    if (stat(source, &read) != 0)
        return false;
    if (S_ISDIR(read.st_mode))
        return settings->type == DATASET_IMAGES && is_inside(path, source);
    return read.st_dev == file->st_dev && read.st_ino == file->st_ino;
}

static remat_status check_list(const remat_model *model, const char *path, const struct stat *file, const char *list)
{
    const dataset_settings *settings = model_get_dataset(model);
    remat_context *context = model_context(model);
    name_list sources = {0};
    remat_status status = data_paths_find(context, settings->is_here ? NULL : settings->folder, list, &sources);
    if (status == REMAT_IO)
        status = REMAT_OK; /* no file matches: training says so */
    for (size_t i = 0; i < sources.count && status == REMAT_OK; i++)
        if (is_read(settings, path, file, sources.names[i])) {
            remat_place place = REMAT_PLACE_NOWHERE;
            place.file = path;
            status = remat_fail(context, REMAT_IO, &place,
                                "cannot be written: the model's [Dataset] reads it; choose another name");
        }
    name_list_end(context, &sources);
    return status;
}

remat_status remat_model_check_output(const remat_model *model, const char *path)
{
    const dataset_settings *settings = model_get_dataset(model);
    const bool counts_labels = settings->type == DATASET_CSV; /* a number of columns, not a file */
    const char *const lists[] = {settings->inputs, settings->validation_inputs, settings->tokenizer,
                                 counts_labels ? NULL : settings->labels,
                                 counts_labels ? NULL : settings->validation_labels};
    struct stat file;
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode))
        return REMAT_OK;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (lists[i])
            REMAT_TRY(check_list(model, path, &file, lists[i]));
    return REMAT_OK;
}
