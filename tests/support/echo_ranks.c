#include "support/echo_ranks.h"

#include "base/error.h"

#include <string.h>

static remat_status answer(remat_communicator *ranks)
{
    echo_ranks *echo = (echo_ranks *)ranks;
    if (++echo->calls != echo->fail_at)
        return REMAT_OK;
    return remat_fail(ranks->context, REMAT_IO, NULL, "transfer call %llu fails", (unsigned long long)echo->calls);
}

static remat_status start(remat_communicator *ranks, const comm_transfer *transfer, comm_request *request)
{
    if (transfer->kind == COMM_GATHER)
        for (uint64_t rank = 0; rank < ranks->size; rank++)
            memcpy((char *)transfer->data + rank * transfer->bytes, transfer->mine, transfer->bytes);
    /* It asks for the first tensor once, and then for nothing more. */
    if (transfer->kind == COMM_BROADCAST && ranks->rank > 0 && transfer->bytes == 8 &&
        ++((echo_ranks *)ranks)->requests > 1)
        memset(transfer->data, 0xff, 8);
    request->is_active = true;
    return answer(ranks);
}

/* Done the second time, so that there is something to wait for. */
static remat_status test(remat_communicator *ranks, comm_request *request, bool *done)
{
    *done = request->handle != NULL;
    request->handle = request;
    request->is_active = !*done;
    return answer(ranks);
}

static void do_nothing(remat_communicator *ranks)
{
    (void)ranks;
}

static void abort_nobody(remat_communicator *ranks, int code)
{
    (void)ranks, (void)code;
}

echo_ranks echo_ranks_make(remat_context *context, uint64_t rank, uint64_t size)
{
    static const comm_type type = {"echo", start, test, abort_nobody, do_nothing, NULL};
    return (echo_ranks){.base = {&type, context, rank, size, size, 60}};
}
