/* What ranks do with one another. Everything is started, and then tested until it is done, so that a rank can compute
 * meanwhile and no wait is without end.
 *
 *     comm_request request;
 *     comm_start(ranks, &(comm_transfer){.kind = COMM_SEND, .peer = 1, .data = at, .bytes = 64}, &request);
 *     ...
 *     comm_wait(ranks, &request);
 *
 * Data is memory of the host. For memory of a device that the host cannot touch, comm_device_open makes a communicator with the same
 * calls, whose transfers follow the work of a queue. Until a transfer is done, nobody may write to what is sent or touch what is received.
 * Transfers between two ranks with the same tag arrive in the order in which they were started. All ranks start the
 * collective ones (all but COMM_SEND and COMM_RECEIVE) in the same order. A communicator of a device and its parts (comm_split) do not have
 * collective ones under way at the same time. */
#ifndef REMAT_COMM_COMM_H
#define REMAT_COMM_COMM_H

#include <stdbool.h>

#include <remat/dtype.h>
#include <remat/ranks.h>

#include "backend/backend.h"

/* No transfer may have more bytes than this: MPI counts in int. */
enum { COMM_MOST_BYTES = 1 << 30 };

typedef enum comm_kind {
    COMM_SEND,      /* to `peer` */
    COMM_RECEIVE,   /* from `peer` */
    COMM_BARRIER,   /* done when all ranks have started it */
    COMM_BROADCAST, /* the data of rank `peer` to all */
    COMM_GATHER,    /* `bytes` of `mine` from every rank, in their order, to `data` of all */
    COMM_JOIN, /* `data` of all gets the part of every rank: parts[r] bytes at places[r] from rank r; its own is there */
    COMM_SUM,  /* replaces `data`, of type `dtype`, by the sum over all ranks; the order is that of the library */
} comm_kind;

typedef struct comm_transfer {
    comm_kind kind;
    uint64_t peer;
    int tag; /* 0 .. 2^30 */
    void *data;
    const void *mine;
    uint64_t bytes;
    remat_dtype dtype;         /* REMAT_FP32 or REMAT_FP64, for COMM_SUM */
    const int *parts, *places; /* for COMM_JOIN; both live until the transfer is done */
} comm_transfer;

/* A transfer under way. Zeros: none, which is done. */
typedef struct comm_request {
    void *handle;
    bool is_active;
} comm_request;

/* The functions of an implementation. Call them through those below. */
typedef struct comm_type {
    const char *name;
    remat_status (*start)(remat_communicator *ranks, const comm_transfer *transfer, comm_request *request);
    remat_status (*test)(remat_communicator *ranks, comm_request *request, bool *done);
    void (*abort)(remat_communicator *ranks, int code); /* ends the other ranks, and may end this process */
    void (*close)(remat_communicator *ranks);
    remat_status (*split)(remat_communicator *ranks, uint64_t group, uint64_t place, remat_communicator **made);
    /* Called before a wait for a transfer; NULL: there is nothing to do. */
    remat_status (*want)(remat_communicator *ranks, comm_request *request);
} comm_type;

/* Implementations put this first in a struct of their own. */
struct remat_communicator {
    const comm_type *type;
    remat_context *context;
    uint64_t rank, size, local_size;
    double timeout;      /* seconds */
    uint64_t local_rank; /* among the ranks of this machine */
    /* Its data is memory of a device, and a transfer follows the work that the queue of the device was given. */
    bool follows_queue;
    /* Whoever waits moves the transfers of others along too, because other ranks may wait for them: those in the list `beside` of the
     * communicator itself, or of `hosts` if that is not NULL. */
    remat_communicator *hosts, *beside, *next_beside;
    remat_status (*advance)(remat_communicator *ranks);
};

/* REMAT_IO: the library of the ranks fails. Then other transfers may never be done. */
remat_status comm_start(remat_communicator *ranks, const comm_transfer *transfer, comm_request *request);
/* Also moves other transfers along. */
remat_status comm_test(remat_communicator *ranks, comm_request *request, bool *done);
/* REMAT_IO after the timeout. */
remat_status comm_wait(remat_communicator *ranks, comm_request *request);
/* Starts a transfer and waits for it. */
remat_status comm_run(remat_communicator *ranks, const comm_transfer *transfer);

/* A communicator of those ranks that give the same group, in the order of their places. All ranks call it. The caller closes it
 * before this one. */
remat_status comm_split(remat_communicator *ranks, uint64_t group, uint64_t place, remat_communicator **made);

/* What was given to the queue so far comes before the transfers that start now. A communicator of the host has to wait for it. */
remat_status comm_follow(remat_communicator *ranks, backend_queue *queue);

/* Whether any rank says so. */
remat_status comm_any(remat_communicator *ranks, bool mine, bool *any);

/* ---- implementations ---- */

remat_status comm_none_open(remat_context *context, remat_communicator **made);

/* Whether a launcher that Open MPI knows started this process. */
bool comm_mpi_is_launched(void);
remat_status comm_mpi_open(remat_context *context, const void *mpi_comm, remat_communicator **made);

/* Which ranks send to which others: the same on all ranks. Collective transfers are always for all. */
typedef struct comm_pairs {
    bool (*talk)(const void *user, uint64_t from, uint64_t to);
    const void *user;
} comm_pairs;

/* The same ranks, for memory of a device. Transfers follow the work of the queue, and what is received is there for the work that it is
 * given after comm_wait. By NCCL if all ranks can, else through memory of the host, with a warning on rank 0. The ranks and the device
 * outlive it; all ranks call it. Before it or a part of it is closed, the queue must have done its work. REMAT_IO: NCCL fails. */
remat_status comm_device_open(remat_communicator *ranks, backend_queue *queue, const comm_pairs *pairs,
                              remat_communicator **made);

/* comm_nccl.c: for devices that have lanes, after nccl_library_load. Parts of it (comm_split) have collective transfers only. */
remat_status comm_nccl_open(remat_communicator *ranks, backend_queue *queue, const comm_pairs *pairs,
                            remat_communicator **made);

/* comm_staged.c: through memory of the host. `owns`: closing it closes the ranks too. */
remat_status comm_staged_open(remat_communicator *ranks, backend_queue *queue, bool owns, remat_communicator **made);

#endif
