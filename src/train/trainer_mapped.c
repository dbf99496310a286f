#include "train/trainer_mapped.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"
#include "base/sort.h"
#include "base/weight_blocks.h"
#include "model/model_object.h"
#include "train/trainer_object.h"
#include "train/weights_match.h"

enum { COMPARED_AT_ONCE = 1 << 16 }; /* values; a multiple of WEIGHT_BLOCK */

static uint64_t placed(uint64_t bytes)
{
    return (bytes + 63) & ~(uint64_t)63;
}

static uint64_t weight_bytes(const remat_trainer *trainer, uint32_t parameter)
{
    return placed(trainer->network->parameters[parameter].bytes);
}

/* ---- which ---- */

/* Ranks that share weights have parts of them, stages have some; a device of its own needs copies. */
bool trainer_maps(const remat_trainer *trainer)
{
    const bool shares = trainer->options.shard == REMAT_SHARD_WEIGHTS && trainer_rank_count(trainer) > 1;
    return trainer->model->maps_frozen && trainer->model->folder && trainer->device->host_visible && !shares &&
           !trainer->pipeline;
}

/* What could be mapped if the file has it so. GPT-2's matrices lie the other way round. */
static bool is_candidate(const layer_parameter *about)
{
    return about->frozen && about->compressible && !about->transposed && !dtype_traits_of(about->dtype)->blocks;
}

static bool can_map(const weights_match *match, uint32_t p)
{
    return weights_match_is_plain(match, p) &&
           tensor_map_is_possible(match->file, match->sources[p].parts[0], match->network->parameters[p].about.dtype);
}

/* Opens the weights of the folder. The caller releases the match, and closes the file, also after a failure. */
static remat_status open_folder(const remat_trainer *trainer, weights_match *match, safetensors **file)
{
    *file = NULL;
    *match = (weights_match){.context = trainer->context,
                             .path = trainer->model->folder,
                             .network = trainer->network,
                             .names = trainer->names};
    REMAT_TRY(safetensors_open(trainer->context, trainer->model->folder, file));
    match->file = *file;
    return weights_match_find(match);
}

static bool has_candidates(const remat_network *network)
{
    for (size_t p = 0; p < network->parameter_count; p++)
        if (is_candidate(&network->parameters[p].about))
            return true;
    return false;
}

/* A folder that cannot be read is an error when the weights are needed. */
static remat_status find(const remat_trainer *trainer, mapped_weight *weights)
{
    weights_match match;
    safetensors *file;
    const remat_status status = open_folder(trainer, &match, &file);
    for (uint32_t p = 0; p < trainer->network->parameter_count; p++)
        weights[p].is_mapped =
            is_candidate(&trainer->network->parameters[p].about) && (status != REMAT_OK || can_map(&match, p));
    weights_match_release(&match);
    safetensors_close(file);
    return status == REMAT_NO_MEMORY ? status : REMAT_OK;
}

remat_status trainer_find_mapped(remat_trainer *trainer)
{
    const size_t count = trainer->network->parameter_count;
    if (!trainer_maps(trainer) || !has_candidates(trainer->network))
        return REMAT_OK;
    mapped_weights *made = remat_alloc_zeroed(trainer->context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    trainer->mapped = made;
    made->weights = remat_alloc_zeroed(trainer->context, count, sizeof *made->weights);
    return made->weights ? find(trainer, made->weights) : REMAT_NO_MEMORY;
}

void trainer_release_mapped(remat_trainer *trainer)
{
    mapped_weights *mapped = trainer->mapped;
    if (!mapped)
        return;
    for (size_t p = 0; mapped->weights && p < trainer->network->parameter_count; p++)
        tensor_map_close(&mapped->weights[p].map);
    safetensors_close(mapped->file);
    remat_release(trainer->context, mapped->weights, trainer->network->parameter_count, sizeof *mapped->weights);
    remat_release(trainer->context, mapped, 1, sizeof *mapped);
    trainer->mapped = NULL;
}

bool trainer_is_mapped(const remat_trainer *trainer, uint32_t parameter)
{
    return trainer->mapped && trainer->mapped->weights[parameter].is_mapped;
}

remat_status trainer_place_copied(remat_trainer *trainer)
{
    const remat_network *network = trainer->network;
    if (!trainer->mapped)
        return REMAT_OK;
    uint64_t *offsets = remat_alloc(trainer->context, network->parameter_count, sizeof *offsets);
    if (!offsets)
        return REMAT_NO_MEMORY;
    trainer->weight_offsets = offsets;
    trainer->weight_bytes = 0;
    for (int frozen = 0; frozen < 2; frozen++)
        for (uint32_t p = 0; p < network->parameter_count; p++)
            if (network->parameters[p].about.frozen == frozen) {
                offsets[p] = trainer->weight_bytes;
                trainer->weight_bytes += trainer_is_mapped(trainer, p) ? 0 : weight_bytes(trainer, p);
            }
    return REMAT_OK;
}

/* ---- the plan ---- */

/* Bytes that an action reads of mapped weights, or of those that are not kept. */
static uint64_t bytes_read(const remat_trainer *trainer, uint32_t action, bool kept_too)
{
    const network_layer *layer = &trainer->network->layers[trainer->program->actions[action].layer];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < layer->node.parameter_count; i++) {
        const uint32_t p = layer->parameters[i];
        if (trainer_is_mapped(trainer, p) && (kept_too || !trainer->mapped->weights[p].is_kept) &&
            program_reads(trainer->program, action, i))
            bytes += weight_bytes(trainer, p);
    }
    return bytes;
}

