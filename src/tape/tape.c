#include "tape/tape_object.h"

#include "base/alloc.h"
#include "base/options.h"

static remat_status take_callbacks(remat_context *context, const remat_tape_callbacks *given, size_t size,
                                   remat_tape_callbacks *callbacks)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    *callbacks = (remat_tape_callbacks){0};
    if (!remat_struct_take(callbacks, sizeof *callbacks, given, size))
        return remat_fail(context, REMAT_INVALID, NULL, "there is a callback that this library does not know");
    place.field = !callbacks->forward ? "forward" : !callbacks->backward ? "backward" : "loss";
    if (callbacks->forward && callbacks->backward && callbacks->loss)
        return REMAT_OK;
    return remat_fail(context, REMAT_INVALID, &place, "missing; a tape needs all three callbacks");
}

remat_status tape_object_create(remat_context *context, const remat_profile *profile,
                                const remat_tape_callbacks *given_callbacks, size_t callbacks_size,
                                const remat_tape_options *given, remat_tape **tape)
{
    remat_tape_options options;
    remat_tape_callbacks callbacks;
    REMAT_TRY(tape_options_take(context, given, &options));
    REMAT_TRY(tape_options_check(context, profile, &options));
    REMAT_TRY(take_callbacks(context, given_callbacks, callbacks_size, &callbacks));
    /* Aligned as the arena is: tensors of no bytes are inside. */
    remat_tape *made = *tape = remat_alloc_aligned(context, sizeof *made, _Alignof(remat_tape));
    if (!made)
        return REMAT_NO_MEMORY;
    *made = (remat_tape){
        .context = context, .profile = profile, .chain = profile, .callbacks = callbacks, .options = options};
    return REMAT_OK;
}

void remat_tape_destroy(remat_tape *tape)
{
    if (!tape)
        return;
    remat_context *context = tape->context;
    if (tape->begun) /* an online chain that was never reversed */
        tape_run_end(tape, REMAT_INTERNAL, tape_clock());
    tape_store_destroy(tape);
    tape_verify_destroy(tape);
    tape_arena_open(tape);
    if (tape->arena)
        remat_release(context, tape->arena, (size_t)tape->arena_bytes, 1);
    machine_clear(&tape->machine);
    remat_online_destroy(tape->online);
    walker_clear(&tape->walker);
    remat_plan_destroy(tape->own_plan);
    remat_profile_destroy(tape->own_chain);
    remat_release(context, tape, 1, sizeof *tape);
}

/* What the plan means for the states of the layers. */
static void sum_up(remat_tape *tape)
{
    remat_tape_statistics *all = &tape->statistics;
    for (size_t i = 0; i < tape->chain->layer_count; i++) {
        const remat_layer *layer = &tape->chain->layers[i];
        uint16_t decision = remat_plan_decision(tape->plan, i);
        if (decision == REMAT_NO_SAVE)
            all->avoided_bytes += layer->modes[REMAT_KEEP].activation_bytes;
        else
            all->kept_bytes += layer->modes[decision].activation_bytes;
    }
    all->arena_bytes = tape->arena_bytes;
    all->peak_bytes = tape->machine.placer.peak_bytes;
}

static remat_status build(remat_tape *tape)
{
    REMAT_TRY(tape_chain_make(tape->context, tape->profile, &tape->options, &tape->own_chain));
    if (tape->own_chain)
        tape->chain = tape->own_chain;
    REMAT_TRY(tape_plan_choose(tape));
    sum_up(tape);
    REMAT_TRY(tape_store_create(tape));
    return tape_verify_create(tape);
}

remat_status remat_tape_create_sized(remat_context *context, const remat_profile *profile,
                                     const remat_tape_callbacks *callbacks, size_t callbacks_size,
                                     const remat_tape_options *options, remat_tape **tape)
{
    uint64_t before = remat_context_bytes(context);
    *tape = NULL;
    REMAT_TRY(tape_object_create(context, profile, callbacks, callbacks_size, options, tape));
    remat_status status = build(*tape);
    if (status != REMAT_OK) {
        remat_tape_destroy(*tape);
        *tape = NULL;
        return status;
    }
    /* What the options point to was needed to plan only. */
    (*tape)->options.strategy = (*tape)->options.plan_path = (*tape)->options.directory = NULL;
    (*tape)->options.least_bytes = NULL;
    (*tape)->statistics.bookkeeping_bytes = remat_context_bytes(context) - before;
    return REMAT_OK;
}

void remat_tape_set_step(remat_tape *tape, uint32_t step)
{
    tape->step = step;
}

uint32_t remat_tape_step(const remat_tape *tape)
{
    return tape->step;
}

uint64_t remat_tape_arena_bytes(const remat_tape *tape)
{
    return tape->arena_bytes;
}

const remat_plan *remat_tape_plan(const remat_tape *tape)
{
    return tape->plan;
}

void remat_tape_get_statistics_sized(const remat_tape *tape, remat_tape_statistics *statistics, size_t statistics_size)
{
    remat_struct_give(statistics, statistics_size, &tape->statistics, sizeof tape->statistics);
}

uint32_t remat_tape_forwards(const remat_tape *tape, size_t layer)
{
    return tape->plan ? remat_plan_forwards(tape->plan, layer) : 0;
}

const char *remat_tape_remark(const remat_tape *tape)
{
    return tape->remark;
}
