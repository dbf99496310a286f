/* Structs at the public border: the caller's may be smaller or larger than the library's (remat/remat.h, "Structs and
 * releases"). A struct grows at its end only, and a new member begins at the old size or after it: never inside the
 * padding that a struct ends with, because programs of an older release leave garbage there. */
#ifndef REMAT_BASE_OPTIONS_H
#define REMAT_BASE_OPTIONS_H

#include <stdbool.h>

#include "base/error.h"

/* Fills in a struct of the caller: copies the members that both sides know, and sets the others to 0. */
void remat_struct_give(void *to, size_t to_size, const void *from, size_t from_size);

/* Reads a struct of the caller into `to`, which holds the defaults of what the caller's struct does not have. False
 * where the caller's struct is larger and something is set in the part that this library does not know. */
bool remat_struct_take(void *to, size_t to_size, const void *from, size_t from_size);

/* Gives the caller an options struct with the defaults. Its first member, struct_size, becomes `size`. */
void remat_options_give(void *options, size_t size, const void *defaults, size_t defaults_size);

/* Reads an options struct of the caller into `options`, which holds the defaults in `size` bytes. `from` NULL: they
 * stay. REMAT_INVALID where the caller did not call `init`, or uses a member that this library does not know. */
remat_status remat_options_copy(remat_context *context, void *options, size_t size, const void *from, const char *init);

#endif