/* The most of it. Evaluations read what training steps read. */
static uint64_t most_read(const remat_trainer *trainer, bool kept_too)
{
    uint64_t most = 0;
    for (uint32_t a = 0; trainer->mapped && a < trainer->program->graph->action_count; a++)
        most = remat_max(most, bytes_read(trainer, a, kept_too));
    return most;
}

static uint64_t sum(const remat_trainer *trainer, bool only_kept)
{
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < trainer->network->parameter_count; p++)
        if (trainer_is_mapped(trainer, p) && (!only_kept || trainer->mapped->weights[p].is_kept))
            bytes += weight_bytes(trainer, p);
    return bytes;
}

uint64_t trainer_file_bytes(const remat_trainer *trainer)
{
    return sum(trainer, false);
}

uint64_t trainer_mapped_bytes(const remat_trainer *trainer)
{
    return trainer_drops_weights(trainer) ? sum(trainer, true) + most_read(trainer, false) : sum(trainer, false);
}

uint64_t trainer_least_mapped_bytes(const remat_trainer *trainer)
{
    return most_read(trainer, true);
}

bool trainer_drops_weights(const remat_trainer *trainer)
{
    return trainer->mapped && trainer->mapped->drops;
}

bool trainer_drop_mapped(remat_trainer *trainer)
{
    if (!trainer->mapped || trainer->mapped->drops)
        return false;
    return trainer->mapped->drops = true;
}

static bool is_larger(const void *user, uint32_t a, uint32_t b)
{
    const uint64_t first = weight_bytes(user, a), second = weight_bytes(user, b);
    return first != second ? first > second : a < b;
}

remat_status trainer_keep_mapped(remat_trainer *trainer)
{
    if (!trainer_drops_weights(trainer))
        return REMAT_OK;
    const size_t count = trainer->network->parameter_count;
    const uint64_t room = trainer->options.budget_bytes - trainer_arena_bytes(trainer);
    uint32_t *order;
    REMAT_TRY(remat_order(trainer->context, count, is_larger, trainer, &order));
    for (size_t i = 0; i < count; i++) {
        bool *kept = &trainer->mapped->weights[order[i]].is_kept;
        *kept = trainer_is_mapped(trainer, order[i]);
        *kept = *kept && trainer_fixed_bytes(trainer) <= room;
    }
    remat_release(trainer->context, order, count, sizeof *order);
    return REMAT_OK;
}

/* ---- the run ---- */

static remat_status map_weight(const weights_match *match, uint32_t p, mapped_weight *weight)
{
    if (!weight->is_mapped)
        return REMAT_OK;
    const weight_source *source = &match->sources[p];
    if (can_map(match, p))
        return tensor_map_open(match->file, source->parts[0], &weight->map);
    const network_parameter *parameter = &match->network->parameters[p];
    const char *path = source->parts[0] ? safetensors_path(match->file, source->parts[0]) : match->path;
    const remat_place place = {path, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, parameter->name};
    return remat_fail(match->context, REMAT_BAD_INPUT, &place,
                      "it is %s in the file and was planned as %s, as config.json says; --frozen %s holds a copy",
                      source->parts[0] ? source->parts[0]->dtype : "missing",
                      dtype_traits_of(parameter->about.dtype)->safetensors, remat_dtype_name(parameter->about.dtype));
}

