#include "model_file.h"
#include "file_bytes.h"
#include "graph_file.h"
#include "model_set.h"
#include "shown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void planned_file_release(planned_file *file)
{
    remat_profile_destroy(file->profile);
    remat_graph_destroy(file->graph);
    remat_model_destroy(file->model);
    *file = (planned_file){0};
}

/* Whatever is neither a model nor a graph is read as a profile, so that the message says what a profile would be. */
static remat_status read_as(remat_context *context, const file_bytes *bytes, remat_file_kind kind,
                            const import_settings *settings, planned_file *file)
{
    if (kind != REMAT_FILE_MODEL && model_set_refuse(bytes->name) != REMAT_OK)
        return REMAT_INVALID;
    if (file_bytes_refuse_result(bytes, kind, true) != REMAT_OK)
        return REMAT_BAD_INPUT;
    if (kind == REMAT_FILE_ONNX) {
        file->imported = true;
        return onnx_file_import(context, bytes, settings, &file->graph);
    }
    if (settings->dimension_count) {
        fprintf(stderr, "remat: --dim is only for ONNX files\n");
        return REMAT_INVALID;
    }
    if (kind == REMAT_FILE_GRAPH)
        return graph_file_read(context, bytes, &file->graph);
    FILE *stream = file_bytes_open(bytes);
    remat_status status = REMAT_NO_MEMORY;
    if (stream) {
        status = kind == REMAT_FILE_MODEL ? model_set_read(context, stream, bytes->name, &file->model)
                                          : remat_profile_read(context, stream, bytes->name, &file->profile);
        fclose(stream);
    }
    if (status != REMAT_OK)
        command_fail(context, status);
    return status;
}

bool model_file_is_folder(const char *path)
{
    struct stat info;
    if (stat(path, &info) == 0)
        return S_ISDIR(info.st_mode);
    if (errno == ENOENT || errno == ENOTDIR)
        return false;
    /* A folder that is taken for a file would be a model without its weights. */
    fprintf(stderr, "remat: %s: cannot be opened: %s\n", shown(path), strerror(errno));
    exit(REMAT_IO);
}

static remat_status load_folder(remat_context *context, const char *path, remat_model **model)
{
    remat_status status = model_set_load(context, path, model);
    if (status != REMAT_OK)
        command_fail(context, status);
    return status;
}

remat_status model_file_read(remat_context *context, const char *path, const import_settings *settings,
                             planned_file *file)
{
    file_bytes bytes;
    remat_file_kind kind;
    *file = (planned_file){0};
    if (model_file_is_folder(path))
        return load_folder(context, path, &file->model);
    remat_status status = file_bytes_read(context, path, &bytes);
    if (status == REMAT_OK)
        status = file_bytes_tell_or(context, &bytes, REMAT_FILE_PROFILE, &kind);
    if (status == REMAT_OK)
        status = read_as(context, &bytes, kind, settings, file);
    file_bytes_free(&bytes);
    return status;
}

remat_status model_file_read_model(remat_context *context, const char *path, remat_model **model)
{
    file_bytes bytes;
    *model = NULL;
    if (model_file_is_folder(path))
        return load_folder(context, path, model);
    remat_status status = file_bytes_read(context, path, &bytes);
    if (status == REMAT_OK) {
        FILE *stream = file_bytes_open(&bytes);
        status = stream ? model_set_read(context, stream, bytes.name, model) : REMAT_NO_MEMORY;
        if (stream)
            fclose(stream);
        if (status != REMAT_OK)
            command_fail(context, status);
    }
    file_bytes_free(&bytes);
    return status;
}

remat_status model_file_set_batch(remat_model *model, uint64_t batch)
{
    char property[40];
    snprintf(property, sizeof property, "batch_size=%llu", (unsigned long long)batch);
    return batch ? remat_model_set(model, REMAT_PROPERTIES(property)) : REMAT_OK;
}

remat_status model_file_plan(remat_model *model, const remat_train_options *options, remat_trainer **trainer)
{
    remat_train_options wanted = *options;
    wanted.plan_only = true;
    return remat_trainer_create(model, &wanted, trainer);
}

remat_status model_file_plan_freely(remat_model *model, const remat_train_options *options, remat_trainer **trainer)
{
    remat_train_options wanted = *options;
    wanted.budget_bytes = REMAT_UNLIMITED;
    return model_file_plan(model, &wanted, trainer);
}
