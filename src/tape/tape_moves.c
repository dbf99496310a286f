#include "tape/tape_object.h"

#include "base/alloc.h"

static bool on_disk(const tape_machine *machine)
{
    return machine->store.kind == REMAT_TAPE_DISK;
}

/* Blocks come in eight sizes an octave: few enough to search, and at most an eighth of the file is lost. */
static uint64_t block_bytes(uint64_t bytes)
{
    uint64_t unit = TAPE_ALIGNMENT;
    while (bytes / unit >= 16)
        unit *= 2;
    return (bytes + unit - 1) / unit * unit;
}

/* ---- rooms ---- */

static remat_status take_room(tape_machine *machine, tape_tensor *tensor)
{
    REMAT_TRY(placer_take(&machine->placer, tensor->bytes, machine->now, &tensor->at));
    tensor->has_room = true;
    tape_room_taken(machine->tape, tensor);
    return REMAT_OK;
}

remat_status moves_give_room(tape_machine *machine, tape_tensor *tensor)
{
    tensor->leaving = tensor->has_room = false;
    if (machine->tape && on_disk(machine) && tensor->stored)
        REMAT_TRY(tape_disk_wait(machine->tape, tensor));
    tape_room_given(machine->tape, tensor->at, tensor->bytes);
    placer_give(&machine->placer, tensor->at, tensor->bytes, machine->now);
    return REMAT_OK;
}

void moves_forget(tape_machine *machine, tape_tensor *tensor)
{
    if (!tensor->stored)
        return;
    tensor->stored = false;
    if (on_disk(machine)) {
        if (machine->placer.mode == PLACER_COUNT)
            tape_pool_count_give(&machine->blocks, block_bytes(tensor->bytes));
        else if (machine->tape)
            tape_pool_give(&machine->blocks, tensor->kept, block_bytes(tensor->bytes));
        return;
    }
    if (machine->tape)
        tape_half_forget(machine->tape, tensor);
    tape_room_given(machine->tape, tensor->kept, half_room(tensor->bytes));
    placer_give(&machine->placer, tensor->kept, half_room(tensor->bytes), machine->now);
}

/* ---- leaving ---- */

static remat_status pack(tape_machine *machine, tape_tensor *tensor)
{
    REMAT_TRY(placer_take(&machine->placer, half_room(tensor->bytes), machine->now, &tensor->kept));
    tensor->stored = true;
    if (machine->tape)
        REMAT_TRY(tape_half_pack(machine->tape, tensor));
    machine->now++;
    return moves_give_room(machine, tensor);
}

static remat_status queue_departure(tape_machine *machine, uint32_t number)
{
    size_t capacity = machine->departure_capacity;
    if (machine->departure_count == capacity) {
        /* The ring grows only in the first dry walk. Its items are moved to the start, in order. */
        tape_departure *ring = remat_alloc(machine->context, capacity ? capacity * 2 : 16, sizeof *ring);
        if (!ring)
            return REMAT_NO_MEMORY;
        for (size_t i = 0; i < capacity; i++)
            ring[i] = machine->departures[(machine->departure_first + i) % capacity];
        remat_release(machine->context, machine->departures, capacity, sizeof *ring);
        machine->departures = ring;
        machine->departure_first = 0;
        machine->departure_capacity = capacity ? capacity * 2 : 16;
    }
    tape_tensor *tensor = &machine->tensors[number];
    tensor->leaving = true;
    tensor->leaves_at = machine->done + machine->store.write_steps;
    size_t last = (machine->departure_first + machine->departure_count++) % machine->departure_capacity;
    machine->departures[last] = (tape_departure){tensor->leaves_at, number};
    return REMAT_OK;
}

static remat_status put(tape_machine *machine, uint32_t number)
{
    tape_tensor *tensor = &machine->tensors[number];
    if (tensor->stored) /* it came back from there, and is as it was */
        return moves_give_room(machine, tensor);
    if (machine->placer.mode == PLACER_COUNT)
        REMAT_TRY(tape_pool_count_take(&machine->blocks, block_bytes(tensor->bytes)));
    else if (machine->tape)
        tensor->kept = tape_pool_take(&machine->blocks, block_bytes(tensor->bytes));
    tensor->stored = true;
    if (machine->tape)
        REMAT_TRY(tape_disk_put(machine->tape, tensor));
    return queue_departure(machine, number);
}

remat_status moves_after(tape_machine *machine, uint32_t number)
{
    if (number == TENSOR_NONE || !machine->tensors[number].leave_next)
        return REMAT_OK;
    machine->tensors[number].leave_next = false;
    return on_disk(machine) ? put(machine, number) : pack(machine, &machine->tensors[number]);
}

/* ---- coming back ---- */

