/* zlib, libpng and libjpeg. They are looked for when a file needs them: programs are not linked with them, and need them
 * only for such files. The headers must have been there when the library was built. */
#ifndef REMAT_DATA_LIBRARY_H
#define REMAT_DATA_LIBRARY_H

#include <stdbool.h>

#include "base/error.h"

/* What is compiled in. REMAT_NO_LIBRARIES leaves all of them out. */
#if !defined(REMAT_NO_LIBRARIES)
/* The second header of each is the one that a cross compiler lacks where it finds the host's first. */
#if __has_include(<zlib.h>) && __has_include(<zconf.h>)
#define REMAT_HAS_ZLIB
#endif
#if __has_include(<png.h>)
#define REMAT_HAS_PNG
#endif
#if __has_include(<jpeglib.h>) && __has_include(<jconfig.h>)
#define REMAT_HAS_JPEG
#endif
#endif

typedef enum library_kind { LIBRARY_ZLIB, LIBRARY_PNG, LIBRARY_JPEG, LIBRARY_COUNT } library_kind;

typedef struct library {
    void *handle;
    void *functions[8]; /* in the order of the names */
} library;

/* Loads a library and finds the functions of a list that ends with NULL. `file` needs it, for the message of
 * REMAT_INVALID. One that was opened is closed; a struct of zeros may be closed. */
remat_status library_open(remat_context *context, library_kind kind, const char *const *names, const char *file,
                          library *opened);
void library_close(library *opened);

/* Its name as people know it, and whether library_open would find it. */
const char *library_name(library_kind kind);
bool library_is_there(library_kind kind);

#endif
