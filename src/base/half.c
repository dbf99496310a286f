#include "base/half_plain.h"

static uint64_t plain_pack_fp16(const float *from, uint16_t *to, size_t count)
{
    return fp16_pack_each(from, to, count);
}

static uint64_t plain_pack_bf16(const float *from, uint16_t *to, size_t count)
{
    return bf16_pack_runs(from, to, count);
}

static void plain_unpack_fp16(const uint16_t *from, float *to, size_t count)
{
    fp16_unpack_each(from, to, count);
}

static void plain_unpack_bf16(const uint16_t *from, float *to, size_t count)
{
    bf16_unpack_runs(from, to, count);
}

static const half_kernels plain = {"plain", plain_pack_fp16, plain_pack_bf16, plain_unpack_fp16, plain_unpack_bf16};

const half_kernels *half_kernels_list(size_t position)
{
    return position == 0 ? &plain : half_kernels_x86(position - 1);
}

const half_kernels *half_kernels_choose(void)
{
    const half_kernels *best = half_kernels_x86(0);
    return best ? best : &plain;
}

const char *remat_precision_name(remat_precision precision)
{
    return remat_dtype_name(precision);
}

static uint32_t overflow_limit(remat_precision precision)
{
    return precision == REMAT_FP16 ? FP16_OVERFLOW : BF16_OVERFLOW;
}

size_t half_first_overflow(remat_precision precision, const float *from, size_t count)
{
    size_t at = 0;
    while (at < count && !bits_overflow(float_bits(from[at]), overflow_limit(precision)))
        at++;
    return at;
}

/* Overflows are rare: a second pass over the numbers costs less than a check in the kernels. */
static void saturate_overflows(remat_precision precision, const float *from, uint16_t *to, size_t count)
{
    uint32_t largest = precision == REMAT_FP16 ? 0x7bff : 0x7f7f;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = float_bits(from[i]);
        if (bits_overflow(bits, overflow_limit(precision)))
            to[i] = (uint16_t)((bits >> 16 & 0x8000) | largest);
    }
}

uint64_t half_pack(const half_kernels *kernels, remat_precision precision, bool saturate, const float *from,
                   uint16_t *to, size_t count)
{
    uint64_t overflows =
        precision == REMAT_FP16 ? kernels->pack_fp16(from, to, count) : kernels->pack_bf16(from, to, count);
    if (overflows && saturate)
        saturate_overflows(precision, from, to, count);
    return overflows;
}

void half_unpack(const half_kernels *kernels, remat_precision precision, const uint16_t *from, float *to, size_t count)
{
    if (precision == REMAT_FP16)
        kernels->unpack_fp16(from, to, count);
    else
        kernels->unpack_bf16(from, to, count);
}
