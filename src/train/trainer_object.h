/* What a trainer consists of. Its memory is allocated once, on the device except for staging:
 *
 *     weights    every parameter and running statistic, each aligned to 64 bytes, except for those that are mapped
 *     state      the optimizer's, only of trained parameters
 *     gradients  only with accumulation over micro-batches, the same layout; copies in place of running statistics
 *     arena      all tensors that are live only within a step
 *     step       the step block
 *     scratch    of the kernels; it belongs to the queue
 *     staging    a batch of data, if the host cannot write to the device's memory
 *     exchange   for transfers of gradients that ranks share, and their norm; or what a stage receives and sends
 *
 * Where ranks share state, gradients or weights, a rank has only its parts of them (shard_map.h) in these areas. The areas are as
 * large on every rank as on the one that needs most, so that all have the same plan. A stage of a pipeline has its parameters only.
 */
#ifndef REMAT_TRAIN_TRAINER_OBJECT_H
#define REMAT_TRAIN_TRAINER_OBJECT_H

#include <remat/train.h>

#include "comm/comm.h"
#include "data/data.h"
#include "data/weight_names.h"
#include "model/program.h"
#include "plan/graph/graph_place.h"
#include "plan/graph/graph_plan.h"
#include "train/executor.h"
#include "train/first_weights.h"
#include "train/length_classes.h"
#include "train/gradient_chain.h"
#include "train/optimizer.h"
#include "train/pipeline.h"
#include "train/shard_map.h"
#include "train/shard_transfer.h"
#include "train/staging.h"
#include "train/trainer_mapped.h"

/* What the arena holds. */
enum { HOLDS_DATA, HOLDS_ACTIVATION, HOLDS_GRADIENT, HOLDS_WEIGHT_GRADIENT, HOLDS_WORKSPACE, HOLDS_KINDS };

struct remat_trainer {
    remat_context *context;
    remat_model *model;
    remat_train_options options;
    model_settings settings;
    optimizer_settings optimizer;
    char *strategy;      /* a copy of the option's text */
    weight_names *names; /* of weights files of other programs; NULL: none */
    uint64_t seed;

    remat_network *network;
    remat_program *program;     /* a training step */
    graph_plan *plan;           /* and how it runs */
    uint64_t peak[HOLDS_KINDS]; /* bytes in the arena at its peak, by kind */
    remat_program *evaluation;  /* forward only */
    placed_graph evaluation_plan;
    remat_train_point *points; /* the curve, if it was asked for */
    size_t point_count, point_capacity;

    backend *device;
    backend_queue *queue;
    backend_memory weights, state, gradients, arena, block, exchange;
    uint64_t *state_offsets; /* where the state of each parameter begins */
    uint64_t state_bytes;
    uint64_t *weight_offsets, *gradient_offsets; /* where parameters begin that ranks share; NULL: as in the network */
    uint64_t weight_bytes, gradient_bytes;       /* of these areas */
    mapped_weights *mapped;                      /* frozen weights that are not in them; NULL: none */
    step_block host_block;                       /* what the block holds, or will be copied into it */
    staging staged;

    remat_executor *executor, *evaluator;
    length_class *classes; /* for shorter batches, from the shortest on (length_classes.h) */
    size_t class_count;
    recording apply_calls;          /* with accumulation: clearing the gradients, the norm and the updates */
    size_t *apply_starts;           /* where each of these begins */
    backend_event *apply_events[2]; /* to time them, from the first step on that is watched */
    data_source *data;

    remat_communicator *ranks; /* the caller's; NULL: none */
    remat_communicator *links; /* the same ranks, for tensors: memory of the device */
    gradient_chain *chain;     /* with several ranks */
    shard_map *shard;          /* what they share; NULL: nothing */
    shard_transfers *transfers;
    pipeline *pipeline;         /* NULL: each rank has all layers */
    struct stage_state *stages; /* of all ranks, with a pipeline that was started */
    double *rank_numbers;       /* likewise: losses of all ranks, then those of this one */
    bool plans_chain_only;      /* plans are those of the chain of pieces: many stages are tried before one is chosen */
    bool ranks_agree;           /* they were found to train the same */

