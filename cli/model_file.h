/* Files that may be a profile, a graph or a model: told apart by what they contain. */
#ifndef REMAT_CLI_MODEL_FILE_H
#define REMAT_CLI_MODEL_FILE_H

#include "onnx_file.h"

/* Exactly one of the three is set. */
typedef struct planned_file {
    remat_profile *profile;
    remat_graph *graph;
    remat_model *model;
    bool imported; /* the graph was made from an ONNX file */
} planned_file;

/* Reads whatever it is. "-" is standard input. Says on stderr what is wrong. The caller releases it, after a failure
 * too. */
remat_status model_file_read(remat_context *context, const char *path, const import_settings *settings,
                             planned_file *file);
void planned_file_release(planned_file *file);

/* Whether a path is a folder: a model in Hugging Face's layout. Where the system does not say, it ends the program with a
 * message. */
bool model_file_is_folder(const char *path);

/* The same for commands that take models only. */
remat_status model_file_read_model(remat_context *context, const char *path, remat_model **model);

/* Another batch size for the model; 0 leaves it as it is. */
remat_status model_file_set_batch(remat_model *model, uint64_t batch);

/* Plans a training step without training. `options` as for training; plan_only is set here. */
remat_status model_file_plan(remat_model *model, const remat_train_options *options, remat_trainer **trainer);

/* The same without a budget, whatever budget the options or the model have. Its figures have the smallest budget. */
remat_status model_file_plan_freely(remat_model *model, const remat_train_options *options, remat_trainer **trainer);

#endif
