/* Runs a schedule of a program in one arena. Everything is decided before a run: the layers record their operations
 * once, with the addresses of their tensors. A run passes that recording to a queue. It allocates nothing and chooses
 * nothing. */
#ifndef REMAT_TRAIN_EXECUTOR_H
#define REMAT_TRAIN_EXECUTOR_H

#include "graph/graph_walk.h"
#include "model/program.h"

typedef struct remat_executor remat_executor;

/* Addresses, in the memory of the backend. */
typedef struct executor_memory {
    char *arena;
    uint64_t arena_bytes;
    const uint64_t *offsets; /* of the buffers in the arena */
    char *parameters;        /* in the layout of the network */
    char *step;              /* the step block */
    char *transfers; /* of the program of a stage: what it receives and sends, at the offsets of its transfers */
} executor_memory;

/* Where weights are, if they are not all in executor_memory. */
typedef struct executor_weights {
    /* The address of a parameter that is always there. NULL: those of executor_memory. */
    char *(*find)(void *user, uint32_t parameter);
    /* Writes a parameter to an address. Called before each action that needs it, when the queue is idle; on a device whose memory the
     * host cannot touch the queue may have work, and what is written comes behind it. */
    remat_status (*fetch)(void *user, uint32_t parameter, char *to);
    /* May begin to write it there, if its workspace begins before the position of the action: `fetch` follows, in the order of these
     * calls, and other actions run until then. Not begun: it is asked again at the next position. */
    remat_status (*prepare)(void *user, uint32_t parameter, char *to, bool *begun);
    /* Called between actions, to move along what was begun. */
    remat_status (*advance)(void *user);
    void *user;
    /* For weights that do not stay in memory: `leave` is called after an action that read some, when the queue is idle; `want` before it,
     * for actions that come next, until one returns that it needs some. Both NULL: they stay. */
    void (*leave)(void *user, const remat_program *program, uint32_t action);
    bool (*want)(void *user, const remat_program *program, uint32_t action);
} executor_weights;

/* Functions that record what the optimizer does with gradients. */
typedef struct executor_optimizer {
    /* Called before the first apply action if all gradients are complete by then (PROGRAM_APPLY_AT_END). */
    remat_status (*begin)(void *user, recording *calls, const remat_executor *executor);
    /* Called for every parameter when its gradient is complete: updates it, or adds the gradient to a sum. */
    remat_status (*apply)(void *user, recording *calls, uint32_t parameter, tensor_ref gradient);
    void *user;
} executor_optimizer;

typedef struct executor_options {
    const remat_program *program; /* these three must outlive the executor */
    const graph_sequence *sequence;
    const graph_liveness *liveness;
    executor_memory memory;
    backend *device;
    executor_optimizer optimizer; /* for programs with apply actions */
    executor_weights weights;
    bool training;
    double loss_share; /* 1 / micro-batches */
} executor_options;

remat_status executor_create(remat_context *context, const executor_options *options, remat_executor **made);
void executor_destroy(remat_executor *executor);

/* How many bytes such an executor takes for its tables, without making it. The addresses in the options must not be
 * NULL where there will be memory; they are not used. */
remat_status executor_measure(remat_context *context, const executor_options *options, uint64_t *bytes);

/* The tensors that the data of a run is copied to: for an input layer, and for the labels. */
tensor_ref executor_input(const remat_executor *executor, uint32_t layer);
tensor_ref executor_labels(const remat_executor *executor);

/* After a forward-only run: output number i of the program, and its layer. None past the end. */
tensor_ref executor_result(const remat_executor *executor, size_t i, uint32_t *layer);

/* The gradient of a parameter in a program that applies it; none if there is none. */
tensor_ref executor_gradient(const remat_executor *executor, uint32_t parameter);

/* Passes a run to the queue. The step block holds the numbers that change from run to run, and receives the results. */
remat_status executor_run(remat_executor *executor, backend_queue *queue);

/* Which part of a run. The program of a stage stops in the middle of its turn, between sending and receiving. */
typedef enum executor_part {
    EXECUTOR_WHOLE,
    EXECUTOR_FORWARD,  /* up to there */
    EXECUTOR_BACKWARD, /* from there on */
} executor_part;

/* Functions that observe a run, action by action. */
typedef struct executor_hooks {
    /* Called after the run, for every position of the schedule in order, with its times in nanoseconds. NULL: none. */
    void (*observe)(void *user, size_t position, bool is_recompute, uint64_t began, uint64_t ended);
    /* The same for what executor_optimizer.begin recorded, before the position of the first apply action. NULL: none. */
    void (*observe_begin)(void *user, size_t position, uint64_t began, uint64_t ended);
    /* Called directly before a parameter is updated, when the queue is idle. NULL: none. */
    remat_status (*before_apply)(void *user, uint32_t parameter, tensor_ref gradient);
    void *user;
    /* Called before the work of each position is passed to the queue, and after it; the queue may still have work to do.
     * NULL: none. */
    remat_status (*before)(void *user, size_t position);
    remat_status (*after)(void *user, size_t position);
    executor_part part; /* to run */
} executor_hooks;

/* Runs with `before` and `after` of these hooks, and none of the others. */
remat_status executor_run_watched(remat_executor *executor, backend_queue *queue, const executor_hooks *hooks);

/* A run with a check behind every forward: `broken` of the step block is 1 + the first layer whose output is not finite. Of the
 * hooks, which may be NULL, it uses `before`, `after` and `part`. */
remat_status executor_run_checked(remat_executor *executor, backend_queue *queue, const executor_hooks *hooks);

/* Runs with these hooks and returns when the run has ended. Every action runs by itself, so that it can be timed. The
 * bits are those of executor_run. */
remat_status executor_run_observed(remat_executor *executor, backend_queue *queue, const executor_hooks *hooks);

/* The work of the action at a position, except apply actions, which only the optimizer knows. Only after an observed
 * run. */
layer_work executor_work(const remat_executor *executor, size_t position);

/* How many layers run forward in a run, including recomputed ones. */
uint64_t executor_forwards(const remat_executor *executor);

/* How many activations are fused with the GEMM before them. */
uint64_t executor_fused(const remat_executor *executor);

#endif
