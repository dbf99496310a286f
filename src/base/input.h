/* Opening files for reading, and how much of a text is read. */
#ifndef REMAT_BASE_INPUT_H
#define REMAT_BASE_INPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/* The largest INI or CSV text that is read: a model, a table of a profile or of lifetimes. The largest useful ones have a
 * few megabytes; without a limit, a pipe that never ends would be read forever. Datasets and logs of runs may be larger.
 * JSON may have any length: schedules are long, and are not held in memory. Only a single value is limited. */
#define INPUT_MOST_BYTES ((uint64_t)256 << 20)

/* Opens a file for reading; the caller closes it. REMAT_IO names the file and the reason: the system's, or that it is a
 * folder, or a pipe to which nobody has written within two seconds. */
remat_status input_open(remat_context *context, const char *path, FILE **stream);

/* The same for a file that is read more than once: it must be a regular one. */
remat_status input_open_regular(remat_context *context, const char *path, FILE **stream);

/* Whether there is something at `path`. REMAT_IO where the system does not say: a folder on the way that must not be read. */
remat_status input_exists(remat_context *context, const char *path, bool *exists);

/* Fails with REMAT_BAD_INPUT where more than INPUT_MOST_BYTES were read. `name` is for the message. */
remat_status input_check_length(remat_context *context, const char *name, uint64_t bytes);

#endif
