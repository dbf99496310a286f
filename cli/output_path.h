/* Files that are written late: whether they can be, asked before the work that they are for. */
#ifndef REMAT_CLI_OUTPUT_PATH_H
#define REMAT_CLI_OUTPUT_PATH_H

#include "command.h"

/* REMAT_IO where a file could not be written to `path`, said on stderr. `replaced`: a new file takes the place of the old
 * one, so its folder must be writable; else the file itself must. NULL is fine. Writes nothing. */
remat_status output_path_check(const char *path, bool replaced);

#endif
