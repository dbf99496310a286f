#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/error.h"
#include "train/optimizer.h"
#include "train/trainer_object.h"

uint64_t trainer_fixed_bytes(const remat_trainer *trainer)
{
    uint64_t weights = trainer->network->parameter_bytes;
    uint64_t bytes = weights * (1 + optimizer_moments(&trainer->optimizer));
    if (trainer->settings.accumulate > 1)
        bytes += weights;
    return bytes + (uint64_t)trainer->run.threads * trainer->kernels->scratch_bytes;
}

/* Large areas are asked for in large pages: fewer faults at the start, fewer misses in every step. Only whole large pages
 * inside the area, so that no memory outside of it is touched; a system that does not know the wish ignores it. */
static void wish_for_large_pages(char *memory, uint64_t bytes)
{
    const uintptr_t page = (uintptr_t)2 << 20;
    uintptr_t first = ((uintptr_t)memory + page - 1) & ~(page - 1), end = ((uintptr_t)memory + bytes) & ~(page - 1);
    if (end > first)
        madvise((void *)first, end - first, MADV_HUGEPAGE);
}

remat_status area_allocate(remat_context *context, uint64_t bytes, trainer_area *area)
{
    if (bytes == 0)
        return REMAT_OK;
    area->memory = remat_alloc_aligned(context, bytes, 64);
    if (!area->memory)
        return REMAT_NO_MEMORY;
    area->bytes = bytes;
    wish_for_large_pages(area->memory, bytes);
    return REMAT_OK;
}

/* One that starts with zeros. */
static remat_status allocate_zeroed(remat_context *context, uint64_t bytes, trainer_area *area)
{
    REMAT_TRY(area_allocate(context, bytes, area));
    if (area->memory && !remat_alloc_comes_zeroed(context, bytes))
        memset(area->memory, 0, bytes);
    return REMAT_OK;
}

void area_release(remat_context *context, const trainer_area *area)
{
    remat_release(context, area->memory, area->bytes, 1);
}

remat_status area_point_into(const trainer_area *area, const remat_network *network, real ***pointers)
{
    *pointers = remat_alloc_zeroed(network->context, network->parameter_count, sizeof **pointers);
    if (!*pointers)
        return REMAT_NO_MEMORY;
    for (size_t p = 0; area->memory && p < network->parameter_count; p++)
        (*pointers)[p] = (real *)(void *)(area->memory + network->parameters[p].offset);
    return REMAT_OK;
}

remat_status trainer_allocate(remat_trainer *trainer)
{
    remat_context *context = trainer->context;
    const remat_network *network = trainer->network;
    uint64_t weights = network->parameter_bytes;
    unsigned moments = optimizer_moments(&trainer->optimizer);
    REMAT_TRY(area_allocate(context, weights, &trainer->weights));
    for (unsigned m = 0; m < moments; m++)
        REMAT_TRY(allocate_zeroed(context, weights, &trainer->moments[m]));
    if (trainer->settings.accumulate > 1)
        REMAT_TRY(allocate_zeroed(context, weights, &trainer->gradients));
    REMAT_TRY(
        area_allocate(context, (uint64_t)trainer->run.threads * trainer->kernels->scratch_bytes, &trainer->scratch));
    REMAT_TRY(area_allocate(context, trainer_arena_bytes(trainer), &trainer->arena));
    trainer->run.scratch = trainer->scratch.memory;
    REMAT_TRY(area_point_into(&trainer->weights, network, &trainer->parameter_values));
    for (unsigned m = 0; m < 2; m++)
        REMAT_TRY(area_point_into(&trainer->moments[m], network, &trainer->moment_values[m]));
    return area_point_into(&trainer->gradients, network, &trainer->gradient_values);
}

uint64_t trainer_allocated_bytes(const remat_trainer *trainer)
{
    return trainer->weights.bytes + trainer->moments[0].bytes + trainer->moments[1].bytes + trainer->gradients.bytes +
           trainer->scratch.bytes + trainer->arena.bytes;
}

void trainer_release(remat_trainer *trainer)
{
    remat_context *context = trainer->context;
    size_t count = trainer->network ? trainer->network->parameter_count : 0;
    remat_release(context, trainer->parameter_values, count, sizeof *trainer->parameter_values);
    remat_release(context, trainer->gradient_values, count, sizeof *trainer->gradient_values);
    for (unsigned m = 0; m < 2; m++) {
        remat_release(context, trainer->moment_values[m], count, sizeof *trainer->moment_values[m]);
        area_release(context, &trainer->moments[m]);
    }
    area_release(context, &trainer->weights);
    area_release(context, &trainer->gradients);
    area_release(context, &trainer->scratch);
    area_release(context, &trainer->arena);
}
