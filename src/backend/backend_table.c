/* The backends. A new one is a folder with a `const backend_type backend_NAME`, and its name in a list here. The optional
 * ones are NULL where a program is linked without them: the fenced backend is only in the tests. */
#include "backend/backend.h"

#include "base/error.h"

#include <string.h>

#ifdef REMAT_HAS_CUDA
#define BACKENDS(X) X(cpu) X(cuda)
#define HAS_CUDA    true
#else
#define BACKENDS(X) X(cpu)
#define HAS_CUDA    false
#endif
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

/* A number may follow the name: cuda:1. */
static bool is_named(const backend_type *type, const char *device)
{
    const size_t length = strlen(type->name);
    return strncmp(type->name, device, length) == 0 && (device[length] == 0 || device[length] == ':');
}

remat_status backend_open(remat_context *context, const backend_options *options, backend **made)
{
    backend_options named = *options;
    if (!named.device)
        named.device = "cpu";
    *made = NULL;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i] && is_named(types[i], named.device))
            return types[i]->open(context, &named, made);
    if (!HAS_CUDA && strncmp(named.device, "cuda", 4) == 0)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "this remat was built without CUDA; build it where nvcc is installed, or use the device cpu");
    return remat_fail(context, REMAT_INVALID, NULL, "there is no device '%.40s'; %s", named.device,
                      HAS_CUDA ? "there are cpu and cuda" : "there is cpu");
}
