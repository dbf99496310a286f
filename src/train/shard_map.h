/* Which values of each parameter a rank keeps where ranks share state, gradients or weights.
 *
 * Every parameter is cut into blocks, and all ranks have as many blocks of it, or one more, that follow each other:
 *
 *     parameter 0   | 0 0 0 | 1 1 1 | 2 2 |        8 blocks, 3 ranks
 *     parameter 1   | 2 |                          the ranks that get one more take turns
 *     parameter 2   | 0 0 | 1 1 | 2 |
 *
 * So every transfer of a parameter uses all ranks alike, and no rank has more than a block above its share of all of them.
 * Cuts are at multiples of a block: those of moments in 8 bits, of the norm's sums, and of weights in fewer bits are whole. */
#ifndef REMAT_TRAIN_SHARD_MAP_H
#define REMAT_TRAIN_SHARD_MAP_H

#include "backend/operation.h"
#include "model/network.h"

enum { SHARD_BLOCK = OPERATION_SQUARES_BLOCK };

typedef struct shard_map {
    remat_context *context;
    const remat_network *network; /* must outlive the map */
    uint64_t size;                /* ranks */
    uint64_t *turns;              /* of each parameter: the rank that has its first blocks */
} shard_map;

/* Values of a parameter that follow each other. */
typedef struct shard_part {
    uint64_t first, values;
} shard_part;

remat_status shard_map_create(const remat_network *network, uint64_t size, shard_map **made);
void shard_map_destroy(shard_map *map); /* NULL is fine */

shard_part shard_map_part(const shard_map *map, uint32_t parameter, uint64_t rank);
/* At most so many values of the parameter are on one rank. */
uint64_t shard_map_most(const shard_map *map, uint32_t parameter);

#endif
