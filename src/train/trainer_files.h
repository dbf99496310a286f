/* Reading weights into a network, for trainers and predictors. */
#ifndef REMAT_TRAIN_TRAINER_FILES_H
#define REMAT_TRAIN_TRAINER_FILES_H

#include "model/network.h"
#include "data/safetensors.h"

/* Into an area with the network's layout. Every parameter of the network must be in the file with its shape: else nothing is
 * read. `path` is for messages. */
remat_status weights_load(backend_queue *queue, const char *path, const safetensors *file, const remat_network *network,
                          char *parameters);

#endif