    uint64_t step, micro_step; /* taken so far */
    uint64_t steps_per_epoch, total_steps;
    /* Memory besides the tensors. */
    uint64_t planned_bytes;  /* programs and plan */
    uint64_t recorded_bytes; /* executors; with plan_only: what they will take */
    uint64_t data_bytes;     /* samples and buffers of the data source */

    double best_validation;
    uint64_t stale_validations;
    uint64_t best_step;   /* after which best_validation was found; 0: none, or not known */
    rate_plateau plateau; /* of the schedule plateau */
    bool resumed;

    /* While a step runs. */
    remat_gradient_fn on_gradient;
    void *on_gradient_user;
    remat_measurement measured; /* by the last remat_trainer_measure */
    remat_action_fn on_action;
    void *on_action_user;
};

/* trainer.c: opens the training data. The seed sets its order, and its values if they are generated. `encoding` is what
 * came with weights, or NULL. */
remat_status trainer_open_data(const remat_trainer *trainer, uint64_t seed, const data_encoding *encoding,
                               data_source **data);
remat_status trainer_find_steps(remat_trainer *trainer); /* how many the training has, from the data */
/* trainer_start.c: the trainer's own data; everything else that comes after the plan; how much the tables will take
 * that this makes. */
remat_status trainer_load_data(remat_trainer *trainer);
remat_status trainer_start(remat_trainer *trainer);
executor_options trainer_executor_options(remat_trainer *trainer, const remat_program *program, const graph_plan *plan);
remat_status trainer_check_started(const remat_trainer *trainer); /* REMAT_INVALID: it only plans so far */
remat_status trainer_count_tables(remat_trainer *trainer);
/* trainer_plan.c: decides what is kept, and places all tensors, within the budget. */
remat_status trainer_plan(remat_trainer *trainer);
/* The same for a program of this trainer; REMAT_INFEASIBLE says what it takes. */
remat_status trainer_plan_program(const remat_trainer *trainer, const remat_program *program, const uint32_t *blocks,
                                  graph_plan **plan);
uint64_t trainer_arena_bytes(const remat_trainer *trainer); /* for training and evaluation */
/* trainer_peak.c: the kind of each tensor of the program's graph; the caller releases the list. */
remat_status trainer_find_kinds(const remat_trainer *trainer, uint8_t **kinds);
uint8_t trainer_range_kind(const uint8_t *kinds, const live_range *range);
/* Fills `peak`. */
remat_status trainer_find_peak(remat_trainer *trainer);

/* trainer_blame.c: where a failure comes of a tensor of an absurd size, says which layer has it. Returns `status`. */
remat_status trainer_blame(const remat_trainer *trainer, remat_status status);

/* trainer_memory.c: the areas. */
remat_status trainer_allocate(remat_trainer *trainer);
void trainer_release(remat_trainer *trainer);
uint64_t
trainer_fixed_bytes(const remat_trainer *trainer); /* all areas but the arena, and mapped weights, as planned */
uint64_t trainer_least_fixed_bytes(const remat_trainer *trainer); /* the same if mapped weights are dropped */
uint64_t trainer_scratch_bytes(const remat_trainer *trainer);     /* of these: scratch, staging and the step block */
uint64_t trainer_allocated_bytes(const remat_trainer *trainer);   /* all areas that were allocated */
/* A parameter, and its gradient with accumulation; none if there is no memory for them. Where ranks share them, the part that
 * this rank has. */
bool trainer_adds(const remat_trainer *trainer); /* gradients are added up before they are applied */
tensor_ref trainer_parameter(const remat_trainer *trainer, uint32_t parameter);
tensor_ref trainer_gradient(const remat_trainer *trainer, uint32_t parameter);

/* trainer_shard.c: what ranks share. Placing what a rank has comes before the plan. */
remat_status trainer_place(remat_trainer *trainer);
void trainer_release_places(remat_trainer *trainer);
/* What trainer_fixed_bytes would be with another number of ranks. */
remat_status trainer_fixed_with(const remat_trainer *trainer, uint64_t ranks, uint64_t *bytes);
/* Whether this rank has anything of a parameter, of its gradient or of its state. */
bool trainer_has(const remat_trainer *trainer, uint32_t parameter, remat_shard stage);
/* Whether the ranks that have a parameter, its gradient or its state have parts of it; whether it is not whole on all ranks; and which
 * values of it this rank has. */
