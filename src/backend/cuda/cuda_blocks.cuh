/* Values of weights in blocks: base/weight_blocks.h. */
#ifndef REMAT_BACKEND_CUDA_CUDA_BLOCKS_CUH
#define REMAT_BACKEND_CUDA_CUDA_BLOCKS_CUH

#include "backend/cuda/cuda_device.cuh"

#include <assert.h>

extern "C" {
#include "base/weight_blocks.h"
}

static __constant__ float LEVELS[16] = {WEIGHT_LEVELS};

/* Value i of a tensor in blocks. */
__device__ __forceinline__ float block_value(tensor_ref t, size_t i)
{
    const size_t block = i / WEIGHT_BLOCK, at = i % WEIGHT_BLOCK;
    if (t.type == REMAT_INT8_BLOCKS) {
        const int8_block *from = (const int8_block *)t.at + block;
        return __fmul_rn(from->scale, (float)from->codes[at]);
    }
    const int4_block *from = (const int4_block *)t.at + block;
    const uint8_t codes = from->codes[at / 2];
    return __fmul_rn(from->scale, LEVELS[at % 2 ? codes >> 4 : codes & 15]);
}

#endif
