/* Moments and weights of any type for the reference optimizers: a block is unpacked, changed, and packed again. */
#ifndef REMAT_BACKEND_CPU_REFERENCE_MOMENTS_H
#define REMAT_BACKEND_CPU_REFERENCE_MOMENTS_H

#include "backend/cpu/reference.h"
#include "base/moment_codes.h"

/* Blocks of MOMENT_BLOCK values: the passes of an optimizer's loop. */
static inline size_t moment_blocks(size_t count)
{
    return (count + MOMENT_BLOCK - 1) / MOMENT_BLOCK;
}
static inline size_t moment_block_length(size_t count, size_t from)
{
    return count - from < MOMENT_BLOCK ? count - from : MOMENT_BLOCK;
}

static inline void moment_unpack(tensor_ref moment, tensor_ref scales, size_t from, size_t count, real *values)
{
    for (size_t i = 0; moment.at && i < count; i++) {
        const float scale = scales.at ? ((const float *)scales.at)[from / MOMENT_BLOCK] : 0;
        if (moment.type == REMAT_BF16) {
            values[i] = (real)moment_from_bf16(((const uint16_t *)moment.at)[from + i]);
        } else if (moment.type == REMAT_UINT8) {
            values[i] = (real)square_value(((const uint8_t *)moment.at)[from + i], scale);
        } else if (moment.type == REMAT_INT8) {
            values[i] = (real)mean_value(((const int8_t *)moment.at)[from + i], scale);
        } else {
            values[i] = ((const real *)moment.at)[from + i];
        }
    }
}

/* `random` says which random numbers to round with, and value 0 of the tensor takes number `first` of them; `half` is 0 for
 * the first moment, 1 for the second. */
static inline void moment_pack(tensor_ref moment, tensor_ref scales, size_t from, size_t count, const real *values,
                               const remat_random *random, size_t first, int half)
{
    float scale = 0;
    if (!moment.at)
        return;
    if (moment.type == REMAT_INT8 || moment.type == REMAT_UINT8) {
        float single[MOMENT_BLOCK];
        for (size_t i = 0; i < count; i++)
            single[i] = (float)values[i];
        scale = moment.type == REMAT_INT8 ? mean_scale_of(single, count) : square_scale_of(single, count);
        ((float *)scales.at)[from / MOMENT_BLOCK] = scale;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t numbers[4];
        const float value = (float)values[i];
        remat_random_block(random, (first + from + i) / 4, numbers);
        const uint32_t number = numbers[(first + from + i) % 4] >> 16 * half & 0xffff;
        if (moment.type == REMAT_BF16) {
            ((uint16_t *)moment.at)[from + i] = moment_bf16(value, number);
        } else if (moment.type == REMAT_UINT8) {
            ((uint8_t *)moment.at)[from + i] = (uint8_t)square_code(value, scale, number);
        } else if (moment.type == REMAT_INT8) {
            const int code = (int)mean_code(fabsf(value), scale, number);
            ((int8_t *)moment.at)[from + i] = (int8_t)(value < 0 ? -code : code);
        } else {
            ((real *)moment.at)[from + i] = values[i];
        }
    }
}

static inline remat_random moment_stream(const step_block *block, uint64_t number)
{
    return remat_random_stream(block->seed, MOMENT_STREAM + (uint32_t)number, block->step);
}

static inline remat_random weight_stream(const step_block *block, uint64_t number)
{
    return remat_random_stream(block->seed, WEIGHT_STREAM + (uint32_t)number, block->step);
}

#endif
