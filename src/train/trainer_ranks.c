/* A trainer as one of several ranks: what it shares with them, and that all of them train the same. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <remat/remat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "train/gradient_chain.h"
#include "train/host_view.h"
#include "train/trainer_object.h"
#include "train/training_settings.h"

uint64_t trainer_rank(const remat_trainer *trainer)
{
    return trainer->ranks ? trainer->ranks->rank : 0;
}

uint64_t trainer_rank_count(const remat_trainer *trainer)
{
    const uint64_t planned = trainer->options.plan_ranks, stages = trainer_stage_count(trainer);
    return trainer->ranks ? trainer->ranks->size : planned > 1 ? planned : stages;
}

/* Ranks on one machine share its cores, unless the launcher has given each its own. */
unsigned trainer_default_threads(const remat_communicator *ranks)
{
    const unsigned all = (unsigned)parallel_default_threads();
    if (!ranks || ranks->local_size == 1 || (long)all != sysconf(_SC_NPROCESSORS_ONLN))
        return all;
    return all > ranks->local_size ? all / (unsigned)ranks->local_size : 1;
}

remat_status trainer_check_ranks(const remat_trainer *trainer)
{
    const uint64_t size = trainer_rank_count(trainer), rows = trainer_row_count(trainer);
    const uint64_t micro_batches = trainer->settings.accumulate;
    REMAT_TRY(trainer_check_stages(trainer));
    if (size == 1)
        return REMAT_OK;
    if (!trainer->ranks && !trainer->options.plan_only)
        return remat_fail(trainer->context, REMAT_INVALID, NULL,
                          "plan_ranks is for plan_only; ranks that train have a communicator");
    if (micro_batches % rows != 0)
        return remat_fail(trainer->context, REMAT_INVALID, NULL,
                          "%" PRIu64 " %s cannot share the micro-batches of a step: accumulate in [Model] is %" PRIu64
                          ", and must be a multiple of %" PRIu64 " (such as --set model.accumulate=%" PRIu64 ")",
                          rows, rows < size ? "pipelines" : "ranks", micro_batches, rows, rows);
    return REMAT_OK;
}

/* ---- starting ---- */

/* Micro-batches of this rank. */
static uint64_t own_count(const remat_trainer *trainer)
{
    return trainer->settings.accumulate / trainer_row_count(trainer);
}

static size_t number_count(const remat_trainer *trainer)
{
    const uint64_t size = trainer_rank_count(trainer), each = own_count(trainer);
    return (size * each > 3 * size ? size * each : 3 * size) + each;
}

/* Which ranks send tensors to which others: gradients to the next one of the same stage, parts of shared ones to all of the same stage,
 * and in a pipeline those of a row to each other. */
static bool talk(const void *user, uint64_t from, uint64_t to)
{
    const remat_trainer *trainer = user;
    const uint64_t stages = trainer_stage_count(trainer), rows = trainer_row_count(trainer);
    if (from / stages == to / stages)
        return true;
    if (from % stages != to % stages)
        return false;
    const bool by_pairs = trainer->pipeline ? trainer->shard != NULL : trainer_scatters(trainer);
    return by_pairs || (from / stages + 1) % rows == to / stages;
}

remat_status trainer_start_ranks(remat_trainer *trainer)
{
    if (trainer_rank_count(trainer) == 1)
        return REMAT_OK;
    trainer->links = trainer->ranks;
    if (!trainer->device->host_visible)
        REMAT_TRY(comm_device_open(trainer->ranks, trainer->queue, &(comm_pairs){talk, trainer}, &trainer->links));
    const chain_options options = {.ranks = trainer->links,
                                   .program = trainer->program,
                                   .sequence = &trainer->plan->sequence,
                                   .queue = trainer->queue,
                                   .gradients = trainer->gradients.at,
                                   .weights = trainer->weights.at,
                                   .weight_offsets = trainer->weight_offsets,
                                   .statistics_only = trainer_scatters(trainer),
                                   .fast = trainer->options.reduce_fast,
                                   .observe = trainer_note_transfer,
                                   .user = trainer};
    trainer->rank_numbers = remat_alloc(trainer->context, number_count(trainer), sizeof *trainer->rank_numbers);
    if (!trainer->rank_numbers)
        return REMAT_NO_MEMORY;
    if (trainer->pipeline)
        return trainer_start_stages(trainer);
    REMAT_TRY(trainer_start_shards(trainer));
    return gradient_chain_create(trainer->context, &options, &trainer->chain);
}

