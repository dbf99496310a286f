/* GEMMs, with what the matrix products of the library leave out: a bias of another type, and sums over nothing. */
#include "backend/cuda/cuda_device.cuh"
#include "backend/cuda/cuda_products.h"

/* A part of the scratch memory, for a bias in the type of C; the rest is workspace of the product. */
enum { BIAS_BYTES = 1 << 20 };

__global__ void fill_rows(op_gemm p)
{
    const size_t count = p.m * p.n, step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const size_t at = i / p.n * p.ldc + i % p.n;
        put(p.c, at, (p.accumulate ? get(p.c, at) : 0) + (p.bias.at ? get(p.bias, i % p.n) : 0));
    }
}

/* The same as two operations, where the library cannot join them. That depends on sizes and types alone. */
static cudaError_t multiply_then_derive(const cuda_run *run, const op_gemm *joined)
{
    op_gemm product = *joined;
    product.activated = product.derivative_at = tensor_ref{NULL, REMAT_FP32};
    const cudaError_t multiplied = cuda_gemm(run, &product);
    if (multiplied != cudaSuccess)
        return multiplied;
    op_activate_backward derive = {};
    derive.x = derive.y = joined->derivative_at;
    derive.dy = derive.dx = joined->c;
    derive.count = joined->m * joined->n;
    derive.kind = joined->activation;
    return cuda_activate_backward(run, &derive);
}

cudaError_t cuda_gemm(const cuda_run *run, const op_gemm *args)
{
    op_gemm p = *args;
    char *bias = (char *)run->scratch;
    if (!p.m || !p.n)
        return cudaSuccess;
    if (!p.activated.at)
        p.derivative_at = tensor_ref{NULL, REMAT_FP32};
    else if (p.activation != ACTIVATION_GELU_TANH || !p.derivative_at.at || p.activated.at != p.c.at || p.ldc != p.n ||
             p.accumulate || p.bias.at)
        return cudaErrorInvalidValue;
    if (!p.k) {
        fill_rows<<<blocks_for(p.m * p.n, 256), 256, 0, run->stream>>>(p);
        return cudaGetLastError();
    }
    if (p.bias.at && p.bias.type != p.c.type) {
        const op_convert convert = {p.bias, {bias, p.c.type}, p.n};
        if (dtype_bytes(p.c.type, p.n) > BIAS_BYTES)
            return cudaErrorInvalidValue;
        const cudaError_t converted = cuda_convert(run, &convert);
        if (converted != cudaSuccess)
            return converted;
        p.bias = convert.y;
    }
    const cudaError_t launched =
        cuda_product_launch(run->products, run->stream, &p, bias + BIAS_BYTES, run->scratch_bytes - BIAS_BYTES);
    return launched == cudaErrorNotSupported && p.derivative_at.at ? multiply_then_derive(run, &p) : launched;
}
