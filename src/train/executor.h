/* Runs a schedule of a program inside one arena. Everything is decided before: the layers record their operations once,
 * with the addresses of their tensors, and a run gives that recording to a queue. It allocates nothing and chooses nothing. */
#ifndef REMAT_TRAIN_EXECUTOR_H
#define REMAT_TRAIN_EXECUTOR_H

#include "graph/graph_walk.h"
#include "model/program.h"

typedef struct remat_executor remat_executor;

/* Where everything lies, in memory of the backend. */
typedef struct executor_memory {
    char *arena;
    uint64_t arena_bytes;
    const uint64_t *offsets; /* of the buffers in the arena */
    char *parameters;        /* in the layout of the network */
    char *gradients;         /* the same layout, with PROGRAM_APPLY_OUTSIDE; else NULL */
    char *step;              /* the step block */
} executor_memory;

/* Records what is done with gradients. */
typedef struct executor_optimizer {
    /* Before the first apply action, where all gradients are whole by then (PROGRAM_APPLY_AT_END). */
    remat_status (*begin)(void *user, recording *calls, const remat_executor *executor);
    /* For every parameter when its gradient is whole. */
    remat_status (*apply)(void *user, recording *calls, uint32_t parameter, tensor_ref gradient);
    void *user;
} executor_optimizer;

typedef struct executor_options {
    const remat_program *program; /* these three must outlive the executor */
    const graph_sequence *sequence;
    const graph_lives *lives;
    executor_memory memory;
    backend *device;
    executor_optimizer optimizer; /* for programs with apply actions */
    bool training;
    double loss_share; /* 1 / micro-batches */
} executor_options;

remat_status executor_create(remat_context *context, const executor_options *options, remat_executor **made);
void executor_destroy(remat_executor *executor);

/* Where data goes before a run: the tensor that this input layer, or the labels, load. */
tensor_ref executor_input(const remat_executor *executor, uint32_t layer);
tensor_ref executor_labels(const remat_executor *executor);

/* After a forward-only run: result number i of the program's finish, none past the end; which layer it is. */
tensor_ref executor_result(const remat_executor *executor, size_t i, uint32_t *layer);

/* The gradient of a parameter while a program applies it; none where it has none. */
tensor_ref executor_gradient(const remat_executor *executor, uint32_t parameter);

/* Gives a run to the queue. The step block says what differs from run to run, and gets what comes out. */
remat_status executor_run(remat_executor *executor, backend_queue *queue);

/* Who looks on while a run goes action by action. */
typedef struct executor_hooks {
    /* When the run has ended, for every position of the schedule in order, with its times in nanoseconds. NULL: none. */
    void (*observe)(void *user, size_t position, bool is_recompute, uint64_t began, uint64_t ended);
    /* The same for what executor_optimizer.begin recorded, before the position of the first apply action. NULL: none. */
    void (*observe_begin)(void *user, size_t position, uint64_t began, uint64_t ended);
    /* Directly before a parameter is changed; the queue has nothing left to do. NULL: none. */
    remat_status (*before_apply)(void *user, uint32_t parameter, tensor_ref gradient);
    void *user;
} executor_hooks;

/* A run with somebody looking on; returns when it has ended. Every action runs by itself, so that its time is its own; the
 * bits are those of executor_run. */
remat_status executor_run_observed(remat_executor *executor, backend_queue *queue, const executor_hooks *hooks);

/* What the action at a position does, but for apply actions, of which the optimizer knows. Only after an observed run. */
layer_work executor_work(const remat_executor *executor, size_t position);

/* How many layers run forward in a run, those that run again included. */
uint64_t executor_forwards(const remat_executor *executor);

/* How many activations run as part of the matrix product before them. */
uint64_t executor_fused(const remat_executor *executor);

#endif
