/* Ranks whose tensors are in memory of a device, connected through memory of the host:
 *
 *     device -> room -> the ranks below -> room -> device
 *
 * A room is pinned memory of the host, one for each transfer under way. What is sent is copied out when the transfer starts, so that
 * sends never wait for room: a rank that waits for another cannot keep it from going on. Receives are started long before their data
 * comes, often for all gradients of a step. They get rooms up to READY_BYTES, in the order of their starts, and the others when a
 * receive ends or when somebody waits for them. Rooms are used again, and freed at the end. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "comm/comm.h"

#define READY_BYTES ((uint64_t)32 << 20)
#define LEAST_ROOM  ((uint64_t)64 << 10)

typedef struct staged_room {
    backend_memory memory;
    bool taken;
    bool is_read; /* a copy from it may still be in the queue */
    struct staged_room *next;
} staged_room;

typedef struct staged_transfer {
    comm_transfer what;
    staged_room *room;      /* NULL: it has not begun */
    comm_request request;   /* of the ranks below, when it has begun */
    bool has_begun, counts; /* counts: its room is among `ready` */
    struct staged_transfer *next;
} staged_transfer;

typedef struct staged_communicator {
    remat_communicator base;
    remat_communicator *below;
    backend_queue *queue;
    backend *device; /* the queue may be gone when this is closed */
    bool owns;       /* what is below */
    staged_room *rooms;
    staged_transfer *active, *spare; /* active ones in the order of their starts */
    uint64_t ready;                  /* bytes of rooms that receives have */
} staged_communicator;

/* ---- rooms ---- */

/* A power of two: parameters of many sizes find rooms of few. */
static uint64_t room_bytes(uint64_t bytes)
{
    uint64_t room = LEAST_ROOM;
    while (room < bytes)
        room *= 2;
    return room;
}

static remat_status wait_for_queue(staged_communicator *staged)
{
    REMAT_TRY(backend_wait(staged->queue));
    for (staged_room *room = staged->rooms; room; room = room->next)
        room->is_read = false;
    return REMAT_OK;
}

static remat_status add_room(staged_communicator *staged, uint64_t bytes, staged_room **added)
{
    remat_context *context = staged->base.context;
    staged_room *room = remat_alloc_zeroed(context, 1, sizeof *room);
    if (!room)
        return REMAT_NO_MEMORY;
    remat_status status = backend_allocate(staged->device, MEMORY_STAGING, bytes, false, &room->memory);
    if (status != REMAT_OK) {
        remat_release(context, room, 1, sizeof *room);
        return status;
    }
    room->next = staged->rooms;
    *added = staged->rooms = room;
    return REMAT_OK;
}

static remat_status take_room(staged_communicator *staged, uint64_t wanted, staged_room **taken)
{
    const uint64_t bytes = room_bytes(wanted);
    staged_room *found = NULL;
    for (staged_room *room = staged->rooms; room; room = room->next)
        if (!room->taken && room->memory.bytes == bytes && (!found || (found->is_read && !room->is_read)))
            found = room;
    if (!found)
        REMAT_TRY(add_room(staged, bytes, &found));
    if (found->is_read)
        REMAT_TRY(wait_for_queue(staged));
    found->taken = true;
    *taken = found;
    return REMAT_OK;
}

/* ---- a transfer ---- */

/* The bytes that it has on the host. */
static uint64_t staged_bytes(const staged_communicator *staged, const comm_transfer *what)
{
    uint64_t end = 0;
    if (what->kind == COMM_GATHER)
        return what->bytes * (staged->base.size + 1); /* and what this rank has, behind the rest */
    if (what->kind != COMM_JOIN)
        return what->bytes;
    for (uint64_t r = 0; r < staged->base.size; r++)
        end = remat_max(end, (uint64_t)what->places[r] + (uint64_t)what->parts[r]);
    return end;
}

