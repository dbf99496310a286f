/* Where the host writes a batch before the backend has it. Where the host may write to the backend's memory, that is the
 * place of the tensors themselves, and staging takes no bytes. */
#ifndef REMAT_TRAIN_STAGING_H
#define REMAT_TRAIN_STAGING_H

#include "train/executor.h"

typedef struct staging {
    const remat_network *network;
    backend_memory memory; /* none where the tensors themselves are written to */
    /* Of the executor that was aimed at: where each input layer's data, and the labels, are written. */
    void *inputs[LAYER_MAX_INPUTS];
    size_t input_count;
    void *labels; /* NULL where there are none */
} staging;

/* What it will take. */
uint64_t staging_bytes(const remat_network *network, const backend *device);

remat_status staging_create(const remat_network *network, backend *device, staging *made);
void staging_release(staging *made, backend *device);

/* Sets `inputs` and `labels` for a run of this executor. The run before must have ended. */
void staging_aim(staging *at, const remat_executor *executor);

/* Gives what was written there to the queue. */
remat_status staging_send(const staging *from, const remat_executor *executor, backend_queue *queue);

#endif
