#include "train/held_weights.h"

#include "base/alloc.h"
#include "base/error.h"
#include "model/model_object.h"
#include "train/trainer_files.h"
#include "train/weights_match.h"

/* Nothing of a model that only runs is written. */
static bool can_map(const weights_match *match, uint32_t p)
{
    const layer_parameter *about = &match->network->parameters[p].about;
    return about->compressible && !about->transposed && !dtype_traits_of(about->dtype)->blocks &&
           weights_match_is_plain(match, p) &&
           tensor_map_is_possible(match->file, match->sources[p].parts[0], about->dtype);
}

/* Maps what can be mapped, and places the others one after the other. */
static remat_status map_weights(const weights_match *match, held_weights *held, uint64_t *copied)
{
    *copied = 0;
    for (uint32_t p = 0; p < held->network->parameter_count; p++) {
        const uint64_t bytes = (held->network->parameters[p].bytes + 63) & ~(uint64_t)63;
        held->offsets[p] = *copied;
        if (can_map(match, p)) {
            const safetensors_tensor *tensor = match->sources[p].parts[0];
            if (tensor->checksum) /* as copies are compared; it takes no memory besides the system's cache */
                REMAT_TRY(safetensors_check(match->file, tensor));
            REMAT_TRY(tensor_map_open(match->file, tensor, &held->maps[p]));
            held->mapped_bytes += bytes;
        } else {
            *copied += bytes;
        }
    }
    return REMAT_OK;
}

static remat_status find_and_map(held_weights *held, const weight_names *names, const char *path, uint64_t *copied)
{
    remat_context *context = held->device->context;
    const size_t count = held->network->parameter_count;
    weights_match match = {
        .context = context, .path = path, .file = held->file, .network = held->network, .names = names};
    held->offsets = remat_alloc_zeroed(context, count, sizeof *held->offsets);
    held->maps = remat_alloc_zeroed(context, count, sizeof *held->maps);
    if (!held->offsets || !held->maps)
        return REMAT_NO_MEMORY;
    remat_status status = weights_match_find(&match);
    if (status == REMAT_OK)
        status = map_weights(&match, held, copied);
    weights_match_release(&match);
    return status;
}

static weight_place place_of(const void *user, uint32_t parameter)
{
    const held_weights *held = user;
    const bool is_mapped = held->maps && held->maps[parameter].at;
    return (weight_place){is_mapped ? NULL : held_weights_find((void *)(uintptr_t)held, parameter), 0,
                          is_mapped ? 0 : held->network->parameters[parameter].values};
}

remat_status held_weights_load(backend_queue *queue, const remat_model *model, const remat_network *network,
                               const weight_names *names, const char *path, bool zeroed, held_weights *made)
{
    uint64_t copied = network->parameter_bytes;
    *made = (held_weights){.device = queue->owner, .network = network};
    REMAT_TRY(weights_open(queue->owner->context, path, &made->file));
    if (model->maps_frozen && queue->owner->host_visible)
        REMAT_TRY(find_and_map(made, names, path, &copied));
    REMAT_TRY(backend_allocate(queue->owner, MEMORY_DEVICE, copied, zeroed, &made->area));
    return weights_load(queue, path, made->file, network, names, place_of, made);
}

void held_weights_release(held_weights *held)
{
    if (!held->device)
        return;
    remat_context *context = held->device->context;
    const size_t count = held->network->parameter_count;
    for (size_t p = 0; held->maps && p < count; p++)
        tensor_map_close(&held->maps[p]);
    remat_release(context, held->maps, count, sizeof *held->maps);
    remat_release(context, held->offsets, count, sizeof *held->offsets);
    backend_release(held->device, &held->area);
    safetensors_close(held->file);
    *held = (held_weights){0};
}

char *held_weights_find(void *user, uint32_t parameter)
{
    const held_weights *held = user;
    if (held->maps && held->maps[parameter].at)
        return (char *)(uintptr_t)held->maps[parameter].at;
    return held->area.at + (held->offsets ? held->offsets[parameter] : held->network->parameters[parameter].offset);
}

remat_status held_weights_check(const held_weights *held)
{
    return held->mapped_bytes ? safetensors_check_unchanged(held->file) : REMAT_OK;
}
