/* Structs of the public interface: the caller's struct may be smaller or larger than the library's (remat/remat.h,
 * "Structs and releases"). A struct grows only at its end. A new member begins at the old size or after it, never in
 * the padding at the old end, because programs of an older release leave garbage there. */
#ifndef REMAT_BASE_OPTIONS_H
#define REMAT_BASE_OPTIONS_H

#include <stdbool.h>

#include "base/error.h"

/* Fills in a struct of the caller: copies the members that both sides know, and sets the others to 0. */
void remat_struct_give(void *to, size_t to_size, const void *from, size_t from_size);

/* Reads a struct of the caller into `to`. `to` already holds defaults, which stay for members that the caller's struct
 * does not have. False if the caller's struct is larger and sets something that this library does not know. */
bool remat_struct_take(void *to, size_t to_size, const void *from, size_t from_size);

/* Gives the caller an options struct with the defaults. Its first member, struct_size, becomes `size`. */
void remat_options_give(void *options, size_t size, const void *defaults, size_t defaults_size);

/* Reads an options struct of the caller into `options`, which has `size` bytes and already holds the defaults. `from`
 * NULL: the defaults stay. REMAT_INVALID: the caller did not call `init`, or sets a member that this library does not
 * know. */
remat_status remat_options_copy(remat_context *context, void *options, size_t size, const void *from, const char *init);

#endif
