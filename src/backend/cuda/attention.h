/* Attention on the GPU. The kernels hold nothing quadratic. Every sum has a fixed order: the bits of a result depend on the
 * sizes, the alignment of rows to 16 bytes, and the kind of device.
 *
 * Which kernels run depends on the element type, the sizes and the device:
 *
 *     fp32, and bf16 in heads of more than 128 values or of rows that are not aligned   attention_plain.cu
 *     bf16                                                                              attention_forward.cu, _backward.cu
 *     bf16, heads of at most 64 values, on Hopper                                       attention_hopper.cu, _hopper_backward.cu
 */
#ifndef REMAT_BACKEND_CUDA_ATTENTION_H
#define REMAT_BACKEND_CUDA_ATTENTION_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend/cuda/cuda_run.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "backend/operation.h"

/* q, k, v and out are all fp32 or all bf16, `sums` is fp32. Heads have at most 256 values. cudaErrorInvalidValue: the
 * arguments are none of these. */
cudaError_t cuda_attention(const cuda_run *run, const op_attention *args);

/* The same types; gradients have the type of q. `workspace` has the bytes that the next function says, at a multiple of 256. */
cudaError_t cuda_attention_backward(const cuda_run *run, const op_attention_backward *args);

/* The bytes of `workspace`. It reads the sizes and q's type alone, no address. It is the same on every device. */
uint64_t cuda_attention_backward_workspace(const op_attention_backward *args);

#ifdef __cplusplus
}
#endif

#endif
