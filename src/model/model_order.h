/* The execution order: when the five steps of each layer run. */
#ifndef REMAT_MODEL_MODEL_ORDER_H
#define REMAT_MODEL_MODEL_ORDER_H

#include "model/network.h"

enum { ORDER_FORWARD, ORDER_RECOMPUTE, ORDER_GRADIENT, ORDER_DERIVATIVE, ORDER_APPLY, ORDER_COUNT };

/* Positions in the sequence of a training step; REMAT_NOWHERE where the layer has no such step. */
typedef struct layer_order {
    uint64_t at[ORDER_COUNT];
} layer_order;

/* `order` has room for every layer of the network. */
remat_status model_find_order(const remat_network *network, layer_order *order);

#endif
