/* What ranks share: which parts of it a rank has, where they are, and how they come together. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "base/moment_codes.h"
#include "train/host_view.h"
#include "train/trainer_object.h"

static uint64_t placed(uint64_t bytes)
{
    return (bytes + 63) & ~(uint64_t)63;
}

/* ---- which part ---- */

bool trainer_cuts(const remat_trainer *trainer, uint32_t parameter, remat_shard stage)
{
    return trainer->shard && trainer->options.shard >= stage &&
           !trainer->network->parameters[parameter].about.statistic;
}

bool trainer_shares(const remat_trainer *trainer, uint32_t parameter, remat_shard stage)
{
    return trainer->pipeline || trainer_cuts(trainer, parameter, stage);
}

bool trainer_has(const remat_trainer *trainer, uint32_t parameter, remat_shard stage)
{
    const pipeline *stages = trainer->pipeline;
    if (!stages)
        return true;
    return stage == REMAT_SHARD_WEIGHTS ? pipeline_holds(stages, parameter, stages->number)
                                        : stages->owners[parameter] == stages->number;
}

/* Of rank number `row` among those that share: all, or with a pipeline those of the same stage. */
static shard_part part_of(const remat_trainer *trainer, uint32_t parameter, remat_shard stage, uint64_t row)
{
    if (!trainer_has(trainer, parameter, stage))
        return (shard_part){0, 0};
    return trainer_cuts(trainer, parameter, stage) ? shard_map_part(trainer->shard, parameter, row)
                                                   : (shard_part){0, trainer->network->parameters[parameter].values};
}

shard_part trainer_part(const remat_trainer *trainer, uint32_t parameter, remat_shard stage)
{
    return part_of(trainer, parameter, stage, trainer_row(trainer));
}

/* ---- where it is ---- */

/* Bytes of a parameter in an area on a rank. */
typedef uint64_t area_bytes(const remat_trainer *trainer, uint32_t parameter, uint64_t row);

static uint64_t weight_bytes(const remat_trainer *trainer, uint32_t parameter, uint64_t row)
{
    const shard_part part = part_of(trainer, parameter, REMAT_SHARD_WEIGHTS, row);
    return placed(dtype_bytes(trainer->network->parameters[parameter].about.dtype, part.values));
}

static uint64_t gradient_bytes(const remat_trainer *trainer, uint32_t parameter, uint64_t row)
{
    const layer_parameter *about = &trainer->network->parameters[parameter].about;
    const shard_part part = part_of(trainer, parameter, REMAT_SHARD_GRADIENTS, row);
    return about->frozen ? 0 : placed(dtype_bytes(layer_gradient_dtype(about), part.values));
}

static uint64_t state_bytes(const remat_trainer *trainer, uint32_t parameter, uint64_t row)
{
    optimizer_state states[OPTIMIZER_STATES];
    trainer_find_own_states(trainer, parameter, row, states);
    return trainer_placed_states(states);
}

/* The offsets of this rank, and the bytes of the rank that needs most. */
static remat_status place(const remat_trainer *trainer, area_bytes *bytes_of, uint64_t **offsets, uint64_t *bytes)
{
    const size_t count = trainer->network->parameter_count;
    const uint64_t row = trainer_row(trainer), rows = trainer->shard ? trainer->shard->size : 1;
    *offsets = remat_alloc(trainer->context, count, sizeof **offsets);
    if (!*offsets)
        return REMAT_NO_MEMORY;
    *bytes = 0;
    for (uint64_t r = 0; r < rows; r++) {
        uint64_t offset = 0;
        for (uint32_t p = 0; p < count; p++) {
            if (r == row || rows == 1)
                (*offsets)[p] = offset;
            offset += bytes_of(trainer, p, r);
        }
        *bytes = remat_max(*bytes, offset);
    }
    return REMAT_OK;
}