bool trainer_cuts(const remat_trainer *trainer, uint32_t parameter, remat_shard stage);
bool trainer_shares(const remat_trainer *trainer, uint32_t parameter, remat_shard stage);
shard_part trainer_part(const remat_trainer *trainer, uint32_t parameter, remat_shard stage);
/* The values that this rank updates: of the weight, and of its gradient with accumulation. */
tensor_ref trainer_updated(const remat_trainer *trainer, uint32_t parameter);
tensor_ref trainer_summed(const remat_trainer *trainer, uint32_t parameter);
bool trainer_scatters(const remat_trainer *trainer); /* gradients are added where their part of the sum is */
uint64_t trainer_exchange_bytes(const remat_trainer *trainer);
remat_status trainer_start_shards(remat_trainer *trainer);
void trainer_release_shards(remat_trainer *trainer);
/* Before the position of an apply action: adds the gradients of all ranks to the sums, in the order of the micro-batches. */
remat_status trainer_scatter(remat_trainer *trainer, size_t position);
/* With clip_norm: the sums of squares of all ranks, in the order of the parameters. */
double *trainer_squares(const remat_trainer *trainer); /* those of a parameter's blocks are made here */
remat_status trainer_add_squares(remat_trainer *trainer, uint32_t parameter, double *sum);
weight_place trainer_weight_place(const void *trainer, uint32_t parameter); /* of what this rank has of it */
/* For executor_weights. */
char *trainer_find_weight(void *trainer, uint32_t parameter);
remat_status trainer_prepare_weight(void *trainer, uint32_t parameter, char *to, bool *begun);
remat_status trainer_fetch_weight(void *trainer, uint32_t parameter, char *to);
remat_status trainer_advance_weights(void *trainer);
enum { GATHER_MOST_AHEAD = 64 }; /* positions: gathers begin less than so many before their action */
/* gather_overlap.c: lets gathers of weights begin early where the arena then takes no more than `limit`, which it has already. */
remat_status trainer_overlap_gathers(const remat_trainer *trainer, const remat_program *program, placed_graph *placed,
                                     uint64_t limit);
/* After an update: the weights of all ranks, where each has all of them. */
remat_status trainer_join_weights(remat_trainer *trainer);
/* All ranks get the first parameter whose update was broken on any. */
remat_status trainer_share_broken(remat_trainer *trainer);

/* A whole parameter, or a whole tensor of its state (STATE_...), as it is stored. `number` OPTIMIZER_STATES: the parameter.
 * trainer_copy_whole copies it on all ranks. For trainer_collect, only rank 0 calls it, while the others are in trainer_serve
 * until rank 0 calls trainer_serve_end. */
uint64_t trainer_whole_bytes(const remat_trainer *trainer, uint32_t parameter, unsigned number);
remat_status trainer_copy_whole(const remat_trainer *trainer, uint32_t parameter, unsigned number, void *to);
bool trainer_must_collect(const remat_trainer *trainer, uint32_t parameter, unsigned number);
remat_status trainer_collect(const remat_trainer *trainer, uint32_t parameter, unsigned number, void *to);
remat_status trainer_serve(const remat_trainer *trainer);
remat_status trainer_serve_end(const remat_trainer *trainer);

/* trainer.c: the programs of the whole network or, with a pipeline, of its stage. The first makes that of the whole network. */
remat_status trainer_build_program(const remat_trainer *trainer, remat_program **program);
remat_status trainer_build_programs(remat_trainer *trainer);

/* trainer_cut.c: cuts the network into stages. Needs the network, and comes before the programs. */
remat_status trainer_cut(remat_trainer *trainer);
/* A copy of a trainer that was cut and only plans, as another stage with its plan. */
remat_status trainer_open_stage(const remat_trainer *trainer, uint64_t stage, remat_trainer *copy);
void trainer_close_stage(remat_trainer *copy);

