/* Checks before a long run that its output files can be written. */
#ifndef REMAT_CLI_OUTPUT_PATH_H
#define REMAT_CLI_OUTPUT_PATH_H

#include "command.h"

/* REMAT_IO, with a message on stderr: a file cannot be written to `path`. `replaced`: a new file takes the place of the
 * old one, so its folder must be writable; else the file itself must. NULL is fine. Writes nothing. */
remat_status output_path_check(const char *path, bool replaced);

#endif
