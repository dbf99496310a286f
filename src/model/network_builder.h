/* Building a network, shared by the files that do it:
 *   network_expand.c      described layers to network layers, composites to their parts
 *   network_fuse.c        what is merged for training
 *   network_unread.c      outputs that no other layer reads in the backward pass
 *   network_join.c        activations whose gradient is made by the GEMM behind them
 *   network_parameters.c  numbers for parameters, shared ones
 *   network.c             calls these in order; readers, blocks */
#ifndef REMAT_MODEL_NETWORK_BUILDER_H
#define REMAT_MODEL_NETWORK_BUILDER_H

#include "model/model_object.h"

typedef struct network_builder {
    const remat_model *model;
    remat_context *context;
    remat_network *network;
    text_pool *pool; /* the network's */
    size_t layer_capacity;
    layer_room room;   /* of the layer that is being resolved */
    uint32_t *outputs; /* for each described layer, the network layer with its output; NETWORK_NONE for losses */
    uint32_t *readers; /* for each network layer how often it is read */
    size_t reader_count;
    uint64_t targets,
        trained;        /* bit i: pattern i of the model's tuning matched a layer; only the first 64 are checked */
    uint32_t described; /* the layer that is being built */
    uint32_t depth;     /* how deep in composites of composites */
} network_builder;

/* Appends the network layers of a described layer, and notes its output. */
remat_status network_add_described(network_builder *builder, uint32_t described);

/* Calls resolve() for the node of a layer whose other fields are set. Then the layer's lists are in the pool, each as long
 * as it must be. */
remat_status network_resolve(network_builder *builder, network_layer *layer);

/* Counts the readers of every layer. */
void network_count_readers(network_builder *builder);

/* Merges fully_connected + cross_entropy. */
remat_status network_fuse(network_builder *builder);

/* Finds outputs that no other layer reads in the backward pass, and resolves their layers again: they may save less then. */
remat_status network_find_unread(network_builder *builder);

/* Finds activations whose gradient the layer behind them makes, on devices where that is faster. Types are known. */
void network_join(network_builder *builder);

/* Numbers the parameters. */
remat_status network_number_parameters(network_builder *builder);

/* Adds the layer's name and line to a failure. */
remat_status network_blame(const network_builder *builder, const network_layer *layer, remat_status status);

/* network_room.c: the room of every layer for tensors that are converted, once all types are known, those of shared weights too. */
remat_status network_find_room(network_builder *builder);

#endif
