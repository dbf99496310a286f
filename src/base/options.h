/* Option structs start with their size, so that a program built against an older header still works. */
#ifndef REMAT_BASE_OPTIONS_H
#define REMAT_BASE_OPTIONS_H

#include "base/error.h"

/* Copies the caller's options over `options`, which holds the defaults in `size` bytes. REMAT_INVALID where the caller
 * did not call `init`, or where the struct is of a newer library. */
remat_status remat_options_copy(remat_context *context, void *options, size_t size, const void *from, const char *init);

#endif
