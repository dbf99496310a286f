/* The communicators of NCCL that a rank has: one of all ranks, and one for each rank that it sends to or receives from. All ranks open and
 * close theirs in the same order, so that no two wait for each other. */
#include "base/error.h"
#include "comm/nccl_object.h"

enum { FIRST_BYTES = 256 };

/* From one rank to another; NULL: this rank is neither of them. */
static nccl_lane *lane_between(nccl_communicator *nccl, uint64_t from, uint64_t to)
{
    const uint64_t rank = nccl->base.rank;
    if (from == to || (rank != from && rank != to))
        return NULL;
    return rank == from ? &nccl->peers[to].out : &nccl->peers[from].in;
}

static nccl_lane *wanted_lane(nccl_communicator *nccl, const comm_pairs *pairs, uint64_t from, uint64_t to)
{
    nccl_lane *lane = lane_between(nccl, from, to);
    return lane && pairs->talk(pairs->user, from, to) ? lane : NULL;
}

static remat_status prepare_lane(nccl_communicator *nccl, nccl_lane *lane, bool is_first)
{
    REMAT_TRY(nccl->device->lanes->create(nccl->device, &lane->queue));
    if (is_first)
        NCCL_CHECK(nccl, GetUniqueId, &lane->id);
    return REMAT_OK;
}

remat_status nccl_lanes_prepare(nccl_communicator *nccl, const comm_pairs *pairs)
{
    REMAT_TRY(backend_allocate(nccl->device, MEMORY_DEVICE, FIRST_BYTES, true, &nccl->first));
    REMAT_TRY(prepare_lane(nccl, &nccl->all, nccl->base.rank == 0));
    for (uint64_t from = 0; pairs && from < nccl->base.size; from++)
        for (uint64_t to = 0; to < nccl->base.size; to++) {
            nccl_lane *lane = wanted_lane(nccl, pairs, from, to);
            if (lane)
                REMAT_TRY(prepare_lane(nccl, lane, nccl->base.rank == from));
        }
    return REMAT_OK;
}

static remat_status open_lane(nccl_communicator *nccl, nccl_lane *lane, uint64_t size, uint64_t place)
{
    nccl_handle comm = NULL;
    nccl->device->lanes->stream(lane->queue); /* NCCL takes the device that is chosen */
    NCCL_CHECK(nccl, CommInitRank, &comm, (int)size, lane->id, (int)place);
    lane->comm = comm;
    return REMAT_OK;
}

/* NCCL connects two ranks when they make their first calls, and blocks the host until both have. So they make these here. */
static remat_status open_pair(nccl_communicator *nccl, nccl_lane *lane, uint64_t from, uint64_t to)
{
    const bool sends = nccl->base.rank == from;
    comm_request request;
    comm_transfer transfer = {.kind = sends ? COMM_SEND : COMM_RECEIVE,
                              .peer = sends ? to : from,
                              .data = &lane->id,
                              .bytes = sizeof lane->id};
    REMAT_TRY(comm_run(nccl->below, &transfer));
    REMAT_TRY(open_lane(nccl, lane, 2, sends ? 0 : 1));
    transfer.data = nccl->first.at;
    transfer.bytes = FIRST_BYTES;
    REMAT_TRY(nccl_start_at(nccl, &transfer, lane, &request));
    return comm_wait(&nccl->base, &request);
}

remat_status nccl_lanes_open(nccl_communicator *nccl, const comm_pairs *pairs)
{
    const uint64_t size = nccl->base.size;
    nccl_id *id = &nccl->all.id;
    REMAT_TRY(comm_run(nccl->below, &(comm_transfer){.kind = COMM_BROADCAST, .data = id, .bytes = sizeof *id}));
    REMAT_TRY(open_lane(nccl, &nccl->all, size, nccl->base.rank));
    for (uint64_t from = 0; pairs && from < size; from++)
        for (uint64_t to = 0; to < size; to++) {
            nccl_lane *lane = wanted_lane(nccl, pairs, from, to);
            if (lane)
                REMAT_TRY(open_pair(nccl, lane, from, to));
        }
    return REMAT_OK;
}

/* What is under way is ended first: the stream waits for it. */
static void close_lane(nccl_communicator *nccl, nccl_lane *lane)
{
    if (lane->queue)
        nccl->device->lanes->stream(lane->queue); /* as for opening */
    if (lane->comm && (nccl->has_failed || nccl->active))
        nccl->library->CommAbort(lane->comm);
    else if (lane->comm)
        nccl->library->CommDestroy(lane->comm);
    backend_queue_destroy(lane->queue);
    *lane = (nccl_lane){0};
}

void nccl_lanes_close(nccl_communicator *nccl)
{
    for (uint64_t from = 0; from < nccl->base.size; from++)
        for (uint64_t to = 0; to < nccl->base.size; to++) {
            nccl_lane *lane = lane_between(nccl, from, to);
            if (lane)
                close_lane(nccl, lane);
        }
    close_lane(nccl, &nccl->all);
    backend_release(nccl->device, &nccl->first);
}
