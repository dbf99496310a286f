#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include "train/optimizer.h"
#include "train/trainer_object.h"

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + 63) & ~(uint64_t)63;
}

uint64_t trainer_fixed_bytes(const remat_trainer *trainer)
{
    uint64_t weights = network_parameter_bytes(trainer->network);
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

static remat_status allocate_area(remat_trainer *trainer, trainer_area *area, uint64_t bytes)
{
    if (bytes == 0)
        return REMAT_OK;
    area->memory = remat_alloc_aligned(trainer->context, bytes, 64);
    if (!area->memory)
        return REMAT_NO_MEMORY;
    area->bytes = bytes;
    trainer->allocated += bytes;
    wish_for_large_pages(area->memory, bytes);
    return REMAT_OK;
}

static void release_area(remat_trainer *trainer, trainer_area *area)
{
    remat_release(trainer->context, area->memory, area->bytes, 1);
    *area = (trainer_area){0};
}

/* Pointers to the parameters inside an area that has their layout. */
static remat_status point_into(remat_trainer *trainer, const trainer_area *area, real ***pointers)
{
    const remat_network *network = trainer->network;
    *pointers = remat_alloc_zeroed(trainer->context, network->parameter_count, sizeof **pointers);
    if (!*pointers)
        return REMAT_NO_MEMORY;
    uint64_t offset = 0;
    for (size_t p = 0; area->memory && p < network->parameter_count; p++) {
        (*pointers)[p] = (real *)(void *)(area->memory + offset);
        offset += round_up(network->parameters[p].values * sizeof(real));
    }
    return REMAT_OK;
}

remat_status trainer_allocate(remat_trainer *trainer)
{
    uint64_t weights = network_parameter_bytes(trainer->network);
    unsigned moments = optimizer_moments(&trainer->optimizer);
    REMAT_TRY(allocate_area(trainer, &trainer->weights, weights));
    for (unsigned m = 0; m < moments; m++)
        REMAT_TRY(allocate_area(trainer, &trainer->moments[m], weights));
    if (trainer->settings.accumulate > 1)
        REMAT_TRY(allocate_area(trainer, &trainer->gradients, weights));
    if (trainer->gradients.memory)
        memset(trainer->gradients.memory, 0, trainer->gradients.bytes);
    REMAT_TRY(
        allocate_area(trainer, &trainer->scratch, (uint64_t)trainer->run.threads * trainer->kernels->scratch_bytes));
    REMAT_TRY(allocate_area(trainer, &trainer->arena, trainer_arena_bytes(trainer)));
    trainer->run.scratch = trainer->scratch.memory;
    REMAT_TRY(point_into(trainer, &trainer->weights, &trainer->parameter_values));
    for (unsigned m = 0; m < 2; m++) {
        REMAT_TRY(point_into(trainer, &trainer->moments[m], &trainer->moment_values[m]));
        if (trainer->moments[m].memory)
            memset(trainer->moments[m].memory, 0, trainer->moments[m].bytes);
    }
    return point_into(trainer, &trainer->gradients, &trainer->gradient_values);
}

void trainer_release(remat_trainer *trainer)
{
    size_t count = trainer->network ? trainer->network->parameter_count : 0;
    remat_release(trainer->context, trainer->parameter_values, count, sizeof *trainer->parameter_values);
    remat_release(trainer->context, trainer->gradient_values, count, sizeof *trainer->gradient_values);
    for (unsigned m = 0; m < 2; m++) {
        remat_release(trainer->context, trainer->moment_values[m], count, sizeof *trainer->moment_values[m]);
        release_area(trainer, &trainer->moments[m]);
    }
    release_area(trainer, &trainer->weights);
    release_area(trainer, &trainer->gradients);
    release_area(trainer, &trainer->scratch);
    release_area(trainer, &trainer->arena);
}
