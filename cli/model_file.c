#include "model_file.h"

#include <ctype.h>

/* A model begins with a section or a comment, a profile with a brace (JSON) or a column's name (CSV). Blanks in front
 * are lost where the stream cannot be wound back: they mean nothing in any of the three. */
static bool is_model(FILE *stream)
{
    int letter = getc(stream);
    if (letter == 0xef) { /* the mark of UTF-8 that some editors write */
        getc(stream);
        getc(stream);
        letter = getc(stream);
    }
    while (isspace(letter))
        letter = getc(stream);
    if (fseek(stream, 0, SEEK_SET) != 0 && letter != EOF)
        ungetc(letter, stream);
    return letter == '[' || letter == '#' || letter == ';';
}

remat_status model_file_read(remat_context *context, const char *path, remat_profile **profile, remat_model **model)
{
    FILE *stream;
    const char *name;
    *profile = NULL;
    *model = NULL;
    remat_status status = command_open(context, path, &stream, &name);
    if (status != REMAT_OK)
        return status;
    if (is_model(stream))
        status = remat_model_read(context, stream, name, model);
    else
        status = remat_profile_read(context, stream, name, profile);
    command_close(stream);
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
    if (status != REMAT_OK)
        return status;
    status = remat_model_read(context, stream, name, model);
    command_close(stream);
    if (status != REMAT_OK)
        command_fail(context, status);
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
    wanted.budget_bytes = INT64_MAX;
    return model_file_plan(model, &wanted, trainer);
}
