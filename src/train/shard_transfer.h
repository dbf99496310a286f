/* Transfers of parameters that ranks share (shard_map.h): all ranks, or those of one stage of a pipeline. They make the same calls in
 * the same order. */
#ifndef REMAT_TRAIN_SHARD_TRANSFER_H
#define REMAT_TRAIN_SHARD_TRANSFER_H

#include "comm/comm.h"
#include "train/shard_map.h"

/* What is kept of the values of a parameter: so many bytes for every so many values. */
typedef struct shard_unit {
    uint64_t bytes, values;
} shard_unit;
shard_unit shard_unit_of(remat_dtype dtype);
uint64_t shard_unit_bytes(shard_unit unit, uint64_t values);

typedef struct shard_transfers shard_transfers;

typedef struct shard_transfer_options {
    remat_communicator *ranks;   /* for memory of the device */
    remat_communicator *hosts;   /* the same ranks, for memory of the host */
    backend_queue *queue;        /* that adds */
    const shard_map *map;        /* must outlive the transfers */
    uint64_t first_rank, stride; /* those that share: rank number i of the map is first_rank + i * stride */
    char *staging;               /* what shard_staging_bytes says; NULL: shard_add is not called */
    /* Told when a transfer is over; NULL: nobody. Times are nanoseconds of the monotonic clock. */
    void (*observe)(void *user, const char *what, uint64_t number, uint64_t bytes, uint64_t began, uint64_t ended);
    void *user;
} shard_transfer_options;

/* Bytes that shard_add needs besides the gradients. */
uint64_t shard_staging_bytes(const shard_map *map);

remat_status shard_transfers_create(remat_context *context, const shard_transfer_options *options,
                                    shard_transfers **made);
void shard_transfers_destroy(shard_transfers *transfers); /* NULL is fine */

/* All-gather: `whole` has the part of this rank at its place, and gets those of the others. On the host, or on the device. */
remat_status shard_join_host(shard_transfers *transfers, uint32_t parameter, shard_unit unit, char *whole);
remat_status shard_join(shard_transfers *transfers, uint32_t parameter, shard_unit unit, char *whole);

/* The same, begun here and ended by a call of shard_join with the same address; other joins may begin meanwhile, and end in the same order.
 * Not begun: too many are under way. Only where all ranks share. */
remat_status shard_join_begin(shard_transfers *transfers, uint32_t parameter, shard_unit unit, char *whole,
                              bool *begun);
bool shard_is_joining(const shard_transfers *transfers, const char *whole); /* begun and not ended */
/* Moves along those that were begun. */
remat_status shard_join_advance(shard_transfers *transfers);

/* Reduce-scatter: every rank has a whole gradient; the parts of a rank are added to its `sum`, in the order of the ranks. The queue may
 * still have to add when this returns. */
remat_status shard_add(shard_transfers *transfers, uint32_t parameter, const float *gradient, float *sum);

/* All parts come to rank 0 from those that share the parameter, beginning with `first_rank`: it may be another group. `mine` is the
 * part of this rank, `whole` is for rank 0 only, both on the host. All ranks may call it. */
remat_status shard_collect(shard_transfers *transfers, uint64_t first_rank, uint32_t parameter, shard_unit unit,
                           const char *mine, char *whole);

#endif
