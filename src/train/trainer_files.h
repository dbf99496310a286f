/* Reading weights into a network, for trainers and predictors. */
#ifndef REMAT_TRAIN_TRAINER_FILES_H
#define REMAT_TRAIN_TRAINER_FILES_H

#include "model/network.h"
#include "data/data_encoding.h"
#include "data/safetensors.h"
#include "data/weight_names.h"
#include "train/first_weights.h"

/* Opens a file with weights, of this library or of another program. REMAT_BAD_INPUT also for a file that a later
 * release wrote. */
remat_status weights_open(remat_context *context, const char *path, safetensors **file);

/* Reads how the weights' data became numbers. *found is false where the file does not say. `encoding` must have been begun.
 * REMAT_BAD_INPUT, REMAT_NO_MEMORY. */
remat_status weights_read_encoding(const char *path, const safetensors *file, data_encoding *encoding, bool *found);

/* Reads to where `place` says; a parameter of which it has no values there is left out. The file must have every parameter of the network, in
 * its shape, by our name, PyTorch's or that of `names` (which may be NULL); otherwise nothing is read. If a parameter is damaged, some of
 * the values have been read. `path` is for messages. */
remat_status weights_load(backend_queue *queue, const char *path, const safetensors *file, const remat_network *network,
                          const weight_names *names, weight_place_fn *place, const void *user);

#endif