/* What this rank gives to the others is copied to the room. */
static remat_status copy_out(staged_communicator *staged, const comm_transfer *what, char *room)
{
    const uint64_t rank = staged->base.rank;
    const char *data = what->data;
    switch (what->kind) {
    case COMM_RECEIVE:
    case COMM_BARRIER: return REMAT_OK;
    case COMM_SEND:
    case COMM_SUM: REMAT_TRY(backend_copy_out(staged->queue, room, data, what->bytes)); break;
    case COMM_BROADCAST:
        if (what->peer != rank)
            return REMAT_OK;
        REMAT_TRY(backend_copy_out(staged->queue, room, data, what->bytes));
        break;
    case COMM_GATHER:
        REMAT_TRY(backend_copy_out(staged->queue, room + what->bytes * staged->base.size, what->mine, what->bytes));
        break;
    case COMM_JOIN:
        REMAT_TRY(backend_copy_out(staged->queue, room + what->places[rank], data + what->places[rank],
                                   (uint64_t)what->parts[rank]));
        break;
    }
    return wait_for_queue(staged);
}

/* What came is copied to the device, behind the work of the queue. */
static remat_status copy_in(staged_communicator *staged, const comm_transfer *what, const char *room)
{
    const uint64_t rank = staged->base.rank;
    char *data = what->data;
    switch (what->kind) {
    case COMM_SEND:
    case COMM_BARRIER: break;
    case COMM_RECEIVE:
    case COMM_SUM: return backend_copy_in(staged->queue, data, room, what->bytes);
    case COMM_BROADCAST: return what->peer == rank ? REMAT_OK : backend_copy_in(staged->queue, data, room, what->bytes);
    case COMM_GATHER: return backend_copy_in(staged->queue, data, room, what->bytes * staged->base.size);
    case COMM_JOIN:
        for (uint64_t r = 0; r < staged->base.size; r++)
            if (r != rank)
                REMAT_TRY(backend_copy_in(staged->queue, data + what->places[r], room + what->places[r],
                                          (uint64_t)what->parts[r]));
        break;
    }
    return REMAT_OK;
}

static remat_status begin(staged_communicator *staged, staged_transfer *transfer)
{
    const comm_transfer *what = &transfer->what;
    const uint64_t bytes = staged_bytes(staged, what);
    comm_transfer below = *what;
    transfer->has_begun = true;
    below.data = NULL;
    if (bytes) {
        REMAT_TRY(take_room(staged, bytes, &transfer->room));
        below.data = transfer->room->memory.at;
        below.mine = transfer->room->memory.at + what->bytes * staged->base.size;
        REMAT_TRY(copy_out(staged, what, below.data));
    }
    transfer->counts = what->kind == COMM_RECEIVE && bytes;
    if (transfer->counts)
        staged->ready += transfer->room->memory.bytes;
    return comm_start(staged->below, &below, &transfer->request);
}

static bool fits(const staged_communicator *staged, const comm_transfer *what)
{
    return what->kind != COMM_RECEIVE || staged->ready == 0 || staged->ready + room_bytes(what->bytes) <= READY_BYTES;
}

/* Receives that wait for room, as far as there is some. */
static remat_status begin_next(staged_communicator *staged)
{
    for (staged_transfer *transfer = staged->active; transfer; transfer = transfer->next) {
        if (transfer->has_begun)
            continue;
        if (!fits(staged, &transfer->what))
            return REMAT_OK;
        REMAT_TRY(begin(staged, transfer));
    }
    return REMAT_OK;
}

static bool waits_for_room(const staged_communicator *staged)
{
    for (const staged_transfer *transfer = staged->active; transfer; transfer = transfer->next)
        if (!transfer->has_begun)
            return true;
    return false;
}

static staged_transfer *add_transfer(staged_communicator *staged, const comm_transfer *what)
{
    staged_transfer *added = staged->spare, **end = &staged->active;
    if (added)
        staged->spare = added->next;
    else
        added = remat_alloc(staged->base.context, 1, sizeof *added);
    if (!added)
        return NULL;
    *added = (staged_transfer){.what = *what};
    while (*end)
        end = &(*end)->next;
    return *end = added;
}

static void remove_transfer(staged_communicator *staged, staged_transfer *removed)
{
    staged_transfer **link = &staged->active;
    while (*link != removed)
        link = &(*link)->next;
    *link = removed->next;
    removed->next = staged->spare;
    staged->spare = removed;
}

