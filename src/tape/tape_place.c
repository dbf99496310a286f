#include "tape/tape_object.h"

/* Past so many ranges their list and the solver's own tables take more memory than the placement could win. */
enum { MOST_LIVES = 1 << 22 };

static remat_status play(void *machine, remat_step step)
{
    return machine_step(machine, step);
}

static remat_status walk_dry(remat_tape *tape)
{
    tape_machine *machine = &tape->machine;
    remat_status status = machine_start(machine);
    if (status == REMAT_OK)
        status = walker_walk(&tape->walker, play, machine);
    machine_stop(machine);
    return status;
}

static remat_status scan(remat_tape *tape)
{
    tape->machine.scanning = true;
    remat_status status = walk_dry(tape);
    tape->machine.scanning = false;
    placer_clear(&tape->machine.placer);
    return status;
}

static remat_status place_ranges(remat_tape *tape)
{
    tape_placer *placer = &tape->machine.placer;
    uint64_t pool_bytes = placer_pool_bytes(placer);
    if (pool_bytes == placer->peak_bytes || (placer->pool_fits && placer->range_count > MOST_LIVES))
        return placer_use_pool(placer);
    REMAT_TRY(placer_use_record(placer));
    REMAT_TRY(walk_dry(tape));
    return placer_use_list(placer, tape->options.budget_bytes);
}

remat_status tape_place(remat_tape *tape)
{
    tape_store_policy policy = tape_options_policy(&tape->options);
    machine_clear(&tape->machine);
    REMAT_TRY(machine_create(&tape->machine, tape->context, tape->chain, &policy));
    if (policy.kind != REMAT_TAPE_MEMORY)
        REMAT_TRY(scan(tape));
    REMAT_TRY(walk_dry(tape));
    REMAT_TRY(place_ranges(tape));
    tape->arena_bytes = tape->machine.placer.arena_bytes;
    return tape_pool_build(&tape->machine.blocks);
}
