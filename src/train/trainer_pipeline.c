/* A trainer as one stage of a pipeline: which ranks have which stage, and what stages tell each other between the micro-batches. */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "base/options.h"
#include "train/host_view.h"
#include "train/trainer_object.h"

/* Apart from those of what travels in a pass, and of parts (shard_transfer.c), between the same ranks. */
enum { TAG_COLLECT = 3 << 28, TAG_SQUARES, TAG_TOTAL, TAG_TIED };

/* ---- who has what ---- */

uint64_t trainer_stage_count(const remat_trainer *trainer)
{
    return trainer->options.pipeline > 1 ? trainer->options.pipeline : 1;
}

uint64_t trainer_stage(const remat_trainer *trainer)
{
    return trainer->ranks ? trainer->ranks->rank % trainer_stage_count(trainer) : trainer->options.plan_stage;
}

uint64_t trainer_row(const remat_trainer *trainer)
{
    return trainer_rank(trainer) / trainer_stage_count(trainer);
}

uint64_t trainer_row_count(const remat_trainer *trainer)
{
    const uint64_t rows = trainer_rank_count(trainer) / trainer_stage_count(trainer);
    return rows ? rows : 1;
}

static remat_status check_options(const remat_trainer *trainer)
{
    const remat_train_options *options = &trainer->options;
    if (options->shard > REMAT_SHARD_OPTIMIZER)
        return remat_fail(
            trainer->context, REMAT_INVALID, NULL,
            "the rows of a pipeline can share the state of the optimizer, not gradients or weights: use --shard "
            "optimizer, or leave out --pipeline");
    if (options->plan_path || options->graph_plan_path)
        return remat_fail(trainer->context, REMAT_INVALID, NULL,
                          "a plan file is for a whole model, and each stage of a pipeline has its own plan");
    return REMAT_OK;
}

remat_status trainer_check_stages(const remat_trainer *trainer)
{
    const uint64_t stages = trainer_stage_count(trainer), ranks = trainer_rank_count(trainer);
    if (stages == 1)
        return REMAT_OK;
    REMAT_TRY(check_options(trainer));
    if (trainer->ranks ? ranks == 1 : !trainer->options.plan_only)
        return remat_fail(trainer->context, REMAT_INVALID, NULL,
                          "a pipeline of %" PRIu64 " stages takes as many ranks (mpirun -np %" PRIu64
                          " remat train ...)",
                          stages, stages);
    if (trainer->options.plan_stage >= stages)
        return remat_fail(trainer->context, REMAT_INVALID, NULL,
                          "there is no stage %" PRIu64 ": they are counted from 0, and there are %" PRIu64,
                          trainer->options.plan_stage, stages);
    if (ranks % stages != 0 && (trainer->ranks || trainer->options.plan_ranks))
        return remat_fail(trainer->context, REMAT_INVALID, NULL,
                          "%" PRIu64 " ranks cannot be pipelines of %" PRIu64
                          " stages: their number must be a multiple of %" PRIu64,
                          ranks, stages, stages);
    return REMAT_OK;
}

remat_status trainer_set_stage(remat_trainer *trainer, uint32_t count, uint32_t number, const uint32_t *starts,
                               uint64_t in_flight)
{
    REMAT_TRY(pipeline_create(trainer->network, count, number, starts, &trainer->pipeline));
    trainer->pipeline->in_flight = in_flight;
    return REMAT_OK;
}

graph_flight trainer_flight(const remat_trainer *trainer)
{
    const uint32_t turn = trainer->program->turn;
    return (graph_flight){trainer->pipeline && turn != GRAPH_NONE ? trainer->pipeline->in_flight : 1, turn};
}

/* ---- figures of all stages ---- */

typedef struct stage_state {
    uint64_t first, end, in_flight, kept_bytes, cost;
    uint64_t weight_bytes, optimizer_bytes, gradient_bytes, total_bytes, min_budget_bytes, keep_all_bytes;
} stage_state;

