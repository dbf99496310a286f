#include "tape/tape_object.h"

#include "base/alloc.h"

remat_status machine_create(tape_machine *machine, remat_context *context, const remat_profile *chain,
                            const tape_store_policy *store)
{
    *machine = (tape_machine){.context = context, .chain = chain, .store = *store, .free_tensor = TENSOR_NONE};
    placer_begin(&machine->placer, context);
    tape_pool_begin(&machine->blocks, context);
    return tensors_reserve(machine, 8);
}

void machine_clear(tape_machine *machine)
{
    remat_context *context = machine->context;
    if (!context)
        return;
    placer_clear(&machine->placer);
    tape_pool_clear(&machine->blocks);
    remat_release(context, machine->tensors, machine->tensor_capacity, sizeof *machine->tensors);
    remat_release(context, machine->buckets, machine->bucket_count, sizeof *machine->buckets);
    remat_release(context, machine->leave_bits, machine->leave_capacity, 1);
    remat_release(context, machine->arrivals, machine->arrival_capacity, sizeof *machine->arrivals);
    remat_release(context, machine->departures, machine->departure_capacity, sizeof *machine->departures);
    *machine = (tape_machine){0};
}

/* ---- a walk ---- */

static uint64_t x_bytes(const tape_machine *machine, uint32_t i)
{
    return i == 0 ? machine->chain->input_bytes : machine_layer(machine, i - 1)->output_bytes;
}

static uint64_t y_bytes(const tape_machine *machine, uint32_t i)
{
    return i == 0 ? machine->chain->input_gradient_bytes : machine_layer(machine, i - 1)->output_bytes;
}

remat_status machine_start(tape_machine *machine)
{
    uint32_t input;
    tensors_forget(machine);
    placer_restart(&machine->placer);
    if (machine->tape)
        tape_pool_reset(&machine->blocks);
    machine->now = machine->done = machine->event = 0;
    machine->frontier = 0;
    machine->arrival = machine->departure_first = machine->departure_count = 0;
    return tensors_add(machine, TENSOR_X, 0, REMAT_NO_SAVE, x_bytes(machine, 0), &input);
}

void machine_stop(tape_machine *machine)
{
    if (!machine->tape && machine->done > machine->callbacks)
        machine->callbacks = machine->done;
    tensors_forget(machine);
}

/* x_i, alone or inside the saved state of the layer before. */
static uint32_t find_x(const tape_machine *machine, uint32_t i)
{
    uint32_t x = tensors_find(machine, TENSOR_X, i);
    return x == TENSOR_NONE ? tensors_find(machine, TENSOR_S, i - 1) : x;
}

/* Runs the callback, and lets the time pass that it takes. What it reads and makes is noted before. */
static remat_status run(tape_machine *machine, machine_call *call)
{
    REMAT_TRY(placer_take_workspace(&machine->placer, call->workspace_bytes, machine->now, &call->workspace));
    if (machine->tape) {
        tape_workspace_taken(machine->tape, call);
        REMAT_TRY(tape_call(machine->tape, call));
        tape_room_given(machine->tape, call->workspace, call->workspace_bytes);
    }
    machine->now++;
    machine->done++;
    placer_give_workspace(&machine->placer, call->workspace, call->workspace_bytes, machine->now);
    return REMAT_OK;
}

static machine_call new_call(remat_tape_phase phase, uint32_t layer)
{
    return (machine_call){.phase = phase,
                          .layer = layer,
                          .mode = REMAT_NO_SAVE,
                          .input = TENSOR_NONE,
                          .saved = TENSOR_NONE,
                          .output = TENSOR_NONE,
                          .output_gradient = TENSOR_NONE,
                          .input_gradient = TENSOR_NONE};
}

/* ---- steps ---- */

