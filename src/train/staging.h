/* Buffers that the host writes a batch to, before it is copied to the backend. If the host can write to the backend's
 * memory, it writes to the tensors directly, and staging takes no bytes; unless the program does not load all data, as that of a
 * stage (`is_stage`). */
#ifndef REMAT_TRAIN_STAGING_H
#define REMAT_TRAIN_STAGING_H

#include "train/executor.h"

typedef struct staging {
    const remat_network *network;
    backend_memory memory; /* none if the host writes to the tensors directly */
    /* Set by staging_aim: where the data of each input layer and the labels are written. */
    void *inputs[LAYER_MAX_INPUTS];
    size_t input_count;
    void *labels; /* NULL where there are none */
} staging;

/* The bytes that it will take. `apart`: also if the host could write to the tensors, because which ones is known later. */
uint64_t staging_bytes(const remat_network *network, const backend *device, bool apart);

remat_status staging_create(const remat_network *network, backend *device, bool apart, staging *made);
void staging_release(staging *made, backend *device);

/* Sets `inputs` and `labels` for a run of this executor. The run before must have ended. */
void staging_aim(staging *at, const remat_executor *executor);

/* Copies what was written to the tensors of the executor, on the queue. */
remat_status staging_send(const staging *from, const remat_executor *executor, backend_queue *queue);

/* The same where the executor has a network of shorter rows: their first values are copied. What was written is lost. */
remat_status staging_send_short(staging *from, const remat_network *to, const remat_executor *executor,
                                backend_queue *queue);

#endif
