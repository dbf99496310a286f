/* What a stage of a pipeline receives from other stages and sends to them, while it runs.
 *
 * Every tensor has a place of its own (program_transfer), which it is copied to or from. So a stage goes on while a transfer is under
 * way, and the next tensor can come while the last one is in use. A stage waits only for what it needs, and until what it sent last
 * has left. Everything that it waits for comes earlier in the order of the pipeline, so no two stages wait for each other. */
#ifndef REMAT_TRAIN_STAGE_TRANSFER_H
#define REMAT_TRAIN_STAGE_TRANSFER_H

#include "comm/comm.h"
#include "train/executor.h"

typedef struct stage_transfers stage_transfers;

typedef struct stage_transfer_options {
    remat_communicator *ranks;
    uint64_t first_rank;          /* of the row: it has stage 0 */
    const remat_program *program; /* must outlive the transfers */
    backend_queue *queue;
    char *area; /* of program->transfer_bytes */
    /* Told when a transfer is over; NULL: nobody. Times are nanoseconds of the monotonic clock. */
    void (*observe)(void *user, const char *what, uint64_t number, uint64_t bytes, uint64_t began, uint64_t ended);
    void *user;
} stage_transfer_options;

remat_status stage_transfers_create(remat_context *context, const stage_transfer_options *options,
                                    stage_transfers **made);
void stage_transfers_destroy(stage_transfers *transfers); /* NULL is fine */

/* Before so many passes of the program. */
remat_status stage_transfers_begin(stage_transfers *transfers, uint64_t passes);
/* Before and after an action of the program. */
remat_status stage_transfers_before(stage_transfers *transfers, uint32_t action, executor_part part);
remat_status stage_transfers_after(stage_transfers *transfers, uint32_t action, executor_part part);
/* After all of them: returns when everything that was sent has left. */
remat_status stage_transfers_finish(stage_transfers *transfers);

#endif
