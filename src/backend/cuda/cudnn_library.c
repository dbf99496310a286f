#include "backend/cuda/cudnn_library.h"

#ifdef REMAT_HAS_CUDNN

#include <dlfcn.h>
#include <string.h>

/* The library stays loaded for good: it has threads and device code of its own, which do not survive dlclose. */
bool cudnn_library_load(cudnn_library *functions)
{
    void *handle = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return false;
    void *found;
#define X(name, symbol)             \
    found = dlsym(handle, #symbol); \
    if (!found)                     \
        return false;               \
    memcpy(&functions->name, &found, sizeof(found)); /* C has no cast from data to code */
    CUDNN_FUNCTIONS(X)
#undef X
    return true;
}

size_t cudnn_library_version(void)
{
    cudnn_library functions;
    return cudnn_library_load(&functions) ? functions.version() : 0;
}

#else

size_t cudnn_library_version(void)
{
    return 0;
}

#endif