static stage_state own_state(const remat_trainer *trainer)
{
    const pipeline *stages = trainer->pipeline;
    remat_trainer_figures figures;
    remat_trainer_get_figures(trainer, &figures);
    return (stage_state){.first = stages->starts[stages->number],
                         .end = stages->starts[stages->number + 1],
                         .in_flight = stages->in_flight,
                         .weight_bytes = figures.weight_bytes,
                         .optimizer_bytes = figures.optimizer_bytes,
                         .gradient_bytes = figures.gradient_bytes,
                         .total_bytes = figures.total_bytes,
                         .min_budget_bytes = figures.min_budget_bytes,
                         .keep_all_bytes = figures.total_bytes - figures.arena_bytes + figures.keep_all_arena_bytes,
                         .kept_bytes = trainer->plan->kept_bytes,
                         .cost = trainer->plan->cost};
}

static remat_status gather_states(remat_trainer *trainer)
{
    const stage_state mine = own_state(trainer);
    trainer->stages = remat_alloc(trainer->context, trainer->ranks->size, sizeof *trainer->stages);
    if (!trainer->stages)
        return REMAT_NO_MEMORY;
    return comm_run(
        trainer->ranks,
        &(comm_transfer){.kind = COMM_GATHER, .data = trainer->stages, .mine = &mine, .bytes = sizeof mine});
}

remat_status remat_trainer_get_stage_sized(const remat_trainer *trainer, uint64_t number, remat_stage_figures *figures,
                                           size_t figures_size)
{
    const uint64_t count = trainer_stage_count(trainer);
    stage_state state;
    if (!trainer->pipeline || number >= count)
        return remat_fail(trainer->context, REMAT_INVALID, NULL,
                          "there is no stage %" PRIu64 ": they are counted from 0, and there are %" PRIu64, number,
                          count);
    if (trainer->stages) {
        state = trainer->stages[number];
    } else if (number == trainer_stage(trainer)) {
        state = own_state(trainer);
    } else {
        remat_trainer copy;
        REMAT_TRY(trainer_open_stage(trainer, number, &copy));
        state = own_state(&copy);
        trainer_close_stage(&copy);
    }
    const remat_stage_figures found = {.first_layer = trainer->network->layers[state.first].node.name,
                                       .last_layer = trainer->network->layers[state.end - 1].node.name,
                                       .weight_bytes = state.weight_bytes,
                                       .optimizer_bytes = state.optimizer_bytes,
                                       .gradient_bytes = state.gradient_bytes,
                                       .total_bytes = state.total_bytes,
                                       .min_budget_bytes = state.min_budget_bytes,
                                       .keep_all_bytes = state.keep_all_bytes,
                                       .kept_bytes = state.kept_bytes,
                                       .in_flight = state.in_flight,
                                       .cost = state.cost};
    remat_struct_give(figures, figures_size, &found, sizeof found);
    return REMAT_OK;
}

/* ---- starting ---- */

static bool has_statistic(const void *trainer, uint32_t parameter)
{
    return trainer_has(trainer, parameter, REMAT_SHARD_WEIGHTS);
}

static remat_status start_chains(remat_trainer *trainer)
{
    chain_options options = {.ranks = trainer->links,
                             .program = trainer->program,
                             .sequence = &trainer->plan->sequence,
                             .queue = trainer->queue,
                             .group = {trainer_stage(trainer), trainer_stage_count(trainer), trainer_row_count(trainer),
                                       trainer_row(trainer)},
                             .gradients = trainer->gradients.at,
                             .gradient_offsets = trainer->gradient_offsets,
                             .weights = trainer->weights.at,
                             .weight_offsets = trainer->weight_offsets,
                             .gradients_only = true,
                             .has = has_statistic,
                             .observe = trainer_note_transfer,
                             .user = trainer};
    chain_options added = options;
    if (trainer_row_count(trainer) == 1)
        return REMAT_OK;
    if (trainer->options.reduce_fast) {
        REMAT_TRY(comm_split(trainer->links, trainer_stage(trainer), trainer_row(trainer), &trainer->pipeline->rows));
        added.ranks = trainer->pipeline->rows;
        added.group.size = 0;
        added.fast = true;
    }
    REMAT_TRY(gradient_chain_create(trainer->context, &added, &trainer->chain));
    options.gradients_only = false;
    options.statistics_only = true;
    options.first_tag = 1 << 28;
    return gradient_chain_create(trainer->context, &options, &trainer->pipeline->statistics);
}

