#include "train/shard_transfer.h"

#include <string.h>
#include <time.h>

#include "backend/recording.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "base/weight_blocks.h"

enum {
    STAGED_VALUES = 1 << 18, /* that a message of shard_add has at most; a multiple of a block */
    TAG_ADD = 1 << 29,       /* apart from those of gradient chains */
    TAG_COLLECT,
    TAG_JOIN,
};

/* A piece of a join that is under way, or is over and has not been asked for. */
typedef struct shard_joining {
    char *whole; /* of the join; NULL: free */
    comm_request request;
    uint32_t parameter;
    uint64_t began, bytes;
} shard_joining;

enum {
    MOST_JOINING = 16,
    MOST_ADDING = 64, /* additions that the queue was given and that may not have run */
};

struct shard_transfers {
    remat_context *context;
    shard_transfer_options options;
    int *parts, *places;    /* for COMM_JOIN: of each rank, for each that is under way and one more */
    comm_request *requests; /* of each rank */
    shard_joining joining[MOST_JOINING];
    recording adds; /* MOST_ADDING additions; each gets its addresses before it runs */
    size_t adding;  /* the next of them */
};

/* ---- sizes ---- */

shard_unit shard_unit_of(remat_dtype dtype)
{
    const uint64_t values = dtype_traits_of(dtype)->blocks ? WEIGHT_BLOCK : 1;
    return (shard_unit){dtype_bytes(dtype, values), values};
}

uint64_t shard_unit_bytes(shard_unit unit, uint64_t values)
{
    return (values / unit.values + (values % unit.values > 0)) * unit.bytes;
}

static uint64_t staged_values(const shard_map *map)
{
    uint64_t most = 0;
    for (uint32_t p = 0; p < map->network->parameter_count; p++)
        if (layer_parameter_is_trained(&map->network->parameters[p].about))
            most = remat_max(most, shard_map_most(map, p));
    return remat_min(most, STAGED_VALUES);
}

/* Two messages: one is received while the other is added. */
static uint64_t staged_bytes(const shard_map *map)
{
    return (staged_values(map) * sizeof(float) + 63) & ~(uint64_t)63;
}

uint64_t shard_staging_bytes(const shard_map *map)
{
    return 2 * staged_bytes(map);
}

/* ---- making ---- */

static remat_status record_adds(shard_transfers *transfers)
{
    const tensor_ref any = {transfers->options.staging, REMAT_FP32};
    recording_begin(&transfers->adds, transfers->options.queue->owner);
    for (int i = 0; i < MOST_ADDING && any.at; i++)
        REMAT_TRY(record_accumulate(&transfers->adds, &(op_accumulate){.x = any, .y = any}));
    return REMAT_OK;
}

remat_status shard_transfers_create(remat_context *context, const shard_transfer_options *options,
                                    shard_transfers **made)
{
    shard_transfers *transfers = remat_alloc_zeroed(context, 1, sizeof *transfers);
    *made = NULL;
    if (!transfers)
        return REMAT_NO_MEMORY;
    const uint64_t size = options->map->size;
    *transfers = (shard_transfers){.context = context, .options = *options};
    transfers->parts = remat_alloc(context, (MOST_JOINING + 1) * size, sizeof *transfers->parts);
    transfers->places = remat_alloc(context, (MOST_JOINING + 1) * size, sizeof *transfers->places);
    transfers->requests = remat_alloc_zeroed(context, size, sizeof *transfers->requests);
    const bool complete = transfers->parts && transfers->places && transfers->requests;
    remat_status status = complete ? record_adds(transfers) : REMAT_NO_MEMORY;
    if (status != REMAT_OK) {
        shard_transfers_destroy(transfers);
        return status;
    }
    *made = transfers;
    return REMAT_OK;
}

