#include "support/fake_nccl_calls.h"

#include "support/fenced_backend.h"

#include <dlfcn.h>

/* A library of this name that is loaded already is the one that is found by it. */
bool fake_nccl_load(const char *file, uint64_t identity, fake_nccl_calls *fake)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return false;
    void (**call)(void *, void (*)(void *), void *) = dlsym(handle, "fake_nccl_call");
    void *(**address)(void *, const void *) = dlsym(handle, "fake_nccl_address");
    *call = fenced_stream_call;
    *address = fenced_stream_address;
    *fake = (fake_nccl_calls){.calls = dlsym(handle, "fake_nccl_calls"),
                              .fails_at = dlsym(handle, "fake_nccl_fails_at"),
                              .late_error = dlsym(handle, "fake_nccl_late_error"),
                              .open = dlsym(handle, "fake_nccl_open"),
                              .version = dlsym(handle, "fake_nccl_version")};
    fenced_use_lanes(identity);
    return true;
}