static remat_status start(remat_communicator *ranks, const comm_transfer *what, comm_request *request)
{
    staged_communicator *staged = (staged_communicator *)ranks;
    ranks->timeout = staged->below->timeout;
    const bool waits = what->kind == COMM_RECEIVE && (waits_for_room(staged) || !fits(staged, what));
    staged_transfer *transfer = add_transfer(staged, what);
    if (!transfer)
        return REMAT_NO_MEMORY;
    *request = (comm_request){transfer, true};
    return waits ? REMAT_OK : begin(staged, transfer);
}

static remat_status test(remat_communicator *ranks, comm_request *request, bool *done)
{
    staged_communicator *staged = (staged_communicator *)ranks;
    staged_transfer *transfer = request->handle;
    *done = false;
    if (!transfer->has_begun)
        return begin_next(staged);
    REMAT_TRY(comm_test(staged->below, &transfer->request, done));
    if (!*done)
        return REMAT_OK;
    request->is_active = false;
    staged_room *room = transfer->room;
    if (room) {
        REMAT_TRY(copy_in(staged, &transfer->what, room->memory.at));
        room->taken = false;
        room->is_read = transfer->what.kind != COMM_SEND;
        staged->ready -= transfer->counts ? room->memory.bytes : 0;
    }
    remove_transfer(staged, transfer);
    return begin_next(staged);
}

/* Somebody waits for it: it begins now, and before it those that the same rank sends with the same tag, which arrive in the order in
 * which they begin. */
static remat_status want(remat_communicator *ranks, comm_request *request)
{
    staged_communicator *staged = (staged_communicator *)ranks;
    const staged_transfer *wanted = request->handle;
    for (staged_transfer *transfer = staged->active; !wanted->has_begun; transfer = transfer->next)
        if (!transfer->has_begun && transfer->what.peer == wanted->what.peer && transfer->what.tag == wanted->what.tag)
            REMAT_TRY(begin(staged, transfer));
    return REMAT_OK;
}

/* ---- opening and closing ---- */

static void abort_below(remat_communicator *ranks, int code)
{
    remat_communicator *below = ((staged_communicator *)ranks)->below;
    below->type->abort(below, code);
}

static void release_transfers(remat_context *context, staged_transfer *first)
{
    while (first) {
        staged_transfer *next = first->next;
        remat_release(context, first, 1, sizeof *first);
        first = next;
    }
}

static void close_staged(remat_communicator *ranks)
{
    staged_communicator *staged = (staged_communicator *)ranks;
    remat_context *context = ranks->context;
    while (staged->rooms) {
        staged_room *room = staged->rooms;
        staged->rooms = room->next;
        backend_release(staged->device, &room->memory);
        remat_release(context, room, 1, sizeof *room);
    }
    release_transfers(context, staged->active);
    release_transfers(context, staged->spare);
    if (staged->owns)
        remat_communicator_close(staged->below);
    remat_release(context, staged, 1, sizeof *staged);
}

static remat_status split(remat_communicator *ranks, uint64_t group, uint64_t place, remat_communicator **made)
{
    staged_communicator *staged = (staged_communicator *)ranks;
    remat_communicator *part;
    REMAT_TRY(comm_split(staged->below, group, place, &part));
    remat_status status = comm_staged_open(part, staged->queue, true, made);
    if (status != REMAT_OK)
        remat_communicator_close(part);
    return status;
}

remat_status comm_staged_open(remat_communicator *ranks, backend_queue *queue, bool owns, remat_communicator **made)
{
    static const comm_type type = {"staged", start, test, abort_below, close_staged, split, want};
    staged_communicator *staged = remat_alloc_zeroed(ranks->context, 1, sizeof *staged);
    if (!staged)
        return REMAT_NO_MEMORY;
    staged->base = *ranks;
    staged->base.type = &type;
    staged->base.follows_queue = true;
    staged->base.beside = NULL; /* they may be closed before it */
    staged->below = ranks;
    staged->queue = queue;
    staged->device = queue->owner;
    staged->owns = owns;
    *made = &staged->base;
    return REMAT_OK;
}