/* trainer_pipeline.c: rows of a pipeline are what ranks are without one. */
uint64_t trainer_stage_count(const remat_trainer *trainer); /* 1: no pipeline */
uint64_t trainer_stage(const remat_trainer *trainer);       /* of this rank */
uint64_t trainer_row(const remat_trainer *trainer);
uint64_t trainer_row_count(const remat_trainer *trainer);
remat_status trainer_check_stages(const remat_trainer *trainer);
/* Makes the stage with its number of micro-batches in flight. */
remat_status trainer_set_stage(remat_trainer *trainer, uint32_t count, uint32_t number, const uint32_t *starts,
                               uint64_t in_flight);
graph_flight trainer_flight(const remat_trainer *trainer);
remat_status trainer_start_stages(remat_trainer *trainer);
void trainer_release_stages(remat_trainer *trainer);
/* Of a parameter or a tensor of its state, as trainer_collect and trainer_copy_whole do. */
remat_status trainer_collect_stage(const remat_trainer *trainer, uint32_t parameter, unsigned number, void *to);
remat_status trainer_copy_stage(const remat_trainer *trainer, uint32_t parameter, unsigned number, void *to);
/* The same of a tensor of which each row of the stage that has it has a part, `mine`. */
remat_status trainer_copy_rows(const remat_trainer *trainer, uint32_t parameter, shard_unit unit, const void *mine,
                               void *to);
/* The square of the norm so far goes from stage to stage, in the order of the parameters: what comes from the stage before, and the
 * sum of all in exchange for that of this stage. */
remat_status trainer_receive_squares(const remat_trainer *trainer, double *squares);
remat_status trainer_share_squares(const remat_trainer *trainer, double *squares);
/* After an update: weights that several stages have. */
remat_status trainer_share_tied(remat_trainer *trainer);

/* trainer_stage_step.c: the micro-batches of a step; one batch of the evaluation. */
remat_status trainer_run_stages(remat_trainer *trainer, double *loss, double *data_seconds);
remat_status trainer_run_evaluator(remat_trainer *trainer);
/* Before and after the batches of an evaluation. */
remat_status trainer_begin_evaluation(remat_trainer *trainer, uint64_t batches);
remat_status trainer_end_evaluation(remat_trainer *trainer);
/* The micro-batches of the last step with checks of every output, until one fails: `broken` of the host's block. */
remat_status trainer_check_stage_outputs(remat_trainer *trainer);

/* trainer_state.c: the optimizer's state: of the whole parameter, and of what rank number `row` of those that share it has. */
void trainer_find_states(const remat_trainer *trainer, uint32_t parameter, optimizer_state states[OPTIMIZER_STATES]);
void trainer_find_own_states(const remat_trainer *trainer, uint32_t parameter, uint64_t row,
                             optimizer_state states[OPTIMIZER_STATES]);
uint64_t trainer_placed_states(const optimizer_state states[OPTIMIZER_STATES]); /* bytes in the area */
tensor_ref trainer_state(const remat_trainer *trainer, uint32_t parameter,
                         unsigned number); /* STATE_...; may be none */
uint64_t trainer_state_moved(const remat_trainer *trainer,
                             uint32_t parameter); /* bytes that an update reads and writes */
/* Copy a moment that there is to and from floats. REMAT_NO_MEMORY. */
remat_status trainer_read_moment(const remat_trainer *trainer, uint32_t parameter, unsigned moment, float *values);
remat_status trainer_write_moment(remat_trainer *trainer, uint32_t parameter, unsigned moment, const float *values);

/* trainer_apply.c: recording the optimizer. */
executor_optimizer trainer_optimizer(remat_trainer *trainer);
remat_status trainer_record_apply(remat_trainer *trainer); /* with accumulation: what runs outside the schedule */
void trainer_release_apply(remat_trainer *trainer);
remat_status trainer_measure_apply(const remat_trainer *trainer, uint64_t *bytes); /* of that recording and its table */
/* Run parts of that recording: the first clears the gradients before the first micro-batch, the second applies them
 * after the last. Where a micro-batch fails, the third gives the running statistics the values that they had at the first. */