void shard_transfers_destroy(shard_transfers *transfers)
{
    if (!transfers)
        return;
    const uint64_t size = transfers->options.map->size;
    recording_end(&transfers->adds);
    remat_release(transfers->context, transfers->parts, (MOST_JOINING + 1) * size, sizeof *transfers->parts);
    remat_release(transfers->context, transfers->places, (MOST_JOINING + 1) * size, sizeof *transfers->places);
    remat_release(transfers->context, transfers->requests, size, sizeof *transfers->requests);
    remat_release(transfers->context, transfers, 1, sizeof *transfers);
}

static uint64_t nanoseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void note(const shard_transfers *transfers, const char *what, uint32_t parameter, uint64_t bytes, uint64_t began)
{
    if (transfers->options.observe)
        transfers->options.observe(transfers->options.user, what, parameter, bytes, began, nanoseconds_now());
}

static uint64_t began_now(const shard_transfers *transfers)
{
    return transfers->options.observe ? nanoseconds_now() : 0;
}

/* ---- who shares ---- */

static uint64_t rank_of(const shard_transfers *transfers, uint64_t place)
{
    return transfers->options.first_rank + place * transfers->options.stride;
}

static uint64_t own_place(const shard_transfers *transfers)
{
    return (transfers->options.ranks->rank - transfers->options.first_rank) / transfers->options.stride;
}

/* ---- all-gather ---- */

/* The values that a part has in a range. */
static shard_part part_in(shard_part part, uint64_t first, uint64_t end)
{
    const uint64_t from = remat_max(part.first, first), to = remat_min(part.first + part.values, end);
    return from < to ? (shard_part){from, to - from} : (shard_part){first, 0};
}

/* MPI counts bytes in int: large parameters are joined in several pieces, of so many values. */
static uint64_t piece_values(shard_unit unit)
{
    return COMM_MOST_BYTES / shard_unit_bytes(unit, SHARD_BLOCK) * SHARD_BLOCK;
}

/* `number` says which lists of parts and places it uses. */
static remat_status start_join(shard_transfers *transfers, remat_communicator *ranks, uint32_t parameter,
                               shard_unit unit, char *whole, uint64_t first, size_t number, comm_request *request)
{
    const shard_map *map = transfers->options.map;
    const uint64_t end = remat_min(map->network->parameters[parameter].values, first + piece_values(unit));
    int *parts = transfers->parts + number * map->size, *places = transfers->places + number * map->size;
    for (uint64_t r = 0; r < map->size; r++) {
        const shard_part part = part_in(shard_map_part(map, parameter, r), first, end);
        parts[r] = (int)shard_unit_bytes(unit, part.values);
        places[r] = (int)shard_unit_bytes(unit, part.first - first);
    }
    return comm_start(
        ranks,
        &(comm_transfer){
            .kind = COMM_JOIN, .data = whole + shard_unit_bytes(unit, first), .parts = parts, .places = places},
        request);
}

static remat_status join_all(shard_transfers *transfers, remat_communicator *ranks, uint32_t parameter, shard_unit unit,
                             char *whole)
{
    const uint64_t values = transfers->options.map->network->parameters[parameter].values;
    comm_request request;
    for (uint64_t first = 0; first < values; first += piece_values(unit)) {
        REMAT_TRY(start_join(transfers, ranks, parameter, unit, whole, first, MOST_JOINING, &request));
        REMAT_TRY(comm_wait(ranks, &request));
    }
    return REMAT_OK;
}

/* ---- all-gathers that were begun ---- */

bool shard_is_joining(const shard_transfers *transfers, const char *whole)
{
    for (size_t i = 0; i < MOST_JOINING; i++)
        if (transfers->joining[i].whole == whole)
            return true;
    return false;
}

static void note_joined(const shard_transfers *transfers, const shard_joining *joined)
{
    note(transfers, "gather", joined->parameter, joined->bytes, joined->began);
}