static remat_status check_shard(const remat_trainer *trainer)
{
    if (trainer->optimizer.type == OPTIMIZER_ADAFACTOR)
        return remat_fail(trainer->context, REMAT_INVALID, NULL,
                          "adafactor needs whole matrices, so ranks cannot share its state; its state is small");
    if (trainer->options.shard >= REMAT_SHARD_GRADIENTS && trainer->options.reduce_fast)
        return remat_fail(trainer->context, REMAT_INVALID, NULL,
                          "ranks that share gradients add them in a fixed order: leave out --reduce fast");
    return REMAT_OK;
}

remat_status trainer_place(remat_trainer *trainer)
{
    const remat_shard stage = trainer->options.shard;
    trainer->weight_bytes = trainer->network->parameter_bytes;
    trainer->gradient_bytes = trainer->network->gradient_bytes;
    if (stage > REMAT_SHARD_WEIGHTS)
        return remat_fail(trainer->context, REMAT_INVALID, NULL, "there is no shard stage %d", (int)stage);
    if (stage != REMAT_SHARD_NONE && trainer_row_count(trainer) > 1) {
        REMAT_TRY(check_shard(trainer));
        REMAT_TRY(shard_map_create(trainer->network, trainer_row_count(trainer), &trainer->shard));
    }
    REMAT_TRY(place(trainer, state_bytes, &trainer->state_offsets, &trainer->state_bytes));
    if (trainer->pipeline || (trainer->shard && stage >= REMAT_SHARD_GRADIENTS))
        REMAT_TRY(place(trainer, gradient_bytes, &trainer->gradient_offsets, &trainer->gradient_bytes));
    if (trainer->pipeline || (trainer->shard && stage >= REMAT_SHARD_WEIGHTS))
        REMAT_TRY(place(trainer, weight_bytes, &trainer->weight_offsets, &trainer->weight_bytes));
    return trainer_place_copied(trainer);
}

void trainer_release_places(remat_trainer *trainer)
{
    uint64_t *const lists[] = {trainer->state_offsets, trainer->gradient_offsets, trainer->weight_offsets};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (lists[i])
            remat_release(trainer->context, lists[i], trainer->network->parameter_count, sizeof *lists[i]);
    shard_map_destroy(trainer->shard);
}

remat_status trainer_fixed_with(const remat_trainer *trainer, uint64_t ranks, uint64_t *bytes)
{
    remat_trainer other = *trainer;
    other.options.plan_ranks = ranks;
    other.state_offsets = other.gradient_offsets = other.weight_offsets = NULL;
    other.shard = NULL;
    other.mapped = trainer_maps(&other) ? trainer->mapped : NULL;
    remat_status status = trainer_place(&other);
    if (status == REMAT_OK)
        *bytes = trainer_fixed_bytes(&other);
    trainer_release_places(&other);
    return status;
}

weight_place trainer_weight_place(const void *user, uint32_t parameter)
{
    const remat_trainer *trainer = user;
    const shard_part part = trainer_part(trainer, parameter, REMAT_SHARD_WEIGHTS);
    return (weight_place){trainer_parameter(trainer, parameter).at, part.first,
                          trainer_is_mapped(trainer, parameter) ? 0 : part.values};
}

/* The part that this rank updates, of a tensor that has the part of `stage`. */
static tensor_ref updated_of(const remat_trainer *trainer, uint32_t parameter, remat_shard stage, tensor_ref tensor)
{
    if (tensor.at && !trainer_cuts(trainer, parameter, stage))
        tensor.at =
            (char *)tensor.at + dtype_bytes(tensor.type, trainer_part(trainer, parameter, REMAT_SHARD_OPTIMIZER).first);
    return tensor;
}

tensor_ref trainer_updated(const remat_trainer *trainer, uint32_t parameter)
{
    return updated_of(trainer, parameter, REMAT_SHARD_WEIGHTS, trainer_parameter(trainer, parameter));
}

tensor_ref trainer_summed(const remat_trainer *trainer, uint32_t parameter)
{
    return updated_of(trainer, parameter, REMAT_SHARD_GRADIENTS, trainer_gradient(trainer, parameter));
}

