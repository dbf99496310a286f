#include "model_file.h"
#include "file_bytes.h"

remat_status model_file_read(remat_context *context, const char *path, remat_profile **profile, remat_model **model)
{
    file_bytes file;
    *profile = NULL;
    *model = NULL;
    remat_status status = file_bytes_read(context, path, &file);
    if (status != REMAT_OK) {
        file_bytes_free(&file);
        return status;
    }
    /* Whatever is no model is read as a profile, so that the message says what a profile would be. */
    remat_file_kind kind;
    status = file_bytes_tell(context, &file, &kind);
    bool is_model = status == REMAT_OK && kind == REMAT_FILE_MODEL;
    FILE *stream = status == REMAT_NO_MEMORY ? NULL : file_bytes_open(&file);
    if (!stream)
        status = REMAT_NO_MEMORY;
    else if (is_model)
        status = remat_model_read(context, stream, file.name, model);
    else
        status = remat_profile_read(context, stream, file.name, profile);
    if (stream)
        fclose(stream);
    file_bytes_free(&file);
    if (status != REMAT_OK)
        command_fail(context, status);
    return status;
}

remat_status model_file_read_model(remat_context *context, const char *path, remat_model **model)
{
    FILE *stream;
    const char *name;
    *model = NULL;
    remat_status status = command_open(context, path, &stream, &name);
    return status == REMAT_OK ? command_close(context, stream, remat_model_read(context, stream, name, model)) : status;
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
