#include "base/input.h"

#include <errno.h>
#include <string.h>

remat_status input_open(remat_context *context, const char *path, FILE **stream)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = path;
    *stream = fopen(path, "re");
    return *stream ? REMAT_OK : remat_fail(context, REMAT_IO, &place, "cannot be opened: %s", strerror(errno));
}