/* What the forward makes: a state, an output, or both. A state in the store's mode is made in full at first. */
static remat_status add_results(tape_machine *machine, remat_step step, machine_call *call)
{
    const remat_layer *layer = machine_layer(machine, step.layer);
    bool to_store = machine_store_mode(machine, step.layer, step.save);
    call->mode = to_store ? REMAT_KEEP : step.save;
    const remat_mode *mode = &layer->modes[call->mode == REMAT_NO_SAVE ? REMAT_KEEP : call->mode];
    call->workspace_bytes = mode->forward_workspace_bytes;
    call->output_in_saved = step.save != REMAT_NO_SAVE && mode->holds_output;
    call->copy_output = to_store;
    if (step.save != REMAT_NO_SAVE)
        REMAT_TRY(tensors_add(machine, TENSOR_S, step.layer, call->mode, mode->activation_bytes, &call->saved));
    if (!call->output_in_saved || to_store)
        REMAT_TRY(tensors_add(machine, TENSOR_X, step.layer + 1, REMAT_NO_SAVE, layer->output_bytes, &call->output));
    REMAT_TRY(moves_note(machine, call->saved, to_store));
    return moves_note(machine, call->output, false);
}

static remat_status play_forward(tape_machine *machine, remat_step step)
{
    bool is_recompute = step.layer < machine->frontier;
    machine_call call = new_call(is_recompute ? REMAT_PHASE_RECOMPUTE : REMAT_PHASE_FORWARD, step.layer);
    call.input = find_x(machine, step.layer);
    REMAT_TRY(moves_use(machine, call.input));
    REMAT_TRY(moves_note(machine, call.input, false));
    REMAT_TRY(add_results(machine, step, &call));
    REMAT_TRY(run(machine, &call));
    machine->frontier = is_recompute ? machine->frontier : step.layer + 1;
    REMAT_TRY(moves_after(machine, call.input));
    REMAT_TRY(moves_after(machine, call.saved));
    return moves_after(machine, call.output);
}

static remat_status play_loss(tape_machine *machine)
{
    uint32_t n = machine->frontier;
    machine_call call = new_call(REMAT_PHASE_LOSS, n);
    call.input = find_x(machine, n);
    call.workspace_bytes = machine->chain->loss_workspace_bytes;
    REMAT_TRY(moves_use(machine, call.input));
    REMAT_TRY(moves_note(machine, call.input, false));
    REMAT_TRY(tensors_add(machine, TENSOR_Y, n, REMAT_NO_SAVE, y_bytes(machine, n), &call.input_gradient));
    REMAT_TRY(run(machine, &call));
    return moves_after(machine, call.input);
}

static remat_status play_backward(tape_machine *machine, uint32_t i)
{
    machine_call call = new_call(REMAT_PHASE_BACKWARD, i);
    call.input = find_x(machine, i);
    call.saved = tensors_find(machine, TENSOR_S, i);
    call.output_gradient = tensors_find(machine, TENSOR_Y, i + 1);
    call.mode = machine->tensors[call.saved].mode;
    call.workspace_bytes = machine_layer(machine, i)->modes[call.mode].backward_workspace_bytes;
    REMAT_TRY(moves_use(machine, call.input));
    REMAT_TRY(moves_use(machine, call.saved));
    REMAT_TRY(moves_note(machine, call.input, false));
    REMAT_TRY(moves_note(machine, call.saved, false));
    REMAT_TRY(tensors_add(machine, TENSOR_Y, i, REMAT_NO_SAVE, y_bytes(machine, i), &call.input_gradient));
    REMAT_TRY(run(machine, &call));
    REMAT_TRY(tensors_drop(machine, call.output_gradient));
    REMAT_TRY(tensors_drop(machine, call.saved));
    return moves_after(machine, call.input);
}

remat_status machine_step(tape_machine *machine, remat_step step)
{
    switch ((remat_op)step.op) {
    case REMAT_DROP_X: return tensors_drop(machine, tensors_find(machine, TENSOR_X, step.layer));
    case REMAT_DROP_STATE: return tensors_drop(machine, tensors_find(machine, TENSOR_S, step.layer));
    default: break;
    }
    REMAT_TRY(moves_before(machine));
    switch ((remat_op)step.op) {
    case REMAT_FORWARD: return play_forward(machine, step);
    case REMAT_LOSS: return play_loss(machine);
    default: return play_backward(machine, step.layer);
    }
}
