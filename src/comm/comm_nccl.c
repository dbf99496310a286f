/* Ranks whose tensors are in memory of GPUs, connected by NCCL. MPI tells who sends what; NCCL moves it.
 *
 * NCCL has no tags, runs what a communicator of its own was given one after the other, and what it runs waits in the GPU until the other rank
 * runs its part. So ranks that gave it transfers in different orders would wait for each other without end. Therefore
 *
 *   - each pair of ranks that sends in a direction has a communicator of two, with a stream: nothing else waits behind its transfers;
 *   - a rank that starts a receive tells the other one by MPI. That one gives NCCL a send only then, and tells its tag; the receiver gives
 *     NCCL its receives in the order of these tags. So what waits in a GPU always has its other part under way;
 *   - collective transfers, which all ranks start in the same order, have a communicator of all ranks and a stream. NCCL is given one when a
 *     barrier by MPI says that all ranks have started it: a first call blocks the host until all ranks make it.
 *
 *     queue of the device   compute  |before          compute   ...
 *     stream of the pair              follows it: send |after
 *
 * Streams follow the queue, and the queue never follows a stream: who needs what comes waits for `after` on the host, with the time limit of
 * comm_wait. So a rank that is lost stops nobody for ever. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "comm/nccl_object.h"

/* ---- notices ---- */

static remat_status tell(nccl_communicator *nccl, nccl_transfer *transfer, int kind)
{
    const comm_transfer *what = &transfer->what;
    transfer->notice = (nccl_notice){(uint64_t)what->tag, what->bytes};
    return comm_start(nccl->below,
                      &(comm_transfer){.kind = COMM_SEND,
                                       .peer = what->peer,
                                       .tag = kind,
                                       .data = &transfer->notice,
                                       .bytes = sizeof transfer->notice},
                      &transfer->told);
}

/* The first one with a rank that has not begun, and has the tag of the notice; NULL: with any tag. */
static nccl_transfer *find(const nccl_communicator *nccl, comm_kind kind, uint64_t rank, const nccl_notice *notice)
{
    for (nccl_transfer *t = nccl->active; t; t = t->next)
        if (t->what.kind == kind && !t->lane && t->what.peer == rank &&
            (!notice || (uint64_t)t->what.tag == notice->tag))
            return t;
    return NULL;
}

/* A notice is asked for only while a transfer waits for one: none is left over at the end. */
static remat_status ask(nccl_communicator *nccl, uint64_t rank, int kind)
{
    nccl_inbox *inbox = &nccl->peers[rank].inboxes[kind];
    if (inbox->is_asked || !find(nccl, kind == NOTICE_READY ? COMM_SEND : COMM_RECEIVE, rank, NULL))
        return REMAT_OK;
    inbox->is_asked = true;
    return comm_start(
        nccl->below,
        &(comm_transfer){
            .kind = COMM_RECEIVE, .peer = rank, .tag = kind, .data = &inbox->notice, .bytes = sizeof inbox->notice},
        &inbox->request);
}

static remat_status check_bytes(const nccl_communicator *nccl, const nccl_transfer *transfer, const nccl_notice *notice)
{
    if (transfer->what.bytes == notice->bytes)
        return REMAT_OK;
    return remat_fail(nccl->base.context, REMAT_INTERNAL, NULL,
                      "rank %" PRIu64 " has %" PRIu64 " bytes where rank %" PRIu64 " has %" PRIu64, nccl->base.rank,
                      transfer->what.bytes, transfer->what.peer, notice->bytes);
}

/* A rank is ready for a tag. It may be long before this one sends that. */
static remat_status take_ready(nccl_communicator *nccl, uint64_t rank, nccl_notice notice)
{
    nccl_peer *peer = &nccl->peers[rank];
    nccl_transfer *sent = find(nccl, COMM_SEND, rank, &notice);
    if (!sent) {
        REMAT_TRY(remat_grow(nccl->base.context, (void **)&peer->ready, &peer->ready_capacity, peer->ready_count + 1,
                             sizeof *peer->ready));
        peer->ready[peer->ready_count++] = notice;
        return REMAT_OK;
    }
    REMAT_TRY(check_bytes(nccl, sent, &notice));
    REMAT_TRY(tell(nccl, sent, NOTICE_GO));
    return nccl_give(nccl, sent, &peer->out);
}

