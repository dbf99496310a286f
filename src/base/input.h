#ifndef REMAT_BASE_INPUT_H
#define REMAT_BASE_INPUT_H

#include <stdio.h>

#include "base/error.h"

/* Opens a file for reading; the caller closes it. REMAT_IO names the file and the system's reason. */
remat_status input_open(remat_context *context, const char *path, FILE **stream);

#endif
