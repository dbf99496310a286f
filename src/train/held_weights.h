/* The weights of a model that only runs: copies in one area, and those that are mapped from their file instead, as the model's frozen=keep
 * asks for it (tensor_map.h). */
#ifndef REMAT_TRAIN_HELD_WEIGHTS_H
#define REMAT_TRAIN_HELD_WEIGHTS_H

#include "data/tensor_map.h"
#include "data/weight_names.h"
#include "model/network.h"

typedef struct held_weights {
    backend *device;
    const remat_network *network;
    backend_memory area;
    uint64_t *offsets; /* of each parameter in the area; NULL: those of the network */
    tensor_map *maps;  /* of each parameter, NULL where `offsets` is */
    safetensors *file;
    uint64_t mapped_bytes; /* of all maps */
} held_weights;

/* Opens the file or folder `path`, and maps or copies the weights of a network from it. The file stays open. The caller releases what was
 * made, also after a failure. Parameters without weights, such as a cache, are 0 where `zeroed`. The network must outlive it. Errors as
 * weights_open and weights_load. */
remat_status held_weights_load(backend_queue *queue, const remat_model *model, const remat_network *network,
                               const weight_names *names, const char *path, bool zeroed, held_weights *made);
void held_weights_release(held_weights *held);

/* The address of a parameter, for executor_weights. */
char *held_weights_find(void *held, uint32_t parameter);

/* REMAT_IO: a file of which weights are mapped has been changed since. */
remat_status held_weights_check(const held_weights *held);

#endif
