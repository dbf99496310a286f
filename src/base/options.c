#include "base/options.h"

#include <string.h>

remat_status remat_options_copy(remat_context *context, void *options, size_t size, const void *from, const char *init)
{
    size_t given;
    memcpy(&given, from, sizeof given);
    if (given < sizeof given || given > size)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "an options struct has struct_size %zu, not %zu; call %s before filling it in", given, size,
                          init);
    memcpy(options, from, given);
    return REMAT_OK;
}
