#ifndef REMAT_TRAIN_FIRST_WEIGHTS_H
#define REMAT_TRAIN_FIRST_WEIGHTS_H

#include "backend/backend.h"
#include "model/network.h"

/* Fills every parameter with its initial values, from the seed, in an area with the network's layout. The bits are the
 * same on every device and with any number of threads. */
remat_status parameters_fill(const remat_network *network, backend_queue *queue, char *parameters, uint64_t seed);

#endif
