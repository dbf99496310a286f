#ifndef REMAT_TRAIN_FIRST_WEIGHTS_H
#define REMAT_TRAIN_FIRST_WEIGHTS_H

#include "model/network.h"

/* Fills every parameter as its layer says, from the seed. The same bits with any kernels and number of
 * threads. */
remat_status parameters_fill(const remat_network *network, real *const *values, uint64_t seed,
                             const kernel_table *kernels, int threads);

#endif
