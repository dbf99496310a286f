#include "tape/tape_object.h"

static remat_status not_allowed(remat_context *context, const char *field, const char *why)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = field;
    return remat_fail(context, REMAT_INVALID, &place, "%s", why);
}

static remat_status check_layer(remat_context *context, const remat_profile *layer)
{
    if (layer->layer_count != 1)
        return not_allowed(context, "layers", "an online tape needs a profile of exactly one layer: all are alike");
    if (layer->input_bytes != layer->layers[0].output_bytes)
        return not_allowed(context, "input_bytes", "an online tape needs input and output of the same size");
    if (layer->input_gradient_bytes != 0 && layer->input_gradient_bytes != layer->input_bytes)
        return not_allowed(context, "input_gradient_bytes", "must be input_bytes, or 0, for an online tape");
    return REMAT_OK;
}

static remat_status check_options(remat_context *context, const remat_tape_options *options)
{
    if (options->strategy || options->plan || options->plan_path)
        return not_allowed(context, "strategy", "an online tape has a schedule of its own; its slots are its plan");
    if (options->store != REMAT_TAPE_MEMORY)
        return not_allowed(context, "store", "an online tape holds its states in memory");
    if (options->verify != REMAT_VERIFY_OFF)
        return not_allowed(context, "verify", "an online tape cannot hold notes about a chain of any length");
    return REMAT_OK;
}

/* How many slots of each size there must be, as if they had been counted (tape.h says the sum). */
static remat_status count_slots(remat_tape *tape)
{
    tape_placer *placer = &tape->machine.placer;
    const remat_layer *layer = &tape->chain->layers[0];
    const remat_mode *keep = &layer->modes[REMAT_KEEP];
    uint64_t output = layer->output_bytes, workspace = keep->forward_workspace_bytes;
    /* The input and slots - 1 other states are held. Running ahead, one more is read and another is made, while the
     * gradient waits; a backward has its input, and makes one gradient out of another. */
    for (uint64_t i = 0; output > 0 && i < tape->slots + 3; i++)
        REMAT_TRY(tape_pool_count_take(&placer->pool, output));
    if (keep->activation_bytes > 0)
        REMAT_TRY(tape_pool_count_take(&placer->pool, keep->activation_bytes));
    workspace = keep->backward_workspace_bytes > workspace ? keep->backward_workspace_bytes : workspace;
    uint64_t loss = tape->chain->loss_workspace_bytes;
    placer->workspace_bytes = loss > workspace ? loss : workspace;
    return placer_use_pool(placer);
}

static remat_status build(remat_tape *tape)
{
    tape_store_policy policy = tape_options_policy(&tape->options);
    REMAT_TRY(tape_chain_make(tape->context, tape->profile, &tape->options, &tape->own_chain));
    tape->chain = tape->own_chain ? tape->own_chain : tape->profile;
    REMAT_TRY(machine_create(&tape->machine, tape->context, tape->chain, &policy));
    tape->machine.uniform = true;
    if (tape->slots > UINT32_MAX / 2)
        return not_allowed(tape->context, "slots", "there must be fewer than 2^31");
    REMAT_TRY(walker_reserve(&tape->walker, tape->context, tape->slots));
    REMAT_TRY(tensors_reserve(&tape->machine, (size_t)tape->slots + 4));
    REMAT_TRY(count_slots(tape));
    tape->arena_bytes = tape->machine.placer.arena_bytes;
    tape->statistics.arena_bytes = tape->statistics.peak_bytes = tape->arena_bytes;
    return tape_budget_check(tape);
}

remat_status remat_tape_create_online_sized(remat_context *context, const remat_profile *layer, uint64_t slots,
                                            const remat_tape_callbacks *callbacks, size_t callbacks_size,
                                            const remat_tape_options *options, remat_tape **tape)
{
    uint64_t before = remat_context_bytes(context);
    *tape = NULL;
    if (slots == 0)
        return not_allowed(context, "slots", "there must be at least 1: the chain's input takes it");
    REMAT_TRY(check_layer(context, layer));
    REMAT_TRY(tape_object_create(context, layer, callbacks, callbacks_size, options, tape));
    (*tape)->slots = slots;
    remat_status status = check_options(context, &(*tape)->options);
    if (status == REMAT_OK)
        status = build(*tape);
    if (status != REMAT_OK) {
        remat_tape_destroy(*tape);
        *tape = NULL;
        return status;
    }
    (*tape)->statistics.bookkeeping_bytes = remat_context_bytes(context) - before;
    return REMAT_OK;
}

/* ---- running ---- */

static remat_status need_online(const remat_tape *tape, bool begun)
{
    REMAT_TRY(tape_refuse_callbacks(tape));
    if (!tape->slots)
        return remat_fail(tape->context, REMAT_INVALID, NULL, "this tape knows its chain; it runs by remat_tape_run");
    if (begun && !tape->begun)
        return remat_fail(tape->context, REMAT_INVALID, NULL, "there is no chain; begin one with remat_tape_begin");
    return REMAT_OK;
}

/* The end of a chain, whatever ended it. */
static void end(remat_tape *tape, remat_status status, uint64_t began)
{
    tape->begun = false;
    tape_run_end(tape, status, began);
    remat_online_destroy(tape->online);
    tape->online = NULL;
}

remat_status remat_tape_begin(remat_tape *tape, const void *input)
{
    uint64_t began = tape_clock();
    REMAT_TRY(need_online(tape, false));
    if (tape->begun) /* a chain that was never reversed is given up */
        end(tape, REMAT_INTERNAL, began);
    remat_status status = remat_online_create(tape->walker.context, tape->slots, &tape->online);
    if (status == REMAT_OK)
        status = tape_run_begin(tape, input);
    tape->begun = status == REMAT_OK;
    if (status != REMAT_OK)
        end(tape, status, began);
    else
        tape->statistics.total_ns += tape_clock() - began;
    return status;
}

remat_status remat_tape_advance(remat_tape *tape)
{
    uint64_t began = tape_clock();
    REMAT_TRY(need_online(tape, true));
    if (tape->machine.frontier == UINT32_MAX - 1)
        return remat_fail(tape->context, REMAT_INVALID, NULL, "a chain may have at most 2^32 - 2 steps");
    remat_status status = remat_online_advance(tape->online, tape_run_step, tape);
    if (status != REMAT_OK)
        end(tape, status, began);
    else
        tape->statistics.total_ns += tape_clock() - began;
    return status;
}

const void *remat_tape_output(const remat_tape *tape)
{
    if (!tape->begun)
        return NULL;
    uint32_t x = tensors_find(&tape->machine, TENSOR_X, tape->machine.frontier);
    uint64_t at = tape->machine.tensors[x].at;
    return at == PLACE_NOTHING ? tape->nothing : tape->arena + at;
}

remat_status remat_tape_reverse(remat_tape *tape, void *input_gradient)
{
    uint64_t began = tape_clock();
    REMAT_TRY(need_online(tape, true));
    remat_status status = remat_online_reverse(tape->online, tape_run_step, tape);
    if (status == REMAT_OK)
        tape_run_hand_out(tape, input_gradient);
    tape->statistics.avoided_bytes = tape->machine.frontier * tape->chain->layers[0].modes[REMAT_KEEP].activation_bytes;
    end(tape, status, began);
    return status;
}
