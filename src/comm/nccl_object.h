/* Ranks connected by NCCL, as the files that make up comm_nccl.c's communicator see them. */
#ifndef REMAT_COMM_NCCL_OBJECT_H
#define REMAT_COMM_NCCL_OBJECT_H

#include "comm/comm.h"
#include "comm/nccl_abi.h"

/* A communicator of NCCL, and the stream of its transfers. */
typedef struct nccl_lane {
    nccl_handle comm; /* NULL: none */
    backend_queue *queue;
    nccl_id id; /* by which its ranks find each other; the first of them makes it */
} nccl_lane;

/* What ranks tell each other by MPI, with the kind as its tag: a rank that receives is ready, and a rank that sends goes. */
enum { NOTICE_READY, NOTICE_GO, NOTICE_KINDS };
typedef struct nccl_notice {
    uint64_t tag, bytes;
} nccl_notice;

typedef struct nccl_inbox {
    nccl_notice notice;
    comm_request request;
    bool is_asked; /* the request is under way */
} nccl_inbox;

/* Another rank. */
typedef struct nccl_peer {
    nccl_lane out, in; /* to it, from it */
    nccl_inbox inboxes[NOTICE_KINDS];
    nccl_notice *ready; /* for what this rank has not started to send, in the order in which they came */
    size_t ready_count, ready_capacity;
} nccl_peer;

typedef struct nccl_transfer {
    comm_transfer what;
    backend_mark *before, *after; /* in the queue of the device, in the stream */
    nccl_lane *lane;              /* NULL: NCCL was not given it */
    nccl_notice notice;
    comm_request told; /* by MPI: its notice, or a barrier */
    struct nccl_transfer *next;
} nccl_transfer;

typedef struct nccl_communicator {
    remat_communicator base;
    remat_communicator *below; /* by MPI; of this one alone, so that its tags are */
    const nccl_library *library;
    backend_queue *queue;
    backend *device;
    backend_memory first; /* what each pair sends when it is opened */
    nccl_lane all;
    nccl_peer *peers;              /* of each rank */
    nccl_transfer *active, *spare; /* active ones in the order of their starts */
    bool has_failed;
} nccl_communicator;

/* ---- nccl_give.c ---- */

/* REMAT_IO for a code that is an error: then its communicators are aborted when they are closed. */
remat_status nccl_check(nccl_communicator *nccl, int code, const char *what);
#define NCCL_CHECK(nccl, name, ...) REMAT_TRY(nccl_check(nccl, (nccl)->library->name(__VA_ARGS__), "nccl" #name))

/* Gives a transfer to NCCL, behind what the queue of the device had to do when it was started. */
remat_status nccl_give(nccl_communicator *nccl, nccl_transfer *transfer, nccl_lane *lane);

/* ---- nccl_lanes.c ---- */

/* What a rank does alone, before any rank waits for another in NCCL. Then all open what they have. */
remat_status nccl_lanes_prepare(nccl_communicator *nccl, const comm_pairs *pairs);
remat_status nccl_lanes_open(nccl_communicator *nccl, const comm_pairs *pairs);
/* After a failure, or with transfers under way, communicators are aborted. */
void nccl_lanes_close(nccl_communicator *nccl);

/* ---- comm_nccl.c ---- */

/* Starts a transfer of which it is known that the other rank starts it too. */
remat_status nccl_start_at(nccl_communicator *nccl, const comm_transfer *what, nccl_lane *lane, comm_request *request);

#endif