/* ---- transfers ---- */

bool trainer_scatters(const remat_trainer *trainer)
{
    return trainer->shard && trainer->options.shard >= REMAT_SHARD_GRADIENTS;
}

/* The sums of squares of a parameter's blocks, for the norm. */
static const shard_unit square_unit = {sizeof(double), SHARD_BLOCK};

static uint64_t squares_bytes(const remat_trainer *trainer)
{
    uint64_t most = 0;
    for (uint32_t p = 0; p < trainer->network->parameter_count && trainer->settings.clip_norm > 0; p++)
        if (layer_parameter_is_trained(&trainer->network->parameters[p].about))
            most = remat_max(most, trainer->network->parameters[p].values);
    return placed(shard_unit_bytes(square_unit, most));
}

uint64_t trainer_exchange_bytes(const remat_trainer *trainer)
{
    if (trainer->pipeline)
        return remat_max(trainer->program->transfer_bytes, trainer->evaluation->transfer_bytes);
    return trainer_scatters(trainer) ? shard_staging_bytes(trainer->shard) + squares_bytes(trainer) : 0;
}

double *trainer_squares(const remat_trainer *trainer)
{
    return (double *)(void *)(trainer->exchange.at + shard_staging_bytes(trainer->shard));
}

remat_status trainer_start_shards(remat_trainer *trainer)
{
    if (!trainer->shard)
        return REMAT_OK;
    const shard_transfer_options options = {.ranks = trainer->links,
                                            .hosts = trainer->ranks,
                                            .queue = trainer->queue,
                                            .map = trainer->shard,
                                            .first_rank = trainer_stage(trainer),
                                            .stride = trainer_stage_count(trainer),
                                            .staging = trainer->exchange.at,
                                            .observe = trainer_note_transfer,
                                            .user = trainer};
    return shard_transfers_create(trainer->context, &options, &trainer->transfers);
}

void trainer_release_shards(remat_trainer *trainer)
{
    shard_transfers_destroy(trainer->transfers);
    trainer->transfers = NULL;
}

/* Micro-batches j * N .. j * N + N - 1 run at the same time, one on each rank, and come one after the other in the sum. */
remat_status trainer_scatter(remat_trainer *trainer, size_t position)
{
    const uint32_t action = trainer->plan->sequence.actions[position];
    const program_binding binding = program_binding_of(trainer->program, action);
    const network_layer *layer = &trainer->network->layers[binding.layer];
    if (binding.kind != ACTION_APPLY)
        return REMAT_OK;
    REMAT_TRY(comm_follow(trainer->links, trainer->queue));
    for (uint32_t i = 0; i < layer->node.parameter_count; i++) {
        const uint32_t p = layer->parameters[i];
        if (binding.gradients[i] != GRAPH_NONE)
            REMAT_TRY(shard_add(trainer->transfers, p, executor_gradient(trainer->executor, p).at,
                                trainer_gradient(trainer, p).at));
    }
    return REMAT_OK;
}

remat_status trainer_add_squares(remat_trainer *trainer, uint32_t parameter, double *sum)
{
    const uint64_t values = trainer->network->parameters[parameter].values;
    host_view view;
    REMAT_TRY(comm_follow(trainer->links, trainer->queue));
    REMAT_TRY(shard_join(trainer->transfers, parameter, square_unit, (char *)trainer_squares(trainer)));
    REMAT_TRY(
        host_view_open(trainer->queue, trainer_squares(trainer), shard_unit_bytes(square_unit, values), true, &view));
    const double *squares = view.host;
    for (uint64_t block = 0; block * SHARD_BLOCK < values; block++)
        *sum += squares[block];
    return host_view_close(&view, false);
}

