#include "tape/tape_object.h"

#include "base/alloc.h"

#include <string.h>

remat_status tape_store_open(remat_tape *tape, const char *directory, const disk_io *io)
{
    const tape_pool *blocks = &tape->machine.blocks;
    size_t count = (size_t)blocks->slot_count;
    disk_slot *slots = remat_alloc(tape->context, count, sizeof *slots);
    if (!slots)
        return REMAT_NO_MEMORY;
    size_t made = 0;
    for (size_t i = 0; i < blocks->class_count; i++)
        for (uint64_t k = 0; k < blocks->classes[i].most; k++, made++)
            slots[made] = (disk_slot){blocks->classes[i].base + k * blocks->classes[i].bytes, blocks->classes[i].bytes};
    disk_store_options options = {
        .directory = directory,
        .slots = slots,
        .slot_count = count,
        .io = io,
        .queue_length = 2 * ((size_t)tape->options.write_steps + tape->options.read_steps) + 8,
    };
    disk_store_destroy(tape->disk);
    tape->disk = NULL;
    remat_status status = disk_store_create(tape->context, &options, &tape->disk);
    remat_release(tape->context, slots, count, sizeof *slots);
    return status;
}

remat_status tape_store_create(remat_tape *tape)
{
    if (store_is_half(tape->options.store))
        tape->kernels = half_kernels_choose();
    return tape->options.store == REMAT_TAPE_DISK ? tape_store_open(tape, tape->options.directory, NULL) : REMAT_OK;
}

void tape_store_begin(remat_tape *tape)
{
    tape->overflows = tape->kept_full = 0;
    if (tape->disk)
        disk_store_reset(tape->disk);
}

static void release_aside(remat_tape *tape, tape_aside *aside)
{
    remat_release(tape->context, aside->memory, aside->bytes, 1);
    aside->memory = NULL;
}

/* After a run, also one that failed: no memory outside the arena is held any more, and no thread uses the arena. */
void tape_store_end(remat_tape *tape)
{
    remat_store_counters *counters = &tape->statistics.store;
    *counters = (remat_store_counters){0};
    if (tape->disk) {
        disk_store_count(tape->disk, counters);
        disk_store_reset(tape->disk);
    }
    counters->overflows = tape->overflows;
    counters->kept_full = tape->kept_full;
    for (size_t i = 0; i < tape->aside_count; i++)
        release_aside(tape, &tape->asides[i]);
    tape->aside_count = 0;
}

void tape_store_destroy(remat_tape *tape)
{
    disk_store_destroy(tape->disk);
    remat_release(tape->context, tape->asides, tape->aside_capacity, sizeof *tape->asides);
}

/* ---- 16 bits ---- */

static remat_precision precision_of(const remat_tape *tape)
{
    return tape->options.store == REMAT_TAPE_FP16 ? REMAT_FP16 : REMAT_BF16;
}

static remat_status overflowed(remat_tape *tape, const tape_tensor *tensor, size_t count)
{
    const float *from = (const float *)(const void *)tape_address(tape, tensor->at);
    remat_place place = REMAT_PLACE_NOWHERE;
    bool output = tensor->kind == TENSOR_X;
    size_t first = half_first_overflow(precision_of(tape), from, count);
    place.layer = output ? tensor->layer - 1 : tensor->layer;
    return remat_fail(tape->context, REMAT_CHECK_FAILED, &place,
                      "number %zu of its %s, %g, is too large for %s; keep it in bf16 or in full, or let it saturate",
                      first, output ? "output" : "state", (double)from[first],
                      remat_precision_name(precision_of(tape)));
}

/* Copies a tensor out of the arena. Free entries of the list are rare: overflow is. */
static remat_status set_aside(remat_tape *tape, tape_tensor *tensor, size_t bytes)
{
    REMAT_TRY(remat_grow(tape->context, (void **)&tape->asides, &tape->aside_capacity, tape->aside_count + 1,
                         sizeof *tape->asides));
    tape_aside *aside = &tape->asides[tape->aside_count];
    *aside = (tape_aside){remat_alloc(tape->context, bytes, 1), bytes};
    if (!aside->memory)
        return REMAT_NO_MEMORY;
    memcpy(aside->memory, tape_address(tape, tensor->at), bytes);
    tensor->aside = (uint32_t)++tape->aside_count;
    tape->kept_full++;
    return REMAT_OK;
}

