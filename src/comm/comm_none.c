/* A process alone: it has nobody to send to, and gathers what it has. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "comm/comm.h"

static remat_status start(remat_communicator *ranks, const comm_transfer *transfer, comm_request *request)
{
    (void)request; /* done already */
    if (transfer->kind == COMM_SEND || transfer->kind == COMM_RECEIVE)
        return remat_fail(ranks->context, REMAT_INTERNAL, NULL, "a rank alone sends to itself");
    if (transfer->kind == COMM_GATHER && transfer->bytes)
        memcpy(transfer->data, transfer->mine, transfer->bytes);
    return REMAT_OK;
}

static remat_status test(remat_communicator *ranks, comm_request *request, bool *done)
{
    (void)ranks;
    (void)request;
    *done = true;
    return REMAT_OK;
}

static void abort_others(remat_communicator *ranks, int code)
{
    (void)ranks; /* there are none */
    (void)code;
}

static void close_none(remat_communicator *ranks)
{
    remat_release(ranks->context, ranks, 1, sizeof *ranks);
}

static remat_status split(remat_communicator *ranks, uint64_t group, uint64_t place, remat_communicator **made)
{
    (void)group; /* there is nobody else in it */
    (void)place;
    return comm_none_open(ranks->context, made);
}

static const comm_type type = {"none", start, test, abort_others, close_none, split, NULL};

remat_status comm_none_open(remat_context *context, remat_communicator **made)
{
    *made = remat_alloc_zeroed(context, 1, sizeof **made);
    if (!*made)
        return REMAT_NO_MEMORY;
    **made = (remat_communicator){.type = &type, .context = context, .size = 1, .local_size = 1};
    return REMAT_OK;
}