remat_status trainer_map_weights(remat_trainer *trainer)
{
    mapped_weights *mapped = trainer->mapped;
    weights_match match;
    if (!mapped)
        return REMAT_OK;
    remat_status status = open_folder(trainer, &match, &mapped->file);
    for (uint32_t p = 0; p < trainer->network->parameter_count && status == REMAT_OK; p++)
        status = map_weight(&match, p, &mapped->weights[p]);
    weights_match_release(&match);
    return status;
}

remat_status trainer_check_mapped(const remat_trainer *trainer)
{
    return trainer->mapped ? safetensors_check_unchanged(trainer->mapped->file) : REMAT_OK;
}

void trainer_leave_weight(const remat_trainer *trainer, uint32_t parameter)
{
    if (trainer_drops_weights(trainer) && !trainer->mapped->weights[parameter].is_kept)
        tensor_map_drop(&trainer->mapped->weights[parameter].map);
}

void trainer_leave_weights(void *user, const remat_program *program, uint32_t action)
{
    const remat_trainer *trainer = user;
    const network_layer *layer = &program->network->layers[program->actions[action].layer];
    for (uint32_t i = 0; i < layer->node.parameter_count; i++)
        if (program_reads(program, action, i))
            trainer_leave_weight(trainer, layer->parameters[i]);
}

bool trainer_want_weights(void *user, const remat_program *program, uint32_t action)
{
    const remat_trainer *trainer = user;
    const network_layer *layer = &program->network->layers[program->actions[action].layer];
    bool found = false;
    for (uint32_t i = 0; i < layer->node.parameter_count; i++) {
        const mapped_weight *weight = &trainer->mapped->weights[layer->parameters[i]];
        if (!weight->is_mapped || weight->is_kept || !program_reads(program, action, i))
            continue;
        tensor_map_want(&weight->map);
        found = true;
    }
    return found;
}

/* ---- other files ---- */

static remat_status compare_values(const remat_trainer *trainer, const safetensors *file,
                                   const safetensors_tensor *tensor, uint32_t parameter, float *values, bool *same)
{
    const network_parameter *about = &trainer->network->parameters[parameter];
    const char *mapped = trainer->mapped->weights[parameter].map.at;
    float *other = values + COMPARED_AT_ONCE;
    *same = tensor->values == about->values;
    for (uint64_t first = 0; first < about->values && *same; first += COMPARED_AT_ONCE) {
        const size_t count = (size_t)remat_min(about->values - first, COMPARED_AT_ONCE);
        REMAT_TRY(safetensors_read_part(file, tensor, first, values, count));
        weight_blocks_unpack(about->about.dtype, mapped + dtype_bytes(about->about.dtype, first), other, count);
        *same = memcmp(values, other, count * sizeof *values) == 0;
    }
    return REMAT_OK;
}

remat_status trainer_compare_mapped(const remat_trainer *trainer, const safetensors *file,
                                    const safetensors_tensor *tensor, uint32_t parameter)
{
    if (!trainer_is_mapped(trainer, parameter) ||
        tensor_map_has(&trainer->mapped->weights[parameter].map, file, tensor))
        return REMAT_OK;
    float *values = remat_alloc(trainer->context, 2 * COMPARED_AT_ONCE, sizeof *values);
    if (!values)
        return REMAT_NO_MEMORY;
    bool same = false;
    remat_status status = compare_values(trainer, file, tensor, parameter, values, &same);
    remat_release(trainer->context, values, 2 * COMPARED_AT_ONCE, sizeof *values);
    trainer_leave_weight(trainer, parameter);
    if (status != REMAT_OK || same)
        return status;
    const network_parameter *about = &trainer->network->parameters[parameter];
    const remat_place place = {safetensors_path(file, tensor), REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE,
                               about->name};
    return remat_fail(
        trainer->context, REMAT_INVALID, &place,
        "it is not that of %.200s, from where frozen weights are mapped; --frozen %s holds a copy of this one",
        trainer->model->folder, remat_dtype_name(about->about.dtype));
}
