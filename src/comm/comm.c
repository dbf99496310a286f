#include "comm/comm.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/error.h"

enum { DEFAULT_TIMEOUT = 600, AGREED_TEXT = 2048 };

#define SPIN_SECONDS  1e-3
#define SLEEP_SHARE   64 /* of the time waited so far */
#define LONGEST_SLEEP 5e-4

remat_status remat_communicator_open(remat_context *context, const void *mpi_comm, remat_communicator **communicator)
{
    *communicator = NULL;
    remat_status status = mpi_comm || comm_mpi_is_launched() ? comm_mpi_open(context, mpi_comm, communicator)
                                                             : comm_none_open(context, communicator);
    if (status == REMAT_OK)
        (*communicator)->timeout = DEFAULT_TIMEOUT;
    return status;
}

void remat_communicator_close(remat_communicator *communicator)
{
    if (communicator)
        communicator->type->close(communicator);
}

uint64_t remat_communicator_rank(const remat_communicator *communicator)
{
    return communicator->rank;
}

uint64_t remat_communicator_size(const remat_communicator *communicator)
{
    return communicator->size;
}

const char *remat_communicator_name(const remat_communicator *communicator)
{
    return communicator->type->name;
}

uint64_t remat_communicator_local_size(const remat_communicator *communicator)
{
    return communicator->local_size;
}

void remat_communicator_set_timeout(remat_communicator *communicator, double seconds)
{
    communicator->timeout = seconds;
}

void remat_communicator_abort(remat_communicator *communicator, remat_status status)
{
    communicator->type->abort(communicator, (int)status);
    _Exit((int)status);
}

/* ---- transfers ---- */

remat_status comm_start(remat_communicator *ranks, const comm_transfer *transfer, comm_request *request)
{
    *request = (comm_request){0};
    if (transfer->bytes > COMM_MOST_BYTES || transfer->peer >= ranks->size)
        return remat_fail(ranks->context, REMAT_INTERNAL, NULL, "a transfer of %llu bytes with rank %llu",
                          (unsigned long long)transfer->bytes, (unsigned long long)transfer->peer);
    return ranks->type->start(ranks, transfer, request);
}

remat_status comm_test(remat_communicator *ranks, comm_request *request, bool *done)
{
    *done = true;
    return request->is_active ? ranks->type->test(ranks, request, done) : REMAT_OK;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* There may be more ranks than cores, and other programs may use the cores too, so a waiting rank gives its core away. On an idle machine
 * a yield returns at once; after a millisecond of yields short sleeps follow, which grow with the wait and add a small share to it. On a
 * busy machine a yield returns only after other threads have run, so the sleeps begin after a few of them. The scheduler wakes a thread
 * that sleeps in time, and puts one that yields behind all others. */
static void let_others_run(double waited)
{
    if (waited < SPIN_SECONDS)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * fmin(waited / SLEEP_SHARE, LONGEST_SLEEP))}, NULL);
}

static remat_status advance_beside(const remat_communicator *ranks)
{
    const remat_communicator *hosts = ranks->hosts ? ranks->hosts : ranks;
    for (remat_communicator *other = hosts->beside; other; other = other->next_beside)
        REMAT_TRY(other->advance(other));
    return REMAT_OK;
}

remat_status comm_wait(remat_communicator *ranks, comm_request *request)
{
    bool done;
    REMAT_TRY(comm_test(ranks, request, &done));
    if (done)
        return REMAT_OK;
    if (ranks->type->want)
        REMAT_TRY(ranks->type->want(ranks, request));
    const double began = seconds_now();
    for (double waited = 0;; waited = seconds_now() - began) {
        let_others_run(waited);
        REMAT_TRY(advance_beside(ranks));
        REMAT_TRY(comm_test(ranks, request, &done));
        if (done)
            return REMAT_OK;
        if (waited > ranks->timeout)
            return remat_fail(ranks->context, REMAT_IO, NULL, "rank %llu has waited %.0f seconds for another rank",
                              (unsigned long long)ranks->rank, ranks->timeout);
    }
}

remat_status comm_run(remat_communicator *ranks, const comm_transfer *transfer)
{
    comm_request request;
    REMAT_TRY(comm_start(ranks, transfer, &request));
    return comm_wait(ranks, &request);
}

remat_status comm_split(remat_communicator *ranks, uint64_t group, uint64_t place, remat_communicator **made)
{
    *made = NULL;
    REMAT_TRY(ranks->type->split(ranks, group, place, made));
    (*made)->timeout = ranks->timeout;
    return REMAT_OK;
}

remat_status comm_follow(remat_communicator *ranks, backend_queue *queue)
{
    return ranks->follows_queue ? REMAT_OK : backend_wait(queue);
}

/* ---- agreeing ---- */

/* Gathers a byte of every rank and finds the first that is not 0; `size` where all are. */
static remat_status gather_bytes(remat_communicator *ranks, uint8_t mine, uint64_t *first, uint8_t *byte)
{
    uint8_t *all = remat_alloc(ranks->context, ranks->size, 1);
    if (!all)
        return REMAT_NO_MEMORY;
    remat_status status =
        comm_run(ranks, &(comm_transfer){.kind = COMM_GATHER, .data = all, .mine = &mine, .bytes = 1});
    *first = ranks->size;
    *byte = 0;
    for (uint64_t r = ranks->size; status == REMAT_OK && r-- > 0;)
        if (all[r]) {
            *first = r;
            *byte = all[r];
        }
    remat_release(ranks->context, all, ranks->size, 1);
    return status;
}

remat_status comm_any(remat_communicator *ranks, bool mine, bool *any)
{
    uint64_t first;
    uint8_t byte;
    *any = mine;
    if (ranks->size == 1)
        return REMAT_OK;
    REMAT_TRY(gather_bytes(ranks, mine, &first, &byte));
    *any = byte != 0;
    return REMAT_OK;
}

/* The status and the message of the first rank that failed, on all. */
static remat_status share_first(remat_communicator *ranks, remat_status mine, const char *why, uint64_t *first,
                                char message[AGREED_TEXT], remat_status *shared)
{
    uint8_t status;
    REMAT_TRY(gather_bytes(ranks, (uint8_t)mine, first, &status));
    *shared = (remat_status)status;
    if (*shared == REMAT_OK)
        return REMAT_OK;
    if (*first == ranks->rank && why)
        snprintf(message, AGREED_TEXT, "%s", why);
    REMAT_TRY(comm_run(
        ranks, &(comm_transfer){.kind = COMM_BROADCAST, .peer = *first, .data = message, .bytes = AGREED_TEXT}));
    message[AGREED_TEXT - 1] = 0;
    return REMAT_OK;
}

remat_status remat_communicator_agree(remat_communicator *communicator, remat_status mine, const char *why,
                                      uint64_t *rank, char *text, size_t text_size)
{
    char message[AGREED_TEXT] = "";
    uint64_t first = communicator->rank;
    remat_status shared = REMAT_OK;
    remat_status status = share_first(communicator, mine, why, &first, message, &shared);
    if (status != REMAT_OK) { /* the ranks do not reach each other: that is what this one has to say */
        first = communicator->rank;
        shared = status;
        snprintf(message, sizeof message, "%s", remat_context_message(communicator->context));
    }
    if (rank)
        *rank = first;
    if (shared != REMAT_OK && text && text_size)
        snprintf(text, text_size, "%s", message);
    return shared;
}
