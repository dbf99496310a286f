/* A network is the flat list of a model's layers, for one batch size. Composite layers are replaced by their parts,
 * every shape is known, and parameters are numbered. Layers that share a parameter have the same number. */
#ifndef REMAT_MODEL_NETWORK_H
#define REMAT_MODEL_NETWORK_H

#include <remat/model.h>

#include "base/error.h"
#include "layers/layer.h"
#include "model/settings.h"

#define NETWORK_NONE   UINT32_MAX
#define NETWORK_LABELS (UINT32_MAX - 1) /* an input that is the label tensor instead of a layer's output */

typedef struct network_layer {
    layer_node node;      /* resolved; node.name and node.options belong to the network */
    uint32_t *inputs;     /* node.input_count of them */
    uint32_t *parameters; /* node.parameter_count numbers of network_parameters */
    uint32_t joined;      /* the layer whose gradient its input gradient makes (network_join.c); NETWORK_NONE: none */
    uint32_t block;       /* NETWORK_NONE or the number of its block */
    uint32_t described;   /* the described layer it came from, for messages */
} network_layer;

typedef struct network_parameter {
    const char *name; /* "fc1.weight"; belongs to the network */
    layer_parameter about;
    uint64_t values, bytes;
    uint64_t offset;          /* of its bytes in the area of all parameters: a multiple of 64 */
    uint64_t gradient_offset; /* likewise of its gradient, or a copy of a statistic, in an area for these */
    uint32_t layer;           /* the first that has it */
} network_parameter;

typedef enum network_purpose {
    NETWORK_TRAINING,   /* with losses; a fully_connected read only by cross_entropy becomes projection_cross_entropy */
    NETWORK_INFERENCE,  /* without losses; layers that nobody reads are the outputs */
    NETWORK_EVALUATION, /* with losses, and what the losses read is an output as well */
} network_purpose;

/* What a network is built for. */
typedef struct network_options {
    uint64_t batch; /* samples */
    network_purpose purpose;
    remat_dtype dtype;     /* in which layers compute */
    const backend *device; /* it will compute; NULL: the CPU */
    uint64_t length;       /* of every input's last dimension, instead of the model's; 0: the model's */
} network_options;

typedef struct remat_network {
    remat_context *context;
    unsigned users; /* how many have to destroy it */
    network_options options;
    uint64_t batch;
    network_layer *layers;
    size_t layer_count;
    network_parameter *parameters;
    size_t parameter_count;
    uint64_t parameter_bytes; /* of that area */
    uint64_t gradient_bytes;  /* of the area for the gradients and statistics of all parameters that are not frozen */
    uint32_t block_count;
    const char **block_names;
    bool has_labels;
    const char *adapter; /* the folder with the weights of its adapters; NULL: none */
    layer_shape labels;  /* of one sample */
    remat_dtype labels_dtype;
} remat_network;

/* Builds a network. The model must outlive it. Failures name the layer, and the line if the model came from a file. */
remat_status network_build(const remat_model *model, const network_options *options, remat_network **made);

/* Returns the network of a compiled model if it was built with the same options; otherwise builds a new one. */
remat_status network_get(const remat_model *model, const network_options *options, remat_network **network);

/* Gives up a network from network_build or network_get; the last user frees it. */
void network_destroy(remat_network *network);

/* Whether its loss is a binary cross entropy: what comes out are the logits of answers yes or no. */
bool network_has_yes_or_no(const remat_network *network);

/* Whether it has parameters that are trained. */
bool network_layer_is_trained(const layer_node *node);

/* Of each layer: whether its output needs a gradient, because it depends on a trained parameter. A loss always does: there the backward
 * pass begins. */
void network_find_wanted(const remat_network *network, bool *wanted);

/* Settings of a compiled model. */
const model_settings *model_get_settings(const remat_model *model);
const optimizer_settings *model_get_optimizer(const remat_model *model);
const dataset_settings *model_get_dataset(const remat_model *model);
/* Where a described layer stands in the model's file; nowhere if it was made by calls. */
remat_place model_layer_place(const remat_model *model, uint32_t described);
const property *model_optimizer_properties(void);           /* the keys of [Optimizer] but its type */
remat_dtype model_training_dtype(const remat_model *model); /* that its precision says */
remat_dtype model_frozen_dtype(const remat_model *model);   /* of large frozen matrices */
remat_context *model_context(const remat_model *model);
/* The network that it was compiled to: for training where it has a loss. */
const remat_network *model_get_network(const remat_model *model);

#endif
