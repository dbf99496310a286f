/* The optimizer's state: one area. The tensors of a parameter follow each other in the order of STATE_FIRST .., each aligned to
 * 64 bytes; those of parameters that are not trained are not there. */
#include "train/trainer_object.h"

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

uint64_t trainer_placed_states(const optimizer_state states[OPTIMIZER_STATES])
{
    uint64_t bytes = 0; /* network_number_parameters keeps all of them far below 2^63 */
    for (int i = 0; i < OPTIMIZER_STATES; i++)
        bytes += placed(&states[i]);
    return bytes;
}

void trainer_find_states(const remat_trainer *trainer, uint32_t parameter, optimizer_state states[OPTIMIZER_STATES])
{
    const network_parameter *about = &trainer->network->parameters[parameter];
    if (layer_parameter_is_trained(&about->about))
        optimizer_find_states(&trainer->optimizer, &about->about, about->values, states);
    else
        memset(states, 0, OPTIMIZER_STATES * sizeof *states);
}

void trainer_find_own_states(const remat_trainer *trainer, uint32_t parameter, uint64_t row,
                             optimizer_state states[OPTIMIZER_STATES])
{
    const layer_parameter *about = &trainer->network->parameters[parameter].about;
    if (!trainer_has(trainer, parameter, REMAT_SHARD_OPTIMIZER))
        memset(states, 0, OPTIMIZER_STATES * sizeof *states);
    else if (!trainer_cuts(trainer, parameter, REMAT_SHARD_OPTIMIZER))
        trainer_find_states(trainer, parameter, states);
    else if (layer_parameter_is_trained(about))
        optimizer_find_states(&trainer->optimizer, about, shard_map_part(trainer->shard, parameter, row).values,
                              states);
    else
        memset(states, 0, OPTIMIZER_STATES * sizeof *states);
}

tensor_ref trainer_state(const remat_trainer *trainer, uint32_t parameter, unsigned number)
{
    optimizer_state states[OPTIMIZER_STATES];
    uint64_t offset = trainer->state_offsets[parameter];
    trainer_find_own_states(trainer, parameter, trainer_row(trainer), states);
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
    trainer_find_own_states(trainer, parameter, trainer_row(trainer), states);
    for (int i = 0; i < OPTIMIZER_STATES; i++)
        bytes += 2 * states[i].bytes;
    return bytes;
}

/* ---- moments as floats ---- */

static void unpack_codes(remat_dtype dtype, const uint8_t *codes, const float *scales, uint64_t count, float *values)
{
    for (uint64_t i = 0; i < count; i++) {
        const float scale = scales[i / MOMENT_BLOCK];
        values[i] = dtype == REMAT_UINT8 ? square_value(codes[i], scale) : mean_value((int8_t)codes[i], scale);
    }
}

static void pack_codes(remat_dtype dtype, const float *values, uint64_t count, uint8_t *codes, float *scales)
{
    for (uint64_t from = 0; from < count; from += MOMENT_BLOCK) {
        const uint64_t length = count - from < MOMENT_BLOCK ? count - from : MOMENT_BLOCK;
        const float scale =
            dtype == REMAT_INT8 ? mean_scale_of(values + from, length) : square_scale_of(values + from, length);
        scales[from / MOMENT_BLOCK] = scale;
        for (uint64_t i = from; i < from + length; i++) {
            const int mean = (int)mean_code(fabsf(values[i]), scale, MOMENT_TO_NEAREST);
            codes[i] = (uint8_t)(dtype == REMAT_UINT8 ? (int)square_code(values[i], scale, MOMENT_TO_NEAREST)
                                 : values[i] < 0      ? -mean
                                                      : mean);
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

static remat_status read_packed(const remat_trainer *trainer, uint32_t parameter, unsigned moment, float *values,
                                const moment_copy *copy)
{
    optimizer_state states[OPTIMIZER_STATES];
    trainer_find_states(trainer, parameter, states);
    const remat_dtype dtype = states[moment].dtype;
    REMAT_TRY(trainer_copy_whole(trainer, parameter, moment, copy->codes));
    if (copy->scales_bytes)
        REMAT_TRY(trainer_copy_whole(trainer, parameter, STATE_FIRST_SCALES + moment, copy->scales));
    if (dtype == REMAT_BF16)
        half_unpack(half_kernels_choose(), REMAT_BF16, copy->codes, values, states[moment].values);
    else
        unpack_codes(dtype, copy->codes, copy->scales, states[moment].values, values);
    return REMAT_OK;
}

static bool is_fp32(const remat_trainer *trainer, uint32_t parameter, unsigned moment)
{
    optimizer_state states[OPTIMIZER_STATES];
    trainer_find_states(trainer, parameter, states);
    return states[moment].dtype == REMAT_FP32;
}

remat_status trainer_read_moment(const remat_trainer *trainer, uint32_t parameter, unsigned moment, float *values)
{
    if (is_fp32(trainer, parameter, moment))
        return trainer_copy_whole(trainer, parameter, moment, values);
    moment_copy copy;
    REMAT_TRY(make_copy(trainer, parameter, moment, &copy));
    remat_status status = read_packed(trainer, parameter, moment, values, &copy);
    release_copy(trainer, &copy);
    return status;
}

/* What this rank has of a tensor of the state. */
static remat_status write_part(remat_trainer *trainer, uint32_t parameter, unsigned number, const void *whole)
{
    optimizer_state states[OPTIMIZER_STATES];
    const tensor_ref to = trainer_state(trainer, parameter, number);
    const shard_part part = trainer_part(trainer, parameter, REMAT_SHARD_OPTIMIZER);
    const uint64_t skipped = number < STATE_FIRST_SCALES ? part.first : part.first / MOMENT_BLOCK;
    trainer_find_own_states(trainer, parameter, trainer_row(trainer), states);
    if (!to.at)
        return REMAT_OK;
    return backend_copy_in(trainer->queue, to.at, (const char *)whole + dtype_bytes(to.type, skipped),
                           states[number].bytes);
}

static remat_status write_packed(remat_trainer *trainer, uint32_t parameter, unsigned moment, const float *values,
                                 const moment_copy *copy)
{
    optimizer_state states[OPTIMIZER_STATES];
    trainer_find_states(trainer, parameter, states);
    if (states[moment].dtype == REMAT_BF16)
        half_pack(half_kernels_choose(), REMAT_BF16, true, values, copy->codes, states[moment].values);
    else
        pack_codes(states[moment].dtype, values, states[moment].values, copy->codes, copy->scales);
    REMAT_TRY(write_part(trainer, parameter, moment, copy->codes));
    if (copy->scales_bytes)
        REMAT_TRY(write_part(trainer, parameter, STATE_FIRST_SCALES + moment, copy->scales));
    return backend_wait(trainer->queue);
}

remat_status trainer_write_moment(remat_trainer *trainer, uint32_t parameter, unsigned moment, const float *values)
{
    if (is_fp32(trainer, parameter, moment)) {
        REMAT_TRY(write_part(trainer, parameter, moment, values));
        return backend_wait(trainer->queue);
    }
    moment_copy copy;
    REMAT_TRY(make_copy(trainer, parameter, moment, &copy));
    remat_status status = write_packed(trainer, parameter, moment, values, &copy);
    release_copy(trainer, &copy);
    return status;
}
