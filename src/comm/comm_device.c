/* Which way tensors in memory of a device go from rank to rank: by NCCL where that can be, and through memory of the host elsewhere. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "comm/comm.h"
#include "comm/nccl_abi.h"

enum { REASON = 1024 };

/* Why this rank cannot use NCCL; NULL: it can. */
static const char *own_reason(const backend *device)
{
    const char *why = NULL;
    if (!device->lanes)
        return "NCCL does not know this device";
    return nccl_library_load(&why) ? NULL : why;
}

/* NCCL wants a GPU for each rank, and some releases wait without end where two have the same. */
static remat_status find_shared(remat_communicator *ranks, const backend *device, char *reason)
{
    const size_t each = sizeof device->identity;
    char *all = remat_alloc(ranks->context, ranks->size, each);
    if (!all)
        return REMAT_NO_MEMORY;
    remat_status status =
        comm_run(ranks, &(comm_transfer){.kind = COMM_GATHER, .data = all, .mine = device->identity, .bytes = each});
    for (uint64_t a = 0; status == REMAT_OK && a < ranks->size; a++)
        for (uint64_t b = a + 1; b < ranks->size && !*reason; b++)
            if (memcmp(all + a * each, all + b * each, each) == 0)
                snprintf(reason, REASON, "ranks %" PRIu64 " and %" PRIu64 " have the same GPU", a, b);
    remat_release(ranks->context, all, ranks->size, each);
    return status;
}

/* All ranks find the same reason; empty: NCCL can be used. */
static remat_status find_reason(remat_communicator *ranks, const backend *device, char *reason)
{
    const char *mine = own_reason(device);
    char text[REASON / 2] = "";
    uint64_t rank = 0;
    *reason = 0;
    const remat_status said =
        remat_communicator_agree(ranks, mine ? REMAT_INVALID : REMAT_OK, mine, &rank, text, sizeof text);
    if (said == REMAT_OK)
        return find_shared(ranks, device, reason);
    if (said != REMAT_INVALID)
        return said;
    snprintf(reason, REASON, "rank %" PRIu64 ": %s", rank, text);
    return REMAT_OK;
}

remat_status comm_device_open(remat_communicator *ranks, backend_queue *queue, const comm_pairs *pairs,
                              remat_communicator **made)
{
    char reason[REASON];
    *made = NULL;
    REMAT_TRY(find_reason(ranks, queue->owner, reason));
    if (!*reason)
        return comm_nccl_open(ranks, queue, pairs, made);
    if (ranks->rank == 0)
        remat_warn(ranks->context, NULL,
                   "ranks exchange tensors of the device '%s' through memory of the host, which is slow, because NCCL "
                   "cannot: %s",
                   queue->owner->type->name, reason);
    return comm_staged_open(ranks, queue, false, made);
}
