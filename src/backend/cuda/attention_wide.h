/* Attention with heads of any size, slowly. */
#ifndef REMAT_BACKEND_CUDA_ATTENTION_WIDE_H
#define REMAT_BACKEND_CUDA_ATTENTION_WIDE_H

#include "backend/cuda/cuda_run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As cuda_attention and cuda_attention_backward. They need no workspace. cudaErrorInvalidValue: heads of several thousand values. */
cudaError_t cuda_attention_wide(const cuda_run *run, const op_attention *args);
cudaError_t cuda_attention_wide_backward(const cuda_run *run, const op_attention_backward *args);

#ifdef __cplusplus
}
#endif
#endif
