#include <remat/train.h>

#include "backend/backend.h"
#include "base/error.h"
#include "base/options.h"

remat_status remat_measure_limits_sized(remat_context *context, unsigned threads, remat_machine_limits *limits,
                                        size_t limits_size)
{
    backend *device;
    backend_limits measured;
    REMAT_TRY(backend_open(context, &(backend_options){.threads = threads}, &device));
    remat_status status = backend_measure_limits(device, &measured);
    if (status == REMAT_OK) {
        const remat_machine_limits found = {measured.flops, measured.bytes, measured.threads, device->kernels};
        remat_struct_give(limits, limits_size, &found, sizeof found);
    }
    backend_close(device);
    return status;
}