remat_status trainer_start_stages(remat_trainer *trainer)
{
    pipeline *stages = trainer->pipeline;
    stage_transfer_options options = {.ranks = trainer->links,
                                      .first_rank = trainer_row(trainer) * trainer_stage_count(trainer),
                                      .program = trainer->program,
                                      .queue = trainer->queue,
                                      .area = trainer->exchange.at,
                                      .observe = trainer_note_transfer,
                                      .user = trainer};
    REMAT_TRY(stage_transfers_create(trainer->context, &options, &stages->training));
    options.program = trainer->evaluation;
    REMAT_TRY(stage_transfers_create(trainer->context, &options, &stages->evaluation));
    REMAT_TRY(trainer_start_shards(trainer));
    REMAT_TRY(start_chains(trainer));
    return gather_states(trainer);
}

void trainer_release_stages(remat_trainer *trainer)
{
    if (trainer->stages)
        remat_release(trainer->context, trainer->stages, trainer->ranks->size, sizeof *trainer->stages);
    pipeline_destroy(trainer->pipeline);
    trainer->stages = NULL;
    trainer->pipeline = NULL;
}

/* ---- tensors from stage to stage ---- */

static uint64_t rank_of_stage(const remat_trainer *trainer, uint64_t stage)
{
    return trainer_row(trainer) * trainer_stage_count(trainer) + stage;
}

static remat_status move_by(remat_communicator *ranks, comm_kind kind, uint64_t peer, int tag, void *data,
                            uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes; done += COMM_MOST_BYTES)
        REMAT_TRY(comm_run(ranks, &(comm_transfer){.kind = kind,
                                                   .peer = peer,
                                                   .tag = tag,
                                                   .data = (char *)data + done,
                                                   .bytes = remat_min(bytes - done, COMM_MOST_BYTES)}));
    return REMAT_OK;
}

/* From host to host. */
static remat_status move(const remat_trainer *trainer, comm_kind kind, uint64_t peer, int tag, void *data,
                         uint64_t bytes)
{
    return move_by(trainer->ranks, kind, peer, tag, data, bytes);
}

static remat_status copy_to_host(const remat_trainer *trainer, void *to, const void *from, uint64_t bytes)
{
    REMAT_TRY(backend_copy_out(trainer->queue, to, from, bytes));
    return backend_wait(trainer->queue);
}

static tensor_ref tensor_of(const remat_trainer *trainer, uint32_t parameter, unsigned number)
{
    return number == OPTIMIZER_STATES ? trainer_parameter(trainer, parameter)
                                      : trainer_state(trainer, parameter, number);
}

/* The owner in the first row has rank number `owner`. */
remat_status trainer_collect_stage(const remat_trainer *trainer, uint32_t parameter, unsigned number, void *to)
{
    const uint64_t owner = trainer->pipeline->owners[parameter], rank = trainer_rank(trainer);
    const uint64_t bytes = trainer_whole_bytes(trainer, parameter, number);
    void *mine = tensor_of(trainer, parameter, number).at;
    host_view view;
    if (rank == 0)
        return owner == 0 ? copy_to_host(trainer, to, mine, bytes)
                          : move(trainer, COMM_RECEIVE, owner, TAG_COLLECT, to, bytes);
    if (rank != owner)
        return REMAT_OK;
    REMAT_TRY(host_view_open(trainer->queue, mine, bytes, true, &view));
    remat_status status = move(trainer, COMM_SEND, 0, TAG_COLLECT, view.host, bytes);
    const remat_status closed = host_view_close(&view, false);
    return status == REMAT_OK ? closed : status;
}

