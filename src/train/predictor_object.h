#ifndef REMAT_TRAIN_PREDICTOR_OBJECT_H
#define REMAT_TRAIN_PREDICTOR_OBJECT_H

#include "data/data_encoding.h"
#include "train/held_weights.h"
#include "train/host_view.h"
#include "train/trainer_object.h"

struct remat_predictor {
    remat_context *context;
    remat_model *model;
    remat_train_options options;
    char *data_path, *labels_path; /* copies of the options' texts */
    remat_network *network;
    remat_program *program;
    placed_graph plan;
    backend *device;
    backend_queue *queue;
    held_weights weights;
    backend_memory arena, block;
    step_block host_block; /* what an evaluation copies in and out */
    staging staged;
    host_view result; /* what the last prediction points to */
    remat_executor *executor;
    data_encoding encoding; /* of the weights */
    bool has_encoding;
    data_source *data; /* NULL until samples are asked for */
};

/* Makes a predictor for a network of this purpose, which is not NETWORK_TRAINING. */
remat_status predictor_create(remat_model *model, const char *weights_path, const remat_train_options *options,
                              network_purpose purpose, remat_predictor **predictor);

/* Opens its dataset, as its weights were trained with it. `part` says which samples there will be: with DATA_TRAINING all
 * of them, with DATA_VALIDATION those for validation behind the others. Nothing to do where it is open. */
remat_status predictor_open_data(remat_predictor *predictor, data_part part);

/* Runs what the staging area holds. */
remat_status predictor_run(remat_predictor *predictor, remat_prediction *prediction);

#endif
