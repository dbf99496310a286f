/* What a trainer consists of. Its memory, all of it allocated once:
 *
 *     weights    every parameter and running statistic, each aligned to 64 bytes
 *     moments    the optimizer's, the same layout once or twice
 *     gradients  only with accumulation over micro-batches, the same layout
 *     scratch    of the kernels, one part a thread
 *     arena      everything that lives and dies within a step
 */
#ifndef REMAT_TRAIN_TRAINER_OBJECT_H
#define REMAT_TRAIN_TRAINER_OBJECT_H

#include <remat/train.h>

#include "plan/graph/graph_place.h"
#include "plan/graph/graph_plan.h"
#include "model/program.h"
#include "data/data.h"
#include "train/executor.h"

/* One of those areas. */
typedef struct trainer_area {
    char *memory;
    uint64_t bytes;
} trainer_area;

/* What the arena holds. */
enum { HOLDS_DATA, HOLDS_ACTIVATION, HOLDS_GRADIENT, HOLDS_WEIGHT_GRADIENT, HOLDS_WORKSPACE, HOLDS_KINDS };

/* Of one life of the plan: its kind, and the position where it ends. Where a tensor takes over another's bytes in place,
 * both are alive in that step; the bytes are counted as the new one's. */
typedef struct trainer_holding {
    uint8_t kind;
    uint64_t ends;
} trainer_holding;

struct remat_trainer {
    remat_context *context;
    remat_model *model;
    remat_train_options options;
    model_settings settings;
    optimizer_settings optimizer;
    char *strategy; /* a copy of the option's text */
    uint64_t seed;

    remat_network *network;
    remat_program *program;     /* a training step */
    graph_plan *plan;           /* and how it runs */
    uint64_t peak[HOLDS_KINDS]; /* bytes in the arena while its peak lasts */
    remat_program *evaluation;  /* forward only */
    placed_graph evaluation_plan;
    remat_train_point *points; /* the curve, where it was asked for */
    size_t point_count, point_capacity;

    const kernel_table *kernels;
    kernel_run run;
    trainer_area weights, moments[2], gradients, scratch, arena;
    real **parameter_values, **moment_values[2], **gradient_values; /* of each network parameter */

    remat_executor *executor, *evaluator;
    data_source *data;
    void **input_pointers; /* of each input layer, for the data; room for the largest executor */
    size_t input_count;

    uint64_t step, micro_step; /* taken so far */
    uint64_t steps_per_epoch, total_steps;
    double best_validation;
    uint64_t stale_validations;
    bool resumed;

    /* While a step runs. */
    double rate, clip_scale, gradient_norm;
    remat_gradient_fn on_gradient;
    void *on_gradient_user;
    remat_action_fn on_action;
    void *on_action_user;
    uint64_t *live_bytes; /* by position of the sequence, where actions are watched */
};

/* trainer.c */
remat_status kernels_by_name(remat_context *context, const char *name, const kernel_table **table);
/* The training's data, in the order and, where it is made up, with the numbers of this seed. */
remat_status trainer_open_data(const remat_trainer *trainer, uint64_t seed, data_source **data);
/* trainer_plan.c: what is kept and where it lies, within the budget. */
remat_status trainer_plan(remat_trainer *trainer);
uint64_t trainer_arena_bytes(const remat_trainer *trainer); /* for training and evaluation */
/* trainer_peak.c: one for each life of the plan; the caller releases them. */
remat_status trainer_find_holdings(const remat_trainer *trainer, trainer_holding **holdings);
/* Fills `peak`. */
remat_status trainer_find_peak(remat_trainer *trainer);

/* trainer_memory.c: the areas. */
remat_status trainer_allocate(remat_trainer *trainer);
void trainer_release(remat_trainer *trainer);
uint64_t trainer_fixed_bytes(const remat_trainer *trainer);     /* all areas but the arena, as planned */
uint64_t trainer_allocated_bytes(const remat_trainer *trainer); /* all areas that are there */
/* One area, 0 bytes being none; and pointers to the parameters in one that has their layout, NULL where it is none. */
remat_status area_allocate(remat_context *context, uint64_t bytes, trainer_area *area);
void area_release(remat_context *context, const trainer_area *area);
remat_status area_point_into(const trainer_area *area, const remat_network *network, real ***pointers);

/* trainer_trace.c: hands an action to on_action; for executor_hooks. */
void trainer_observe(void *trainer, size_t position, bool again, uint64_t began, uint64_t ended);
/* What runs outside of the sequence, reported when it ends: the time it began, 0 where nobody watches; the optimizer's step
 * on a parameter; what is done to all gradients together, by the name of its phase. */
uint64_t trainer_clock(const remat_trainer *trainer);
void trainer_note_apply(const remat_trainer *trainer, uint32_t parameter, uint64_t began);
void trainer_note_all(const remat_trainer *trainer, const char *phase, uint64_t began, uint64_t flops, uint64_t bytes);

/* trainer_step.c: the optimizer's step on one parameter, at the trainer's rate and scale. */
void trainer_apply(remat_trainer *trainer, uint32_t parameter, const real *gradient);
/* The first batch of the training data into the arena, for measuring. */
remat_status trainer_fill_first(remat_trainer *trainer);

#endif
