/* Files that appear whole or not at all. */
#ifndef REMAT_BASE_OUTPUT_FILE_H
#define REMAT_BASE_OUTPUT_FILE_H

#include <stdio.h>

#include "base/error.h"

/* Writes a new file beside `path`, and renames it over `path` when it is on the disk. Whatever ends the program before,
 * the old file is still there. A later call removes what a dead writer left. As with cp, links are followed, an old
 * file's permissions stay, and an old file that must not be written is refused. Devices and pipes are written to
 * directly. REMAT_IO, REMAT_NO_MEMORY, and what `write` returns. */
typedef remat_status (*output_fn)(const void *user, FILE *stream);
remat_status output_save(remat_context *context, const char *path, output_fn write, const void *user);

/* Whether output_save could write `bytes` bytes to `path` now: the folder is there and writable, the name is possible, the
 * disk has room. REMAT_IO says why not. Leaves nothing. */
remat_status output_save_check(remat_context *context, const char *path, uint64_t bytes);

/* Opens a file, a device or a pipe for writing, with open's flags. A pipe that nobody reads fails instead of waiting.
 * -1 with errno. */
int output_open(const char *path, int flags);

#endif
