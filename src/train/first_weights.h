#ifndef REMAT_TRAIN_FIRST_WEIGHTS_H
#define REMAT_TRAIN_FIRST_WEIGHTS_H

#include "backend/backend.h"
#include "model/network.h"

/* Where the values of a parameter go, and which: `first` is a multiple of FIRST_WEIGHTS_BLOCK. */
typedef struct weight_place {
    char *at;
    uint64_t first, values;
} weight_place;
typedef weight_place weight_place_fn(const void *user, uint32_t parameter);
enum { FIRST_WEIGHTS_BLOCK = 1024 };

/* Fills every parameter with its initial values, from the seed. The bits are the same on every device, with any number of
 * threads, and in parts. */
remat_status parameters_fill(const remat_network *network, backend_queue *queue, uint64_t seed, weight_place_fn *place,
                             const void *user);

#endif
