/* --set SECTION.KEY=VALUE, for every command that reads a model. */
#ifndef REMAT_CLI_MODEL_SET_H
#define REMAT_CLI_MODEL_SET_H

#include "command.h"

/* For `children` of a command's argp: parses the option and remembers its values. */
extern const struct argp_child model_set_children[];

/* Reads a model with what --set changes: a file or folder, or an open stream. */
remat_status model_set_load(remat_context *context, const char *path, remat_model **model);
remat_status model_set_read(remat_context *context, FILE *stream, const char *name, remat_model **model);

/* What --set and the options beside it say, for remat_model_load_with. */
const char *const *model_set_settings(void);

/* Whether --lora or --adapter was given. */
bool model_set_adapts(void);

/* For a file that is no model: REMAT_INVALID, with a message on stderr, where --set was given. */
remat_status model_set_refuse(const char *name);

#endif
