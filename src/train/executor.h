/* Walks a sequence of actions inside one arena. Everything is decided before: each step of the sequence is prepared once
 * with the addresses of its tensors, and running it allocates nothing and chooses nothing. */
#ifndef REMAT_TRAIN_EXECUTOR_H
#define REMAT_TRAIN_EXECUTOR_H

#include "model/program.h"
#include "graph/graph_walk.h"

/* Where everything lies. Offsets are those of the lives' buffers in the arena. */
typedef struct executor_memory {
    char *arena;
    uint64_t arena_bytes;
    const uint64_t *offsets;
    real *const *parameters; /* of each network parameter */
    real *const *gradients;  /* with PROGRAM_APPLY_OUTSIDE: of each network parameter, statistics too; else NULL */
} executor_memory;

/* Called for every parameter when its gradient is whole. */
typedef void (*executor_apply_fn)(void *user, uint32_t parameter, const real *gradient);
/* Called before the first apply of a run whose program applies at the end, when all gradients are whole. */
typedef void (*executor_ready_fn)(void *user);
/* Called after each step of the sequence, with the clock in nanoseconds: for profiles and traces. `again`: the action ran
 * before in this run. */
typedef void (*executor_observe_fn)(void *user, size_t position, bool again, uint64_t began, uint64_t ended);

typedef struct executor_hooks {
    executor_ready_fn ready;
    executor_apply_fn apply;
    executor_observe_fn observe; /* NULL: no clock is read */
    void *user;
} executor_hooks;

/* What differs from run to run. */
typedef struct executor_turn {
    uint64_t seed;
    uint32_t step; /* micro-batches count: random numbers are drawn anew in each */
    bool training;
    double loss_share;
} executor_turn;

typedef struct remat_executor remat_executor;

/* Program, sequence and lives must outlive the executor; so must the memory. */
remat_status executor_create(const remat_program *program, const graph_sequence *sequence, const graph_lives *lives,
                             const executor_memory *memory, const kernel_table *kernels, const kernel_run *run,
                             remat_executor **made);
void executor_destroy(remat_executor *executor);

/* Where the data goes before a run: the tensor that this input layer, or the labels, load. */
void *executor_input(const remat_executor *executor, uint32_t layer);
void *executor_labels(const remat_executor *executor);

/* After a forward-only run: result number i of the program's finish, NULL past the end; which layer it is. */
const real *executor_result(const remat_executor *executor, size_t i, uint32_t *layer);

/* Runs the sequence; returns the loss. */
double executor_run(remat_executor *executor, const executor_turn *turn, const executor_hooks *hooks);

/* How many layers ran forward in the last run, those that ran again included. */
uint64_t executor_forwards(const remat_executor *executor);

/* How many activations run with the product before them, in runs that nobody observes; observed ones run every action by
 * itself. The bits are the same. */
uint64_t executor_fused(const remat_executor *executor);

/* After an evaluation: the rows whose largest logit is the label's. */
uint64_t executor_correct(const remat_executor *executor);

/* After a run with PROGRAM_APPLY_AT_END, inside `ready`: the gradient of a parameter, NULL where it has none. */
const real *executor_gradient(const remat_executor *executor, uint32_t parameter);

#endif
