#include "tape/tape_object.h"

#include "base/alloc.h"

/* Only what is live has an entry: a chain of unknown length takes no more memory the longer it gets. */

static size_t bucket_of(const tape_machine *machine, uint8_t kind, uint32_t layer)
{
    return ((uint64_t)layer * 3 + kind) & (machine->bucket_count - 1);
}

static void attach(tape_machine *machine, uint32_t number)
{
    tape_tensor *tensor = &machine->tensors[number];
    size_t bucket = bucket_of(machine, tensor->kind, tensor->layer);
    tensor->next = machine->buckets[bucket];
    machine->buckets[bucket] = number;
}

static void detach(tape_machine *machine, uint32_t number)
{
    const tape_tensor *tensor = &machine->tensors[number];
    uint32_t *link = &machine->buckets[bucket_of(machine, tensor->kind, tensor->layer)];
    while (*link != number)
        link = &machine->tensors[*link].next;
    *link = tensor->next;
}

static remat_status rehash(tape_machine *machine, size_t count)
{
    uint32_t *buckets = remat_alloc(machine->context, count, sizeof *buckets);
    if (!buckets)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        buckets[i] = TENSOR_NONE;
    uint32_t *before = machine->buckets;
    size_t before_count = machine->bucket_count;
    machine->buckets = buckets;
    machine->bucket_count = count;
    for (size_t i = 0; i < before_count; i++)
        for (uint32_t number = before[i], next; number != TENSOR_NONE; number = next) {
            next = machine->tensors[number].next;
            attach(machine, number);
        }
    remat_release(machine->context, before, before_count, sizeof *before);
    return REMAT_OK;
}

remat_status tensors_reserve(tape_machine *machine, size_t count)
{
    if (count >= TENSOR_NONE)
        return remat_fail(machine->context, REMAT_NO_MEMORY, NULL, "too many tensors are live at once");
    REMAT_TRY(remat_grow(machine->context, (void **)&machine->tensors, &machine->tensor_capacity, count,
                         sizeof *machine->tensors));
    if (count > machine->bucket_count)
        REMAT_TRY(rehash(machine, machine->bucket_count ? machine->bucket_count * 2 : 16));
    return count > machine->bucket_count ? tensors_reserve(machine, count) : REMAT_OK;
}

void tensors_forget(tape_machine *machine)
{
    machine->tensor_count = 0;
    machine->free_tensor = TENSOR_NONE;
    for (size_t i = 0; i < machine->bucket_count; i++)
        machine->buckets[i] = TENSOR_NONE;
}

uint32_t tensors_find(const tape_machine *machine, uint8_t kind, uint32_t layer)
{
    uint32_t number = machine->buckets[bucket_of(machine, kind, layer)];
    while (number != TENSOR_NONE && (machine->tensors[number].layer != layer || machine->tensors[number].kind != kind))
        number = machine->tensors[number].next;
    return number;
}

remat_status tensors_add(tape_machine *machine, uint8_t kind, uint32_t layer, uint16_t mode, uint64_t bytes,
                         uint32_t *number)
{
    uint32_t added = machine->free_tensor;
    if (added == TENSOR_NONE) {
        REMAT_TRY(tensors_reserve(machine, machine->tensor_count + 1));
        added = (uint32_t)machine->tensor_count++;
    } else {
        machine->free_tensor = machine->tensors[added].next;
    }
    tape_tensor *tensor = &machine->tensors[added];
    *tensor = (tape_tensor){
        .bytes = bytes, .layer = layer, .kind = kind, .mode = mode, .has_room = true, .last_event = UINT64_MAX};
    attach(machine, added);
    *number = added;
    REMAT_TRY(placer_take(&machine->placer, bytes, machine->now, &tensor->at));
    tape_room_taken(machine->tape, tensor);
    return REMAT_OK;
}

remat_status tensors_drop(tape_machine *machine, uint32_t number)
{
    tape_tensor *tensor = &machine->tensors[number];
    if (tensor->has_room)
        REMAT_TRY(moves_give_room(machine, tensor));
    moves_forget(machine, tensor);
    detach(machine, number);
    tensor->leaving = false;
    tensor->next = machine->free_tensor;
    machine->free_tensor = number;
    return REMAT_OK;
}
