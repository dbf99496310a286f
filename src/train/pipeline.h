/* A pipeline: the layers of a network are cut into stages, each on a rank of its own (model/program.h has the program of a stage).
 *
 * With N ranks and P stages there are N / P rows, which train side by side as ranks without stages do. Rank r has stage r mod P of
 * row r / P. Micro-batch m belongs to row m mod (N / P). Of M micro-batches of a row, stage s runs P - 1 - s forwards ahead of its
 * backwards, then one forward and one backward by turns:
 *
 *     stage 0   F0 F1 F2 B0 F3 B1 B2 B3       three micro-batches in flight
 *     stage 1      F0 F1 .. B0 F2 B1 F3 B2 B3
 *     stage 2         F0B0  F1B1  F2B2  F3B3  the last stage turns at once
 *
 * All stages see the micro-batches in their order, so that sums have the order of one process. */
#ifndef REMAT_TRAIN_PIPELINE_H
#define REMAT_TRAIN_PIPELINE_H

#include "train/executor.h"
#include "train/gradient_chain.h"
#include "train/stage_transfer.h"

typedef struct pipeline {
    remat_context *context;
    const remat_network *network;
    uint32_t count, number; /* of stages, and the one of this rank */
    uint32_t *starts;       /* count + 1 layers */
    uint32_t *owners;       /* of each parameter: the stage that updates it, the first that has it */
    bool *held;             /* count for each parameter: whether the stage has it */
    uint64_t in_flight;     /* micro-batches of which this stage keeps activations at the same time */

    /* Of a trainer that was started. */
    remat_executor **executors; /* in_flight of them; the trainer owns the first */
    uint64_t *offsets;          /* of the buffers of each but the first */
    size_t offset_count;
    stage_transfers *training, *evaluation;
    remat_communicator *rows;   /* the ranks of this stage, where MPI adds the gradients of the rows */
    gradient_chain *statistics; /* of the rows, in forward passes; that of the trainer has the gradients */
    executor_part part;         /* what runs now */
} pipeline;

/* `starts` has count + 1 items. */
remat_status pipeline_create(const remat_network *network, uint32_t count, uint32_t number, const uint32_t *starts,
                             pipeline **made);
void pipeline_destroy(pipeline *stages); /* NULL is fine */
/* Before that: while their program, the queue and the memory are still there. */
void pipeline_destroy_executors(pipeline *stages);

/* Whether a stage has a parameter. */
bool pipeline_holds(const pipeline *stages, uint32_t parameter, uint32_t stage);
program_stage pipeline_stage(const pipeline *stages);

/* stage_cut.c: where a network may be cut, and the cut whose slowest stage is fastest. */
typedef struct stage_cuts {
    remat_context *context;
    /* Each may be the first of a stage. The first of them is layer 0, and the network's end follows the last. */
    uint32_t *layers;
    size_t count; /* of these */
    size_t capacity;
    uint64_t *costs; /* of what is between two of them */
    uint64_t *bytes; /* that cross before each of them; 0 for the first */
    program_speed speed;
} stage_cuts;
/* The program is that of the whole network; its costs count. */
remat_status stage_cuts_find(const remat_program *program, stage_cuts *cuts);
void stage_cuts_release(stage_cuts *cuts);
/* The time of a stage from one to another of them, without what crosses. */
uint64_t stage_cuts_cost(const stage_cuts *cuts, size_t first, size_t end);
/* Leaves out the places where much more crosses than at others, as long as so many stay. */
void stage_cuts_narrow(stage_cuts *cuts, size_t least);
/* Chooses `stages` of them, no more than there are: chosen[s] is the number of the first of stage s, and chosen[stages] the count. */
remat_status stage_cuts_choose(const stage_cuts *cuts, size_t stages, size_t *chosen);

#endif
