#include <inttypes.h>

#include "base/error.h"
#include "comm/nccl_object.h"

remat_status nccl_check(nccl_communicator *nccl, int code, const char *what)
{
    if (code == NCCL_ABI_SUCCESS || code == NCCL_ABI_IN_PROGRESS)
        return REMAT_OK;
    nccl->has_failed = true;
    return remat_fail(nccl->base.context, REMAT_IO, NULL, "rank %" PRIu64 ": %s fails: %.200s", nccl->base.rank, what,
                      nccl->library->GetErrorString(code));
}

static remat_status give_join(nccl_communicator *nccl, const comm_transfer *what, nccl_handle comm, void *stream)
{
    const uint64_t size = nccl->base.size;
    const int *parts = what->parts, *places = what->places;
    char *data = what->data;
    bool are_equal = true;
    for (uint64_t r = 0; r < size; r++)
        are_equal &= parts[r] == parts[0] && places[r] == (int)r * parts[0];
    if (are_equal) {
        NCCL_CHECK(nccl, AllGather, data + places[nccl->base.rank], data, (size_t)parts[0], NCCL_ABI_UINT8, comm,
                   stream);
        return REMAT_OK;
    }
    NCCL_CHECK(nccl, GroupStart);
    remat_status status = REMAT_OK;
    for (uint64_t r = 0; r < size && status == REMAT_OK; r++)
        if (parts[r])
            status = nccl_check(nccl,
                                nccl->library->Broadcast(data + places[r], data + places[r], (size_t)parts[r],
                                                         NCCL_ABI_UINT8, (int)r, comm, stream),
                                "ncclBroadcast");
    const int ended = nccl->library->GroupEnd();
    return status == REMAT_OK ? nccl_check(nccl, ended, "ncclGroupEnd") : status;
}

/* The rank that sends is the first of its pair. */
static remat_status call(nccl_communicator *nccl, const comm_transfer *what, nccl_handle comm, void *stream)
{
    const bool is_double = what->dtype == REMAT_FP64;
    switch (what->kind) {
    case COMM_SEND: NCCL_CHECK(nccl, Send, what->data, what->bytes, NCCL_ABI_UINT8, 1, comm, stream); break;
    case COMM_RECEIVE: NCCL_CHECK(nccl, Recv, what->data, what->bytes, NCCL_ABI_UINT8, 0, comm, stream); break;
    case COMM_BROADCAST:
        NCCL_CHECK(nccl, Broadcast, what->data, what->data, what->bytes, NCCL_ABI_UINT8, (int)what->peer, comm, stream);
        break;
    case COMM_GATHER:
        NCCL_CHECK(nccl, AllGather, what->mine, what->data, what->bytes, NCCL_ABI_UINT8, comm, stream);
        break;
    case COMM_JOIN: return give_join(nccl, what, comm, stream);
    case COMM_SUM:
        if (!is_double && what->dtype != REMAT_FP32)
            return remat_fail(nccl->base.context, REMAT_INVALID, NULL, "ranks add only fp32 and fp64");
        NCCL_CHECK(nccl, AllReduce, what->data, what->data, what->bytes / (is_double ? 8 : 4),
                   is_double ? NCCL_ABI_FLOAT64 : NCCL_ABI_FLOAT32, NCCL_ABI_SUM, comm, stream);
        break;
    case COMM_BARRIER: break;
    }
    return REMAT_OK;
}

remat_status nccl_give(nccl_communicator *nccl, nccl_transfer *transfer, nccl_lane *lane)
{
    const backend_lanes *lanes = nccl->device->lanes;
    if (!lane->comm)
        return remat_fail(nccl->base.context, REMAT_INTERNAL, NULL,
                          "rank %" PRIu64 " has no way to rank %" PRIu64 " for tensors", nccl->base.rank,
                          transfer->what.peer);
    REMAT_TRY(lanes->mark_follow(lane->queue, transfer->before));
    REMAT_TRY(call(nccl, &transfer->what, lane->comm, lanes->stream(lane->queue)));
    REMAT_TRY(lanes->mark_set(lane->queue, transfer->after));
    transfer->lane = lane; /* from now on `after` says whether it is done */
    return REMAT_OK;
}
