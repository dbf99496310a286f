/* What an executor consists of. */
#ifndef REMAT_TRAIN_EXECUTOR_OBJECT_H
#define REMAT_TRAIN_EXECUTOR_OBJECT_H

#include "train/executor.h"
#include "train/poison.h"

/* The operations of a whole run, and where those of each position of the schedule begin; one more entry for the end. */
typedef struct recorded_run {
    recording calls;
    size_t *starts;
    size_t apply_position; /* of the first apply action; the count where there is none */
    size_t turn_position;  /* of the turn of a stage; the count where there is none */
    size_t turn_sent;      /* the end of what is sent there; what is received follows */
    size_t apply_begun;    /* the end of what executor_optimizer.begin recorded there */
} recorded_run;

/* Where the weights for a position go, and from which position on they may come. NULL: it fetches none. */
typedef struct fetch_place {
    char *workspace, *at;
    size_t begins;
} fetch_place;

struct remat_executor {
    remat_context *context;
    executor_options options;
    size_t count;           /* of the schedule's positions */
    recorded_run fused;     /* with activations fused with the GEMM before them */
    recorded_run plain;     /* every action by itself; made for the first observed run */
    recorded_run checked;   /* a check behind every output; made for the first checked run */
    layer_work *work;       /* of each position, with `plain` */
    backend_event **events; /* count + 2 of them, with `plain`: the last one is for executor_optimizer.begin */
    bool *ran;              /* of each action, while an observed run is told, with `plain` */
    tensor_ref inputs[LAYER_MAX_INPUTS]; /* by number among the input layers */
    tensor_ref labels;
    tensor_ref *gradients; /* of each network parameter */
    tensor_ref results[LAYER_MAX_INPUTS];
    uint32_t result_layers[LAYER_MAX_INPUTS];
    fetch_place *fetched; /* of each position, for programs that fetch weights */
    size_t fetch_next;    /* during a run: the first position whose weights have not begun to come */
    uint64_t forwards, fused_count;
    poison_map *poison;
    size_t *until; /* with `poison`: the last position whose operations are fused into this one */
};

/* executor_record.c: records a whole run. `work` NULL: not wanted. `checks`: of every forward's output. */
remat_status executor_record(remat_executor *executor, recorded_run *run, layer_work *work, bool checks);
/* How many bytes the recording of a run without checks takes. */
remat_status executor_count(remat_executor *executor, uint64_t *bytes);
void recorded_run_release(remat_executor *executor, recorded_run *run);

/* executor_fuse.c: fuses activations with the GEMM before them. */
remat_status executor_fuse(remat_executor *executor, recorded_run *run);

/* executor_work.c */
layer_work executor_find_work(const remat_executor *executor, uint32_t action, const layer_call *call);

/* What the action at a position does. */
static inline const program_action *executor_action(const remat_executor *executor, size_t position)
{
    const executor_options *options = &executor->options;
    return &options->program->actions[options->sequence->actions[position]];
}

#endif
