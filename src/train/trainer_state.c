/* The optimizer's state: one area. The tensors of a parameter follow each other in the order of STATE_FIRST .., each aligned to
 * 64 bytes; those of parameters that are not trained are not there. */
#include "train/trainer_object.h"

#include <float.h>
#include <math.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/half.h"
#include "base/moment_codes.h"

static uint64_t placed(const optimizer_state *state)
{
    return (state->bytes + 63) & ~(uint64_t)63;
}

remat_status trainer_place_state(remat_trainer *trainer)
{
    const remat_network *network = trainer->network;
    trainer->state_offsets = remat_alloc(trainer->context, network->parameter_count, sizeof *trainer->state_offsets);
    if (!trainer->state_offsets)
        return REMAT_NO_MEMORY;
    uint64_t offset = 0; /* network_number_parameters keeps this far below 2^63 */
    for (uint32_t p = 0; p < network->parameter_count; p++) {
        optimizer_state states[OPTIMIZER_STATES];
        trainer_find_states(trainer, p, states);
        trainer->state_offsets[p] = offset;
        for (int i = 0; i < OPTIMIZER_STATES; i++)
            offset += placed(&states[i]);
    }
    trainer->state_bytes = offset;
    return REMAT_OK;
}

void trainer_find_states(const remat_trainer *trainer, uint32_t parameter, optimizer_state states[OPTIMIZER_STATES])
{
    const network_parameter *about = &trainer->network->parameters[parameter];
    if (layer_parameter_is_trained(&about->about))
        optimizer_find_states(&trainer->optimizer, &about->about, about->values, states);
    else
        memset(states, 0, OPTIMIZER_STATES * sizeof *states);
}

tensor_ref trainer_state(const remat_trainer *trainer, uint32_t parameter, unsigned number)
{
    optimizer_state states[OPTIMIZER_STATES];
    uint64_t offset = trainer->state_offsets[parameter];
    trainer_find_states(trainer, parameter, states);
    for (unsigned i = 0; i < number; i++)
        offset += placed(&states[i]);
    if (!trainer->state.at || states[number].bytes == 0)
        return TENSOR_NONE;
    return (tensor_ref){trainer->state.at + offset, states[number].dtype};
}

uint64_t trainer_state_moved(const remat_trainer *trainer, uint32_t parameter)
{
    optimizer_state states[OPTIMIZER_STATES];
    uint64_t bytes = 0;
    trainer_find_states(trainer, parameter, states);
    for (int i = 0; i < OPTIMIZER_STATES; i++)
        bytes += 2 * states[i].bytes;
    return bytes;
}

/* ---- moments as floats ---- */

static void unpack_codes(remat_dtype dtype, const uint8_t *codes, const float *scales, uint64_t count, float *values)
{
    for (uint64_t i = 0; i < count; i++) {
        const float scale = scales[i / MOMENT_BLOCK] / MOMENT_TOP;
        const int code = dtype == REMAT_INT8 ? (int)(int8_t)codes[i] : (int)codes[i];
        const float magnitude =
            moment_value((uint32_t)(code < 0 ? -code : code), dtype == REMAT_INT8 ? MOMENT_SIGNED : MOMENT_SQUARES) *
            scale;
        values[i] = code < 0 ? -magnitude : magnitude;
    }
}

static void pack_codes(remat_dtype dtype, const float *values, uint64_t count, uint8_t *codes, float *scales)
{
    for (uint64_t from = 0; from < count; from += MOMENT_BLOCK) {
        const uint64_t end = count - from < MOMENT_BLOCK ? count : from + MOMENT_BLOCK;
        float *largest = &scales[from / MOMENT_BLOCK];
        *largest = 0;
        for (uint64_t i = from; i < end; i++)
            *largest = fmaxf(*largest, fminf(fabsf(values[i]), FLT_MAX));
        for (uint64_t i = from; i < end; i++) {
            const int kind = dtype == REMAT_INT8 ? MOMENT_SIGNED : MOMENT_SQUARES;
            const int code = (int)moment_code(fabsf(values[i]), *largest, (uint32_t)kind, MOMENT_TO_NEAREST);
            codes[i] = (uint8_t)(dtype == REMAT_INT8 && values[i] < 0 ? -code : code);
        }
    }
}

