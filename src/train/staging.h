/* Buffers that the host writes a batch to, before it is copied to the backend. If the host can write to the backend's
 * memory, it writes to the tensors directly, and staging takes no bytes; unless the program does not load all data, as that of a
 * stage. Where a run goes on by itself there may be two buffers: while the device computes, the host writes the next batch. */
#ifndef REMAT_TRAIN_STAGING_H
#define REMAT_TRAIN_STAGING_H

#include "train/executor.h"

typedef struct staging {
    const remat_network *network;
    backend_memory memory; /* none if the host writes to the tensors directly */
    unsigned buffers, current;
    uint64_t ahead; /* the micro-batch that the current buffer already has; STAGING_NOTHING */
    /* Set by staging_aim: where the data of each input layer and the labels are written. */
    void *inputs[LAYER_MAX_INPUTS];
    size_t input_count;
    void *labels; /* NULL where there are none */
} staging;

#define STAGING_NOTHING UINT64_MAX

/* How many buffers, and whether they are needed also if the host could write to the tensors, because which ones is known later. */
typedef struct staging_options {
    unsigned buffers;
    bool apart;
} staging_options;

/* The bytes that it will take. */
uint64_t staging_bytes(const remat_network *network, const backend *device, staging_options options);

remat_status staging_create(const remat_network *network, backend *device, staging_options options, staging *made);
void staging_release(staging *made, backend *device);

/* Sets `inputs` and `labels` for a run of this executor. The run before must have ended. What the buffer had is lost. */
void staging_aim(staging *at, const remat_executor *executor);

/* The same for the other buffer, which the run before does not read: it may still go on. False: there is none. */
bool staging_turn(staging *at, const remat_executor *executor);

/* Copies what was written to the tensors of the executor, on the queue. */
remat_status staging_send(const staging *from, const remat_executor *executor, backend_queue *queue);

/* The same where the executor has a network of shorter rows: their first values are copied. What was written is lost. */
remat_status staging_send_short(staging *from, const remat_network *to, const remat_executor *executor,
                                backend_queue *queue);

#endif