void trainer_release_ranks(remat_trainer *trainer)
{
    gradient_chain_destroy(trainer->chain);
    trainer_release_shards(trainer);
    if (trainer->rank_numbers)
        remat_release(trainer->context, trainer->rank_numbers, number_count(trainer), sizeof *trainer->rank_numbers);
    if (trainer->links != trainer->ranks)
        remat_communicator_close(trainer->links);
    trainer->links = NULL;
}

/* ---- losses ---- */

/* Micro-batch j * N + r is number j of rank r or, with a pipeline, of row r, whose last stage has the loss. */
remat_status trainer_sum_losses(remat_trainer *trainer, const double *mine, double *sum)
{
    const uint64_t size = trainer_rank_count(trainer), each = own_count(trainer);
    const uint64_t stages = trainer_stage_count(trainer);
    const double *all = mine;
    if (size > 1) {
        REMAT_TRY(comm_run(trainer->ranks, &(comm_transfer){.kind = COMM_GATHER,
                                                            .data = trainer->rank_numbers,
                                                            .mine = mine,
                                                            .bytes = each * sizeof *mine}));
        all = trainer->rank_numbers;
    }
    *sum = 0;
    for (uint64_t j = 0; j < each; j++)
        for (uint64_t r = stages - 1; r < size; r += stages)
            *sum += all[r * each + j];
    return REMAT_OK;
}

double *trainer_own_losses(const remat_trainer *trainer)
{
    return trainer->rank_numbers + number_count(trainer) - own_count(trainer);
}

remat_status trainer_gather_sums(remat_trainer *trainer, const double mine[3], const double **all)
{
    *all = mine;
    if (trainer_rank_count(trainer) == 1)
        return REMAT_OK;
    *all = trainer->rank_numbers;
    return comm_run(
        trainer->ranks,
        &(comm_transfer){.kind = COMM_GATHER, .data = trainer->rank_numbers, .mine = mine, .bytes = 3 * sizeof *mine});
}

remat_status trainer_any_rank(const remat_trainer *trainer, bool mine, bool *any)
{
    *any = mine;
    return trainer->ranks ? comm_any(trainer->ranks, mine, any) : REMAT_OK;
}

/* The first rank's status and message, on all. */
remat_status trainer_share_status(const remat_trainer *trainer, remat_status status)
{
    char text[2048];
    if (trainer_rank_count(trainer) == 1)
        return status;
    const char *why = status == REMAT_OK ? NULL : remat_context_message(trainer->context);
    remat_status shared = remat_communicator_agree(trainer->ranks, status, why, NULL, text, sizeof text);
    if (shared != REMAT_OK && status == REMAT_OK)
        remat_fail(trainer->context, shared, NULL, "%s", text);
    return shared;
}

/* ---- whether all ranks train the same ---- */

/* What must be the same everywhere, in the order in which differences are looked for. */
enum { SAME_VERSION, SAME_MODEL, SAME_OPTIONS, SAME_SEED, SAME_DATA, SAME_STEP, SAME_WEIGHTS, SAME_COUNT };
static const char *const same_names[SAME_COUNT] = {
    [SAME_VERSION] = "another version of Remat or other kernels",
    [SAME_MODEL] = "another model",
    [SAME_OPTIONS] =
        "other options", /* batch, accumulate, steps, optimizer, reduce_fast, shard, pipeline, or what changes the plan */
    [SAME_SEED] = "another seed",
    [SAME_DATA] = "other data",
    [SAME_STEP] = "taken another number of steps",
    [SAME_WEIGHTS] = "other weights",
};