remat_status trainer_join_weights(remat_trainer *trainer)
{
    REMAT_TRY(comm_follow(trainer->links, trainer->queue));
    for (uint32_t p = 0; p < trainer->network->parameter_count; p++) {
        const layer_parameter *about = &trainer->network->parameters[p].about;
        if (layer_parameter_is_trained(about) && trainer_has(trainer, p, REMAT_SHARD_OPTIMIZER) &&
            !trainer_cuts(trainer, p, REMAT_SHARD_WEIGHTS))
            REMAT_TRY(shard_join(trainer->transfers, p, shard_unit_of(about->dtype), trainer_parameter(trainer, p).at));
    }
    return REMAT_OK;
}

char *trainer_find_weight(void *user, uint32_t parameter)
{
    return trainer_parameter(user, parameter).at;
}

static shard_unit weight_unit(const remat_trainer *trainer, uint32_t parameter)
{
    return shard_unit_of(trainer->network->parameters[parameter].about.dtype);
}

static remat_status copy_own_part(const remat_trainer *trainer, uint32_t parameter, char *to)
{
    const shard_unit unit = weight_unit(trainer, parameter);
    const shard_part part = trainer_part(trainer, parameter, REMAT_SHARD_WEIGHTS);
    if (shard_is_joining(trainer->transfers, to))
        return REMAT_OK;
    REMAT_TRY(backend_copy_within(trainer->queue, to + shard_unit_bytes(unit, part.first),
                                  trainer_parameter(trainer, parameter).at, shard_unit_bytes(unit, part.values)));
    return comm_follow(trainer->links, trainer->queue);
}

remat_status trainer_prepare_weight(void *user, uint32_t parameter, char *to, bool *begun)
{
    const remat_trainer *trainer = user;
    REMAT_TRY(copy_own_part(trainer, parameter, to));
    return shard_join_begin(trainer->transfers, parameter, weight_unit(trainer, parameter), to, begun);
}

remat_status trainer_fetch_weight(void *user, uint32_t parameter, char *to)
{
    const remat_trainer *trainer = user;
    REMAT_TRY(copy_own_part(trainer, parameter, to));
    return shard_join(trainer->transfers, parameter, weight_unit(trainer, parameter), to);
}

remat_status trainer_advance_weights(void *user)
{
    const remat_trainer *trainer = user;
    return shard_join_advance(trainer->transfers);
}

remat_status trainer_share_broken(remat_trainer *trainer)
{
    const double mine[3] = {(double)trainer->host_block.broken}, *all;
    REMAT_TRY(trainer_gather_sums(trainer, mine, &all));
    for (uint64_t r = 0; r < trainer->ranks->size; r++) {
        const uint64_t broken = (uint64_t)all[3 * r];
        if (broken && (!trainer->host_block.broken || broken < trainer->host_block.broken))
            trainer->host_block.broken = broken;
    }
    return REMAT_OK;
}

/* ---- whole tensors ---- */

/* A tensor that may be shared: what this rank has of it. */
typedef struct shared_tensor {
    tensor_ref mine;
    shard_unit unit;
    remat_shard stage;
} shared_tensor;

static shared_tensor find_shared(const remat_trainer *trainer, uint32_t parameter, unsigned number)
{
    optimizer_state states[OPTIMIZER_STATES];
    if (number == OPTIMIZER_STATES)
        return (shared_tensor){trainer_parameter(trainer, parameter),
                               shard_unit_of(trainer->network->parameters[parameter].about.dtype), REMAT_SHARD_WEIGHTS};
    trainer_find_states(trainer, parameter, states);
    const shard_unit unit =
        number < STATE_FIRST_SCALES ? shard_unit_of(states[number].dtype) : (shard_unit){sizeof(float), MOMENT_BLOCK};
    return (shared_tensor){trainer_state(trainer, parameter, number), unit, REMAT_SHARD_OPTIMIZER};
}

uint64_t trainer_whole_bytes(const remat_trainer *trainer, uint32_t parameter, unsigned number)
{
    optimizer_state states[OPTIMIZER_STATES];
    if (number == OPTIMIZER_STATES)
        return trainer->network->parameters[parameter].bytes;
    trainer_find_states(trainer, parameter, states);
    return states[number].bytes;
}