static remat_status take_go(nccl_communicator *nccl, uint64_t rank, nccl_notice notice)
{
    nccl_transfer *received = find(nccl, COMM_RECEIVE, rank, &notice);
    if (!received)
        return remat_fail(nccl->base.context, REMAT_INTERNAL, NULL, "rank %" PRIu64 " sends what nobody asked for",
                          rank);
    REMAT_TRY(check_bytes(nccl, received, &notice));
    return nccl_give(nccl, received, &nccl->peers[rank].in);
}

static remat_status read_notices(nccl_communicator *nccl, uint64_t rank, int kind)
{
    nccl_inbox *inbox = &nccl->peers[rank].inboxes[kind];
    while (inbox->is_asked) {
        bool done;
        REMAT_TRY(comm_test(nccl->below, &inbox->request, &done));
        if (!done)
            return REMAT_OK;
        inbox->is_asked = false;
        REMAT_TRY((kind == NOTICE_READY ? take_ready : take_go)(nccl, rank, inbox->notice));
        REMAT_TRY(ask(nccl, rank, kind));
    }
    return REMAT_OK;
}

/* The other rank may have said already that it is ready. */
static remat_status start_send(nccl_communicator *nccl, const nccl_transfer *transfer)
{
    const uint64_t rank = transfer->what.peer;
    nccl_peer *peer = &nccl->peers[rank];
    for (size_t i = 0; i < peer->ready_count; i++)
        if (peer->ready[i].tag == (uint64_t)transfer->what.tag) {
            const nccl_notice notice = peer->ready[i];
            peer->ready_count--;
            memmove(&peer->ready[i], &peer->ready[i + 1], (peer->ready_count - i) * sizeof *peer->ready);
            return take_ready(nccl, rank, notice);
        }
    return ask(nccl, rank, NOTICE_READY);
}

/* ---- transfers ---- */

static remat_status add_transfer(nccl_communicator *nccl, const comm_transfer *what, nccl_transfer **made)
{
    const backend_lanes *lanes = nccl->device->lanes;
    nccl_transfer *added = nccl->spare, **end = &nccl->active;
    if (added) {
        nccl->spare = added->next;
    } else {
        added = remat_alloc_zeroed(nccl->base.context, 1, sizeof *added);
        if (!added)
            return REMAT_NO_MEMORY;
    }
    added->what = *what;
    added->lane = NULL;
    added->told = (comm_request){0};
    added->next = NULL;
    while (*end)
        end = &(*end)->next;
    *made = *end = added;
    if (!added->before)
        REMAT_TRY(lanes->mark_create(nccl->device, &added->before));
    return added->after ? REMAT_OK : lanes->mark_create(nccl->device, &added->after);
}

static void remove_transfer(nccl_communicator *nccl, nccl_transfer *removed)
{
    nccl_transfer **link = &nccl->active;
    while (*link != removed)
        link = &(*link)->next;
    *link = removed->next;
    removed->next = nccl->spare;
    nccl->spare = removed;
}

/* The transfer is in the list in any case: what is under way when its communicator is closed is ended. */
static remat_status begin(nccl_communicator *nccl, const comm_transfer *what, nccl_transfer **made,
                          comm_request *request)
{
    nccl->base.timeout = nccl->base.hosts->timeout;
    REMAT_TRY(add_transfer(nccl, what, made));
    *request = (comm_request){*made, true};
    return what->kind == COMM_BARRIER ? REMAT_OK : nccl->device->lanes->mark_set(nccl->queue, (*made)->before);
}

remat_status nccl_start_at(nccl_communicator *nccl, const comm_transfer *what, nccl_lane *lane, comm_request *request)
{
    nccl_transfer *transfer;
    REMAT_TRY(begin(nccl, what, &transfer, request));
    return nccl_give(nccl, transfer, lane);
}