/* A moment and its scales on the host. */
typedef struct moment_copy {
    uint64_t bytes, scales_bytes;
    void *codes;
    float *scales;
} moment_copy;

static void release_copy(const remat_trainer *trainer, moment_copy *copy)
{
    remat_release(trainer->context, copy->codes, copy->bytes, 1);
    remat_release(trainer->context, copy->scales, copy->scales_bytes, 1);
}

static remat_status make_copy(const remat_trainer *trainer, uint32_t parameter, unsigned moment, moment_copy *copy)
{
    optimizer_state states[OPTIMIZER_STATES];
    trainer_find_states(trainer, parameter, states);
    *copy = (moment_copy){states[moment].bytes, states[STATE_FIRST_SCALES + moment].bytes, NULL, NULL};
    copy->codes = remat_alloc(trainer->context, copy->bytes, 1);
    copy->scales = remat_alloc(trainer->context, copy->scales_bytes, 1);
    if (copy->codes && copy->scales)
        return REMAT_OK;
    release_copy(trainer, copy);
    return REMAT_NO_MEMORY;
}

static remat_status read_packed(const remat_trainer *trainer, tensor_ref from, tensor_ref scales, float *values,
                                uint64_t count, const moment_copy *copy)
{
    REMAT_TRY(backend_copy_out(trainer->queue, copy->codes, from.at, copy->bytes));
    if (scales.at)
        REMAT_TRY(backend_copy_out(trainer->queue, copy->scales, scales.at, copy->scales_bytes));
    REMAT_TRY(backend_wait(trainer->queue));
    if (from.type == REMAT_BF16)
        half_unpack(half_kernels_choose(), REMAT_BF16, copy->codes, values, count);
    else
        unpack_codes(from.type, copy->codes, copy->scales, count, values);
    return REMAT_OK;
}

remat_status trainer_read_moment(const remat_trainer *trainer, uint32_t parameter, unsigned moment, float *values)
{
    const tensor_ref from = trainer_state(trainer, parameter, moment);
    const uint64_t count = trainer->network->parameters[parameter].values;
    if (from.type == REMAT_FP32) {
        REMAT_TRY(backend_copy_out(trainer->queue, values, from.at, dtype_bytes(from.type, count)));
        return backend_wait(trainer->queue);
    }
    moment_copy copy;
    REMAT_TRY(make_copy(trainer, parameter, moment, &copy));
    remat_status status = read_packed(trainer, from, trainer_state(trainer, parameter, STATE_FIRST_SCALES + moment),
                                      values, count, &copy);
    release_copy(trainer, &copy);
    return status;
}

static remat_status write_packed(const remat_trainer *trainer, tensor_ref to, tensor_ref scales, const float *values,
                                 uint64_t count, const moment_copy *copy)
{
    if (to.type == REMAT_BF16)
        half_pack(half_kernels_choose(), REMAT_BF16, true, values, copy->codes, count);
    else
        pack_codes(to.type, values, count, copy->codes, copy->scales);
    REMAT_TRY(backend_copy_in(trainer->queue, to.at, copy->codes, copy->bytes));
    if (scales.at)
        REMAT_TRY(backend_copy_in(trainer->queue, scales.at, copy->scales, copy->scales_bytes));
    return backend_wait(trainer->queue);
}

remat_status trainer_write_moment(remat_trainer *trainer, uint32_t parameter, unsigned moment, const float *values)
{
    const tensor_ref to = trainer_state(trainer, parameter, moment);
    const uint64_t count = trainer->network->parameters[parameter].values;
    if (to.type == REMAT_FP32) {
        REMAT_TRY(backend_copy_in(trainer->queue, to.at, values, dtype_bytes(to.type, count)));
        return backend_wait(trainer->queue);
    }
    moment_copy copy;
    REMAT_TRY(make_copy(trainer, parameter, moment, &copy));
    remat_status status =
        write_packed(trainer, to, trainer_state(trainer, parameter, STATE_FIRST_SCALES + moment), values, count, &copy);
    release_copy(trainer, &copy);
    return status;
}