remat_status shard_join_begin(shard_transfers *transfers, uint32_t parameter, shard_unit unit, char *whole, bool *begun)
{
    const uint64_t values = transfers->options.map->network->parameters[parameter].values;
    uint64_t left = values / piece_values(unit) + (values % piece_values(unit) > 0), first = 0;
    size_t free_count = 0;
    *begun = shard_is_joining(transfers, whole);
    for (size_t i = 0; i < MOST_JOINING; i++)
        free_count += !transfers->joining[i].whole;
    if (*begun || left > free_count)
        return REMAT_OK;
    for (size_t i = 0; i < MOST_JOINING && left; i++) {
        shard_joining *joining = &transfers->joining[i];
        if (joining->whole)
            continue;
        const uint64_t count = remat_min(values - first, piece_values(unit));
        *joining = (shard_joining){.whole = whole,
                                   .parameter = parameter,
                                   .began = began_now(transfers),
                                   .bytes = shard_unit_bytes(unit, count)};
        REMAT_TRY(start_join(transfers, transfers->options.ranks, parameter, unit, whole, first, i, &joining->request));
        first += count;
        left--;
    }
    *begun = true;
    return REMAT_OK;
}

remat_status shard_join_advance(shard_transfers *transfers)
{
    for (size_t i = 0; i < MOST_JOINING; i++) {
        shard_joining *joining = &transfers->joining[i];
        bool done;
        if (!joining->request.is_active)
            continue;
        REMAT_TRY(comm_test(transfers->options.ranks, &joining->request, &done));
        if (done)
            note_joined(transfers, joining);
    }
    return REMAT_OK;
}

static remat_status end_joining(shard_transfers *transfers, const char *whole)
{
    for (size_t i = 0; i < MOST_JOINING; i++) {
        shard_joining *joining = &transfers->joining[i];
        if (joining->whole != whole)
            continue;
        if (joining->request.is_active) {
            REMAT_TRY(comm_wait(transfers->options.ranks, &joining->request));
            note_joined(transfers, joining);
        }
        *joining = (shard_joining){0};
    }
    return REMAT_OK;
}

/* Bytes for a rank, or from it. */
typedef struct peer_bytes {
    uint64_t rank, bytes;
    char *at;
} peer_bytes;

/* The next piece of them, which one transfer can have. */
static remat_status start_piece(remat_communicator *ranks, comm_kind kind, peer_bytes *left, comm_request *request)
{
    const uint64_t bytes = remat_min(left->bytes, COMM_MOST_BYTES);
    const comm_transfer transfer = {
        .kind = kind, .peer = left->rank, .tag = TAG_JOIN, .data = left->at, .bytes = bytes};
    *request = (comm_request){0};
    left->at += bytes;
    left->bytes -= bytes;
    return bytes ? comm_start(ranks, &transfer, request) : REMAT_OK;
}

static remat_status swap(remat_communicator *ranks, peer_bytes sent, peer_bytes received)
{
    comm_request sends, receives;
    while (sent.bytes || received.bytes) {
        REMAT_TRY(start_piece(ranks, COMM_RECEIVE, &received, &receives));
        REMAT_TRY(start_piece(ranks, COMM_SEND, &sent, &sends));
        REMAT_TRY(comm_wait(ranks, &sends));
        REMAT_TRY(comm_wait(ranks, &receives));
    }
    return REMAT_OK;
}

static peer_bytes part_for(const shard_transfers *transfers, uint32_t parameter, shard_unit unit, char *whole,
                           uint64_t place, uint64_t peer)
{
    const shard_part part = shard_map_part(transfers->options.map, parameter, place);
    return (peer_bytes){rank_of(transfers, peer), shard_unit_bytes(unit, part.values),
                        whole + shard_unit_bytes(unit, part.first)};
}

