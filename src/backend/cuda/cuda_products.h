/* Matrix products by cuBLASLt, which is loaded when a device is opened. The algorithm of a product follows from its sizes, types and
 * alignment, and it is none that adds in random order: the same product gives the same bits in every plan. It is the library's first
 * proposal, or another one that was timed and found faster. */
#ifndef REMAT_BACKEND_CUDA_CUDA_PRODUCTS_H
#define REMAT_BACKEND_CUDA_CUDA_PRODUCTS_H

#include <remat/context.h>

#include "backend/cuda/cuda_run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* REMAT_INVALID: the library is not there; the message says what was looked for. */
remat_status cuda_products_open(remat_context *context, cuda_products **made);
void cuda_products_close(remat_context *context, cuda_products *products);

/* The version of cuBLASLt, such as 130002. */
size_t cuda_products_version(const cuda_products *products);

/* As backend_look_for_algorithms and those after it. */
void cuda_products_look(cuda_products *products, bool looks);
remat_status cuda_products_chosen(const cuda_products *products, char **text);
remat_status cuda_products_use(cuda_products *products, const char *text);

/* C = op(A) op(B) + bias, as op_gemm, without an activation; or, without a bias, times the derivative of gelu at `derivative_at`, from sums
 * that are not rounded. cudaErrorNotSupported: the library has no algorithm. A and B have the same type; C has it too, or fp32; the bias has that of
 * C. No size is 0. `workspace` is memory of the device. */
cudaError_t cuda_product_launch(cuda_products *products, cudaStream_t stream, const op_gemm *args, void *workspace,
                                size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
