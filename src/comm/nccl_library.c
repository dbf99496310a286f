#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include <remat/ranks.h>

#include "comm/nccl_abi.h"

static nccl_library library;
static const char *missing; /* why it cannot be used; NULL: it can */
static char version[32], too_old[96];

static bool find_all(void *handle)
{
    bool all = (*(void **)&library.GetErrorString = dlsym(handle, "ncclGetErrorString")) != NULL;
#define X(name, arguments) all &= (*(void **)&library.name = dlsym(handle, "nccl" #name)) != NULL;
    NCCL_ABI_FUNCTIONS(X)
#undef X
    return all;
}

/* Releases before 2.9 count 2708 for 2.7.8, later ones 22809 for 2.28.9. */
static void print_version(int code)
{
    const int unit = code >= 10000 ? 10000 : 1000;
    snprintf(version, sizeof version, "%d.%d.%d", code / unit, code % unit / 100, code % 100);
}

static void load(void)
{
    int code = 0;
    void *handle = dlopen(NCCL_ABI_FILE, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        missing = "NCCL's " NCCL_ABI_FILE " is not installed";
    else if (!find_all(handle) || library.GetVersion(&code) != NCCL_ABI_SUCCESS)
        missing = "NCCL's " NCCL_ABI_FILE " is incomplete";
    else
        print_version(code);
    if (!missing && code < NCCL_ABI_OLDEST) {
        snprintf(too_old, sizeof too_old, "NCCL %s is too old; 2.7 or later is needed", version);
        missing = too_old;
    }
}

const nccl_library *nccl_library_load(const char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    *why = missing;
    return missing ? NULL : &library;
}

const char *remat_nccl_version(void)
{
    const char *why;
    return nccl_library_load(&why) ? version : NULL;
}
