#include "base/options.h"
#include "base/min_max.h"

#include <remat/remat.h>

#include <string.h>

/* No struct is larger: a size above this is garbage in a struct that was never initialised. */
enum { MOST_STRUCT_BYTES = 4096 };

void remat_struct_give(void *to, size_t to_size, const void *from, size_t from_size)
{
    size_t known = remat_min(to_size, from_size);
    memcpy(to, from, known);
    memset((char *)to + known, 0, to_size - known);
}

bool remat_struct_take(void *to, size_t to_size, const void *from, size_t from_size)
{
    size_t known = remat_min(to_size, from_size);
    for (size_t i = known; i < from_size; i++)
        if (((const char *)from)[i])
            return false;
    memcpy(to, from, known);
    return true;
}

void remat_options_give(void *options, size_t size, const void *defaults, size_t defaults_size)
{
    remat_struct_give(options, size, defaults, defaults_size);
    memcpy(options, &size, remat_min(size, sizeof size));
}

remat_status remat_options_copy(remat_context *context, void *options, size_t size, const void *from, const char *init)
{
    size_t given;
    if (!from)
        return REMAT_OK;
    memcpy(&given, from, sizeof given);
    if (given < sizeof given || given > MOST_STRUCT_BYTES)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "an options struct has struct_size %zu, not %zu; call %s before filling it in", given, size,
                          init);
    if (!remat_struct_take(options, size, from, given))
        return remat_fail(context, REMAT_INVALID, NULL,
                          "the options of %s use a member that this library, version %s, does not know", init,
                          remat_version());
    memcpy(options, &size, sizeof size); /* from here on it is a whole one */
    return REMAT_OK;
}
