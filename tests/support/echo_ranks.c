#include "support/echo_ranks.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

/* What counts the calls, also those of a part. */
static echo_ranks *whole_of(remat_communicator *ranks)
{
    echo_ranks *echo = (echo_ranks *)ranks;
    return echo->whole ? echo->whole : echo;
}

static remat_status answer(remat_communicator *ranks)
{
    echo_ranks *echo = whole_of(ranks);
    if (++echo->calls != echo->fail_at)
        return REMAT_OK;
    return remat_fail(ranks->context, REMAT_IO, NULL, "transfer call %llu fails", (unsigned long long)echo->calls);
}

static remat_status start(remat_communicator *ranks, const comm_transfer *transfer, comm_request *request)
{
    if (transfer->kind == COMM_GATHER)
        for (uint64_t rank = 0; rank < ranks->size; rank++)
            memcpy((char *)transfer->data + rank * transfer->bytes, transfer->mine, transfer->bytes);
    const echo_ranks *echo = (const echo_ranks *)ranks;
    if (transfer->kind == COMM_BROADCAST && ranks->rank > 0 && transfer->bytes == sizeof echo->starts &&
        echo->starts[2])
        memcpy(transfer->data, echo->starts, sizeof echo->starts);
    /* It asks for the first tensor once, and then for nothing more. */
    if (transfer->kind == COMM_BROADCAST && ranks->rank > 0 && transfer->bytes == 8 &&
        ++((echo_ranks *)ranks)->requests > 1)
        memset(transfer->data, 0xff, 8);
    request->is_active = true;
    return answer(ranks);
}

/* Some are done the second time, so that there is something to wait for. Not all: who waits gives its core away, and a busy machine
 * keeps it for a while. */
static remat_status test(remat_communicator *ranks, comm_request *request, bool *done)
{
    *done = request->handle || whole_of(ranks)->calls % 8;
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

static void close_part(remat_communicator *part)
{
    remat_release(part->context, part, 1, sizeof(echo_ranks));
}

static remat_status split(remat_communicator *ranks, uint64_t group, uint64_t place, remat_communicator **made)
{
    static const comm_type type = {"part of an echo", start, test, abort_nobody, close_part, NULL, NULL};
    echo_ranks *echo = (echo_ranks *)ranks, *part = remat_alloc_zeroed(ranks->context, 1, sizeof *part);
    (void)group;
    if (!part)
        return REMAT_NO_MEMORY;
    part->base = (remat_communicator){.type = &type,
                                      .context = ranks->context,
                                      .rank = place,
                                      .size = echo->part_size,
                                      .local_size = echo->part_size,
                                      .timeout = 60};
    part->whole = echo;
    remat_status status = answer(ranks);
    if (status == REMAT_OK)
        *made = &part->base;
    else
        close_part(&part->base);
    return status;
}

echo_ranks echo_ranks_make(remat_context *context, uint64_t rank, uint64_t size)
{
    static const comm_type type = {"echo", start, test, abort_nobody, do_nothing, split, NULL};
    return (echo_ranks){.base = {.type = &type,
                                 .context = context,
                                 .rank = rank,
                                 .size = size,
                                 .local_size = size,
                                 .timeout = 60,
                                 .local_rank = rank}};
}