static remat_status start(remat_communicator *ranks, const comm_transfer *what, comm_request *request)
{
    nccl_communicator *nccl = (nccl_communicator *)ranks;
    nccl_transfer *transfer;
    REMAT_TRY(begin(nccl, what, &transfer, request));
    if (what->kind == COMM_SEND)
        return start_send(nccl, transfer);
    if (what->kind != COMM_RECEIVE)
        return comm_start(nccl->below, &(comm_transfer){.kind = COMM_BARRIER}, &transfer->told);
    REMAT_TRY(tell(nccl, transfer, NOTICE_READY));
    return ask(nccl, what->peer, NOTICE_GO);
}

static bool is_collective(comm_kind kind)
{
    return kind != COMM_SEND && kind != COMM_RECEIVE && kind != COMM_BARRIER;
}

/* In the order of their starts. */
static remat_status give_collectives(nccl_communicator *nccl)
{
    for (nccl_transfer *t = nccl->active; t; t = t->next) {
        bool all;
        if (t->lane || !is_collective(t->what.kind))
            continue;
        REMAT_TRY(comm_test(nccl->below, &t->told, &all));
        if (!all)
            return REMAT_OK;
        REMAT_TRY(nccl_give(nccl, t, &nccl->all));
    }
    return REMAT_OK;
}

static remat_status check_lane(nccl_communicator *nccl, const nccl_lane *lane)
{
    int error = NCCL_ABI_SUCCESS;
    NCCL_CHECK(nccl, CommGetAsyncError, lane->comm, &error);
    return nccl_check(nccl, error, "a transfer by NCCL");
}

static remat_status advance(remat_communicator *ranks)
{
    for (uint64_t r = 0; r < ranks->size; r++)
        for (int kind = 0; kind < NOTICE_KINDS; kind++)
            REMAT_TRY(read_notices((nccl_communicator *)ranks, r, kind));
    return give_collectives((nccl_communicator *)ranks);
}

static remat_status test(remat_communicator *ranks, comm_request *request, bool *done)
{
    nccl_communicator *nccl = (nccl_communicator *)ranks;
    nccl_transfer *transfer = request->handle;
    *done = false;
    REMAT_TRY(advance(ranks));
    bool told = true, moved = transfer->what.kind == COMM_BARRIER;
    REMAT_TRY(comm_test(nccl->below, &transfer->told, &told));
    if (transfer->lane) {
        REMAT_TRY(nccl->device->lanes->mark_test(nccl->device, transfer->after, &moved));
        REMAT_TRY(check_lane(nccl, transfer->lane));
    }
    if (!told || !moved)
        return REMAT_OK;
    request->is_active = false;
    *done = true;
    remove_transfer(nccl, transfer);
    return REMAT_OK;
}

/* ---- opening and closing ---- */

static void abort_below(remat_communicator *ranks, int code)
{
    remat_communicator *below = ((nccl_communicator *)ranks)->below;
    below->type->abort(below, code);
}

/* After a failure MPI may still read a notice, or write one: that memory stays. */
static void release_transfers(nccl_communicator *nccl, nccl_transfer *first)
{
    while (first) {
        nccl_transfer *next = first->next;
        if (first->before)
            nccl->device->lanes->mark_destroy(nccl->device, first->before);
        if (first->after)
            nccl->device->lanes->mark_destroy(nccl->device, first->after);
        if (!first->told.is_active)
            remat_release(nccl->base.context, first, 1, sizeof *first);
        first = next;
    }
}

static void release_peers(nccl_communicator *nccl)
{
    remat_context *context = nccl->base.context;
    const uint64_t size = nccl->base.size;
    bool are_asked = false;
    for (uint64_t r = 0; r < size; r++) {
        nccl_peer *peer = &nccl->peers[r];
        are_asked |= peer->inboxes[NOTICE_READY].is_asked || peer->inboxes[NOTICE_GO].is_asked;
        remat_release(context, peer->ready, peer->ready_capacity, sizeof *peer->ready);
    }
    if (!are_asked)
        remat_release(context, nccl->peers, size, sizeof *nccl->peers);
}

