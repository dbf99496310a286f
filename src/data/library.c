#include "data/library.h"

#include <dlfcn.h>
#include <stdio.h>

#ifdef REMAT_HAS_ZLIB
#include <zlib.h>
#endif
#ifdef REMAT_HAS_PNG
#include <png.h>
#endif
#ifdef REMAT_HAS_JPEG
#include <jpeglib.h>
#endif

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

/* The file of the version whose header was there; NULL: none was. */
static const struct {
    const char *name, *file, *package;
} libraries[] = {
    [LIBRARY_ZLIB] = {"zlib",
#ifdef REMAT_HAS_ZLIB
                      "libz.so.1",
#else
                      NULL,
#endif
                      "zlib1g-dev"},
    [LIBRARY_PNG] = {"libpng",
#ifdef REMAT_HAS_PNG
                     "libpng" TEXT(PNG_LIBPNG_VER_MAJOR) TEXT(PNG_LIBPNG_VER_MINOR) ".so." TEXT(PNG_LIBPNG_VER_SONUM),
#else
                     NULL,
#endif
                     "libpng-dev"},
    [LIBRARY_JPEG] = {"libjpeg",
#if !defined(REMAT_HAS_JPEG)
                      NULL,
#elif JPEG_LIB_VERSION >= 80
                      "libjpeg.so.8",
#else
                      "libjpeg.so.62",
#endif
                      "libjpeg-dev"},
};

const char *library_name(library_kind kind)
{
    return libraries[kind].name;
}

bool library_is_there(library_kind kind)
{
    void *handle = libraries[kind].file ? dlopen(libraries[kind].file, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (handle)
        dlclose(handle);
    return handle != NULL;
}

remat_status library_open(remat_context *context, library_kind kind, const char *const *names, const char *file,
                          library *opened)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = file;
    *opened = (library){0};
    if (!libraries[kind].file)
        return remat_fail(context, REMAT_INVALID, &place,
                          "this needs %s, which was not there when Remat was built; install %s and build again",
                          libraries[kind].name, libraries[kind].package);
    opened->handle = dlopen(libraries[kind].file, RTLD_NOW | RTLD_LOCAL);
    if (!opened->handle)
        return remat_fail(context, REMAT_INVALID, &place, "this needs %s, and %s is not installed",
                          libraries[kind].name, libraries[kind].file);
    for (size_t i = 0; names[i]; i++)
        if (!(opened->functions[i] = dlsym(opened->handle, names[i]))) {
            library_close(opened);
            return remat_fail(context, REMAT_INVALID, &place, "%s has no function %s", libraries[kind].file, names[i]);
        }
    return REMAT_OK;
}

void library_close(library *opened)
{
    if (opened->handle)
        dlclose(opened->handle);
    *opened = (library){0};
}
