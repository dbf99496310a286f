#include "train/trainer_object.h"

#include "base/alloc.h"
#include "base/error.h"

static uint64_t block_bytes(void)
{
    return (sizeof(step_block) + 63) & ~(uint64_t)63;
}

/* Samples are written beside the tensors where it is known later which ones they go to. A device that works on its own gets a second
 * buffer, in which the next batch is prepared; ranks and stages take other batches, and functions of the user are called for those that are
 * wanted only. */
static staging_options staging_of(const remat_trainer *trainer)
{
    const bool is_alone = !trainer->pipeline && trainer_rank_count(trainer) == 1;
    const bool reads_ahead = !trainer->device->host_visible && is_alone && !trainer->options.sample;
    return (staging_options){.buffers = reads_ahead ? 2 : 1,
                             .apart = trainer->pipeline || trainer_has_classes(trainer)};
}

uint64_t trainer_scratch_bytes(const remat_trainer *trainer)
{
    return trainer->device->scratch_bytes + staging_bytes(trainer->network, trainer->device, staging_of(trainer)) +
           block_bytes() + trainer_exchange_bytes(trainer);
}

uint64_t trainer_fixed_bytes(const remat_trainer *trainer)
{
    uint64_t bytes = trainer->weight_bytes + trainer->state_bytes;
    if (trainer_adds(trainer))
        bytes += trainer->gradient_bytes;
    return bytes + trainer_mapped_bytes(trainer) + trainer_scratch_bytes(trainer);
}

uint64_t trainer_least_fixed_bytes(const remat_trainer *trainer)
{
    return trainer_fixed_bytes(trainer) - trainer_mapped_bytes(trainer) + trainer_least_mapped_bytes(trainer);
}

remat_status trainer_allocate(remat_trainer *trainer)
{
    backend *device = trainer->device;
    REMAT_TRY(backend_queue_create(device, &trainer->queue));
    REMAT_TRY(backend_allocate(device, MEMORY_DEVICE, trainer->weight_bytes, false, &trainer->weights));
    REMAT_TRY(backend_allocate(device, MEMORY_DEVICE, trainer->state_bytes, true, &trainer->state));
    if (trainer_adds(trainer))
        REMAT_TRY(backend_allocate(device, MEMORY_DEVICE, trainer->gradient_bytes, true, &trainer->gradients));
    REMAT_TRY(backend_allocate(device, MEMORY_DEVICE, block_bytes(), true, &trainer->block));
    REMAT_TRY(backend_allocate(device, MEMORY_DEVICE, trainer_exchange_bytes(trainer), false, &trainer->exchange));
    REMAT_TRY(staging_create(trainer->network, device, staging_of(trainer), &trainer->staged));
    return backend_allocate(device, MEMORY_DEVICE, trainer_arena_bytes(trainer), false, &trainer->arena);
}

uint64_t trainer_allocated_bytes(const remat_trainer *trainer)
{
    return trainer->weights.bytes + trainer->state.bytes + trainer->gradients.bytes + trainer->block.bytes +
           trainer->exchange.bytes + trainer->staged.memory.bytes + trainer->arena.bytes +
           (trainer->queue ? trainer->device->scratch_bytes : 0);
}

void trainer_release(remat_trainer *trainer)
{
    backend *device = trainer->device;
    if (!device)
        return;
    backend_queue_destroy(trainer->queue); /* nothing runs any more when memory goes */
    backend_memory *const areas[] = {&trainer->weights, &trainer->state, &trainer->gradients,
                                     &trainer->block,   &trainer->arena, &trainer->exchange};
    for (size_t i = 0; i < sizeof areas / sizeof areas[0]; i++)
        backend_release(device, areas[i]);
    staging_release(&trainer->staged, device);
}

bool trainer_adds(const remat_trainer *trainer)
{
    return trainer->settings.accumulate > 1 || trainer->pipeline;
}

tensor_ref trainer_parameter(const remat_trainer *trainer, uint32_t parameter)
{
    const network_parameter *about = &trainer->network->parameters[parameter];
    const backend_memory *area = &trainer->weights;
    const uint64_t offset = trainer->weight_offsets ? trainer->weight_offsets[parameter] : about->offset;
    if (trainer_is_mapped(trainer, parameter) && trainer->mapped->weights[parameter].map.at)
        return (tensor_ref){(char *)(uintptr_t)trainer->mapped->weights[parameter].map.at, about->about.dtype};
    return area->at && trainer_has(trainer, parameter, REMAT_SHARD_WEIGHTS)
               ? (tensor_ref){area->at + offset, about->about.dtype}
               : TENSOR_NONE;
}

tensor_ref trainer_gradient(const remat_trainer *trainer, uint32_t parameter)
{
    const network_parameter *about = &trainer->network->parameters[parameter];
    const backend_memory *area = &trainer->gradients;
    const uint64_t offset = trainer->gradient_offsets ? trainer->gradient_offsets[parameter] : about->gradient_offset;
    return area->at && trainer_has(trainer, parameter, REMAT_SHARD_GRADIENTS)
               ? (tensor_ref){area->at + offset, layer_gradient_dtype(&about->about)}
               : TENSOR_NONE;
}

/* ---- copies on the host ---- */

enum { KEPT = sizeof((kept_memory *)0)->copies / sizeof((kept_memory *)0)->copies[0] };

static const backend_memory *kept_area(const remat_trainer *trainer, int i)
{
    return i == 0 ? &trainer->weights : &trainer->state;
}

static void release_copies(remat_trainer *trainer, kept_memory *kept)
{
    for (int i = 0; i < KEPT; i++)
        remat_release(trainer->context, kept->copies[i], kept_area(trainer, i)->bytes, 1);
    *kept = (kept_memory){0};
}

static remat_status copy_areas(remat_trainer *trainer, kept_memory *kept)
{
    for (int i = 0; i < KEPT; i++) {
        const backend_memory *area = kept_area(trainer, i);
        kept->copies[i] = remat_alloc(trainer->context, area->bytes, 1);
        if (!kept->copies[i])
            return REMAT_NO_MEMORY;
        REMAT_TRY(backend_copy_out(trainer->queue, kept->copies[i], area->at, area->bytes));
    }
    return backend_wait(trainer->queue);
}

remat_status trainer_keep(remat_trainer *trainer, kept_memory *kept)
{
    remat_status status = copy_areas(trainer, kept);
    if (status != REMAT_OK)
        release_copies(trainer, kept);
    return status;
}

remat_status trainer_put_back(remat_trainer *trainer, kept_memory *kept)
{
    remat_status status = REMAT_OK;
    for (int i = 0; i < KEPT && status == REMAT_OK; i++)
        status =
            backend_copy_in(trainer->queue, kept_area(trainer, i)->at, kept->copies[i], kept_area(trainer, i)->bytes);
    if (status == REMAT_OK)
        status = backend_wait(trainer->queue);
    release_copies(trainer, kept);
    return status;
}