remat_status trainer_copy_stage(const remat_trainer *trainer, uint32_t parameter, unsigned number, void *to)
{
    const uint64_t owner = trainer->pipeline->owners[parameter];
    const uint64_t bytes = trainer_whole_bytes(trainer, parameter, number);
    if (trainer_rank(trainer) == owner)
        REMAT_TRY(copy_to_host(trainer, to, tensor_of(trainer, parameter, number).at, bytes));
    return move(trainer, COMM_BROADCAST, owner, 0, to, bytes);
}

remat_status trainer_copy_rows(const remat_trainer *trainer, uint32_t parameter, shard_unit unit, const void *mine,
                               void *to)
{
    const uint64_t owner = trainer->pipeline->owners[parameter], stages = trainer_stage_count(trainer);
    for (uint64_t row = 0; row < trainer->shard->size; row++) {
        const shard_part part = shard_map_part(trainer->shard, parameter, row);
        const uint64_t from = owner + row * stages, bytes = shard_unit_bytes(unit, part.values);
        char *at = (char *)to + shard_unit_bytes(unit, part.first);
        if (trainer_rank(trainer) == from)
            REMAT_TRY(copy_to_host(trainer, at, mine, bytes));
        REMAT_TRY(move(trainer, COMM_BROADCAST, from, 0, at, bytes));
    }
    return REMAT_OK;
}

remat_status trainer_receive_squares(const remat_trainer *trainer, double *squares)
{
    const uint64_t stage = trainer_stage(trainer);
    *squares = 0;
    return stage == 0
               ? REMAT_OK
               : move(trainer, COMM_RECEIVE, rank_of_stage(trainer, stage - 1), TAG_SQUARES, squares, sizeof *squares);
}

remat_status trainer_share_squares(const remat_trainer *trainer, double *squares)
{
    const uint64_t stage = trainer_stage(trainer), last = trainer_stage_count(trainer) - 1;
    if (stage < last) {
        REMAT_TRY(move(trainer, COMM_SEND, rank_of_stage(trainer, stage + 1), TAG_SQUARES, squares, sizeof *squares));
        return move(trainer, COMM_RECEIVE, rank_of_stage(trainer, last), TAG_TOTAL, squares, sizeof *squares);
    }
    for (uint64_t s = 0; s < last; s++)
        REMAT_TRY(move(trainer, COMM_SEND, rank_of_stage(trainer, s), TAG_TOTAL, squares, sizeof *squares));
    return REMAT_OK;
}

remat_status trainer_share_tied(remat_trainer *trainer)
{
    const pipeline *stages = trainer->pipeline;
    REMAT_TRY(comm_follow(trainer->links, trainer->queue));
    for (uint32_t p = 0; p < trainer->network->parameter_count; p++) {
        const network_parameter *about = &trainer->network->parameters[p];
        const uint32_t owner = stages->owners[p];
        if (!layer_parameter_is_trained(&about->about))
            continue;
        for (uint32_t s = 0; s < stages->count; s++) {
            if (s == owner || !pipeline_holds(stages, p, s))
                continue;
            if (owner == stages->number)
                REMAT_TRY(move_by(trainer->links, COMM_SEND, rank_of_stage(trainer, s), TAG_TIED,
                                  trainer_parameter(trainer, p).at, about->bytes));
            else if (s == stages->number)
                REMAT_TRY(move_by(trainer->links, COMM_RECEIVE, rank_of_stage(trainer, owner), TAG_TIED,
                                  trainer_parameter(trainer, p).at, about->bytes));
        }
    }
    return REMAT_OK;
}
