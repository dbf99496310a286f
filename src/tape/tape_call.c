#include "tape/tape_object.h"

#include <string.h>
#include <time.h>

/* Under AddressSanitizer whatever is not live cannot be touched: a callback that holds on to a dropped tensor, or
 * writes past the end of its own, is caught in the act. */
#if defined(__SANITIZE_ADDRESS__)
#define TAPE_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TAPE_POISONS 1
#endif
#endif
#ifdef TAPE_POISONS
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes)   ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

uint64_t tape_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- rooms ---- */

unsigned char *tape_address(remat_tape *tape, uint64_t at)
{
    return at == PLACE_NOTHING ? tape->nothing : tape->arena + at;
}

const remat_layer *tape_user_layer(const remat_tape *tape, uint32_t layer)
{
    return &tape->profile->layers[tape->slots ? 0 : layer];
}

uint64_t tape_exact_bytes(const remat_tape *tape, const tape_tensor *tensor)
{
    uint32_t i = tensor->layer;
    if (tensor->kind == TENSOR_S)
        return tape_user_layer(tape, i)->modes[tensor->mode].activation_bytes;
    if (i > 0)
        return tape_user_layer(tape, i - 1)->output_bytes;
    return tensor->kind == TENSOR_X ? tape->profile->input_bytes : tape->profile->input_gradient_bytes;
}

void tape_room_taken(remat_tape *tape, const tape_tensor *tensor)
{
    if (tape && tensor->at != PLACE_NOTHING)
        ASAN_UNPOISON_MEMORY_REGION(tape->arena + tensor->at, tape_exact_bytes(tape, tensor));
}

void tape_workspace_taken(remat_tape *tape, const machine_call *call)
{
    if (call->workspace != PLACE_NOTHING)
        ASAN_UNPOISON_MEMORY_REGION(tape->arena + call->workspace, call->workspace_bytes);
}

void tape_room_given(remat_tape *tape, uint64_t at, uint64_t bytes)
{
    if (tape && at != PLACE_NOTHING)
        ASAN_POISON_MEMORY_REGION(tape->arena + at, bytes);
}

void tape_rooms_forget(remat_tape *tape)
{
    if (tape->arena)
        ASAN_POISON_MEMORY_REGION(tape->arena, tape->arena_bytes);
}

void tape_arena_open(remat_tape *tape)
{
    if (tape->arena)
        ASAN_UNPOISON_MEMORY_REGION(tape->arena, tape->arena_bytes);
}

void tape_half_room_taken(remat_tape *tape, const tape_tensor *tensor)
{
    if (tensor->kept != PLACE_NOTHING)
        ASAN_UNPOISON_MEMORY_REGION(tape->arena + tensor->kept, half_room(tensor->bytes));
}

/* ---- calls ---- */

static void *address_of(remat_tape *tape, uint32_t number)
{
    return number == TENSOR_NONE ? NULL : tape_address(tape, tape->machine.tensors[number].at);
}

static remat_tape_call describe(remat_tape *tape, const machine_call *call)
{
    remat_tape_call to_user = {
        .layer = call->layer,
        .mode = call->mode,
        .phase = call->phase,
        .input = address_of(tape, call->input),
        .saved = address_of(tape, call->saved),
        .output = address_of(tape, call->output_in_saved ? call->saved : call->output),
        .output_gradient = address_of(tape, call->output_gradient),
        .input_gradient = address_of(tape, call->input_gradient),
        .workspace = call->workspace == PLACE_NOTHING ? NULL : tape->arena + call->workspace,
        .random = remat_random_stream(tape->options.seed, call->layer, tape->step),
    };
    return to_user;
}

/* What a callback or the progress function returned comes back as it is; the context says where it was. */
static remat_status stopped(remat_tape *tape, const machine_call *call, int returned, const char *by)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.layer = call->phase == REMAT_PHASE_LOSS ? REMAT_NOWHERE : call->layer;
    place.step = tape->machine.done;
    place.field = remat_tape_phase_name(call->phase);
    return remat_fail(tape->context, (remat_status)returned, &place, "the %s returned %d", by, returned);
}

static void count(remat_tape *tape, remat_tape_phase phase, uint64_t ns)
{
    remat_tape_statistics *statistics = &tape->statistics;
    switch (phase) {
    case REMAT_PHASE_FORWARD: statistics->forwards++, statistics->forward_ns += ns; break;
    case REMAT_PHASE_RECOMPUTE: statistics->recomputes++, statistics->recompute_ns += ns; break;
    case REMAT_PHASE_LOSS: statistics->loss_ns += ns; break;
    case REMAT_PHASE_BACKWARD: statistics->backwards++, statistics->backward_ns += ns; break;
    }
}

remat_status tape_call(remat_tape *tape, const machine_call *call)
{
    const remat_tape_callbacks *to = &tape->callbacks;
    remat_tape_call described = describe(tape, call);
    tape->calling = true;
    uint64_t began = tape_clock();
    int returned = call->phase == REMAT_PHASE_LOSS       ? to->loss(to->user, &described)
                   : call->phase == REMAT_PHASE_BACKWARD ? to->backward(to->user, &described)
                                                         : to->forward(to->user, &described);
    tape->calling = false;
    count(tape, call->phase, tape_clock() - began);
    if (returned != 0)
        return stopped(tape, call, returned, "callback");
    if (tape->verifier && call->phase <= REMAT_PHASE_RECOMPUTE)
        REMAT_TRY(tape_verify_forward(tape, &described));
    if (call->copy_output)
        memcpy(address_of(tape, call->output), described.saved, tape_user_layer(tape, call->layer)->output_bytes);
    if (!tape->options.progress)
        return REMAT_OK;
    returned = tape->options.progress(tape->options.progress_user, tape->machine.done + 1, tape->machine.callbacks,
                                      call->phase, call->layer);
    return returned == 0 ? REMAT_OK : stopped(tape, call, returned, "progress function");
}
