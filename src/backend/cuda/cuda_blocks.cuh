/* Values of weights in fp16, and in blocks: base/weight_blocks.h. */
#ifndef REMAT_BACKEND_CUDA_CUDA_BLOCKS_CUH
#define REMAT_BACKEND_CUDA_CUDA_BLOCKS_CUH

#include "backend/cuda/cuda_device.cuh"

#include <assert.h>
#include <cuda_fp16.h>

extern "C" {
#include "base/weight_blocks.h"
}

static __constant__ float LEVELS[16] = {WEIGHT_LEVELS};

/* Whether a tensor is of this kind. */
__host__ __device__ __forceinline__ bool is_packed(tensor_ref t)
{
    return t.type == REMAT_FP16 || t.type == REMAT_INT8_BLOCKS || t.type == REMAT_INT4_BLOCKS;
}

/* Value i of it. */
__device__ __forceinline__ float block_value(tensor_ref t, size_t i)
{
    const size_t block = i / WEIGHT_BLOCK, at = i % WEIGHT_BLOCK;
    if (t.type == REMAT_FP16)
        return __half2float(((const __half *)t.at)[i]);
    if (t.type == REMAT_INT8_BLOCKS) {
        const int8_block *from = (const int8_block *)t.at + block;
        return __fmul_rn(from->scale, (float)from->codes[at]);
    }
    const int4_block *from = (const int4_block *)t.at + block;
    const uint8_t codes = from->codes[at / 2];
    return __fmul_rn(from->scale, LEVELS[at % 2 ? codes >> 4 : codes & 15]);
}

#endif
