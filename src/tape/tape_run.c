#include "tape/tape_object.h"

#include "base/alloc.h"
#include "base/number_text.h"

#include <string.h>

/* The arena is the one allocation of a run, and only of the first. */
static remat_status have_arena(remat_tape *tape)
{
    if (tape->arena || tape->arena_bytes == 0)
        return REMAT_OK;
    if (tape->arena_bytes > SIZE_MAX)
        return remat_fail(tape->context, REMAT_NO_MEMORY, NULL, "the arena is larger than memory can be");
    tape->arena = remat_alloc_aligned(tape->context, (size_t)tape->arena_bytes, TAPE_ALIGNMENT);
    return tape->arena ? REMAT_OK : REMAT_NO_MEMORY;
}

/* Sets the figures of the last run to nothing; those of the plan stay. */
static void forget_last_run(remat_tape *tape)
{
    remat_tape_statistics *all = &tape->statistics;
    *all = (remat_tape_statistics){
        .arena_bytes = all->arena_bytes,
        .peak_bytes = all->peak_bytes,
        .bookkeeping_bytes = all->bookkeeping_bytes,
        .kept_bytes = all->kept_bytes,
        .avoided_bytes = all->avoided_bytes,
        .runs = all->runs,
    };
    tape->remark[0] = '\0';
}

remat_status tape_run_begin(remat_tape *tape, const void *input)
{
    uint64_t bytes = tape->profile->input_bytes;
    forget_last_run(tape);
    if (!input && bytes > 0) {
        remat_place place = REMAT_PLACE_NOWHERE;
        place.field = "input";
        return remat_fail(tape->context, REMAT_INVALID, &place, "missing; the profile says it has %llu bytes",
                          (unsigned long long)bytes);
    }
    REMAT_TRY(have_arena(tape));
    tape_store_begin(tape);
    if (tape->verifier)
        tape_verify_begin(tape);
    tape->machine.tape = tape;
    tape_rooms_forget(tape);
    REMAT_TRY(machine_start(&tape->machine));
    if (bytes > 0)
        memcpy(tape_address(tape, tape->machine.tensors[0].at), input, (size_t)bytes);
    return REMAT_OK;
}

void tape_run_hand_out(remat_tape *tape, void *input_gradient)
{
    uint32_t y = tensors_find(&tape->machine, TENSOR_Y, 0);
    uint64_t bytes = tape->profile->input_gradient_bytes;
    if (input_gradient && bytes > 0 && y != TENSOR_NONE)
        memcpy(input_gradient, tape_address(tape, tape->machine.tensors[y].at), (size_t)bytes);
}

static void remark_on_disk(remat_tape *tape)
{
    const remat_store_counters *store = &tape->statistics.store;
    if (tape->disk && store->blocks_written > 0 && !store->kept_up)
        text_print(tape->remark, sizeof tape->remark,
                   "the disk did not keep up: %.3f of %.3f seconds went by waiting for it; a plan that recomputes more "
                   "would write less",
                   (double)store->wait_ns * 1e-9, (double)tape->statistics.total_ns * 1e-9);
}

void tape_run_end(remat_tape *tape, remat_status status, uint64_t began)
{
    machine_stop(&tape->machine);
    tape_store_end(tape);
    tape_rooms_forget(tape);
    tape->machine.tape = NULL;
    tape->statistics.total_ns += tape_clock() - began;
    remark_on_disk(tape);
    if (status != REMAT_OK)
        return;
    tape->statistics.runs++;
    tape->step++;
}

remat_status tape_run_step(void *user, remat_step step)
{
    remat_tape *tape = user;
    return machine_step(&tape->machine, step);
}

remat_status tape_refuse_callbacks(const remat_tape *tape)
{
    if (!tape->calling)
        return REMAT_OK;
    return remat_fail(tape->context, REMAT_INVALID, NULL, "a callback must not call the tape that called it");
}

remat_status remat_tape_run(remat_tape *tape, const void *input, void *input_gradient)
{
    REMAT_TRY(tape_refuse_callbacks(tape));
    if (tape->slots)
        return remat_fail(tape->context, REMAT_INVALID, NULL,
                          "an online tape runs by remat_tape_begin, _advance and _reverse");
    uint64_t began = tape_clock();
    remat_status status = tape_run_begin(tape, input);
    if (status == REMAT_OK)
        status = walker_walk(&tape->walker, tape_run_step, tape);
    if (status == REMAT_OK)
        tape_run_hand_out(tape, input_gradient);
    tape_run_end(tape, status, began);
    return status;
}