static void leave_hosts(remat_communicator *ranks)
{
    for (remat_communicator **link = &ranks->hosts->beside; *link; link = &(*link)->next_beside)
        if (*link == ranks) {
            *link = ranks->next_beside;
            return;
        }
}

static void close_nccl(remat_communicator *ranks)
{
    nccl_communicator *nccl = (nccl_communicator *)ranks;
    remat_context *context = ranks->context;
    leave_hosts(ranks);
    nccl_lanes_close(nccl);
    release_transfers(nccl, nccl->active);
    release_transfers(nccl, nccl->spare);
    release_peers(nccl);
    remat_communicator_close(nccl->below);
    remat_release(context, nccl, 1, sizeof *nccl);
}

static remat_status open_among(remat_communicator *ranks, remat_communicator *hosts, backend_queue *queue,
                               const comm_pairs *pairs, remat_communicator **made);

/* A part has collective transfers only. */
static remat_status split(remat_communicator *ranks, uint64_t group, uint64_t place, remat_communicator **made)
{
    nccl_communicator *nccl = (nccl_communicator *)ranks;
    remat_communicator *part;
    REMAT_TRY(comm_split(nccl->below, group, place, &part));
    remat_status status = open_among(part, ranks->hosts, nccl->queue, NULL, made);
    remat_communicator_close(part);
    return status;
}

static const comm_type type = {"nccl", start, test, abort_below, close_nccl, split, NULL};

/* Takes `below` over. NULL: there is no memory. */
static nccl_communicator *make(remat_communicator *below, remat_communicator *hosts, backend_queue *queue)
{
    const char *why;
    nccl_communicator *nccl = remat_alloc_zeroed(below->context, 1, sizeof *nccl);
    if (!nccl)
        return NULL;
    nccl->base = *below;
    nccl->base.type = &type;
    nccl->base.follows_queue = true;
    nccl->base.hosts = hosts;
    nccl->base.advance = advance;
    nccl->below = below;
    nccl->library = nccl_library_load(&why); /* comm_device_open has asked */
    nccl->queue = queue;
    nccl->device = queue->owner;
    nccl->peers = remat_alloc_zeroed(below->context, below->size, sizeof *nccl->peers);
    if (nccl->peers)
        return nccl;
    remat_release(below->context, nccl, 1, sizeof *nccl);
    return NULL;
}

/* If one rank cannot, none waits for it in NCCL. */
static remat_status open_among(remat_communicator *ranks, remat_communicator *hosts, backend_queue *queue,
                               const comm_pairs *pairs, remat_communicator **made)
{
    remat_communicator *below;
    bool any;
    REMAT_TRY(comm_split(ranks, 0, ranks->rank, &below));
    nccl_communicator *nccl = make(below, hosts, queue);
    remat_status status = nccl ? nccl_lanes_prepare(nccl, pairs) : REMAT_NO_MEMORY;
    const remat_status asked = comm_any(below, status != REMAT_OK, &any);
    if (status == REMAT_OK)
        status = asked;
    if (status == REMAT_OK && any)
        status =
            remat_fail(ranks->context, REMAT_IO, NULL, "rank %" PRIu64 ": NCCL fails on another rank", ranks->rank);
    if (status == REMAT_OK)
        status = nccl_lanes_open(nccl, pairs);
    if (status == REMAT_OK) {
        nccl->base.next_beside = hosts->beside;
        hosts->beside = &nccl->base;
        *made = &nccl->base;
    } else if (nccl) {
        nccl->has_failed = true;
        close_nccl(&nccl->base);
    } else {
        remat_communicator_close(below);
    }
    return status;
}

remat_status comm_nccl_open(remat_communicator *ranks, backend_queue *queue, const comm_pairs *pairs,
                            remat_communicator **made)
{
    return open_among(ranks, ranks, queue, pairs, made);
}
