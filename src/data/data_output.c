/* Whether an output would replace a file that the model or its data comes from. */
#include <limits.h>
#include <remat/model.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/data_set.h"
#include "model/model_object.h"
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

static bool is_same(const struct stat *file, const char *path)
{
    struct stat other;
    return stat(path, &other) == 0 && other.st_dev == file->st_dev && other.st_ino == file->st_ino;
}

/* Whether it is a file of a model in Hugging Face's layout, or of adapters in PEFT's. Others in its folder, such as saved
 * trainings, may be replaced. */
static bool is_of_folder(const char *folder, const char *path, const struct stat *file)
{
    static const char *const names[] = {"config.json",
                                        "generation_config.json",
                                        "tokenizer.json",
                                        "vocab.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "merges.txt",
                                        "added_tokens.json",
                                        "chat_template.jinja",
                                        "model.safetensors",
                                        "model.safetensors.index.json",
                                        "adapter_config.json",
                                        "adapter_model.safetensors"};
    char whole[PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (snprintf(whole, sizeof whole, "%s/%s", folder, names[i]) < (int)sizeof whole && is_same(file, whole))
            return true;
    const char *slash = strrchr(path, '/'),
               *name = slash ? slash + 1 : path; /* a part: model-00001-of-00002.safetensors */
    return strncmp(name, "model-", 6) == 0 &&
           snprintf(whole, sizeof whole, "%s/%s", folder, name) < (int)sizeof whole && is_same(file, whole);
}

static bool is_read(const dataset_settings *settings, const char *path, const struct stat *file, const char *source)
{
    struct stat read;
    if (stat(source, &read) != 0)
        return false;
    if (S_ISDIR(read.st_mode))
        return settings->type == DATASET_IMAGES && is_inside(path, source);
    return is_same(file, source);
}

static remat_status refuse(remat_context *context, const char *path, const char *why)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = path;
    return remat_fail(context, REMAT_IO, &place, "cannot be written: %s; choose another name", why);
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
        if (is_read(settings, path, file, sources.names[i]))
            status = refuse(context, path, "the model's [Dataset] reads it");
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
    if (model->folder && is_of_folder(model->folder, path, &file))
        return refuse(model_context(model), path, "it is a file of the model");
    const char *adapter = model_get_settings(model)->adapter;
    if (adapter && is_of_folder(adapter, path, &file))
        return refuse(model_context(model), path, "it is a file of the adapters");
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (lists[i])
            REMAT_TRY(check_list(model, path, &file, lists[i]));
    return REMAT_OK;
}
