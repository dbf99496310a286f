#ifndef REMAT_TRAIN_PREDICTOR_OBJECT_H
#define REMAT_TRAIN_PREDICTOR_OBJECT_H

#include "train/trainer_object.h"

struct remat_predictor {
    remat_context *context;
    remat_model *model;
    remat_train_options options;
    remat_network *network;
    remat_program *program;
    placed_graph plan;
    const kernel_table *kernels;
    kernel_run run;
    trainer_area weights, scratch, arena;
    real **values;         /* of each parameter */
    void **input_pointers; /* of each input layer, in the arena */
    size_t input_count;
    remat_executor *executor;
    data_source *data; /* NULL until samples are asked for */
};

#endif