/* Collective transfers are for all ranks. Some of them send their part to one after the other. */
static remat_status join_some(shard_transfers *transfers, remat_communicator *ranks, uint32_t parameter,
                              shard_unit unit, char *whole)
{
    const shard_map *map = transfers->options.map;
    const uint64_t place = own_place(transfers);
    for (uint64_t i = 1; i < map->size; i++) {
        const uint64_t to = (place + i) % map->size, from = (place + map->size - i) % map->size;
        REMAT_TRY(swap(ranks, part_for(transfers, parameter, unit, whole, place, to),
                       part_for(transfers, parameter, unit, whole, from, from)));
    }
    return REMAT_OK;
}

static remat_status join(shard_transfers *transfers, remat_communicator *ranks, uint32_t parameter, shard_unit unit,
                         char *whole)
{
    const bool all = transfers->options.map->size == ranks->size;
    return (all ? join_all : join_some)(transfers, ranks, parameter, unit, whole);
}

remat_status shard_join_host(shard_transfers *transfers, uint32_t parameter, shard_unit unit, char *whole)
{
    return join(transfers, transfers->options.hosts, parameter, unit, whole);
}

remat_status shard_join(shard_transfers *transfers, uint32_t parameter, shard_unit unit, char *whole)
{
    const shard_map *map = transfers->options.map;
    const uint64_t values = map->network->parameters[parameter].values, began = began_now(transfers);
    if (shard_is_joining(transfers, whole))
        return end_joining(transfers, whole);
    REMAT_TRY(join(transfers, transfers->options.ranks, parameter, unit, whole));
    note(transfers, "gather", parameter, shard_unit_bytes(unit, values), began);
    return REMAT_OK;
}

/* ---- reduce-scatter ---- */

/* The values of a rank's part that message number `message` has. */
static shard_part message_of(const shard_map *map, uint32_t parameter, uint64_t rank, uint64_t message)
{
    const shard_part part = shard_map_part(map, parameter, rank);
    const uint64_t first = remat_min(message * STAGED_VALUES, part.values);
    return (shard_part){part.first + first, remat_min(part.values - first, STAGED_VALUES)};
}

static remat_status send_parts(shard_transfers *transfers, uint32_t parameter, const float *gradient, uint64_t message)
{
    remat_communicator *ranks = transfers->options.ranks;
    const uint64_t size = transfers->options.map->size, place = own_place(transfers);
    for (uint64_t i = 1; i < size; i++) { /* each begins with another, so that nobody gets all of them at once */
        const uint64_t to = (place + i) % size;
        const shard_part part = message_of(transfers->options.map, parameter, to, message);
        transfers->requests[to] = (comm_request){0};
        if (part.values)
            REMAT_TRY(comm_start(ranks,
                                 &(comm_transfer){.kind = COMM_SEND,
                                                  .peer = rank_of(transfers, to),
                                                  .tag = TAG_ADD,
                                                  .data = (void *)(uintptr_t)(gradient + part.first),
                                                  .bytes = part.values * sizeof *gradient},
                                 &transfers->requests[to]));
    }
    return REMAT_OK;
}

static float *staged(const shard_transfers *transfers, uint64_t number)
{
    char *at = transfers->options.staging + number % 2 * staged_bytes(transfers->options.map);
    return (float *)(void *)at;
}

static remat_status start_receiving(shard_transfers *transfers, uint64_t from, uint64_t values, comm_request *request)
{
    remat_communicator *ranks = transfers->options.ranks;
    *request = (comm_request){0};
    if (from >= transfers->options.map->size || from == own_place(transfers))
        return REMAT_OK;
    return comm_start(ranks,
                      &(comm_transfer){.kind = COMM_RECEIVE,
                                       .peer = rank_of(transfers, from),
                                       .tag = TAG_ADD,
                                       .data = staged(transfers, from),
                                       .bytes = values * sizeof(float)},
                      request);
}