static void add_bytes(XXH3_state_t *hash, const void *data, size_t bytes)
{
    XXH3_64bits_update(hash, data, bytes);
}

static void add_text(XXH3_state_t *hash, const char *text)
{
    add_bytes(hash, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void add_number(XXH3_state_t *hash, uint64_t number)
{
    add_bytes(hash, &number, sizeof number);
}

static void hash_version(const remat_trainer *trainer, XXH3_state_t *hash)
{
    add_text(hash, remat_version());
    add_text(hash, trainer->device->kernels);
}

static void hash_layer(const network_layer *layer, XXH3_state_t *hash)
{
    char value[PROPERTY_VALUE_TEXT];
    const layer_node *node = &layer->node;
    add_text(hash, node->name);
    add_text(hash, node->type->name);
    for (const property *about = node->type->properties; about && about->key && node->options; about++)
        add_text(hash, property_print(about, node->options, value));
    for (uint32_t i = 0; i < node->input_count; i++)
        add_number(hash, layer->inputs[i]);
    add_number(hash, node->frozen);
    add_number(hash, (uint64_t)node->dtype);
}

static void hash_model(const remat_trainer *trainer, XXH3_state_t *hash)
{
    const remat_network *network = trainer->network;
    for (size_t n = 0; n < network->layer_count; n++)
        hash_layer(&network->layers[n], hash);
    for (size_t p = 0; p < network->parameter_count; p++) {
        add_text(hash, network->parameters[p].name);
        add_number(hash, network->parameters[p].values);
        add_number(hash, network->parameters[p].offset);
    }
}

static void hash_options(const remat_trainer *trainer, XXH3_state_t *hash)
{
    char settings[TRAINING_SETTINGS_TEXT];
    training_settings_write(trainer, settings);
    add_text(hash, settings);
    add_number(hash, trainer->network->batch);
    add_number(hash, trainer->settings.accumulate);
    add_number(hash, trainer->settings.early_stopping);
    add_number(hash, trainer->total_steps);
    add_number(hash, trainer->steps_per_epoch);
    add_number(hash, trainer->options.reduce_fast);
    add_number(hash, (uint64_t)trainer->options.shard);
    add_number(hash, trainer_stage_count(trainer));
    const graph_sequence *sequence = &trainer->plan->sequence; /* sums begin in its order */
    if (trainer->pipeline)                                     /* each stage has its own */
        add_bytes(hash, trainer->pipeline->starts, (trainer->pipeline->count + 1) * sizeof(uint32_t));
    else
        add_bytes(hash, sequence->actions, sequence->count * sizeof *sequence->actions);
}

/* Numbers of samples, and the first batch of training and of validation. It is written where batches go. */
static remat_status hash_data(remat_trainer *trainer, XXH3_state_t *hash)
{
    const remat_network *network = trainer->network;
    staging_aim(&trainer->staged, trainer->executor);
    for (int part = 0; part < 2; part++) {
        const data_part of = part == 0 ? DATA_TRAINING : DATA_VALIDATION;
        const uint64_t samples = data_source_samples(trainer->data, of);
        add_number(hash, samples);
        if (samples < network->batch)
            continue;
        REMAT_TRY(
            data_source_fill(trainer->data, of, 0, 0, network->batch, trainer->staged.inputs, trainer->staged.labels));
        size_t number = 0;
        for (uint32_t n = 0; n < network->layer_count; n++) {
            const layer_node *node = &network->layers[n].node;
            if (node->input_count == 0)
                add_bytes(hash, trainer->staged.inputs[number++],
                          dtype_bytes(node->dtype, layer_values(node->output) * node->batch));
        }
        if (trainer->staged.labels)
            add_bytes(hash, trainer->staged.labels,
                      dtype_bytes(network->labels_dtype, layer_values(network->labels) * network->batch));
    }
    return REMAT_OK;
}

static remat_status hash_tensor(const remat_trainer *trainer, tensor_ref tensor, uint64_t bytes, XXH3_state_t *hash)
{
    host_view view;
    if (!tensor.at)
        return REMAT_OK;
    REMAT_TRY(host_view_open(trainer->queue, tensor.at, bytes, true, &view));
    add_bytes(hash, view.host, bytes);
    return host_view_close(&view, false);
}

/* And the optimizer's state. Of what ranks share, each has another part: there is nothing to compare. */
static remat_status hash_weights(const remat_trainer *trainer, XXH3_state_t *hash)
{
    for (uint32_t p = 0; p < trainer->network->parameter_count; p++) {
        optimizer_state states[OPTIMIZER_STATES];
        trainer_find_states(trainer, p, states);
        if (!trainer_must_collect(trainer, p, OPTIMIZER_STATES))
            REMAT_TRY(hash_tensor(trainer, trainer_parameter(trainer, p), trainer->network->parameters[p].bytes, hash));
        trainer_leave_weight(trainer, p);
        for (unsigned i = 0; i < OPTIMIZER_STATES && !trainer_must_collect(trainer, p, i); i++)
            REMAT_TRY(hash_tensor(trainer, trainer_state(trainer, p, i), states[i].bytes, hash));
    }
    return REMAT_OK;
}

static uint64_t take_hash(XXH3_state_t *hash)
{
    const uint64_t value = XXH3_64bits_digest(hash);
    XXH3_64bits_reset(hash);
    return value;
}

static remat_status hash_all(remat_trainer *trainer, XXH3_state_t *hash, uint64_t same[SAME_COUNT])
{
    XXH3_64bits_reset(hash);
    hash_version(trainer, hash);
    same[SAME_VERSION] = take_hash(hash);
    hash_model(trainer, hash);
    same[SAME_MODEL] = take_hash(hash);
    hash_options(trainer, hash);
    same[SAME_OPTIONS] = take_hash(hash);
    same[SAME_SEED] = trainer->seed;
    REMAT_TRY(hash_data(trainer, hash));
    same[SAME_DATA] = take_hash(hash);
    same[SAME_STEP] = trainer->step;
    REMAT_TRY(hash_weights(trainer, hash));
    same[SAME_WEIGHTS] = take_hash(hash);
    return REMAT_OK;
}

static remat_status compare(const remat_trainer *trainer, const uint64_t (*all)[SAME_COUNT])
{
    for (uint64_t r = 1; r < trainer->ranks->size; r++)
        for (int i = 0; i < SAME_COUNT; i++)
            if (all[r][i] != all[0][i])
                return remat_fail(trainer->context, REMAT_INVALID, NULL, "rank %" PRIu64 " has %s than rank 0", r,
                                  same_names[i]);
    return REMAT_OK;
}

remat_status trainer_compare_ranks(remat_trainer *trainer)
{
    if (trainer_rank_count(trainer) == 1 || trainer->ranks_agree)
        return REMAT_OK;
    uint64_t mine[SAME_COUNT], (*all)[SAME_COUNT];
    XXH3_state_t hash;
    REMAT_TRY(hash_all(trainer, &hash, mine));
    all = remat_alloc(trainer->context, trainer->ranks->size, sizeof *all);
    if (!all)
        return REMAT_NO_MEMORY;
    remat_status status = comm_run(
        trainer->ranks, &(comm_transfer){.kind = COMM_GATHER, .data = all, .mine = mine, .bytes = sizeof mine});
    if (status == REMAT_OK)
        status = compare(trainer, (const uint64_t(*)[SAME_COUNT])all);
    trainer->ranks_agree = status == REMAT_OK;
    remat_release(trainer->context, all, trainer->ranks->size, sizeof *all);
    return status;
}
