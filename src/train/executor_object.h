/* What an executor consists of. */
#ifndef REMAT_TRAIN_EXECUTOR_OBJECT_H
#define REMAT_TRAIN_EXECUTOR_OBJECT_H

#include "train/executor.h"
#include "train/poison.h"

/* One step of the sequence with all its addresses. */
typedef struct prepared_step {
    graph_kind kind;
    uint32_t layer, action;
    layer_call call;
    const real *copied[LAYER_MAX_INPUTS]; /* d_inputs[i] starts as this */
    layer_fused fused;                    /* the activation that may run with it; without a result: none */
    size_t until;                         /* the position of that activation, where there is one, or its own */
    bool absorbed;                        /* this is such an activation */
} prepared_step;

struct remat_executor {
    remat_context *context;
    const remat_program *program;
    prepared_step *steps;
    size_t count;
    void **loaded;          /* of each tensor that a load action writes: its address; by tensor */
    const real **gradients; /* of each network parameter */
    const real *results[LAYER_MAX_INPUTS];
    uint32_t result_layers[LAYER_MAX_INPUTS];
    double loss;
    uint64_t correct, forwards, fused;
    poison_map *poison;
};

/* executor_fuse.c: finds the activations that may run with the product before them. All steps are prepared. */
remat_status executor_fuse(remat_executor *executor, const graph_lives *lives, const executor_memory *memory);

#endif
