/* The backends. A new one is a folder with a `const backend_type backend_NAME`, and its name in a list here. The optional
 * ones are NULL where a program is linked without them: the fenced backend is only in the tests. */
#include "backend/backend.h"

#include "base/error.h"

#include <string.h>

#define BACKENDS(X)          X(cpu)
#define OPTIONAL_BACKENDS(X) X(fenced)

#define X(name) extern const backend_type backend_##name;
BACKENDS(X)
#undef X
#define X(name) extern const backend_type backend_##name __attribute__((weak));
OPTIONAL_BACKENDS(X)
#undef X

static const backend_type *const types[] = {
#define X(name) &backend_##name,
    BACKENDS(X) OPTIONAL_BACKENDS(X)
#undef X
};

remat_status backend_open(remat_context *context, const backend_options *options, backend **made)
{
    const char *device = options->device ? options->device : "cpu";
    *made = NULL;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i] && strcmp(types[i]->name, device) == 0)
            return types[i]->open(context, options, made);
    return remat_fail(context, REMAT_INVALID, NULL, "there is no device '%.40s'; there is cpu", device);
}