/* The queue reads an addition when it runs it, so a place among them is used again only when all before have run. */
static remat_status add(shard_transfers *transfers, uint64_t values, const float *x, float *sum)
{
    const size_t each = transfers->adds.used / MOST_ADDING;
    if (transfers->adding == MOST_ADDING) {
        REMAT_TRY(backend_wait(transfers->options.queue));
        transfers->adding = 0;
    }
    const size_t at = transfers->adding++ * each;
    op_accumulate *args = recorded_args(recording_call(&transfers->adds, at));
    args->x.at = (void *)(uintptr_t)x;
    args->y.at = sum;
    args->count = values;
    return backend_run(transfers->options.queue, &transfers->adds, at, at + each);
}

/* Adds the parts of all ranks, in their order. */
static remat_status receive_parts(shard_transfers *transfers, const float *own, uint64_t values, float *sum)
{
    remat_communicator *ranks = transfers->options.ranks;
    comm_request requests[2];
    if (values == 0)
        return REMAT_OK;
    REMAT_TRY(start_receiving(transfers, 0, values, &requests[0]));
    for (uint64_t r = 0; r < transfers->options.map->size; r++) {
        REMAT_TRY(comm_follow(ranks, transfers->options.queue)); /* what was there before is added */
        REMAT_TRY(start_receiving(transfers, r + 1, values, &requests[(r + 1) % 2]));
        REMAT_TRY(comm_wait(ranks, &requests[r % 2]));
        REMAT_TRY(add(transfers, values, r == own_place(transfers) ? own : staged(transfers, r), sum));
    }
    return REMAT_OK;
}

remat_status shard_add(shard_transfers *transfers, uint32_t parameter, const float *gradient, float *sum)
{
    const shard_map *map = transfers->options.map;
    remat_communicator *ranks = transfers->options.ranks;
    const uint64_t most = shard_map_most(map, parameter), began = began_now(transfers);
    for (uint64_t message = 0; message * STAGED_VALUES < most; message++) {
        const shard_part part = message_of(map, parameter, own_place(transfers), message);
        REMAT_TRY(send_parts(transfers, parameter, gradient, message));
        REMAT_TRY(receive_parts(transfers, gradient + part.first, part.values, sum + message * STAGED_VALUES));
        for (uint64_t r = 0; r < map->size; r++)
            if (r != own_place(transfers))
                REMAT_TRY(comm_wait(ranks, &transfers->requests[r]));
    }
    note(transfers, "scatter", parameter, map->network->parameters[parameter].values * sizeof *gradient, began);
    return REMAT_OK;
}

/* ---- to rank 0 ---- */

static remat_status move_part(shard_transfers *transfers, comm_kind kind, uint64_t peer, char *data, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes; done += COMM_MOST_BYTES)
        REMAT_TRY(
            comm_run(transfers->options.hosts, &(comm_transfer){.kind = kind,
                                                                .peer = peer,
                                                                .tag = TAG_COLLECT,
                                                                .data = data + done,
                                                                .bytes = remat_min(bytes - done, COMM_MOST_BYTES)}));
    return REMAT_OK;
}

remat_status shard_collect(shard_transfers *transfers, uint64_t first_rank, uint32_t parameter, shard_unit unit,
                           const char *mine, char *whole)
{
    const shard_map *map = transfers->options.map;
    const uint64_t rank = transfers->options.hosts->rank;
    for (uint64_t r = 0; r < map->size; r++) {
        const shard_part part = shard_map_part(map, parameter, r);
        const uint64_t bytes = shard_unit_bytes(unit, part.values), from = first_rank + r * transfers->options.stride;
        if (rank == 0 && from == 0 && bytes)
            memcpy(whole + shard_unit_bytes(unit, part.first), mine, bytes);
        else if (rank == 0)
            REMAT_TRY(move_part(transfers, COMM_RECEIVE, from, whole + shard_unit_bytes(unit, part.first), bytes));
        else if (from == rank)
            REMAT_TRY(move_part(transfers, COMM_SEND, 0, (char *)(uintptr_t)mine, bytes));
    }
    return REMAT_OK;
}
