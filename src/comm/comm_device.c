/* Which way tensors in memory of a device go from rank to rank. */
#include "base/error.h"
#include "comm/comm.h"

remat_status comm_device_open(remat_communicator *ranks, backend_queue *queue, remat_communicator **made)
{
    *made = NULL;
    if (ranks->rank == 0)
        remat_warn(ranks->context, NULL,
                   "ranks exchange tensors of the device '%s' through memory of the host, which is slow",
                   queue->owner->type->name);
    return comm_staged_open(ranks, queue, false, made);
}