remat_status tape_half_pack(remat_tape *tape, tape_tensor *tensor)
{
    uint64_t began = tape_clock();
    size_t bytes = (size_t)tape_exact_bytes(tape, tensor), count = bytes / sizeof(float);
    bool saturate = tape->options.overflow == REMAT_OVERFLOW_SATURATE;
    tape_half_room_taken(tape, tensor);
    uint64_t overflows = half_pack(tape->kernels, precision_of(tape), saturate,
                                   (const float *)(const void *)tape_address(tape, tensor->at),
                                   (uint16_t *)(void *)tape_address(tape, tensor->kept), count);
    tape->overflows += overflows;
    tape->statistics.stored_bytes += bytes;
    if (overflows > 0 && tape->options.overflow == REMAT_OVERFLOW_ERROR)
        return overflowed(tape, tensor, count);
    if (overflows > 0 && tape->options.overflow == REMAT_OVERFLOW_KEEP_FULL)
        REMAT_TRY(set_aside(tape, tensor, bytes));
    tape->statistics.store_ns += tape_clock() - began;
    return REMAT_OK;
}

remat_status tape_half_unpack(remat_tape *tape, tape_tensor *tensor)
{
    uint64_t began = tape_clock();
    size_t bytes = (size_t)tape_exact_bytes(tape, tensor);
    if (tensor->aside)
        memcpy(tape_address(tape, tensor->at), tape->asides[tensor->aside - 1].memory, bytes);
    else
        half_unpack(tape->kernels, precision_of(tape), (const uint16_t *)(void *)tape_address(tape, tensor->kept),
                    (float *)(void *)tape_address(tape, tensor->at), bytes / sizeof(float));
    tape->statistics.restored_bytes += bytes;
    tape->statistics.store_ns += tape_clock() - began;
    return REMAT_OK;
}

void tape_half_forget(remat_tape *tape, tape_tensor *tensor)
{
    if (!tensor->aside)
        return;
    release_aside(tape, &tape->asides[tensor->aside - 1]);
    tensor->aside = 0;
    while (tape->aside_count > 0 && !tape->asides[tape->aside_count - 1].memory)
        tape->aside_count--;
}

/* ---- disk ---- */

/* Ends a call of the disk store: counts its time, and says which layer a failure was about. */
static remat_status finish(remat_tape *tape, const tape_tensor *tensor, uint64_t began, remat_status status)
{
    tape->statistics.store_ns += tape_clock() - began;
    if (status == REMAT_OK)
        return REMAT_OK;
    bool output = tensor->kind == TENSOR_X;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.layer = !output ? tensor->layer : tensor->layer > 0 ? tensor->layer - 1 : REMAT_NOWHERE;
    place.field = !output ? "state" : tensor->layer > 0 ? "output" : "input";
    return remat_fail(tape->context, status, &place, "%s", remat_context_message(tape->context));
}

remat_status tape_disk_put(remat_tape *tape, const tape_tensor *tensor)
{
    uint64_t began = tape_clock(), bytes = tape_exact_bytes(tape, tensor);
    tape->statistics.stored_bytes += bytes;
    return finish(tape, tensor, began,
                  disk_store_put(tape->disk, (size_t)tensor->kept, tape_address(tape, tensor->at), bytes));
}

remat_status tape_disk_prefetch(remat_tape *tape, const tape_tensor *tensor)
{
    uint64_t began = tape_clock(), bytes = tape_exact_bytes(tape, tensor);
    return finish(tape, tensor, began,
                  disk_store_prefetch(tape->disk, (size_t)tensor->kept, tape_address(tape, tensor->at), bytes));
}

remat_status tape_disk_get(remat_tape *tape, const tape_tensor *tensor)
{
    uint64_t began = tape_clock(), bytes = tape_exact_bytes(tape, tensor);
    tape->statistics.restored_bytes += bytes;
    return finish(tape, tensor, began,
                  disk_store_get(tape->disk, (size_t)tensor->kept, tape_address(tape, tensor->at), bytes));
}

remat_status tape_disk_wait(remat_tape *tape, const tape_tensor *tensor)
{
    uint64_t began = tape_clock();
    return finish(tape, tensor, began, disk_store_wait(tape->disk, (size_t)tensor->kept));
}
