/* Values of weights in blocks: base/weight_blocks.h. */
#ifndef REMAT_BACKEND_CUDA_CUDA_BLOCKS_CUH
#define REMAT_BACKEND_CUDA_CUDA_BLOCKS_CUH

#include "backend/cuda/cuda_device.cuh"

/* The same as in base/weight_blocks.c. */
static __constant__ float LEVELS[16] = {-1.0f,
                                        -0.6961928009986877f,
                                        -0.5250730514526367f,
                                        -0.39491748809814453f,
                                        -0.28444138169288635f,
                                        -0.18477343022823334f,
                                        -0.09105003625154495f,
                                        0.0f,
                                        0.07958029955625534f,
                                        0.16093020141124725f,
                                        0.24611230194568634f,
                                        0.33791524171829224f,
                                        0.44070982933044434f,
                                        0.5626170039176941f,
                                        0.7229568362236023f,
                                        1.0f};

/* Value i of a tensor in blocks (base/weight_blocks.h). */
__device__ __forceinline__ float block_value(tensor_ref t, size_t i)
{
    const size_t block = i / 64, at = i % 64;
    if (t.type == REMAT_INT8_BLOCKS) {
        const char *from = (const char *)t.at + 68 * block;
        return __fmul_rn(*(const float *)from, (float)((const int8_t *)from)[4 + at]);
    }
    const char *from = (const char *)t.at + 36 * block;
    const uint8_t codes = ((const uint8_t *)from)[4 + at / 2];
    return __fmul_rn(*(const float *)from, LEVELS[at % 2 ? codes >> 4 : codes & 15]);
}

#endif