remat_status trainer_clear_gradients(remat_trainer *trainer);
remat_status trainer_apply_gradients(remat_trainer *trainer);
remat_status trainer_restore_statistics(remat_trainer *trainer);

/* trainer_files.c: after how many steps the training in a file was saved; false where the file does not say or cannot be
 * read. */
bool trainer_saved_step(remat_context *context, const char *path, uint64_t *step);

/* trainer_trace.c: pass an action to on_action; for executor_hooks. */
void trainer_observe(void *trainer, size_t position, bool is_recompute, uint64_t began, uint64_t ended);
void trainer_observe_norm(void *trainer, size_t position, uint64_t began, uint64_t ended);
/* The same for actions outside the schedule: the update of a parameter, clearing all gradients, and their norm with
 * clip_norm. */
void trainer_note_apply(const remat_trainer *trainer, uint32_t parameter, uint64_t began, uint64_t ended);
void trainer_note_clear(const remat_trainer *trainer, uint64_t began, uint64_t ended);
void trainer_note_norm(const remat_trainer *trainer, uint64_t live_bytes, uint64_t began, uint64_t ended);

/* One transfer between ranks; for chain_options. */
void trainer_note_transfer(void *trainer, const char *what, uint64_t number, uint64_t bytes, uint64_t began,
                           uint64_t ended);

/* trainer_ranks.c: a trainer alone is rank 0 of 1. */
uint64_t trainer_rank(const remat_trainer *trainer);
uint64_t trainer_rank_count(const remat_trainer *trainer);
unsigned trainer_default_threads(const remat_communicator *ranks); /* `ranks` may be NULL */
remat_status trainer_check_ranks(const remat_trainer *trainer);    /* whether they can share the steps */
remat_status trainer_start_ranks(remat_trainer *trainer);
void trainer_release_ranks(remat_trainer *trainer);
/* Compares everything that must be the same, once. REMAT_INVALID on all ranks where something is not. */
remat_status trainer_compare_ranks(remat_trainer *trainer);
/* The losses of this rank's micro-batches, with several ranks: where they are noted, and the sum over all ranks in the order
 * of the micro-batches. */
double *trainer_own_losses(const remat_trainer *trainer);
remat_status trainer_sum_losses(remat_trainer *trainer, const double *mine, double *sum);
/* Three numbers of every rank, in their order. They belong to the trainer. */
remat_status trainer_gather_sums(remat_trainer *trainer, const double mine[3], const double **all);
remat_status trainer_any_rank(const remat_trainer *trainer, bool mine, bool *any);
/* All ranks get the status, and the message, of the first that fails. */
remat_status trainer_share_status(const remat_trainer *trainer, remat_status status);

/* trainer_step.c */
remat_status trainer_send_block(remat_trainer *trainer, uint64_t bytes);
remat_status trainer_receive_block(remat_trainer *trainer);
/* Gets the micro-batch of trainer->micro_step ready for an executor; without data, for its backward pass. */
remat_status trainer_prepare_micro_batch(remat_trainer *trainer, remat_executor *executor, double *data_seconds);
remat_status trainer_prepare_backward(remat_trainer *trainer);

/* The message of a step that diverged: which layer was the first with a number that is not finite. REMAT_DIVERGED.
 * `is_first`: of the steps of this run. */
remat_status trainer_fail_diverged(remat_trainer *trainer, uint64_t step, bool is_first);

/* Copies of weights and of the optimizer's state on the host, while something changes them that leaves no trace. */
typedef struct kept_memory {
    void *copies[2];
} kept_memory;
remat_status trainer_keep(remat_trainer *trainer, kept_memory *kept);
remat_status trainer_put_back(remat_trainer *trainer, kept_memory *kept); /* releases the copies, also where it fails */

/* One run of the executor on the first batch of the training data, for measuring; the weights change. */
remat_status trainer_run_first(remat_trainer *trainer, const executor_hooks *hooks);
/* The same with nobody looking on, and the time of the run alone. */
remat_status trainer_time_first(remat_trainer *trainer, uint64_t *nanoseconds);
/* Passes the gradient of a parameter to on_gradient. */
remat_status trainer_show_gradient(void *trainer, uint32_t parameter, tensor_ref gradient);

#endif
