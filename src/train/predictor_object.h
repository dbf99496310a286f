#ifndef REMAT_TRAIN_PREDICTOR_OBJECT_H
#define REMAT_TRAIN_PREDICTOR_OBJECT_H

#include "train/host_view.h"
#include "train/trainer_object.h"

struct remat_predictor {
    remat_context *context;
    remat_model *model;
    remat_train_options options;
    remat_network *network;
    remat_program *program;
    placed_graph plan;
    backend *device;
    backend_queue *queue;
    backend_memory weights, arena, block;
    staging staged;
    host_view result; /* what the last prediction points to */
    remat_executor *executor;
    data_source *data; /* NULL until samples are asked for */
};

#endif