bool trainer_must_collect(const remat_trainer *trainer, uint32_t parameter, unsigned number)
{
    return trainer_shares(trainer, parameter, number == OPTIMIZER_STATES ? REMAT_SHARD_WEIGHTS : REMAT_SHARD_OPTIMIZER);
}

remat_status trainer_copy_whole(const remat_trainer *trainer, uint32_t parameter, unsigned number, void *to)
{
    const shared_tensor tensor = find_shared(trainer, parameter, number);
    const shard_part part = trainer_part(trainer, parameter, tensor.stage);
    if (trainer->pipeline && trainer_cuts(trainer, parameter, tensor.stage))
        return trainer_copy_rows(trainer, parameter, tensor.unit, tensor.mine.at, to);
    if (trainer->pipeline)
        return trainer_copy_stage(trainer, parameter, number, to);
    if (!trainer_must_collect(trainer, parameter, number)) {
        REMAT_TRY(
            backend_copy_out(trainer->queue, to, tensor.mine.at, trainer_whole_bytes(trainer, parameter, number)));
        return backend_wait(trainer->queue);
    }
    if (part.values)
        REMAT_TRY(backend_copy_out(trainer->queue, (char *)to + shard_unit_bytes(tensor.unit, part.first),
                                   tensor.mine.at, shard_unit_bytes(tensor.unit, part.values)));
    REMAT_TRY(backend_wait(trainer->queue));
    return shard_join_host(trainer->transfers, parameter, tensor.unit, to);
}

/* Rank 0 asks for tensors, in whatever order, until it has all that it wants. */
enum { NOTHING_MORE = UINT32_MAX };
typedef struct tensor_request {
    uint32_t parameter, number;
} tensor_request;

static remat_status tell(const remat_trainer *trainer, tensor_request *request)
{
    return comm_run(trainer->ranks,
                    &(comm_transfer){.kind = COMM_BROADCAST, .peer = 0, .data = request, .bytes = sizeof *request});
}

/* To rank 0. */
static remat_status collect_tensor(const remat_trainer *trainer, uint32_t parameter, unsigned number,
                                   const shared_tensor *tensor, void *to)
{
    const uint64_t stage = trainer->pipeline ? trainer->pipeline->owners[parameter] : 0;
    const uint64_t bytes = shard_unit_bytes(tensor->unit, trainer_part(trainer, parameter, tensor->stage).values);
    host_view view;
    if (!trainer_cuts(trainer, parameter, tensor->stage))
        return trainer_collect_stage(trainer, parameter, number, to);
    REMAT_TRY(host_view_open(trainer->queue, tensor->mine.at, bytes, true, &view));
    remat_status status = shard_collect(trainer->transfers, stage, parameter, tensor->unit, view.host, to);
    const remat_status closed = host_view_close(&view, false);
    return status == REMAT_OK ? closed : status;
}

remat_status trainer_collect(const remat_trainer *trainer, uint32_t parameter, unsigned number, void *to)
{
    const shared_tensor tensor = find_shared(trainer, parameter, number);
    tensor_request request = {parameter, number};
    REMAT_TRY(backend_wait(trainer->queue));
    REMAT_TRY(tell(trainer, &request));
    return collect_tensor(trainer, parameter, number, &tensor, to);
}

remat_status trainer_serve_end(const remat_trainer *trainer)
{
    return trainer->shard || trainer->pipeline ? tell(trainer, &(tensor_request){NOTHING_MORE, 0}) : REMAT_OK;
}

remat_status trainer_serve(const remat_trainer *trainer)
{
    tensor_request request = {0};
    if (!trainer->shard && !trainer->pipeline)
        return REMAT_OK;
    REMAT_TRY(backend_wait(trainer->queue));
    for (;;) {
        REMAT_TRY(tell(trainer, &request));
        if (request.parameter == NOTHING_MORE)
            return REMAT_OK;
        const shared_tensor tensor = find_shared(trainer, request.parameter, request.number);
        REMAT_TRY(collect_tensor(trainer, request.parameter, request.number, &tensor, NULL));
    }
}
