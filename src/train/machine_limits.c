#include <remat/train.h>

#include "backend/backend.h"
#include "base/error.h"

remat_status remat_measure_limits(remat_context *context, unsigned threads, remat_machine_limits *limits)
{
    backend *device;
    backend_limits measured;
    REMAT_TRY(backend_open(context, &(backend_options){.threads = threads}, &device));
    remat_status status = backend_measure_limits(device, &measured);
    if (status == REMAT_OK)
        *limits = (remat_machine_limits){measured.flops, measured.bytes, measured.threads, device->kernels};
    backend_close(device);
    return status;
}
