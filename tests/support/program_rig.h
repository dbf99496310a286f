/* A program that runs without planner and arena: every buffer has a place of its own, and gradients are copied out where an
 * optimizer would use them. */
#ifndef TESTS_PROGRAM_RIG_H
#define TESTS_PROGRAM_RIG_H

#include "train/executor.h"
#include "train/staging.h"

typedef struct program_rig {
    remat_context *context;
    backend *device;
    backend_queue *queue;
    remat_network *network;
    remat_program *program;
    graph_sequence sequence;
    graph_liveness liveness;
    uint64_t *offsets, arena_bytes;
    char *arena;
    char *parameters, *gradients; /* areas with the network's layout */
    step_block block;
    staging staged;
    remat_executor *executor;
} program_rig;

typedef struct program_rig_options {
    uint64_t batch;
    network_purpose purpose;
    program_apply apply;
    remat_dtype dtype;
    backend_options device;
} program_rig_options;

/* Everything but the executor. Failures end the test. */
void program_rig_open(program_rig *rig, const remat_model *model, const program_rig_options *options);
/* With the offsets as they are now; one before is destroyed. */
void program_rig_make_executor(program_rig *rig);
void program_rig_close(program_rig *rig);

/* One run, on the data that staging_aim() points to. The arena is not a number before, wherever it is not data. Returns the
 * loss. `hooks` NULL: nobody looks on. */
double program_rig_run(program_rig *rig, uint64_t seed, const executor_hooks *hooks);

/* A parameter, and its gradient after a run. */
void *program_rig_parameter(const program_rig *rig, size_t parameter);
void *program_rig_gradient(const program_rig *rig, size_t parameter);

#endif
