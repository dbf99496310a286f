#include "train/stage_transfer.h"

#include <time.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"

/* A transfer, or a part of a large one. */
typedef struct stage_message {
    const program_transfer *transfer;
    char *at;
    uint64_t bytes;
    uint64_t left; /* times that it is still to be received */
    uint64_t began;
    comm_request request;
} stage_message;

struct stage_transfers {
    remat_context *context;
    stage_transfer_options options;
    stage_message *messages;
    size_t count, capacity;
};

static uint64_t nanoseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- making ---- */

static remat_status add_messages(stage_transfers *transfers, const program_transfer *transfer)
{
    for (uint64_t done = 0; done < transfer->bytes; done += COMM_MOST_BYTES) {
        REMAT_TRY(remat_grow(transfers->context, (void **)&transfers->messages, &transfers->capacity,
                             transfers->count + 1, sizeof *transfers->messages));
        transfers->messages[transfers->count++] =
            (stage_message){.transfer = transfer,
                            .at = transfers->options.area + transfer->offset + done,
                            .bytes = remat_min(transfer->bytes - done, COMM_MOST_BYTES)};
    }
    return REMAT_OK;
}

remat_status stage_transfers_create(remat_context *context, const stage_transfer_options *options,
                                    stage_transfers **made)
{
    stage_transfers *transfers = *made = remat_alloc_zeroed(context, 1, sizeof *transfers);
    if (!transfers)
        return REMAT_NO_MEMORY;
    *transfers = (stage_transfers){.context = context, .options = *options};
    for (size_t i = 0; i < options->program->transfer_count; i++) {
        remat_status status = add_messages(transfers, &options->program->transfers[i]);
        if (status != REMAT_OK) {
            stage_transfers_destroy(transfers);
            *made = NULL;
            return status;
        }
    }
    return REMAT_OK;
}

void stage_transfers_destroy(stage_transfers *transfers)
{
    if (!transfers)
        return;
    remat_release(transfers->context, transfers->messages, transfers->capacity, sizeof *transfers->messages);
    remat_release(transfers->context, transfers, 1, sizeof *transfers);
}

/* ---- messages ---- */

static remat_status start(stage_transfers *transfers, stage_message *message)
{
    const program_transfer *transfer = message->transfer;
    message->began = nanoseconds_now();
    return comm_start(transfers->options.ranks,
                      &(comm_transfer){.kind = transfer->sends ? COMM_SEND : COMM_RECEIVE,
                                       .peer = transfers->options.first_rank + transfer->peer,
                                       .tag = (int)transfer->tag,
                                       .data = message->at,
                                       .bytes = message->bytes},
                      &message->request);
}

static void note(const stage_transfers *transfers, const stage_message *message, uint64_t began)
{
    const stage_transfer_options *options = &transfers->options;
    if (options->observe)
        options->observe(options->user, message->transfer->sends ? "send" : "receive", message->transfer->tag,
                         message->bytes, began, nanoseconds_now());
}

static remat_status wait(stage_transfers *transfers, stage_message *message)
{
    const bool sends = message->transfer->sends;
    const uint64_t began = transfers->options.observe && !sends ? nanoseconds_now() : message->began;
    if (!message->request.is_active)
        return REMAT_OK;
    REMAT_TRY(comm_wait(transfers->options.ranks, &message->request));
    note(transfers, message, began);
    return REMAT_OK;
}

/* MPI moves data only while it is called. */
static remat_status move_along(stage_transfers *transfers)
{
    for (size_t i = 0; i < transfers->count; i++) {
        stage_message *message = &transfers->messages[i];
        bool done;
        if (!message->request.is_active || !message->transfer->sends)
            continue;
        REMAT_TRY(comm_test(transfers->options.ranks, &message->request, &done));
        if (done)
            note(transfers, message, message->began);
    }
    return REMAT_OK;
}

/* Whether the part of an action does this message. */
static bool belongs(const stage_message *message, uint32_t action, executor_part part)
{
    const program_transfer *transfer = message->transfer;
    return transfer->action == action && (part == EXECUTOR_WHOLE || transfer->is_forward == (part == EXECUTOR_FORWARD));
}

/* ---- a pass ---- */

remat_status stage_transfers_begin(stage_transfers *transfers, uint64_t passes)
{
    for (size_t i = 0; i < transfers->count && passes; i++) {
        stage_message *message = &transfers->messages[i];
        if (message->transfer->sends)
            continue;
        message->left = passes;
        REMAT_TRY(start(transfers, message));
    }
    return REMAT_OK;
}

remat_status stage_transfers_before(stage_transfers *transfers, uint32_t action, executor_part part)
{
    if (transfers->options.program->actions[action].kind < ACTION_RECEIVE)
        return REMAT_OK;
    for (size_t i = 0; i < transfers->count; i++)
        if (belongs(&transfers->messages[i], action, part))
            REMAT_TRY(wait(transfers, &transfers->messages[i]));
    return REMAT_OK;
}

remat_status stage_transfers_after(stage_transfers *transfers, uint32_t action, executor_part part)
{
    if (transfers->options.program->actions[action].kind < ACTION_RECEIVE)
        return move_along(transfers);
    REMAT_TRY(comm_follow(transfers->options.ranks, transfers->options.queue));
    for (size_t i = 0; i < transfers->count; i++) {
        stage_message *message = &transfers->messages[i];
        if (belongs(message, action, part) && (message->transfer->sends || --message->left > 0))
            REMAT_TRY(start(transfers, message));
    }
    return REMAT_OK;
}

remat_status stage_transfers_finish(stage_transfers *transfers)
{
    for (size_t i = 0; i < transfers->count; i++)
        REMAT_TRY(wait(transfers, &transfers->messages[i]));
    return REMAT_OK;
}
