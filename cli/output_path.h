/* Checks before a long run that its output files can be written. */
#ifndef REMAT_CLI_OUTPUT_PATH_H
#define REMAT_CLI_OUTPUT_PATH_H

#include "command.h"

/* REMAT_IO, with a message on stderr: a file cannot be written to `path`. `replaced`: a new file takes the place of the
 * old one, so its folder must be writable; else the file itself must. NULL is fine. Writes nothing. */
remat_status output_path_check(const char *path, bool replaced);

/* REMAT_IO, with a message on stderr: the two paths name the same file, which is wrong because of `reason`. Devices and
 * pipes may be named twice, and "-" is no file. NULL is fine. */
remat_status output_path_check_other(const char *path, const char *other, const char *reason);

/* The same for an output and all files that the command reads. */
remat_status output_path_check_inputs(const char *path, const char *const *inputs, size_t count);

/* The same for an output and the files of the model's data. */
remat_status output_path_check_data(remat_context *context, const remat_model *model, const char *path);

/* Says on stderr that `path` was written. Nothing where it is NULL or "-", standard output. */
void output_path_say(const char *path);

/* Makes a folder where it is not there. NULL is fine. Says on stderr why it cannot be written. */
remat_status output_path_make(const char *path);

#endif
