#include <remat/train.h>

#include "backend/backend.h"
#include "base/error.h"
#include "base/options.h"

#include <stdio.h>

remat_status remat_measure_device_sized(remat_context *context, const char *name, unsigned threads,
                                        remat_machine_limits *limits, size_t limits_size)
{
    backend *device;
    backend_limits measured;
    REMAT_TRY(backend_open(context, &(backend_options){.device = name, .threads = threads}, &device));
    remat_status status = backend_measure_limits(device, &measured);
    if (status == REMAT_OK) {
        const remat_machine_limits found = {measured.flops, measured.bytes, measured.threads,
                                            device->host_visible ? device->kernels : device->type->name};
        remat_struct_give(limits, limits_size, &found, sizeof found);
    }
    backend_close(device);
    return status;
}

remat_status remat_measure_limits_sized(remat_context *context, unsigned threads, remat_machine_limits *limits,
                                        size_t limits_size)
{
    return remat_measure_device_sized(context, NULL, threads, limits, limits_size);
}

remat_status remat_device_describe(remat_context *context, const char *name, char *text, size_t room)
{
    backend *device;
    REMAT_TRY(backend_open(context, &(backend_options){.device = name}, &device));
    snprintf(text, room, "%s", device->about ? device->about : device->kernels);
    backend_close(device);
    return REMAT_OK;
}

remat_status remat_device_memory(remat_context *context, const char *name, uint64_t *bytes)
{
    backend *device;
    *bytes = 0;
    REMAT_TRY(backend_open(context, &(backend_options){.device = name}, &device));
    *bytes = device->free_bytes;
    backend_close(device);
    return REMAT_OK;
}