static remat_status unpack(tape_machine *machine, tape_tensor *tensor)
{
    REMAT_TRY(take_room(machine, tensor));
    if (machine->tape)
        REMAT_TRY(tape_half_unpack(machine->tape, tensor));
    machine->now++;
    moves_forget(machine, tensor);
    return REMAT_OK;
}

static remat_status get(tape_machine *machine, tape_tensor *tensor)
{
    if (!tensor->has_room)
        REMAT_TRY(take_room(machine, tensor));
    tensor->arriving = false;
    if (machine->tape)
        REMAT_TRY(tape_disk_get(machine->tape, tensor));
    machine->now++;
    return REMAT_OK;
}

remat_status moves_use(tape_machine *machine, uint32_t number)
{
    tape_tensor *tensor = &machine->tensors[number];
    tensor->leaving = false; /* if it was on its way out, it stays */
    if (machine->scanning || (tensor->has_room && !tensor->arriving))
        return REMAT_OK;
    return on_disk(machine) ? get(machine, tensor) : unpack(machine, tensor);
}

/* ---- before a callback ---- */

static remat_status depart(tape_machine *machine)
{
    while (machine->departure_count > 0) {
        tape_departure *first = &machine->departures[machine->departure_first];
        if (first->at > machine->done)
            return REMAT_OK;
        machine->departure_first = (machine->departure_first + 1) % machine->departure_capacity;
        machine->departure_count--;
        tape_tensor *tensor = &machine->tensors[first->tensor];
        if (tensor->leaving && tensor->leaves_at == first->at)
            REMAT_TRY(moves_give_room(machine, tensor));
    }
    return REMAT_OK;
}

static remat_status begin_reads(tape_machine *machine)
{
    while (machine->arrival < machine->arrival_count) {
        const tape_arrival *next = &machine->arrivals[machine->arrival];
        if (next->step > machine->done + machine->store.read_steps)
            return REMAT_OK;
        machine->arrival++;
        uint32_t number = tensors_find(machine, next->kind, next->layer);
        if (number == TENSOR_NONE) /* it will be made, leave and be wanted again within read_steps */
            continue;
        tape_tensor *tensor = &machine->tensors[number];
        tensor->leaving = false;
        if (tensor->has_room)
            continue;
        REMAT_TRY(take_room(machine, tensor));
        tensor->arriving = true;
        if (machine->tape)
            REMAT_TRY(tape_disk_prefetch(machine->tape, tensor));
    }
    return REMAT_OK;
}

remat_status moves_before(tape_machine *machine)
{
    if (!on_disk(machine) || machine->scanning)
        return REMAT_OK;
    REMAT_TRY(depart(machine));
    return begin_reads(machine);
}

/* ---- which uses are followed by a wait ---- */

static bool bit(const uint8_t *bits, uint64_t at)
{
    return bits[at / 8] >> at % 8 & 1;
}

static remat_status add_arrival(tape_machine *machine, const tape_tensor *tensor)
{
    REMAT_TRY(remat_grow(machine->context, (void **)&machine->arrivals, &machine->arrival_capacity,
                         machine->arrival_count + 1, sizeof *machine->arrivals));
    machine->arrivals[machine->arrival_count++] = (tape_arrival){machine->done, tensor->layer, tensor->kind};
    return REMAT_OK;
}

static remat_status scan_use(tape_machine *machine, tape_tensor *tensor, bool forced)
{
    uint64_t before = tensor->last_event;
    bool rounds = store_is_half(machine->store.kind);
    bool may_leave =
        !machine->store.planned && tensor->bytes > 0 && !(rounds && tensor->kind == TENSOR_X && tensor->layer == 0);
    if (before != UINT64_MAX && may_leave && machine->done - tensor->last_use > machine->store.wait_steps)
        machine->leave_bits[before / 8] |= (uint8_t)(1u << before % 8);
    if (before != UINT64_MAX && bit(machine->leave_bits, before) && on_disk(machine))
        REMAT_TRY(add_arrival(machine, tensor));
    uint64_t event = machine->event++;
    if (event % 8 == 0) {
        REMAT_TRY(remat_grow(machine->context, (void **)&machine->leave_bits, &machine->leave_capacity,
                             (size_t)(event / 8) + 1, 1));
        machine->leave_bits[event / 8] = 0;
    }
    if (forced && tensor->bytes > 0)
        machine->leave_bits[event / 8] |= (uint8_t)(1u << event % 8);
    tensor->last_event = event;
    tensor->last_use = machine->done;
    return REMAT_OK;
}

remat_status moves_note(tape_machine *machine, uint32_t number, bool forced)
{
    if (machine->store.kind == REMAT_TAPE_MEMORY || number == TENSOR_NONE)
        return REMAT_OK;
    tape_tensor *tensor = &machine->tensors[number];
    if (machine->scanning)
        return scan_use(machine, tensor, forced);
    tensor->leave_next = bit(machine->leave_bits, machine->event++);
    return REMAT_OK;
}
